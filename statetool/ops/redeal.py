"""Deal the entries of one split out again: each gets its new key group, a batch at a time is sorted and packed.

Runs in a task. What comes out are runs of canonical key groups in the order of the new key groups, states and keys; of the entries
only the key-group prefix and the state id change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError, StatetoolError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.deal import find_twins, key_heads, pack_groups, sort_entries
from statetool.ops.formulas import HashFormula, formula_hash
from statetool.ops.hashing import Bytes, KeyHasher, distinct, key_groups_of
from statetool.ops.sources import BATCH_BYTES, SourceSplit, key_starts, read_split_entries, split_header


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


@dataclass(frozen=True, slots=True)
class PackedRun:
    """Canonical key groups one after another, in ascending order.

    ``numbers`` int64[k] are the key groups, ``starts`` int64[k + 1] where each starts in ``data``, and the end.
    """

    data: Bytes
    numbers: Int64s
    starts: Int64s


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
            hash_code = None if task.formula is None else formula_hash(task.formula, header.key)
            self.hasher = KeyHasher(header.key, hash_code)

    def deal(self, batch: EntryBatch) -> PackedRun | None:
        state = self.state_ids[batch.state]
        if (state < 0).any():
            batch = batch.take(np.flatnonzero(state >= 0))
            state = self.state_ids[batch.state]
        if not len(batch):
            return None
        group = self.new_groups(batch)
        order = self.sorted(batch, group << 16 | state)
        prefix = self.prefix
        size = int((batch.key_end - batch.key + batch.value_end - batch.value).sum()) + (12 + prefix) * len(batch)
        out = np.empty(size, dtype=np.uint8)
        numbers = np.empty(len(batch), dtype=np.int64)
        starts = np.empty(len(batch) + 1, dtype=np.int64)
        columns = (batch.key, batch.key_end, batch.value, batch.value_end)
        written, count = pack_groups(batch.data, order, group, state, *columns, prefix, out, numbers, starts)
        starts[count] = written
        return PackedRun(out[:written], numbers[:count].copy(), starts[: count + 1].copy())

    def new_groups(self, batch: EntryBatch) -> Int64s:
        if self.hasher is None:
            return batch.group % self.task.new_max
        start = key_starts(batch, self.header)
        end = self.hasher.ends(batch.data, start, batch.key_end)
        ids, first = distinct(batch.data, start, end, batch.group)
        hashes = self.hasher.hashes(batch.data, start[first], end[first])
        expected = key_groups_of(hashes, self.task.old_max)
        wrong = np.flatnonzero(expected != batch.group[first])
        if len(wrong):
            at = int(first[wrong[0]])
            raise FormatError(
                f"a key of {self.header.key.type_name} lies in key group {int(batch.group[at])}, its hash code says "
                f"{int(expected[wrong[0]])}",
                hint="the job's class has another hashCode(): declare it with hashes=, or choose a divisor of "
                f"{self.task.old_max}, which needs none",
            ).at(offset=int(start[at]))
        return key_groups_of(hashes, self.task.new_max)[ids]

    def sorted(self, batch: EntryBatch, major: Int64s) -> Int64s:
        """Return the entries' order by ``major`` (key group and state) and key."""
        head = np.empty(len(batch), dtype=np.uint64)
        key_heads(batch.data, batch.key, batch.key_end, head)
        order = np.arange(len(batch), dtype=np.int64)
        sort_entries(batch.data, major, head, batch.key, batch.key_end, order, np.empty_like(order))
        refuse_twins(batch, major, head, order, [m.name for m in self.header.states])
        return order


def refuse_twins(
    batch: EntryBatch, major: Int64s, head: npt.NDArray[np.uint64], order: Int64s, states: Sequence[str]
) -> None:
    """Refuse two entries of one state with the same key; ``states`` are the names of the batch's states.

    Raises
    ------
    FormatError
        There are some; the offset is the position in ``batch.data``.
    """
    twin = int(find_twins(batch.data, major, head, batch.key, batch.key_end, order))
    if twin >= 0:
        at = int(order[twin])
        raise FormatError("a state has two entries with the same key").at(
            offset=int(batch.key[at]), state=states[int(batch.state[at])]
        )
