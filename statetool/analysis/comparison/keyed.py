"""Comparison of the keyed state of some key groups: entries with equal hashes on both sides are equal and are not read again.

The hashes of a key and its value have 128 bits together. Other entries are decoded and compared as values, so equal values with
different bytes (maps in another order, other versions of serializers) are equal too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.analysis.comparison.meaning import Seeds
from statetool.analysis.comparison.records import DIFFERENCES, NotComparedError
from statetool.analysis.comparison.side import SideRequest, Slice, SnapshotSide, pair_equal_hashes, size_of_sources
from statetool.analysis.comparison.texts import texts_of, undecoded_rows
from statetool.columns.arrays import as_arrow, as_numpy
from statetool.columns.batches import row_runs
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.tables.decoding import decoding
from statetool.tables.kinds.keyed import KeyedTable
from statetool.types.operators import operator_name
from statetool.types.options import ReadOptions

#: Maximum bytes of both sides compared at once. More is compared in slices, each of which reads everything.
MOST_BYTES: Final = 256 << 20
#: Bytes of differing entries of both sides that become rows at once. More are read in portions, each of which reads everything again.
ROWS_BYTES: Final = 16 << 20
_PLACE: Final = ("key", "namespace", "map_key")
#: Column of the rows whose value, before or after, could not be decoded.
_UNDECODED: Final = "undecoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedUnit:
    """Input of one task; picklable. The key groups of both sides hold the same keys.

    ``learned``: key type or subclasses of one side are known from the other side only. ``uncompared`` has, by state, the reason why
    differing bytes may be equal values.
    """

    operator: str
    before: SideRequest
    after: SideRequest
    options: ReadOptions
    learned: bool = False
    uncompared: tuple[tuple[str, str], ...] = ()

    @property
    def size_bytes(self) -> int:
        """Approximate stored bytes of both sides."""
        return size_of_sources(self.before.sources) + size_of_sources(self.after.sources)


def compare_keyed(unit: KeyedUnit, counts: Counter[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """Yield the differences of a unit. Adds the entries of each state to ``counts``: ``(state, "before")``, ``(state, "after")``.

    Raises
    ------
    NotComparedError
        After all differences: some values cannot be compared.
    """
    seeds = Seeds()
    for request in (unit.before, unit.after):
        SnapshotSide(request, seeds, Slice())
    # If equal keys may have different bytes, their hashes do not pair them, and slices may separate them.
    bytes_differ = any(seeds.keys_differ(name) for name in unit.before.states)
    slices = 1 if bytes_differ else max(1, -(-unit.size_bytes // MOST_BYTES))
    uncompared: set[str] = set()
    for number in range(slices):
        yield from _compare(unit, Slice(number, slices), counts, uncompared)
    for state in sorted(uncompared):
        raise NotComparedError.of(state, dict(unit.uncompared).get(state, ""))


def _compare(
    unit: KeyedUnit, part: Slice, counts: Counter[tuple[str, str]], uncompared: set[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the differences of a slice, and add states with values that cannot be compared to ``uncompared``."""
    seeds = Seeds()
    before, after = SnapshotSide(unit.before, seeds, part), SnapshotSide(unit.after, seeds, part)
    key_a, value_a = before.hashes()
    key_b, value_b = after.hashes()
    for side, name in ((before, "before"), (after, "after")):
        for state, n in side.counts.items():
            counts[state, name] += n
    pairs, alone_b = pair_equal_hashes(key_a, key_b)
    matched = np.flatnonzero(pairs >= 0)
    differing = matched[value_a[matched] != value_b[pairs[matched]]]
    # The place of an entry before is its number. The places of entries that exist only after follow.
    places = np.concatenate([np.union1d(differing, np.flatnonzero(pairs < 0)), len(key_a) + alone_b])
    step = max(1, len(places))
    if not any(map(seeds.keys_differ, unit.before.states)):
        entries, size = len(key_a) + len(key_b), before.size_bytes + after.size_bytes
        step = max(1, ROWS_BYTES * entries // max(1, 2 * size))
    del key_b, value_a, value_b, matched, differing
    for first in range(0, len(places), step):
        yield from _differences_at(places[first : first + step], pairs, before, after, unit, seeds, uncompared)


def _differences_at(
    places: Int64s,
    pairs: Int64s,
    before: SnapshotSide,
    after: SnapshotSide,
    unit: KeyedUnit,
    seeds: Seeds,
    uncompared: set[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the differences of the entries at ``places``: those before, and after all of these, those that exist only after."""
    index_a = places[: np.searchsorted(places, len(pairs))]
    partner = pairs[index_a]
    place_b = np.concatenate([index_a[partner >= 0], places[len(index_a) :]])
    index_b = np.concatenate([partner[partner >= 0], places[len(index_a) :] - len(pairs)])
    order = np.argsort(index_b, kind="stable")
    rows_a = _rows(before, index_a, index_a, unit.options)
    rows_b = _rows(after, index_b[order], place_b[order], unit.options)
    for state in sorted(rows_a.keys() | rows_b.keys()):
        rows = join_differences(
            unit.operator, state, rows_a.get(state), rows_b.get(state), by_text=seeds.keys_differ(state)
        )
        if seeds.values_differ(state):
            unknown = state in dict(unit.uncompared)
            bad = pc.and_(pc.equal(rows["change"], "changed"), pa.scalar(True) if unknown else rows[_UNDECODED])
            # Equal bytes with two meanings are not equal values either.
            if pc.any(bad).as_py() or (unknown and state in rows_a and state in rows_b):
                uncompared.add(state)
                rows = rows.filter(pc.invert(bad))
        yield from rows.drop_columns(_UNDECODED).to_batches(max_chunksize=65_536)


def _rows(side: SnapshotSide, index: Int64s, place: Int64s, options: ReadOptions) -> dict[str, pa.Table]:
    """Return entries as rows of text, by state. Entries of the two sides with equal keys have one ``place``."""
    by_state: dict[str, list[pa.Table]] = {}
    for header, batch, numbers in side.chosen(index):
        places = place[np.searchsorted(index, numbers)]
        for state, meta in enumerate(header.states):
            own = np.flatnonzero(batch.state == state)
            if len(own):
                table = KeyedTable(header, [meta.name], options, None)
                tables = _timer_rows if meta.kind == "timers" else _value_rows
                by_state.setdefault(meta.name, []).extend(tables(table, meta.name, batch.take(own), places[own]))
    return {name: pa.concat_tables(tables) for name, tables in by_state.items()}


def _value_rows(table: KeyedTable, name: str, batch: EntryBatch, places: Int64s) -> Iterator[pa.Table]:
    shape, meta = table.shapes[name], table.metas[name]
    with decoding(name, batch, table.header.key, shape):
        entries, keys = table.split(batch, meta)
        items = table.items(shape, entries)
        sizes = items.end - items.pos + (entries.key_end - entries.key)[items.source]
        for run in row_runs(sizes):
            run_items = items.of(run)
            _, groups, columns = table.long_run(shape, meta, entries, keys, run_items)
            indexes = {n: a for n, _, a in columns if n == "list_index"}
            texts = texts_of([c for c in columns if c[0] != "list_index"], table.options, name)
            undecoded = undecoded_rows(columns)
            yield _row_table(places[run_items.source], groups, texts, indexes.get("list_index"), undecoded)


def _timer_rows(table: KeyedTable, name: str, batch: EntryBatch, places: Int64s) -> Iterator[pa.Table]:
    _, groups, columns = table.timer_rows(batch, name)
    texts = texts_of(columns, table.options, name)
    texts["value"] = texts.pop("timestamp")
    yield _row_table(places, groups, texts)


def _row_table(
    places: Int64s,
    groups: Int64s,
    texts: dict[str, pa.StringArray],
    index: pa.Array | None = None,
    undecoded: pa.Array | None = None,
) -> pa.Table:
    n = len(places)
    nothing = pa.nulls(n, pa.string())
    columns = {
        "place": as_arrow(places),
        "list_index": pa.nulls(n, pa.int64()) if index is None else index.cast(pa.int64()),
        "key_group": as_arrow(groups.astype(np.int32)),
        **{name: texts.get(name, nothing) for name in (*_PLACE, "value")},
        _UNDECODED: pa.repeat(False, n) if undecoded is None else undecoded,
    }
    return pa.table(columns)


def join_differences(
    operator: str, state: str, before: pa.Table | None, after: pa.Table | None, *, by_text: bool = False
) -> pa.Table:
    """Return the differences of two tables in which the two rows of one entry have the same ``place`` and ``list_index``.

    The last column tells whether the value before or after could not be decoded.

    Parameters
    ----------
    by_text
        Match the two rows of one entry by the texts of key, namespace and map key instead: equal keys may have different bytes.
    """
    empty = (before if before is not None else after).slice(0, 0)  # type: ignore[union-attr]
    before, after = before if before is not None else empty, after if after is not None else empty
    if by_text:
        before, after = _position_by_text(before, after)
    longest = 1 + max(pc.max(rows["list_index"]).as_py() or 0 for rows in (before, after))
    code_a, code_b = _codes(before, longest), _codes(after, longest)
    order_a, order_b = np.argsort(code_a, kind="stable"), np.argsort(code_b, kind="stable")
    code_a, code_b = code_a[order_a], code_b[order_b]
    at_b = np.searchsorted(code_b, code_a)
    matching = np.flatnonzero(at_b < len(code_b))
    matching = matching[code_b[at_b[matching]] == code_a[matching]]
    both_a, both_b = order_a[matching], order_b[at_b[matching]]
    values_a, values_b = before["value"].take(as_arrow(both_a)), after["value"].take(as_arrow(both_b))
    same = pc.fill_null(pc.equal(values_a, values_b), False)
    same = pc.or_(same, pc.and_(pc.is_null(values_a), pc.is_null(values_b)))
    changed = np.flatnonzero(~as_numpy(same))
    only_a = np.setdiff1d(order_a, both_a)
    only_b = np.setdiff1d(order_b, both_b)
    return pa.concat_tables(
        [
            _differences(operator, state, before, only_a, after, None, "removed"),
            _differences(operator, state, before, both_a[changed], after, both_b[changed], "changed"),
            _differences(operator, state, after, only_b, after, only_b, "added"),
        ]
    )


def _differences(
    operator: str,
    state: str,
    rows: pa.Table,
    index: Int64s,
    after: pa.Table,
    after_index: Int64s | None,
    change: str,
) -> pa.Table:
    n, nothing = len(index), pa.nulls(len(index), pa.string())
    taken = rows.take(as_arrow(index))
    new = nothing if after_index is None else after["value"].take(as_arrow(after_index))
    undecoded = taken[_UNDECODED]
    if after_index is not None:
        undecoded = pc.or_(undecoded, after[_UNDECODED].take(as_arrow(after_index)))
    columns = [
        pa.array([operator] * n, pa.string()),
        pa.array([operator_name(operator)] * n, pa.string()),
        pa.array([state] * n, pa.string()),
        taken["key_group"],
        taken["key"],
        taken["namespace"],
        taken["map_key"],
        taken["list_index"],
        pa.array([change] * n, pa.string()),
        nothing if change == "added" else taken["value"],
        new,
        undecoded,
    ]
    return pa.Table.from_arrays(columns, schema=DIFFERENCES.append(pa.field(_UNDECODED, pa.bool_())))


def _codes(rows: pa.Table, longest: int) -> Int64s:
    """Return a number for each combination of place and list index."""
    index = as_numpy(rows["list_index"], null=0)
    return np.asarray(as_numpy(rows["place"]) * longest + index, dtype=np.int64)


def _position_by_text(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    rows, n = pa.concat_tables([before, after]), before.num_rows
    places = np.zeros(len(rows), dtype=np.int64)
    for name in _PLACE:
        numbers = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
        _, places = np.unique(places * (1 + len(numbers.dictionary)) + as_numpy(numbers.indices), return_inverse=True)
    i = before.schema.get_field_index("place")
    return before.set_column(i, "place", as_arrow(places[:n])), after.set_column(i, "place", as_arrow(places[n:]))
