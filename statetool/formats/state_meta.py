"""Descriptions of registered states, as they stand in the headers of keyed and operator streams.

Layouts M1 (Flink 1.2) to M6 (1.7 and later). Follows ``StateMetaInfoSnapshotReadersWriters`` and
``LegacyStateMetaInfoReaders``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.context import current_context
from statetool.serializers.opaque import OpaqueSerializer
from statetool.serializers.pyflink import declared_in_python
from statetool.serializers.runtime import TimerSerializer, unwrap
from statetool.serializers.snapshot import read_proxied, read_resilient_list, write_proxied

T = TypeVar("T")
KEY_VALUE, OPERATOR, BROADCAST, PRIORITY_QUEUE, KEY_VALUE_V2 = range(5)
_KINDS_M3: Final = ("UNKNOWN", "VALUE", "LIST", "REDUCING", "FOLDING", "AGGREGATING", "MAP")
_KIND_NAMES: Final = {k: k.lower() for k in _KINDS_M3}
_SERIALIZER_KEYS: Final = {
    "VALUE_SERIALIZER",
    "NAMESPACE_SERIALIZER",
    "KEY_SERIALIZER",
    "USER_KEY_SERIALIZER",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMeta:
    """One registered state. ``backend_type`` is the ordinal on the wire (0 KEY_VALUE .. 4 KEY_VALUE_V2)."""

    name: str
    backend_type: int
    options: dict[str, str]
    serializers: dict[str, Serializer]

    @property
    def kind(self) -> str:
        """``value``, ``list``, ``map``, ``reducing``, ``aggregating``, ``folding``, ``timers``; for operator
        state ``list``, ``union`` or ``broadcast``."""
        if self.backend_type == PRIORITY_QUEUE:
            return "timers"
        if self.backend_type in (OPERATOR, BROADCAST):
            mode = self.options.get("OPERATOR_STATE_DISTRIBUTION_MODE", "SPLIT_DISTRIBUTE")
            return {"SPLIT_DISTRIBUTE": "list", "UNION": "union", "BROADCAST": "broadcast"}.get(mode, mode.lower())
        kind = _KIND_NAMES.get(self.options.get("KEYED_STATE_TYPE", "UNKNOWN"), "unknown")
        if kind != "unknown":
            return kind
        # Very old snapshots did not say the kind; the serializer of the value does where it matters.
        value = type(self.serializers["VALUE_SERIALIZER"]).__name__
        return {"ListSerializer": "list", "MapSerializer": "map"}.get(value, "value")

    @property
    def value(self) -> Serializer:
        """Serializer of the value (of a whole list or map; of a timer)."""
        return self.serializers["VALUE_SERIALIZER"]

    @property
    def namespace(self) -> Serializer | None:
        """Serializer of the namespace, for keyed state."""
        return self.serializers.get("NAMESPACE_SERIALIZER")

    @property
    def parts(self) -> tuple[Serializer, ...]:
        """Serializer of a list's elements, or of a map's keys and values; empty for other kinds.

        In the form of Flink 2's async state (``KEY_VALUE_V2``) they are named one by one; else they are inside of the value's.
        """
        if self.kind not in ("list", "map"):
            return ()
        value = unwrap(self.value)
        if self.backend_type == KEY_VALUE_V2:
            key = self.serializers.get("USER_KEY_SERIALIZER")
            return (value,) if self.kind == "list" else () if key is None else (unwrap(key), value)
        parts = tuple(unwrap(s) for _, s in value.children())
        return parts if len(parts) == (1 if self.kind == "list" else 2) else ()


def read_m6(c: Cursor, read: Callable[[Cursor], Serializer]) -> StateMeta:
    """Read the layout of Flink 1.7 and later; ``read`` reads each proxied serializer."""
    name, backend_type, options = _head(c)
    serializers = {}
    for _ in range(c.count("serializers", at_least=8)):
        start = c.pos
        key = c.utf()
        if key not in _SERIALIZER_KEYS:
            raise c.fail(f"unknown serializer {key!r} of state {name!r}", pos=start)
        try:
            serializers[key] = read(c)
        except FormatError as error:
            raise error.at(state=name) from None
    return _checked(c, name, backend_type, options, serializers)


def read_m5(c: Cursor) -> StateMeta:
    """Read the layout of Flink 1.6."""
    name, backend_type, options = _head(c)
    keys = [c.utf() for _ in range(c.count("serializer names", at_least=2))]
    found = read_resilient_list(c)
    if len(found) != len(keys):
        raise c.fail(f"{len(found)} serializers for {len(keys)} names of state {name!r}")
    return _checked(c, name, backend_type, options, dict(zip(keys, found, strict=True)))


def read_m3(c: Cursor) -> StateMeta:
    """Read the layout of Flink 1.3 to 1.5."""
    kind = c.i4()
    if not 0 <= kind < len(_KINDS_M3):
        raise c.fail(f"state type {kind}", pos=c.pos - 4)
    name = c.utf()
    found = read_resilient_list(c)
    if len(found) != 2:
        raise c.fail(f"{len(found)} serializers of state {name!r}, expected namespace and value")
    serializers = {"NAMESPACE_SERIALIZER": found[0], "VALUE_SERIALIZER": found[1]}
    return _checked(c, name, KEY_VALUE, {"KEYED_STATE_TYPE": _KINDS_M3[kind]}, serializers)


def _head(c: Cursor) -> tuple[str, int, dict[str, str]]:
    name = c.utf()
    backend_type = c.i4()
    if not 0 <= backend_type <= KEY_VALUE_V2:
        raise c.fail(f"backend state type {backend_type} of state {name!r} is not 0 to 4", pos=c.pos - 4)
    options = {c.utf(): c.utf() for _ in range(c.count("options", at_least=4))}
    return name, backend_type, options


def _checked(
    c: Cursor, name: str, backend_type: int, options: dict[str, str], serializers: dict[str, Serializer]
) -> StateMeta:
    needed = {"VALUE_SERIALIZER"}
    if backend_type in (KEY_VALUE, KEY_VALUE_V2):
        needed |= {"NAMESPACE_SERIALIZER"}
    if backend_type == BROADCAST:
        needed |= {"KEY_SERIALIZER"}
    if missing := needed - serializers.keys():
        raise c.fail(f"state {name!r} lacks its {', '.join(sorted(missing))}")
    value = serializers["VALUE_SERIALIZER"]
    if backend_type == PRIORITY_QUEUE and not isinstance(value, TimerSerializer):
        raise c.fail(f"the elements of the queue {name!r} are {value.type_name}, not timers")
    context = current_context()
    if context.python:
        serializers = declared_in_python(name, serializers, context)
    return StateMeta(name=name, backend_type=backend_type, options=options, serializers=serializers)


def write_m6(out: Output, meta: StateMeta) -> None:
    """Append the layout of Flink 1.7 and later."""
    out.utf(meta.name)
    out.i4(meta.backend_type)
    out.i4(len(meta.options))
    for key, value in meta.options.items():
        out.utf(key)
        out.utf(value)
    out.i4(len(meta.serializers))
    for key, serializer in meta.serializers.items():
        out.utf(key)
        write_proxied(out, serializer)


HeaderParser: TypeAlias = Callable[[Cursor, Callable[[Cursor], Serializer]], T]
_MAX_UNKNOWN: Final = 4
_MAX_UNKNOWN_BYTES: Final = 65536


class _UnplacedError(Exception):
    """An unknown snapshot whose end has not been chosen; ``after`` is where its payload starts."""

    def __init__(self, after: int, error: UnknownSerializerError) -> None:
        super().__init__()
        self.after = after
        self.error = error


def read_with_unknowns(c: Cursor, parse: HeaderParser[T], *, end: int | None) -> T:
    """Parse a header in which snapshot classes may be unknown.

    Nothing in a snapshot tells its length. Where the header's end is known, each position after an unknown snapshot
    at which a header could go on is tried, and the one that makes the rest end there is taken; the unknown snapshot
    becomes an :class:`~statetool.serializers.opaque.OpaqueSerializer` with its exact bytes.

    Parameters
    ----------
    parse
        Parses the header with a given reader of proxied serializers.
    end
        Position right after the header, ``None`` where it is not known.

    Raises
    ------
    UnknownSerializerError
        The end is not known, or no position or more than one makes the rest fit.
    """
    start = c.pos
    found: list[tuple[int, ...]] = []
    first: UnknownSerializerError | None = None

    def attempt(ends: tuple[int, ...]) -> T:
        c.pos = start
        left = list(ends)

        def read(cursor: Cursor) -> Serializer:
            begin = cursor.pos
            try:
                return read_proxied(cursor)
            except UnknownSerializerError as error:
                if not left:
                    raise _UnplacedError(cursor.pos, error) from None
                cursor.pos = left.pop(0)
                opaque = OpaqueSerializer(bytes(cursor.data[begin + 4 : cursor.pos]), error.message)
                opaque.proxy_bytes = bytes(cursor.data[begin : cursor.pos])
                return opaque

        return parse(c, read)

    def search(ends: tuple[int, ...]) -> None:
        nonlocal first
        try:
            attempt(ends)
        except _UnplacedError as gap:
            first = first or gap.error
            if end is not None and len(ends) < _MAX_UNKNOWN:
                for position in range(gap.after, min(end, gap.after + _MAX_UNKNOWN_BYTES) + 1):
                    if len(found) < 2 and _could_go_on(c, position, end):
                        search((*ends, position))
        except StatetoolError:
            if not ends:
                raise
        else:
            if end is None or c.pos == end:
                found.append(ends)

    search(())
    if len(found) != 1:
        if first is not None:
            raise first
        raise c.fail("the header does not end where the first key group starts")
    return attempt(found[0])


def _could_go_on(c: Cursor, position: int, end: int) -> bool:
    """Tell whether a header could go on here: its end, the name of a serializer, or a state (after a count)."""
    if position == end:
        return True
    rest = bytes(c.data[position : min(end, position + 1024)])
    if any(rest.startswith(len(key).to_bytes(2, "big") + key.encode()) for key in _SERIALIZER_KEYS):
        return True
    return _could_be_state(rest) or _could_be_state(rest[2:])


def _could_be_state(rest: bytes) -> bool:
    n = int.from_bytes(rest[:2], "big")
    at = 2 + n
    types = rest[at : at + 8]
    return len(types) == 8 and types[:3] == b"\0\0\0" and types[3] <= KEY_VALUE_V2 and types[4:7] == b"\0\0\0"
