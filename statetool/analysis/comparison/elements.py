"""Comparison of operator state: elements of lists and unions by their values, entries of broadcast state by their keys.

Flink redistributes elements of lists to subtasks at every restore, so subtask and order do not count: each element of one side is
paired with an equal one of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from statetool.analysis.comparison.meaning import Meaning, uncompared_reason
from statetool.analysis.comparison.records import DIFFERENCES, NotComparedError
from statetool.analysis.comparison.side import pair_equal_hashes
from statetool.analysis.comparison.texts import texts_of
from statetool.columns.arrays import is_valid
from statetool.connectors.element_texts import CONNECTOR_STATES, element_texts
from statetool.entries.form import MEMORY_BYTES
from statetool.formats.keyed.distinct import Hashes
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.comparison import hash_spans
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.element_splits import plan_elements
from statetool.tables.kinds.elements import ElementSplit, element_rows
from statetool.tables.kinds.kind import TableSpec
from statetool.tables.kinds.registry import ELEMENTS
from statetool.types.operators import operator_name
from statetool.types.options import ReadOptions

#: Text of bytes begins with this.
_BYTES: Final = "0x"
#: Hash seeds of text and of null.
_SEEDS: Final = np.array([1, 2], dtype=np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementUnit:
    """One operator state of both sides; picklable. ``learned`` as for :class:`~statetool.analysis.comparison.keyed.KeyedUnit`.

    ``uncompared``: why differing bytes may be equal values, empty if they cannot be.
    """

    operator: str
    state: str
    before: tuple[ElementSplit, ...]
    after: tuple[ElementSplit, ...]
    learned: bool = False
    uncompared: str = ""


def element_units(
    old: OperatorInventory | None,
    new: OperatorInventory | None,
    states: Sequence[str] | None,
    options: ReadOptions,
) -> Iterator[ElementUnit]:
    """Yield the units of an operator's operator state."""
    operators = [o for o in (old, new) if o is not None]
    for name in dict.fromkeys(n for o in operators for n in o.operator_states):
        if states is None or name in states:
            yield ElementUnit(
                operator=operators[0].label,
                state=name,
                before=_splits(old, name, options),
                after=_splits(new, name, options),
                learned=any(o.learned_from_other for o in operators),
                uncompared=_uncompared(old, new, name),
            )


def _uncompared(old: OperatorInventory | None, new: OperatorInventory | None, name: str) -> str:
    if old is None or new is None or not (name in old.operator_states and name in new.operator_states):
        return ""
    return uncompared_reason(
        *(Meaning(tuple(o.operator_states[name].serializers.values()), o.types) for o in (old, new))
    )


def _splits(operator: OperatorInventory | None, name: str, options: ReadOptions) -> tuple[ElementSplit, ...]:
    if operator is None or name not in operator.operator_states:
        return ()
    spec = TableSpec(
        operator=operator.label,
        states=(name,),
        options=options,
        schema=b"",
        memory_bytes=MEMORY_BYTES,
    )
    one_copy = operator.operator_states[name].kind == "broadcast"
    return tuple(plan_elements(operator, spec, ELEMENTS, one_copy=one_copy))


def compare_elements(unit: ElementUnit, counts: Counter[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """Yield the differences of a unit. Only hashes of elements are held in memory; elements that differ are read again.

    Of sources and sinks, the elements that differ are held too: they identify the connector together.

    Raises
    ------
    NotComparedError
        Some elements differ as bytes, and their serializers may write equal values differently.
    """
    key_a, value_a = _hashes(unit.before)
    key_b, value_b = _hashes(unit.after)
    counts[unit.state, "before"] += len(key_a)
    counts[unit.state, "after"] += len(key_b)
    pairs, alone_after = pair_equal_hashes(key_a, key_b)
    matched = np.flatnonzero(pairs >= 0)
    changed = matched[value_a[matched] != value_b[pairs[matched]]]
    alone_before = np.flatnonzero(pairs < 0)
    if unit.uncompared and (len(changed) or len(alone_before) or len(alone_after)):
        raise NotComparedError.of(unit.state, unit.uncompared)
    decoded = _decoded(
        unit, np.union1d(changed, alone_before), np.union1d(pairs[changed], alone_after).astype(np.int64)
    )
    after = {int(pairs[i]): int(i) for i in changed}
    new_values: dict[int, str | None] = {}
    for batch, index in _select_rows(unit.after, np.sort(pairs[changed])):
        new_values |= {after[i]: v for i, v in zip(index.tolist(), batch["value"].to_pylist(), strict=True)}
    for batch, index in _select_rows(unit.before, changed):
        values = pa.array([new_values[i] for i in index.tolist()], pa.string())
        yield _differences(unit, batch, decoded, "changed", values)
    for batch, _ in _select_rows(unit.before, alone_before):
        yield _differences(unit, batch, decoded, "removed", None)
    for batch, _ in _select_rows(unit.after, alone_after):
        yield _differences(unit, batch, decoded, "added", None)


def _decoded(unit: ElementUnit, before: Int64s, after: Int64s) -> dict[str, str]:
    """Return the decoded text of the elements ``before`` and ``after`` of a source or sink, by their text as bytes."""
    if unit.state not in CONNECTOR_STATES:
        return {}
    chosen = [_select_rows(*side) for side in ((unit.before, before), (unit.after, after))]
    sides = [[v for rows, _ in side for v in rows["value"].to_pylist() if v] for side in chosen]
    given = [{bytes.fromhex(v[len(_BYTES) :]): v for v in side if v.startswith(_BYTES)} for side in sides]
    texts = element_texts(unit.state, *given)
    return {text: texts[value] for side in given for value, text in side.items() if value in texts}


def _texts(splits: Sequence[ElementSplit]) -> Iterator[dict[str, pa.StringArray]]:
    for split in splits:
        for _, columns in element_rows(split):
            yield texts_of(columns, split.spec.options, *split.spec.states)


def _hashes(splits: Sequence[ElementSplit]) -> tuple[Hashes, Hashes]:
    """Return the hashes that pair elements (of the key in broadcast state, otherwise of the value), and those of values."""
    keys: list[Hashes] = [np.empty(0, dtype=np.uint64)]
    values: list[Hashes] = [np.empty(0, dtype=np.uint64)]
    for texts in _texts(splits):
        value = _hash_texts(texts["value"])
        keys.append(_hash_texts(texts["key"]) if "key" in texts else value)
        values.append(value)
    return np.concatenate(keys), np.concatenate(values)


def _hash_texts(column: pa.StringArray) -> Hashes:
    n = len(column)
    filled = column.fill_null("")
    out = np.empty(n, dtype=np.uint64)
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[filled.offset : filled.offset + n + 1].astype(np.int64)
    raw = np.frombuffer(data if data is not None and data.size else b"\0", dtype=np.uint8)
    hash_spans(raw, ends[:-1], ends[1:], (~is_valid(column)).astype(np.int64), _SEEDS, out)
    return out


def _select_rows(splits: Sequence[ElementSplit], index: Int64s) -> Iterator[tuple[pa.Table, Int64s]]:
    """Yield the rows with the ascending numbers ``index``, and their numbers."""
    at = 0
    for texts in _texts(splits) if len(index) else ():
        rows = pa.table(texts)
        first, stop = np.searchsorted(index, (at, at + rows.num_rows))
        if stop > first:
            yield rows.take(pa.array(index[first:stop] - at)), index[first:stop]
        at += rows.num_rows


def _differences(
    unit: ElementUnit, rows: pa.Table, decoded: Mapping[str, str], change: str, after: pa.Array | None
) -> pa.RecordBatch:
    n, nothing = rows.num_rows, pa.nulls(rows.num_rows, pa.string())
    value, after = (_shown(v, decoded) for v in (rows["value"].combine_chunks(), after))
    columns = [
        pa.array([unit.operator] * n, pa.string()),
        pa.array([operator_name(unit.operator)] * n, pa.string()),
        pa.array([unit.state] * n, pa.string()),
        pa.nulls(n, pa.int32()),
        rows["key"].combine_chunks() if "key" in rows.column_names else nothing,
        nothing,
        nothing,
        pa.nulls(n, pa.int64()),
        pa.array([change] * n, pa.string()),
        nothing if change == "added" else value,
        value if change == "added" else nothing if after is None else after,
    ]
    return pa.RecordBatch.from_arrays([_whole(c) for c in columns], schema=DIFFERENCES)


def _shown(values: pa.Array | None, decoded: Mapping[str, str]) -> pa.Array | None:
    if values is None or not decoded:
        return values
    return pa.array([decoded.get(v, v) for v in values.to_pylist()], pa.string())


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
