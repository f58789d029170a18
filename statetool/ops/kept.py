"""State that an existing savepoint keeps while other state of the same operator is replaced: its bytes as records.

Runs in tasks. Keyed entries keep their key groups and bytes, elements of operator state their subtask and order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.pieces import Chain, Encoded, Integers, Ranges, pack
from statetool.arrow.records import RECORDS, binary_array
from statetool.errors import StatetoolError
from statetool.formats.compression import read_chunks
from statetool.formats.key_groups import owner_of, prefix_size
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import Stream
from statetool.ops.sources import SourceSplit, joined_header, keyed_splits, read_split_entries, split_header
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import element_ends

_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptKeyed:
    """Entries of one split; ``state_ids`` are the new ids of the states of its header, -1 for those that go."""

    split: SourceSplit
    state_ids: tuple[int, ...]
    parallelism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptElements:
    """Operator state of one subtask: the elements of each state (by its new id), as ranges of the stream.

    Ranges of a compressed stream are of the compressed bytes, all of which belong to the state.
    """

    operator: str
    stream: Stream
    subtask: int
    compressed: bool
    states: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


Kept = KeptKeyed | KeptElements


def keyed_tasks(operator: OperatorInventory, *, without: Collection[str], parallelism: int) -> list[KeptKeyed]:
    """Plan the keyed state that stays; ids are positions in :func:`statetool.ops.sources.joined_header`.

    Raises
    ------
    UnsupportedError
        Keyed state of a kind that cannot be read.
    """
    joined = joined_header(operator, without=without)
    if joined is None:
        return []
    tasks = []
    for split in keyed_splits(operator):
        raw, _ = split_header(split)
        ids = joined.state_ids[raw]
        if any(i >= 0 for i in ids):
            tasks.append(KeptKeyed(split=split, state_ids=ids, parallelism=parallelism))
    return tasks


def element_tasks(operator: OperatorInventory, ids: Mapping[str, int]) -> list[KeptElements]:
    """Plan the operator state that stays: ``ids`` are the new ids by name."""
    tasks = []
    for part in operator.operator_parts:
        header = operator.operator_header(part)
        ends = element_ends(part)
        states = tuple(
            (ids[name], tuple((o, ends[o]) for o in offsets))
            for name, offsets in part.offsets.items()
            if name in ids and offsets
        )
        if states:
            tasks.append(
                KeptElements(
                    operator=operator.label,
                    stream=part.stream,
                    subtask=part.subtask,
                    compressed=header.compressed,
                    states=states,
                )
            )
    return tasks


def kept_records(task: Kept) -> Iterator[pa.RecordBatch]:
    """Read the records of one task.

    Raises
    ------
    FormatError
        Damaged bytes; with file, offset and operator.
    """
    if isinstance(task, KeptKeyed):
        try:
            yield from _keyed(task)
        except StatetoolError as error:
            raise error.at(operator=task.split.spec.operator, file=task.split.stream.file) from None
    else:
        try:
            yield from _elements(task)
        except StatetoolError as error:
            raise error.at(operator=task.operator, file=task.stream.file) from None


def _keyed(task: KeptKeyed) -> Iterator[pa.RecordBatch]:
    _, header = split_header(task.split)
    ids = np.array(task.state_ids, dtype=np.int64)
    maximum = task.split.spec.max_parallelism
    prefix = prefix_size(maximum)
    for batch in read_split_entries(task.split, header):
        state = ids[batch.state]
        rows = np.flatnonzero(state >= 0)
        for at in range(0, len(rows), _BATCH_ROWS):
            some = rows[at : at + _BATCH_ROWS]
            group = batch.group[some]
            keys = Ranges(batch.data, batch.key[some], batch.key_end[some] - batch.key[some])
            values = Ranges(batch.data, batch.value[some], batch.value_end[some] - batch.value[some])
            whole = pack(Chain((Integers(group, prefix), keys), len(some)))
            yield _batch(owner_of(group, task.parallelism, maximum), group, state[some], whole, pack(values))


def _elements(task: KeptElements) -> Iterator[pa.RecordBatch]:
    with task.stream.open() as f:
        for state, ranges in task.states:
            run: list[bytes] = []
            first = size = 0
            for i, (start, end) in enumerate(ranges):
                raw = f.read_at(start, end - start)
                base = task.stream.start + start
                data = b"".join(c.data for c in read_chunks(raw, base=base)) if task.compressed else bytes(raw)
                if run and (size + len(data) > _BATCH_BYTES or len(run) == _BATCH_ROWS):
                    yield _element_batch(task, state, first, run)
                    run, first, size = [], i, 0
                run.append(data)
                size += len(data)
            if run:
                yield _element_batch(task, state, first, run)


def _element_batch(task: KeptElements, state: int, first: int, run: list[bytes]) -> pa.RecordBatch:
    n = len(run)
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum([len(v) for v in run], out=offsets[1:])
    values = Encoded(np.frombuffer(b"".join(run), dtype=np.uint8), offsets)
    # The order within the subtask stays.
    keys = pack(Integers(np.arange(first, first + n, dtype=np.int64), 8))
    zeros = np.zeros(n, dtype=np.int64)
    return _batch(zeros + task.subtask, zeros, zeros + state, keys, values)


def _batch(
    subtask: npt.NDArray[np.int64],
    group: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    keys: Encoded,
    values: Encoded,
) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(subtask.astype(np.int32)),
            pa.array(group.astype(np.int32)),
            pa.array(state.astype(np.int32)),
            binary_array(keys),
            binary_array(values),
        ],
        schema=RECORDS,
    )


def kept_metas(operator: OperatorInventory, *, without: Collection[str]) -> list[StateMeta]:
    """Return the operator states that stay."""
    return [m for m in operator.operator_states.values() if m.name not in without]
