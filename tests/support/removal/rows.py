"""The complete contents of a snapshot, value by value with ``Serializer.decode``: no kernels, columns, filters or conditions.

The entries of canonical streams are read record by record. Those of other forms come from the readers of :mod:`statetool.entries`, which are compared with Flink's values by ``tests.corpus_check``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import statetool
from statetool.columns.values import StateLayout
from statetool.entries.streams import StoredStream
from statetool.errors import StatetoolError
from statetool.formats.compression import read_chunks
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types import LogicalType, Scalar
from tests.support.removal.key_lists import Fit, fit, fit_json

_SIGN: Final = 1 << 63


class Row(NamedTuple):
    """One entry of keyed state, with the bytes of its parts. ``timestamp_ms`` is that of a timer, ``user_key`` that of a map."""

    state: str
    kind: str
    key_group: int
    key: bytes
    namespace: bytes
    user_key: bytes
    timestamp_ms: int | None
    value: bytes


class Element(NamedTuple):
    """One element of operator state."""

    subtask: int
    state: str
    value: bytes


def decoded(serializer: Serializer, raw: bytes) -> Any:
    """Return the plain value of bytes that it must fill."""
    c = Cursor(raw)
    value = serializer.decode(c)
    if c.pos != len(raw):
        raise AssertionError(f"{len(raw) - c.pos} bytes follow {value!r}")
    return value


def encoded(serializer: Serializer, value: Any) -> bytes:
    """Return the bytes of a plain value."""
    out = Output()
    serializer.encode(out, value)
    return bytes(out)


@dataclass
class OperatorRows:
    """The contents of one operator.

    Attributes
    ----------
    rest
        What no command that removes keys changes: parallelism, coordinator, channels, raw state.
    unread
        The reason why keyed state cannot be split into keys, empty if it can.
    """

    inventory: OperatorInventory
    metas: Mapping[str, StateMetaInfo]
    key: Serializer | None
    rows: Counter[Row]
    elements: Counter[Element]
    rest: Any
    unread: str = ""
    _plain: dict[bytes, Any] = field(default_factory=dict)

    def plain_key(self, raw: bytes) -> Any:
        """Return a key as plain value."""
        if raw not in self._plain:
            assert self.key is not None
            self._plain[raw] = decoded(self.key, raw)
        return self._plain[raw]

    def fit(self, given: Any, raw: bytes) -> Fit:
        """Return whether a given value names a key."""
        assert self.key is not None
        has_objects = any(isinstance(part, KryoSerializer) for part in all_parts(self.key))
        return (fit_json if has_objects else fit)(given, self.plain_key(raw), self.key.logical)

    @cached_property
    def keys(self) -> list[bytes]:
        """The distinct keys in a stable order."""
        return sorted({row.key for row in self.rows})

    @cached_property
    def columns(self) -> dict[str, LogicalType]:
        """Logical types of the states of ``keyed_state``, by name: those without a namespace."""
        found = {}
        for name, meta in self.metas.items():
            if meta.kind != "timers" and (meta.namespace is None or meta.namespace.logical == Scalar("null")):
                layout = StateLayout(meta)
                if not layout.framed_bytes and layout.packed is None:
                    found[name] = layout.logical
        return found

    @cached_property
    def undecoded(self) -> str:
        """The reason why a key or a value cannot be decoded, empty if all can."""
        try:
            for key in self.keys:
                self.plain_key(key)
            self.values_of_keys  # noqa: B018
        except (StatetoolError, AssertionError) as error:
            return str(error)
        return ""

    @cached_property
    def values_of_keys(self) -> dict[bytes, dict[str, Any]]:
        """The values of each key by state, as ``keyed_state`` has them; absent states are missing."""
        values: dict[bytes, dict[str, Any]] = {key: {} for key in self.keys}
        for row in sorted(self.rows):
            if row.state not in self.columns:
                continue
            parts = list(self.parts(row))
            of_key = values[row.key]
            if self.metas[row.state].kind in ("list", "map"):
                of_key.setdefault(row.state, []).extend(parts)
            else:
                (of_key[row.state],) = parts
        return values

    def parts(self, row: Row) -> Iterator[Any]:
        """Yield the elements of an entry: of a list, the pair of a map's entry, or the one value."""
        layout = StateLayout(self.metas[row.state])
        if layout.user_key is not None:
            # Flink's RocksDB map values have a flag of null before them.
            c = Cursor(row.value)
            is_null = c.bool()
            yield decoded(layout.user_key, row.user_key), None if is_null else decoded(layout.element, row.value[1:])
        elif layout.kind == "list":
            c = Cursor(row.value)
            while c.left:
                yield layout.element.decode(c)
                if c.left and c.take(1) != b",":
                    raise AssertionError(f"no comma between elements of {row.state!r}")
        else:
            yield decoded(layout.element, row.value)


def _split(header: KeyedHeader, meta: StateMetaInfo, group: int, key: bytes, value: bytes) -> Row:
    """Split a composite key."""
    c = Cursor(key)
    stamp = c.i8() if meta.kind == "timers" else None
    if stamp is not None:
        stamp += _SIGN if stamp < 0 else -_SIGN
    namespace = meta.namespace
    if meta.kind == "timers":
        namespace = dict(meta.value.children()).get("namespace")
    assert namespace is not None
    ambiguous = meta.kind != "timers" and header.key.length < 0 and namespace.length < 0
    start = c.pos
    header.key.decode(c)
    own_key = key[start : c.pos]
    if ambiguous:
        _skip_length(c, len(own_key))
    start = c.pos
    namespace.decode(c)
    own_namespace = key[start : c.pos]
    if ambiguous:
        _skip_length(c, len(own_namespace))
    user_key = key[c.pos :]
    if user_key and meta.kind != "map":
        raise AssertionError(f"{len(user_key)} bytes follow the key of {meta.name!r}")
    return Row(meta.name, meta.kind, group, own_key, own_namespace, user_key, stamp, value)


def _skip_length(c: Cursor, length: int) -> None:
    while True:
        assert c.take(1)[0] == length & 0xFF
        length >>= 8
        if not length:
            return


def _keyed_records(operator: OperatorInventory) -> Iterator[tuple[KeyedHeader, StateMetaInfo, int, bytes, bytes]]:
    managed = [s for s in operator.keyed.managed if isinstance(s, StoredStream) and s.canonical]
    if managed and len(managed) == len(operator.keyed.managed) and not operator.keyed.raw_timers:
        headers = [s.header() for s in managed]
        metas = {m.name: (h, m) for h in reversed(headers) for m in h.states}
        for stored in managed:
            for group, state, key, value in _stream_records(stored, operator.state.max_parallelism):
                yield (*metas[state], group, key, value)
        return
    for source in operator.keyed.sources(raw=True):
        header = source.header()
        for b in source.batches():
            raw = bytes(b.data)
            numbers = zip(*(column.tolist() for column in b.rows()), strict=True)
            for state, group, key, key_end, value, value_end in numbers:
                yield header, header.states[state], group, raw[key:key_end], raw[value:value_end]


def _stream_records(stored: StoredStream, max_parallelism: int) -> Iterator[tuple[int, str, bytes, bytes]]:
    """Read a canonical stream record by record: key group, state, key without key group, value."""
    prefix = prefix_size(max_parallelism)
    header = stored.header()
    with stored.stream.open() as f:
        for part in stored.ranges():
            raw = bytes(f.read_at(part.offset, part.size_bytes))
            if header.compressed:
                raw = b"".join(c.data for c in read_chunks(memoryview(raw), base=0))
            c = Cursor(raw)
            while c.left and (state := c.u2()) != 0xFFFF:
                last = False
                while not last:
                    key = c.bytes4()
                    last = key[0] >= 0x80
                    key = bytes([key[0] & 0x7F]) + key[1:]
                    if int.from_bytes(key[:prefix], "big") != part.number:
                        raise AssertionError(f"a key of key group {key[:prefix].hex()} is in key group {part.number}")
                    yield part.number, header.states[state].name, key[prefix:], c.bytes4()
            if c.left:
                raise AssertionError(f"{c.left} bytes follow key group {part.number}")


def _content(operator: OperatorInventory, handle: Any) -> Any:
    stream = operator.resolve(handle)
    if stream is None:
        return None
    with stream.open() as f:
        return bytes(f.read_at(0, stream.size_bytes))


def read_operator(operator: OperatorInventory) -> OperatorRows:
    """Read the contents of an operator."""
    rows: Counter[Row] = Counter()
    unread = ""
    if "keyed" in operator.unread:
        unread = operator.unread["keyed"].message
    elif operator.keyed.own_raw_subtasks:
        unread = "raw keyed state"
    metas = {name: meta for name, (_, meta) in operator.listed_keyed.items()}
    key = operator.keyed.key if metas else None
    if not unread and key is not None:
        try:
            for header, meta, group, raw_key, value in _keyed_records(operator):
                rows[_split(header, meta, group, raw_key, value)] += 1
        except StatetoolError as error:
            rows, unread = Counter(), error.message
    elements: Counter[Element] = Counter()
    if "operator" not in operator.unread:
        for stream in operator.elements.streams:
            raw = b""
            if stream.stream.size_bytes:
                with stream.stream.open() as f:
                    raw = bytes(f.read_at(0, stream.stream.size_bytes))
            for name in stream.offsets:
                elements.update(Element(stream.subtask, name, raw[a:b]) for a, b in stream.ranges(name))
    state = operator.state
    rest = {
        "max_parallelism": state.max_parallelism,
        "parallelism": state.parallelism,
        "names": (state.name, state.uid, state.operator_id),
        "coordinator": _content(operator, state.coordinator),
        "finished": (state.fully_finished, [s.index for s in state.subtasks if s.finished]),
        "channels": [
            (s.index, len(s.input_channels), len(s.output_channels))
            for s in state.subtasks
            if s.input_channels or s.output_channels
        ],
        "element states": sorted(operator.listed_elements),
    }
    return OperatorRows(
        inventory=operator, metas=metas, key=key, rows=rows, elements=elements, rest=rest, unread=unread
    )


def read_rows(savepoint: statetool.Savepoint) -> dict[str, OperatorRows]:
    """Read the contents of a snapshot, by operator id."""
    return {o.state.operator_id: read_operator(o) for o in savepoint.inventory.operators.values()}
