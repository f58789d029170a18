"""Serializer snapshots: framing, current and legacy.

Current form (``TypeSerializerSnapshot.writeVersionedSnapshot``)::

    utf class name | i32 version | payload of that class and version

In the headers of state it is wrapped in a proxy (``TypeSerializerSnapshotSerializationUtil``)::

    i32 2 | versioned snapshot                     Flink 1.7 and later
    i32 1 | utf class name | legacy payload        Flink 1.6 and older

Nothing is framed by a length, so the start of the field after an unknown snapshot class cannot be found
(:class:`~statetool.errors.UnknownSerializerError`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.core.packages import known_name
from statetool.types.declared import TypeContext

#: Version word that Flink 1.7 wrote for a class with an old-style snapshot.
ADAPTER_VERSION: Final = 0x7A53C4F0
NESTED_MAGIC: Final = 1333245
COMPOSITE_MAGIC: Final = 911108
MAX_DEPTH: Final = 64
OPTIONAL_MAP_MAGIC: Final = 0x000004F2C69A3D70
_STAYS_BYTES: Final = "take a canonical savepoint of the job: its values are exact bytes there"


class SnapshotClass(NamedTuple):
    """One snapshot class, with the readers and versions of its payload.

    Attributes
    ----------
    read, versions
        The form of Flink 1.7 and later. No versions mean that all are read in the same way.
    legacy, legacy_versions
        The form of Flink 1.6 and older, if it differs.
    outer_versions
        For composite snapshots: versions of the payload before the nested serializers.
    of_stream
        For empty snapshots that Flink wraps in an adapter: reader of the preceding Java stream of the serializer.
    """

    read: ReadPayload
    versions: tuple[int, ...]
    legacy: ReadPayload | None = None
    legacy_versions: tuple[int, ...] = ()
    outer_versions: tuple[int, ...] = ()
    of_stream: ReadPayload | None = None


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """Reader of serializer snapshots and their nested snapshots.

    Attributes
    ----------
    classes
        Known snapshot classes by full name.
    types
        Facts about types from outside of their snapshots: the version of Kryo, declared classes.
    hidden
        Serializer classes whose snapshot up to Flink 1.6 was that of their element's serializer, with functions that create them from it.
    """

    classes: Mapping[str, SnapshotClass]
    types: TypeContext
    hidden: Mapping[str, Callable[[Serializer], Serializer]]

    def snapshot(self, c: Cursor) -> Serializer:
        """Read one versioned snapshot.

        Raises
        ------
        UnknownSerializerError
            The snapshot class or its version is unknown; the cursor is left at the start of the payload.
        FormatError
            The snapshot is damaged.
        """
        start = c.pos
        name = c.utf()
        version = c.i4()
        if version != ADAPTER_VERSION:
            snapshot_class = self._class(c, name, start)
            return self._payload(c, snapshot_class.read, snapshot_class.versions, name, version)
        stream = read_serializer_stream(c)
        if name not in self.classes:
            c.i4()
        snapshot_class = self._class(c, name, start)
        if snapshot_class.of_stream is not None:
            check_version(c, name, c.i4(), snapshot_class.versions)
            serializer = snapshot_class.of_stream(self, stream, name, version)
        else:
            serializer = self._old_payload(c, snapshot_class, name)
        serializer.legacy_bytes = bytes(c.data[start : c.pos])
        return serializer

    def unversioned(self, c: Cursor, *, first: bool) -> Serializer:
        """Read a snapshot that some libraries nest without its version: the class name, then the payload.

        Its version is the first or else the newest that is known.
        """
        start = c.pos
        name = c.utf()
        snapshot_class = self._class(c, name, start)
        versions = snapshot_class.versions
        version = (min if first else max)(versions, default=1)
        return self._payload(c, snapshot_class.read, versions, name, version)

    def proxied(self, c: Cursor) -> Serializer:
        """Read a snapshot wrapped in its proxy (both proxy versions)."""
        start = c.pos
        proxy = c.i4()
        if proxy == 2:
            return self.snapshot(c)
        check_version(c, "serializer snapshot proxy", proxy, (1, 2))
        name_at = c.pos
        name = c.utf()
        snapshot_class = self._class(c, name, name_at)
        serializer = self._old_payload(c, snapshot_class, name)
        serializer.proxy_bytes = bytes(c.data[start : c.pos])
        return serializer

    def resilient_list(self, c: Cursor) -> tuple[Serializer, ...]:
        """Read the list of (old serializer, proxied snapshot) pairs that Flink 1.6 and older framed by offsets."""
        n = c.count("serializers", at_least=8)
        offsets = [(c.i4(), c.i4()) for _ in range(n)]
        body = c.slice(c.i4(), "serializers")
        size = body.end - body.pos
        if not n and size:
            raise body.fail(f"{size} bytes of no serializers")
        ends = [*(at_serializer for at_serializer, _ in offsets[1:]), size]
        serializers = []
        for (at_serializer, at_snapshot), end in zip(offsets, ends[:n], strict=True):
            if not 0 <= at_serializer <= at_snapshot <= end <= size:
                raise body.fail(f"offsets {at_serializer} and {at_snapshot} are outside of {size} bytes")
            serializer = self._read_listed(Cursor(body.data, body.pos + at_snapshot, body.pos + end, base=body.base))
            stream = read_serializer_stream(
                Cursor(body.data, body.pos + at_serializer, body.pos + at_snapshot, base=body.base)
            )
            wrap = self.hidden.get(class_of_stream(stream))
            serializers.append(serializer if wrap is None else wrap(serializer))
        return tuple(serializers)

    def nested(self, c: Cursor) -> tuple[Serializer, ...]:
        """Read a nested block (``NestedSerializersSnapshotDelegate``)."""
        if c.i4() != NESTED_MAGIC:
            raise c.fail("expected the magic number of nested serializers (00 14 57 FD)", pos=c.pos - 4)
        check_version(c, "nested serializers", c.i4(), (1,))
        return tuple(self.snapshot(c) for _ in range(c.count("nested serializers", at_least=6)))

    def _read_listed(self, entry: Cursor) -> Serializer:
        # Entries are framed by their offsets, so the entry after an unknown class can still be found.
        start = entry.pos
        try:
            return self.proxied(entry)
        except UnknownSerializerError as error:
            opaque = OpaqueSerializer(b"", error.message)
            opaque.proxy_bytes = bytes(entry.data[start : entry.end])
            return opaque

    def _class(self, c: Cursor, name: str, name_at: int) -> SnapshotClass:
        snapshot_class = self.classes.get(name)
        if snapshot_class is None:
            raise UnknownSerializerError(f"serializer snapshot class {name!r} is not known", hint=_STAYS_BYTES).at(
                offset=c.base + name_at
            )
        return snapshot_class

    def _old_payload(self, c: Cursor, snapshot_class: SnapshotClass, name: str) -> Serializer:
        if snapshot_class.legacy is None:
            return self._payload(c, snapshot_class.read, snapshot_class.versions, name, c.i4())
        return self._payload(c, snapshot_class.legacy, snapshot_class.legacy_versions, name, c.i4())

    def _payload(self, c: Cursor, read: ReadPayload, versions: tuple[int, ...], name: str, version: int) -> Serializer:
        """Read the payload after the version; refuse excessive nesting, which only damage causes."""
        if versions:
            check_version(c, name, version, versions)
        try:
            serializer = read(self, c, name, version)
        except RecursionError as e:
            raise c.fail(f"serializers are nested deeper than {MAX_DEPTH}") from e
        serializer.depth = 1 + max((child.depth for _, child in serializer.children()), default=0)
        if serializer.depth > MAX_DEPTH:
            raise c.fail(f"serializers are nested deeper than {MAX_DEPTH}")
        return serializer


#: Reads the payload after class name and version of a snapshot.
ReadPayload: TypeAlias = Callable[[SnapshotReader, Cursor, str, int], Serializer]


def check_version(c: Cursor, what: str, version: int, known: tuple[int, ...]) -> None:
    """Refuse an unknown version; the cursor is directly after it.

    Raises
    ------
    UnknownSerializerError
        The version is newer than all known ones; the payload is not read with the layout of another version.
    FormatError
        The version never existed.
    """
    if version in known:
        return
    expected = ", ".join(map(str, known))
    if version > max(known):
        raise UnknownSerializerError(f"{what} version {version} is not known, only {expected}", hint=_STAYS_BYTES).at(
            offset=c.offset - 4
        )
    raise c.fail(f"{what} version {version}, expected {expected}", pos=c.pos - 4)


def write_proxied(out: Output, serializer: Serializer) -> None:
    """Append a snapshot wrapped in its proxy, exactly as read."""
    if serializer.proxy_bytes is not None:
        out += serializer.proxy_bytes
        return
    out.i4(2)
    serializer.write_snapshot(out)


def read_serializer_stream(c: Cursor) -> Cursor:
    """Step over a serializer written by Java serialization (``TypeSerializerSerializationUtil``), and return its stream."""
    if (version := c.i4()) != 1:
        raise c.fail(f"serializer proxy version {version}, expected 1", pos=c.pos - 4)
    return c.slice(c.i4(), "a Java-serialized serializer")


def class_of_stream(c: Cursor) -> str:
    """Return the class of a serializer in its Java stream, without its package; empty if it is unknown."""
    raw = bytes(c.data[c.pos : c.end])
    if not raw.startswith(b"\xac\xed\0\5sr"):
        return ""
    size = int.from_bytes(raw[6:8], "big")
    return known_name(raw[8 : 8 + size].decode("utf-8", "replace"))


def write_nested(out: Output, nested: tuple[Serializer, ...]) -> None:
    """Append a nested block."""
    out.i4(NESTED_MAGIC)
    out.i4(1)
    out.i4(len(nested))
    for serializer in nested:
        serializer.write_snapshot(out)
