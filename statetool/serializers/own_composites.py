"""Snapshots of the job's own subclasses of ``CompositeTypeSerializerSnapshot``, whose format Flink decides up to an outer payload of their own.

``writeSnapshot`` is final there: i32 911108, i32 outer version, outer payload, nested block. Only a payload that a subclass writes itself is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from statetool.errors import StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, SnapshotClass, SnapshotReader
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import NOTHING_DECLARED

#: Version of all composite snapshots since Flink 1.8.
_VERSION: Final = 3


class OwnCompositeSerializer(OpaqueSerializer):
    """A serializer of the job with the serializers of its parts. Its values stay bytes: only its code knows how it writes them."""

    def __init__(self, snapshot: bytes, nested: tuple[Serializer, ...]) -> None:
        super().__init__(snapshot, "a serializer of the job")
        self.nested = nested


def open_own_composites(serializer: OpaqueSerializer) -> Serializer | None:
    """Return a serializer whose snapshot was not read, with those of the job's composites in it; ``None`` if the format does not tell."""
    reader = snapshot_reader(serializer.types or NOTHING_DECLARED)
    c = Cursor(serializer.snapshot)
    try:
        found = replace(reader, classes=_WithComposites(reader.classes)).snapshot(c)
        c.expect_end("a snapshot")
    except StatetoolError:
        return None
    return found


@dataclass(frozen=True, slots=True)
class _WithComposites(Mapping[str, SnapshotClass]):
    """Snapshot classes, with a reader of composites for all that are not known."""

    known: Mapping[str, SnapshotClass]

    def __getitem__(self, name: str) -> SnapshotClass:
        return self.known.get(name) or SnapshotClass(_read, ())

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


def _read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    if version != _VERSION or c.i4() != COMPOSITE_MAGIC:
        raise UnknownSerializerError(f"serializer snapshot class {name!r} is not known")
    c.i4()
    # A payload of the class itself would be here, and the magic number of the block would not.
    nested = reader.nested(c)
    head = Output()
    head.utf(name)
    head.i4(version)
    return OwnCompositeSerializer(bytes(head) + bytes(c.data[start : c.pos]), nested)
