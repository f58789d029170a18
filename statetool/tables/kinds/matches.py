"""Started matches of complex event processing, with their events. Runs in a task.

Follows ``org.apache.flink.cep.nfa.NFA`` and ``SharedBufferAccessor`` (Flink 1.6 to 2.3). A match stores the node of its last event and a
version. Earlier events are found by edges of compatible versions (:mod:`statetool.kernels.entries.matches`). The match's NFA state has the name of
the user's pattern, followed by a colon and a number if the compiler created several states of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import as_arrow, as_numpy, bitmap, is_valid, offsets_of
from statetool.columns.types import arrow_type
from statetool.errors import DecodeError
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import OK
from statetool.kernels.entries.matches import BEGIN, MANY_WAYS, MISSING, NO_END, NO_NODE, match_paths
from statetool.tables.kinds.keyed import Columns
from statetool.types import ListType, LogicalType, MapType, Scalar
from statetool.types.options import ReadOptions

_TEXT, _NUMBER = Scalar("string"), Scalar("int64")
_STATUSES: Final = ("partial", "completed")
_WRONG: Final = {
    NO_NODE: "an event before is not in the shared buffer",
    MANY_WAYS: "its version leads back to more than one row of events",
    NO_END: "its events lead back in a circle",
}
_HINT: Final = "the tables of its states show what is there, bytes of the shared buffer as they are"


@dataclass(frozen=True, slots=True)
class _Matches:
    """Matches by key: the row of the key, whether the match is completed, the stored fields, the node of the last event, the version."""

    row: Int64s
    completed: pa.Array
    fields: dict[str, pa.Array]
    last: dict[str, pa.Array]
    version_at: Int64s
    versions: Int64s


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes of the shared buffer: the row of the key, the event and page, and the edges with target and version."""

    row: Int64s
    id: dict[str, pa.Array]
    edge_at: Int64s
    target: dict[str, pa.Array]
    begins: pa.Array
    version_at: Int64s
    versions: Int64s


def match_columns(key: LogicalType, event: LogicalType) -> list[tuple[str, LogicalType]]:
    """Return the columns of the table. ``events`` maps each pattern to its events in the order of matching."""
    events = MapType(_TEXT, ListType(event))
    numbers = [("start_ms", _NUMBER), ("previous_ms", _NUMBER)]
    return [("key", key), ("status", _TEXT), ("waiting_for", _TEXT), ("state", _TEXT), *numbers, ("events", events)]


def match_rows(
    groups: Int64s, columns: Columns, event: LogicalType, options: ReadOptions
) -> tuple[int, Int64s, Columns]:
    """Return the matches of some keys: their number, their key groups, and the columns of :func:`match_columns`.

    Parameters
    ----------
    groups, columns
        Key groups and columns of ``keyed_state`` for these keys: key, state of the NFA, events and nodes of the shared buffer.
    event
        The type of events.

    Raises
    ------
    DecodeError
        The shared buffer does not have the events of a match. With ``on_error="keep_raw"``, its events are null instead.
    """
    (_, key_type, key), (_, _, nfa), (_, _, events), (_, _, entries), *undecoded = columns
    matches, nodes = _read_matches(nfa), _read_nodes(entries)
    page, node_page, target_page = _number_texts([matches.last["page"], nodes.id["page"], nodes.target["page"]])
    last = _places([nodes.row, node_page, *_event_id(nodes.id)], [matches.row, page, *_event_id(matches.last)])
    source = np.repeat(nodes.row, np.diff(nodes.edge_at))
    target = _places([nodes.row, node_page, *_event_id(nodes.id)], [source, target_page, *_event_id(nodes.target)])
    target = np.where(as_numpy(nodes.begins), BEGIN, np.where(target < 0, MISSING, target))
    path, lengths = _paths(matches, last, nodes, target, lenient=bool(undecoded))
    row, event_id, values = _events(events)
    place = _places([row, *event_id], [nodes.row[path], *(c[path] for c in _event_id(nodes.id))])
    if (place < 0).any() and not undecoded:
        raise DecodeError("a match with an event that is not in the shared buffer", hint=_HINT)
    maps = _by_pattern(lengths, nodes.id["page"].take(pa.array(path)), node_page[path], values, place, event, options)
    name = pc.list_element(pc.split_pattern(matches.fields["state"], ":"), 0)
    by_name = {
        "key": key.take(pa.array(matches.row)),
        "status": pa.array(_STATUSES).take(matches.completed.cast(pa.int8())),
        # A completed match waits for no pattern, but only to be emitted.
        "waiting_for": pc.if_else(matches.completed, pa.scalar(None, pa.string()), name),
        "events": maps,
        **{n: matches.fields[n] for n in ("state", "start_ms", "previous_ms")},
    }
    shown = [(n, kind, by_name[n]) for n, kind in match_columns(key_type, event)]
    return _with_undecoded(matches.row, groups, shown, key, undecoded)


def _with_undecoded(
    rows: Int64s, groups: Int64s, columns: Columns, key: pa.Array, undecoded: Columns
) -> tuple[int, Int64s, Columns]:
    """Add a row with the raw bytes for each key with undecoded states."""
    if not undecoded:
        return len(rows), groups[rows], columns
    ((name, kind, raw),) = undecoded
    incomplete = np.flatnonzero(is_valid(raw))
    place = as_arrow(incomplete)
    added = [key.take(place), *(pa.nulls(len(incomplete), array.type) for _, _, array in columns[1:])]
    columns = [(n, t, pa.concat_arrays([a, b])) for (n, t, a), b in zip(columns, added, strict=True)]
    columns.append((name, kind, pa.concat_arrays([pa.nulls(len(rows), raw.type), raw.take(place)])))
    rows = np.append(rows, incomplete)
    return len(rows), groups[rows], columns


def _fields(array: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((f.name for f in array.type), array.flatten(), strict=True))


def _ints(array: pa.Array) -> Int64s:
    return as_numpy(array, null=0).astype(np.int64)


def _items(array: pa.ListArray | pa.MapArray) -> tuple[Int64s, slice]:
    """Return the start of the items of each list or map, counted from 0, and the slice of the values that contains all items."""
    offsets = as_numpy(array.offsets).astype(np.int64)
    return offsets - offsets[0], slice(int(offsets[0]), int(offsets[-1]))


def _owners(offsets: Int64s) -> Int64s:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _event_id(node: dict[str, pa.Array]) -> list[Int64s]:
    event = _fields(node["event_id"])
    return [_ints(event["timestamp"]), _ints(event["id"])]


def _read_matches(nfa: pa.StructArray) -> _Matches:
    """Return the matches that have an event. Each key also has a start state without an event, for future matches."""
    rows, lists = [], []
    for array in nfa.flatten():
        offsets, span = _items(array)
        rows.append(_owners(offsets))
        lists.append(array.values[span])
    row = np.concatenate(rows)
    completed = np.arange(len(row)) >= len(rows[0])
    values = pa.concat_arrays(lists)
    with_event = np.flatnonzero(is_valid(values.field("previous")) | completed)
    order = with_event[np.argsort(row[with_event], kind="stable")]
    fields = _fields(values.take(pa.array(order)))
    version_at, span = _items(fields["version"])
    versions = _ints(fields["version"].values[span])
    last = _fields(fields["previous"])
    return _Matches(row[order], pa.array(completed[order]), fields, last, version_at, versions)


def _read_nodes(entries: pa.MapArray) -> _Nodes:
    offsets, span = _items(entries)
    (edges,) = _fields(entries.items[span])["element"].flatten()
    edge_at, of_edges = _items(edges)
    edge = _fields(edges.values[of_edges])
    # Up to Flink 1.12, edges are stored without a reference count.
    edge = _fields(edge["element"]) if "element" in edge else edge
    version_at, of_versions = _items(edge["version"])
    versions = _ints(edge["version"].values[of_versions])
    return _Nodes(
        row=_owners(offsets),
        id=_fields(entries.keys[span]),
        edge_at=edge_at,
        target=_fields(edge["target"]),
        begins=edge["target"].is_null(),
        version_at=version_at,
        versions=versions,
    )


def _events(events: pa.MapArray) -> tuple[Int64s, list[Int64s], list[pa.Array]]:
    """Return the row of each event's key, the event ids, and the events with the fields stored next to them."""
    offsets, span = _items(events)
    _, *values = events.items[span].flatten()
    return _owners(offsets), _event_id({"event_id": events.keys[span]}), values


def _number_texts(texts: list[pa.StringArray]) -> list[Int64s]:
    """Return a number for each text. Equal texts have the same number in all arrays."""
    numbers = as_numpy(pa.concat_arrays(texts).dictionary_encode().indices, null=-1).astype(np.int64)
    return np.split(numbers, np.cumsum([len(t) for t in texts])[:-1])


def _places(known: list[Int64s], wanted: list[Int64s]) -> Int64s:
    """Return the index of each wanted row of numbers among the known rows, -1 if it is missing."""
    both = [np.concatenate(pair) for pair in zip(known, wanted, strict=True)]
    order = np.lexsort(both)
    differs = np.zeros(len(order), dtype=np.bool_)
    for column in both:
        differs[1:] |= np.diff(column[order]) != 0
    ids = np.empty(len(order), dtype=np.int64)
    ids[order] = np.cumsum(differs)
    places = np.full(len(order), -1, dtype=np.int64)
    places[ids[: len(known[0])]] = np.arange(len(known[0]))
    return places[ids[len(known[0]) :]]


def _paths(matches: _Matches, last: Int64s, nodes: _Nodes, target: Int64s, *, lenient: bool) -> tuple[Int64s, Int64s]:
    """Return the concatenated nodes of all matches, and the number of nodes of each."""
    graph = (nodes.edge_at, target, nodes.version_at, nodes.versions)
    scratch = np.empty_like(nodes.row), np.empty_like(nodes.row)
    lengths, path = np.empty_like(last), np.empty(0, dtype=np.int64)
    follow = partial(match_paths, last, matches.version_at, matches.versions, *graph, *scratch)
    while (wrong := follow(np.zeros_like(last), lengths, path))[0] != OK:
        code, i = map(int, wrong)
        if not lenient:
            state = matches.fields["state"][i].as_py()
            raise DecodeError(f"a match in state {state!r} whose events cannot be told: {_WRONG[code]}", hint=_HINT)
        last[i] = -1
    path = np.empty(int(lengths.sum()), dtype=np.int64)
    follow(np.cumsum(lengths) - lengths, lengths, path)
    return path, lengths


def _by_pattern(
    lengths: Int64s,
    names: pa.StringArray,
    pages: Int64s,
    values: list[pa.Array],
    place: Int64s,
    event: LogicalType,
    options: ReadOptions,
) -> pa.MapArray:
    """Return a map of patterns to events for each match, null if the shared buffer does not lead back to the events."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(len(owner))
    # A pattern is ordered by its first event. With groups it may match again after other patterns.
    first = step.copy()
    if len(step):
        order = np.lexsort((step, pages, owner))
        heads = np.ones(len(step), dtype=np.bool_)
        heads[1:] = (np.diff(pages[order]) != 0) | (np.diff(owner[order]) != 0)
        first[order] = order[np.flatnonzero(heads)][np.cumsum(heads) - 1]
    order = np.lexsort((step, first))
    begins = np.flatnonzero(first[order] == order)
    sizes = np.diff(np.append(begins, len(step)))
    kind = arrow_type(MapType(_TEXT, ListType(event)), options)
    taken = pa.array(place[order], mask=place[order] < 0)
    columns = [v.take(taken) for v in values]
    events = (
        columns[0]
        if len(columns) == 1
        else pa.StructArray.from_arrays(columns, fields=list(arrow_type(event, options)))
    )
    lists = pa.ListArray.from_arrays(pa.array(offsets_of(sizes, begins)), events, type=kind.item_type)
    pairs = pa.StructArray.from_arrays(
        [names.take(pa.array(order[begins])), lists], fields=[kind.key_field, kind.item_field]
    )
    counts = np.bincount(owner[order[begins]], minlength=len(lengths))
    buffers = [bitmap(lengths > 0), pa.py_buffer(offsets_of(counts, begins))]
    return pa.Array.from_buffers(kind, len(lengths), buffers, children=[pairs])
