"""Look up one key: its keyed states in all namespaces, and its timers, from one pass over its key group. Runs in this process.

A look-up reads the key group of the key only, and of databases only the blocks of its states that may contain the key. Timers are stored by
time, so that those of the whole key group are read. Memory is bounded by a few batches and the state of the key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.python_values import column_to_python
from statetool.columns.types import table_column
from statetool.columns.values import decode_framed
from statetool.entries.ahead import one_after_another
from statetool.entries.form import MEMORY_BYTES, EntryRequest, KeyGroupReader, size_of
from statetool.entries.keys import split_keys
from statetool.errors import OptionError, StatetoolError, UnknownNameError, several, suggest
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.io.open_files import keeping_open
from statetool.kernels.ahead import compile_together
from statetool.kernels.entries.layout import TIME_BYTES
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import TIMERS, timer_names
from statetool.tables.decoding import decoding
from statetool.tables.keys.equal_keys import KeyPlace
from statetool.tables.keys.text import Key, show_key
from statetool.tables.kinds.keyed import KeyedTable, Undecoded
from statetool.tables.kinds.kind import TableStates
from statetool.tables.scan import column_names, place_keys, registered_name, table_states
from statetool.types import LogicalType, Scalar
from statetool.types.options import ReadOptions

#: Bytes per batch of entries. Only those of the key are kept.
_BATCH_BYTES: Final = 16 << 20
#: Stored bytes from which kernels are compiled together.
_COMPILE_BYTES: Final = 4 << 20
_VALUE: Final = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """One state of a key in one namespace.

    Attributes
    ----------
    state
        Name of the state.
    kind
        ``value``, ``list``, ``map``, ``reducing``, ``aggregating`` or ``folding``.
    namespace
        The namespace, such as the window; ``None`` for a state without one.
    value
        The value. Maps are lists of pairs.
    companions
        What the value cannot hold itself, by name: ``scale`` of a BigDecimal, ``nanos`` below the microsecond, ``present`` for null values.
    undecoded
        With ``on_error="keep_raw"``, the bytes of parts that cannot be decoded, by name.
    """

    state: str
    kind: str
    namespace: Any
    value: Any
    companions: Mapping[str, Any] = field(default_factory=dict)
    undecoded: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTimer:
    """One timer of a key.

    Attributes
    ----------
    domain
        ``event`` or ``processing``.
    service
        Name of the timer service.
    namespace
        The namespace, such as the window; ``None`` for a service without one.
    timestamp
        Time in epoch milliseconds.
    time
        The same time; ``None`` outside of the years 1 to 9999.
    """

    domain: str
    service: str
    namespace: Any
    timestamp: int
    time: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyContent:
    """All state of one key. It is false if the operator has none.

    Attributes
    ----------
    key
        The key as it is stored. If it was not found, the given one.
    key_group
        Key group of the key; ``None`` if it was not found and only user code can compute it.
    states, timers
        Its states and timers.
    """

    key: Any
    key_group: int | None
    states: tuple[KeyState, ...] = ()
    timers: tuple[KeyTimer, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the operator has state or timers of the key."""
        return bool(self.states or self.timers)

    def record(self) -> dict[str, Any]:
        """Return the fields, and ``found``, as one record for JSON."""
        return {
            "key": self.key,
            "key_group": self.key_group,
            "found": self.found,
            "states": [asdict(state) for state in self.states],
            "timers": [asdict(timer) for timer in self.timers],
        }

    def __bool__(self) -> bool:
        return self.found

    def __getitem__(self, state: str) -> Any:
        """Return the value of a state without a namespace.

        Raises
        ------
        UnknownNameError
            The key has no such state.
        """
        for found in self.states:
            if found.state == state and found.namespace is None:
                return found.value
        raise UnknownNameError(
            f"the key has no state {state!r} without a namespace", hint=suggest(state, [s.state for s in self.states])
        )


class KeyReader:
    """Looks up keys of one operator. Names, types and options are checked once.

    Parameters
    ----------
    states
        Names of states to read, ``timers`` for all timers; ``None`` for everything.

    Raises
    ------
    UnknownNameError
        The operator has no such state.
    OptionError
        The operator has no keyed state, or options do not fit it.
    """

    def __init__(
        self,
        operator: OperatorInventory,
        states: Sequence[str] | None = None,
        options: ReadOptions | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        operator.check_listed("keyed")
        self._operator = operator
        self._memory_bytes = memory_bytes
        given = options or ReadOptions()
        columns = column_names(operator, given.columns)
        self._options = replace(given, columns=columns)
        known = table_states(operator, columns)
        self._key: Serializer = known.key or operator.keyed.needed_key()
        self._names = _chosen(operator, known, states)
        self._has_timers = any(known.keyed[name].kind == "timers" for name in self._names)

    def get(self, key: Key) -> KeyContent:
        """Return all state of a key.

        Raises
        ------
        EncodeError
            Not a key of the operator's type.
        OptionError
            Several stored keys equal it.
        FormatError, DecodeError
            Bytes are damaged.
        """
        (places,) = place_keys(self._operator, self._key, [key], exact=True)
        groups = {group for _, group in places}
        wanted = tuple(dict.fromkeys(raw for raw, _ in places))
        found = _Found(self._key, self._options)
        known = None if None in groups else {group for group in groups if group is not None}
        with keeping_open():
            sources = self._operator.keyed.sources(groups=known, raw=self._has_timers)
            for read in one_after_another([_Read(source, self._requests(source, wanted)) for source in sources]):
                try:
                    read.collect(found, self._names, self._options, wanted)
                except StatetoolError as error:
                    raise error.at(operator=self._operator.label, file=read.source.file) from None
        return found.content(key, places, self._operator)

    def _requests(self, source: KeyGroupReader, wanted: tuple[bytes, ...]) -> tuple[EntryRequest, ...]:
        """Return the requests of a source. Databases are read by key, except for timers, which are stored by time."""
        own = EntryRequest(states=self._names, batch_bytes=_BATCH_BYTES, memory_bytes=self._memory_bytes, reads_on=True)
        if not source.reads_by_key:
            return (replace(own, keys=wanted),)
        timers = tuple(m.name for m in source.header().states if m.kind == "timers" and m.name in self._names)
        others = tuple(name for name in self._names if name not in timers)
        return (
            # Whole keys, because blocks of all states are then requested at the same time.
            *((replace(own, states=others, keys=wanted, whole_keys=True),) if others else ()),
            *((replace(own, states=timers),) if timers else ()),
        )


def _chosen(operator: OperatorInventory, known: TableStates, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the registered names of the states to read."""
    if given is None:
        return tuple(known.keyed)
    chosen: list[str] = []
    for name in given:
        _, of_table = operator.state_tables.get(name, ("", name))
        registered = registered_name(operator, of_table)
        if registered in known.keyed:
            chosen.append(registered)
        elif name == TIMERS:
            chosen += [other for other, meta in known.keyed.items() if meta.kind == "timers"]
        else:
            raise UnknownNameError(
                f"operator {operator.label.display!r} has no keyed state {name!r}",
                hint=suggest(name, [*known.keyed, TIMERS]),
            ).at(operator=operator.label)
    return tuple(dict.fromkeys(chosen))


@dataclass(frozen=True, slots=True)
class _Read:
    """The read of one source."""

    source: KeyGroupReader
    requests: tuple[EntryRequest, ...]

    def reads(self) -> tuple[KeyGroupReader, EntryRequest] | None:
        return (self.source, self.requests[0]) if self.requests else None

    def collect(self, found: _Found, names: Sequence[str], options: ReadOptions, keys: tuple[bytes, ...]) -> None:
        """Read the entries of the keys, and add them to what was found."""
        if size_of(self.source) >= _COMPILE_BYTES:
            compile_together(self.source.kernels)
        table = KeyedTable(self.source.header(), names, options, keys)
        entries: dict[str, list[EntryBatch]] = defaultdict(list)
        for request in self.requests:
            for batch in self.source.batches(request):
                for name, own in _entries_of_keys(table, batch, request.states or ()):
                    entries[name].append(own)
        for name, parts in entries.items():
            found.add(table, name, concat(parts))


def _entries_of_keys(table: KeyedTable, batch: EntryBatch, names: Collection[str]) -> Iterator[tuple[str, EntryBatch]]:
    """Yield the entries of the keys by state, over a copy of their bytes if the batch has bytes of others."""
    present = batch.bounds()
    for name, meta in table.metas.items():
        if name not in names or table.ids[name] not in present:
            continue
        with decoding(name, batch, table.header.key):
            if meta.kind == "timers":
                entries = batch.of_state(table.ids[name])
                entries = entries.take(np.flatnonzero(table.timers_of_keys(entries)))
            else:
                entries, _ = table.split(batch, meta)
        if len(entries):
            yield name, entries.span(0, len(entries)) if entries.regions else entries


class _Found:
    """What a look-up has found."""

    def __init__(self, key: Serializer, options: ReadOptions) -> None:
        self._key = key
        self._options = options
        self._states: list[KeyState] = []
        self._timers: list[KeyTimer] = []
        self._groups: dict[bytes, int] = {}

    def add(self, table: KeyedTable, name: str, entries: EntryBatch) -> None:
        """Add the entries of a state."""
        if table.metas[name].kind == "timers":
            self._add_timers(table, name, entries)
        else:
            self._add_state(table, name, entries)

    def _add_timers(self, table: KeyedTable, name: str, entries: EntryBatch) -> None:
        starts = entries.key + TIME_BYTES
        for wanted in table.keys or ():
            matching = [i for i in range(len(entries)) if _bytes(entries, starts[i], starts[i] + len(wanted)) == wanted]
            if matching:
                self._groups[wanted] = int(entries.group[matching[0]])
        _, _, columns = table.timer_rows(entries, name)
        shown = {column: _shown(logical, array, self._options)[""] for column, logical, array in columns}
        domain, service = timer_names(name)
        namespaces = shown.get("namespace", [None] * len(entries))
        self._timers += [
            KeyTimer(domain=domain, service=service, namespace=namespace, timestamp=stamp, time=time)
            for namespace, stamp, time in zip(namespaces, shown["timestamp"], shown["time"], strict=True)
        ]

    def _add_state(self, table: KeyedTable, name: str, entries: EntryBatch) -> None:
        meta, shape = table.metas[name], table.shapes[name]
        undecoded: Undecoded = {}
        namespace = meta.namespace
        assert namespace is not None
        with decoding(name, entries, table.header.key, shape):
            keys = split_keys(entries, table.header.key, meta)
            for i in range(len(entries)):
                self._groups[_bytes(entries, keys.key[i], keys.key_end[i])] = int(entries.group[i])
            if len(self._groups) > 1:
                return  # which content() refuses
            rows, first = distinct(entries.data, keys.namespace, keys.namespace_end, np.zeros_like(keys.key))
            n = len(first)
            column = table.column(shape, entries, keys, rows, n, undecoded)
            namespaces: Sequence[Any] = [None] * n
            if namespace.logical != Scalar("null"):
                pos, end = keys.namespace[first], keys.namespace_end[first]
                decoded = decode_framed(namespace, entries.data, pos, end, self._options)
                namespaces = _shown(namespace.logical, decoded, self._options)[""]
        shown = _shown(shape.column_type(self._options), column, self._options)
        values = shown.pop("")
        for i in range(n):
            if values[i] is None and self._options.ttl == "hide_expired" and i not in undecoded:
                continue
            self._states.append(
                KeyState(
                    state=name,
                    kind=meta.kind,
                    namespace=namespaces[i],
                    value=values[i],
                    companions={suffix.removeprefix("_"): part[i] for suffix, part in shown.items()},
                    undecoded=undecoded.get(i, {}),
                )
            )

    def content(self, key: Key, places: Sequence[KeyPlace], operator: OperatorInventory) -> KeyContent:
        """Return what was found of a key.

        Raises
        ------
        OptionError
            Several keys were found.
        """
        if len(self._groups) > 1:
            stored = ", ".join(show_key(self._decode(raw)) for raw in self._groups)
            raise OptionError(
                f"{several(len(self._groups), 'key')} of the operator equal {show_key(key)}: {stored}",
                hint="pass one of them with its scale, or read all with keys=[...], --keys of statetool head",
            ).at(operator=operator.label)
        raw, group = next(iter(self._groups.items()), places[0])
        return KeyContent(
            key=self._decode(raw),
            key_group=group,
            states=tuple(self._states),
            timers=tuple(sorted(self._timers, key=lambda timer: (timer.domain, timer.service, timer.timestamp))),
        )

    def _decode(self, raw: bytes) -> Any:
        data = np.frombuffer(raw, dtype=np.uint8)
        start, end = np.zeros(1, dtype=np.int64), np.full(1, len(raw), dtype=np.int64)
        return _shown(self._key.logical, decode_framed(self._key, data, start, end, self._options), self._options)[""][
            0
        ]


def _bytes(entries: EntryBatch, start: int, end: int) -> bytes:
    return entries.data[start:end].tobytes()


def _shown(logical: LogicalType, array: pa.Array, options: ReadOptions) -> dict[str, list[Any]]:
    """Return values as Python values by suffix: ``""`` for the values themselves, others for their companions."""
    column = table_column(logical, options)
    fields = column.fields(_VALUE)
    return {
        f.name.removeprefix(_VALUE): column_to_python(part)
        for f, part in zip(fields, column.arrays(array), strict=True)
    }
