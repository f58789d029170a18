"""Deal the entries of one split out again: each gets its new key group, a batch at a time is packed.

Runs in a task. What comes out are runs of canonical key groups in the order of the new key groups and states; of the entries only the
key-group prefix and the state id change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from statetool.errors import FormatError, StatetoolError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader
from statetool.ops.formulas import HashFormula
from statetool.ops.hashing import KeyHasher
from statetool.ops.runs import PackedRun, packed
from statetool.ops.sources import BATCH_BYTES, SourceSplit, key_starts, read_split_entries, split_header
from statetool.write.key_hash import key_groups
from statetool.write.order import order_of_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class DealTask:
    """One split and where its entries go; picklable and self-contained.

    Attributes
    ----------
    state_ids
        New id of each state of the stream's header, -1 for those that are left out.
    old_max, new_max
        Max parallelism.
    formula
        How keys hash where their own serializer does not know; ``None`` there or where no hash is needed.
    """

    split: SourceSplit
    state_ids: tuple[int, ...]
    old_max: int
    new_max: int
    formula: HashFormula | None = None
    batch_bytes: int = BATCH_BYTES

    @property
    def needs_hashes(self) -> bool:
        """Whether the old key group does not tell the new one: of a divisor it does, as both are remainders of one number."""
        return self.old_max % self.new_max != 0


def deal_split(task: DealTask) -> Iterator[PackedRun]:
    """Yield the entries of one split, dealt out again.

    Raises
    ------
    FormatError
        Damaged bytes, or a key that does not lie in the key group of its hash code.
    UnsupportedError
        The hash code of a key is not known.
    """
    split = task.split
    try:
        _, header = split_header(split)
        dealer = _Dealer(task, header)
        for batch in read_split_entries(split, header, task.batch_bytes):
            try:
                run = dealer.deal(batch)
            except StatetoolError as error:
                raise batch.locate(error) from None
            if run is not None:
                yield run
    except StatetoolError as error:
        raise error.at(operator=split.spec.operator, file=split.stream.file) from None


class _Dealer:
    """Deals batches of one stream."""

    def __init__(self, task: DealTask, header: KeyedHeader) -> None:
        self.task = task
        self.header = header
        self.state_ids = np.array(task.state_ids, dtype=np.int64)
        self.prefix = prefix_size(task.new_max)
        self.hasher = None
        if task.needs_hashes:
            self.hasher = KeyHasher(header.key, task.formula)

    def deal(self, batch: EntryBatch) -> PackedRun | None:
        state = self.state_ids[batch.state]
        if (state < 0).any():
            batch = batch.take(np.flatnonzero(state >= 0))
            state = self.state_ids[batch.state]
        if not len(batch):
            return None
        group = self.new_groups(batch)
        return packed(batch, order_of_groups(group, state), group, state, self.prefix)

    def new_groups(self, batch: EntryBatch) -> Int64s:
        if self.hasher is None:
            return batch.group % self.task.new_max
        start = key_starts(batch, self.header)
        end = self.hasher.ends(batch.data, start, batch.key_end)
        ids, first = distinct(batch.data, start, end, batch.group)
        hashes = self.hasher.hashes(batch.data, start[first], end[first])
        expected = key_groups(hashes, self.task.old_max)
        wrong = np.flatnonzero(expected != batch.group[first])
        if len(wrong):
            at = int(first[wrong[0]])
            raise FormatError(
                f"a key of {self.header.key.type_name} lies in key group {int(batch.group[at])}, its hash code says "
                f"{int(expected[wrong[0]])}",
                hint="the job's class has another hashCode(): declare it with hashes=, or choose a divisor of "
                f"{self.task.old_max}, which needs none",
            ).at(offset=int(start[at]))
        return key_groups(hashes, self.task.new_max)[ids]
