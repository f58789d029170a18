"""Serializer snapshots: framing, current and legacy.

Current form (``TypeSerializerSnapshot.writeVersionedSnapshot``)::

    utf class name | i32 version | payload of that class and version

In the headers of state it stands behind a proxy (``TypeSerializerSnapshotSerializationUtil``)::

    i32 2 | versioned snapshot                     Flink 1.7 and later
    i32 1 | utf class name | legacy payload        Flink 1.6 and older

Nothing is framed by a length, so a snapshot class that is not known hides where the next field starts
(:class:`~statetool.errors.UnknownSerializerError`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.opaque import OpaqueSerializer

#: Version word of a snapshot that Flink 1.7 wrote for a class with a snapshot of the old kind.
ADAPTER_VERSION: Final = 0x7A53C4F0
NESTED_MAGIC: Final = 1333245
COMPOSITE_MAGIC: Final = 911108
MAX_DEPTH: Final = 64
OPTIONAL_MAP_MAGIC: Final = 0x000004F2C69A3D70

SnapshotReader: TypeAlias = Callable[[Cursor, str, int], Serializer]


class Reader(NamedTuple):
    """How one snapshot class is read: now, and in the form of Flink 1.6 and older (if it had one)."""

    read: SnapshotReader
    legacy: SnapshotReader | None = None


def read_snapshot(c: Cursor) -> Serializer:
    """Read one versioned snapshot.

    Raises
    ------
    UnknownSerializerError
        The snapshot class, or its version, is not known; the cursor is left behind the version word.
    FormatError
        Damaged.
    """
    start = c.pos
    name = c.utf()
    version = c.i4()
    reader = _reader(c, name, start)
    if version != ADAPTER_VERSION:
        return _bounded(c, reader.read, name, version)
    skip_old_serializer(c)
    serializer = _bounded(c, reader.legacy or reader.read, name, c.i4())
    return _keep(serializer, c, start)


def read_proxied(c: Cursor) -> Serializer:
    """Read a snapshot behind its proxy (both proxy versions)."""
    start = c.pos
    proxy = c.i4()
    if proxy == 2:
        return read_snapshot(c)
    if proxy != 1:
        raise c.fail(f"serializer snapshot proxy version {proxy} is neither 1 nor 2", pos=start)
    name_at = c.pos
    name = c.utf()
    reader = _reader(c, name, name_at)
    serializer = _bounded(c, reader.legacy or reader.read, name, c.i4())
    serializer.proxy_bytes = bytes(c.data[start : c.pos])
    return serializer


def _bounded(c: Cursor, read: SnapshotReader, name: str, version: int) -> Serializer:
    """Call a reader; types nested beyond all measure (only damage makes them) are refused."""
    try:
        serializer = read(c, name, version)
    except RecursionError as e:
        raise c.fail(f"serializers are nested deeper than {MAX_DEPTH}") from e
    serializer.depth = 1 + max((child.depth for _, child in serializer.children()), default=0)
    if serializer.depth > MAX_DEPTH:
        raise c.fail(f"serializers are nested deeper than {MAX_DEPTH}")
    return serializer


def write_proxied(out: Output, serializer: Serializer) -> None:
    """Append a snapshot behind its proxy, exactly as it was read."""
    if serializer.proxy_bytes is not None:
        out += serializer.proxy_bytes
        return
    out.i4(2)
    serializer.write_snapshot(out)


def skip_old_serializer(c: Cursor) -> None:
    """Step over a Java-serialized serializer object (``TypeSerializerSerializationUtil``)."""
    if (version := c.i4()) != 1:
        raise c.fail(f"serializer proxy version {version}, expected 1", pos=c.pos - 4)
    c.skip(c.i4())


def read_resilient_list(c: Cursor) -> tuple[Serializer, ...]:
    """Read the list of (old serializer, proxied snapshot) that Flink 1.6 and older framed by offsets."""
    n = c.count("serializers", at_least=8)
    offsets = [(c.i4(), c.i4()) for _ in range(n)]
    body = c.slice(c.i4(), "serializers")
    size = body.end - body.pos
    ends = [at_serializer for at_serializer, _ in offsets[1:]] + [size]
    found = []
    for (at_serializer, at_snapshot), end in zip(offsets, ends, strict=True):
        if not 0 <= at_serializer <= at_snapshot <= end <= size:
            raise body.fail(f"offsets {at_serializer} and {at_snapshot} are outside of {size} bytes")
        found.append(_resilient_entry(Cursor(body.data, body.pos + at_snapshot, body.pos + end, base=body.base)))
    return tuple(found)


def _resilient_entry(entry: Cursor) -> Serializer:
    # Entries are framed by their offsets, so an unknown class hides nothing here.
    start = entry.pos
    try:
        return read_proxied(entry)
    except UnknownSerializerError as error:
        opaque = OpaqueSerializer(b"", error.message)
        opaque.proxy_bytes = bytes(entry.data[start : entry.end])
        return opaque


def read_nested(c: Cursor) -> tuple[Serializer, ...]:
    """Read a nested block (``NestedSerializersSnapshotDelegate``)."""
    if c.i4() != NESTED_MAGIC:
        raise c.fail("expected the magic number of nested serializers (00 14 57 FD)", pos=c.pos - 4)
    if (version := c.i4()) != 1:
        raise c.fail(f"nested serializers of version {version}, expected 1", pos=c.pos - 4)
    return tuple(read_snapshot(c) for _ in range(c.count("nested serializers", at_least=6)))


def write_nested(out: Output, nested: tuple[Serializer, ...]) -> None:
    """Append a nested block."""
    out.i4(NESTED_MAGIC)
    out.i4(1)
    out.i4(len(nested))
    for serializer in nested:
        serializer.write_snapshot(out)


def _reader(c: Cursor, name: str, at: int) -> Reader:
    # The table imports every family and each family imports this module.
    from statetool.serializers.table import find_reader

    reader = find_reader(name)
    if reader is None:
        raise UnknownSerializerError(
            f"serializer snapshot class {name!r} is not known",
            hint="its values stay bytes where their frame is known",
        ).at(offset=c.base + at)
    return reader


def serializer_of_class(java_class: str) -> Serializer | None:
    """Return the serializer for a serializer class without parts, as Java streams name it; ``None`` if it is another one."""
    from statetool.serializers.table import SIMPLE_TYPES

    spec = SIMPLE_TYPES.get(java_class.rpartition(".")[2])
    return None if spec is None else spec.serializer()


def _keep(serializer: Serializer, c: Cursor, start: int) -> Serializer:
    serializer.legacy_bytes = bytes(c.data[start : c.pos])
    return serializer
