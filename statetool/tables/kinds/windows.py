"""All state of a window in one row: contents, trigger state, user state. Runs in a task.

Merging windows (sessions) store their contents under one of the windows that were merged. A list (DataStream) or a map (SQL) records which
one. They are shown as the merged windows. Follows ``WindowOperator`` and ``MergingWindowSet`` of both runtimes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

import numpy as np

from statetool.columns.values import decode_framed, split_list
from statetool.errors import DecodeError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends
from statetool.snapshot.views import MERGED, contents_of, is_window, window_states
from statetool.tables.decoding import decoding
from statetool.tables.kinds.keyed import Columns, KeyedTable, StateEntries, key_ranges
from statetool.types import LogicalType, Scalar

_WINDOW: Final = "window"
_WINDOW_END: Final = "window_end"
#: Columns that do not exist in ``keyed_state``.
WINDOW_COLUMNS: Final = (_WINDOW, _WINDOW_END)
_NULL_FLAG_BYTES: Final = 1
#: Start and end positions.
Ranges = tuple[Int64s, Int64s]


def window_columns(key: LogicalType, namespace: Serializer) -> list[tuple[str, LogicalType]]:
    """Return ``key`` and, except for global windows, ``window`` or ``window_end``."""
    window = [(_window_column(namespace), namespace.logical)] if namespace.logical != Scalar("null") else []
    return [("key", key), *window]


def _window_column(namespace: Serializer) -> str:
    return _WINDOW if is_window(namespace) else _WINDOW_END


def window_rows(table: KeyedTable, batch: EntryBatch, names: Sequence[str]) -> tuple[int, Int64s, Columns, Columns]:
    """Return the windows of a batch that has all entries of its keys: their number, key groups, key and window, and states.

    Parameters
    ----------
    names
        The states with a window namespace, and the states that record merged windows.
    """
    by_state = table.entries_of(batch, names)
    merged: StateEntries = {name: by_state.pop(name) for name in MERGED if name in by_state}
    entries = sum(len(e) for e, _ in by_state.values())
    starts, ends, groups = key_ranges({**by_state, **merged})
    holder, now, under = _merge_windows(table, batch, merged)
    # Merged windows are rows even if their contents have been purged.
    source = np.append(np.arange(entries), entries + holder)
    namespaces = _concatenate([*((k.namespace, k.namespace_end) for _, k in by_state.values()), now, under])
    windows, first_window = distinct(batch.data, *namespaces, np.zeros(len(namespaces[0]), dtype=np.int64))
    keys, _ = distinct(batch.data, starts, ends, groups)
    ids = keys[source] * len(first_window) + windows[: len(source)]
    stored = keys[source[entries:]] * len(first_window) + windows[len(source) :]
    keyed = {meta.name: meta for meta in table.header.states}
    contents = contents_of(keyed)
    _rename_contents(ids, by_state, contents, stored, ids[entries:].copy())
    rows, first = _as_first_seen(ids)
    columns: Columns = [table.key_column(batch, starts[source[first]], ends[source[first]])]
    namespace = next(s for n in window_states(keyed) if (s := keyed[n].namespace) is not None)
    if namespace.logical != Scalar("null"):
        place = first_window[ids[first] % len(first_window)] if len(first) else first
        pos, end = (n[place] for n in namespaces)
        with decoding(_WINDOW, batch, table.header.key):
            window = decode_framed(namespace, batch.data, pos, end, table.options)
        columns.append((_window_column(namespace), namespace.logical, window))
    states = table.state_columns(batch, by_state, rows[:entries], len(first))
    return len(first), groups[source[first]], columns, states


def _merge_windows(table: KeyedTable, batch: EntryBatch, merged: StateEntries) -> tuple[Int64s, Ranges, Ranges]:
    """Return the entry of each merged window, its bounds in the bytes, and the bounds of the window that stores its contents."""
    for name, (entries, keys) in merged.items():
        shape = table.shapes[name]
        with decoding(name, batch, table.header.key, shape):
            if shape.kind == "map":
                now = keys.user_key, entries.key_end
                return np.arange(len(entries)), now, (entries.value + _NULL_FLAG_BYTES, entries.value_end)
            counts, starts, ends = split_list(shape, entries.data, entries.value, entries.value_end)
            (_, window), _ = shape.item.children()
            middle = find_ends(window.program(), window.decode, entries.data, starts, ends)
            return np.repeat(np.arange(len(entries)), counts), (starts, middle), (middle, ends)
    nothing = np.empty(0, dtype=np.int64)
    return nothing, (nothing, nothing), (nothing, nothing)


def _concatenate(ranges: Sequence[Ranges]) -> Ranges:
    return np.concatenate([start for start, _ in ranges]), np.concatenate([end for _, end in ranges])


def _rename_contents(
    ids: Int64s, by_state: StateEntries, contents: Container[str], stored: Int64s, now: Int64s
) -> None:
    """Assign the contents of merged windows, ``stored`` under other ids, to the ids of the merged windows, ``now``."""
    order = np.argsort(stored)
    stored, now = stored[order], now[order]
    if (np.diff(stored) == 0).any():
        raise DecodeError("two windows of one key whose contents are one", hint="read the states with op.state(name)")
    at = 0
    for name, (entries, _) in by_state.items():
        state_ids = ids[at : at + len(entries)]
        at += len(entries)
        if name in contents and len(stored):
            place = np.minimum(np.searchsorted(stored, state_ids), len(stored) - 1)
            state_ids[:] = np.where(stored[place] == state_ids, now[place], state_ids)


def _as_first_seen(ids: Int64s) -> tuple[Int64s, Int64s]:
    """Number ids from 0 in the order of their first occurrence, and return the numbers with the positions of these occurrences."""
    _, first, number = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]
