"""The table of all supported Flink snapshot classes, and the reader for them.

Families name classes without their package. :mod:`statetool.serializers.packages` has the packages, because some classes moved between
releases. No two families have the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

from statetool.serializers.base import Serializer
from statetool.serializers.snapshot import SnapshotClass, SnapshotReader
from statetool.types.declared import NOTHING_DECLARED, TypeContext

#: Modules by family. A class is looked up in this order: families that nearly every job has come first, those with many modules last.
FAMILIES: Final = {
    "basic": "basic",
    "temporal": "temporal",
    "arrays": "arrays",
    "collections": "collections",
    "tuples": "tuples",
    "row": "row",
    "pojo": "pojo",
    "enums": "enums",
    "options": "options",
    "runtime": "runtime",
    "streaming": "streaming",
    "sql": "sql",
    "rowdata": "rowdata",
    "external": "sql_external",
    "user": "user",
    "legacy": "simple_types",
    "kryo": "kryo.serializer",
    "avro": "avro",
    "cep": "cep",
    "beam": "beam.serializer",
}


def snapshot_classes(family: str) -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of a family, by name without the package."""
    module = import_module(f"statetool.serializers.{FAMILIES[family]}")
    return cast("Mapping[str, SnapshotClass]", module.SNAPSHOTS)


class _SnapshotClasses(Mapping[str, SnapshotClass]):
    """The snapshot classes of all families; a family is imported when a name is not in the families before it."""

    def __init__(self) -> None:
        self._found: dict[str, SnapshotClass] = {}

    def __getitem__(self, name: str) -> SnapshotClass:
        if name not in self._found:
            for classes in map(snapshot_classes, FAMILIES):
                if name in classes:
                    self._found[name] = classes[name]
                    break
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (name for family in FAMILIES for name in snapshot_classes(family))

    def __len__(self) -> int:
        return sum(len(snapshot_classes(family)) for family in FAMILIES)


SNAPSHOT_CLASSES: Final = _SnapshotClasses()


def _lockable(element: Serializer) -> Serializer:
    from statetool.serializers.cep import lockable

    return lockable(element)


#: By the serializer class's name without its package.
HIDDEN: Final = {"Lockable$LockableTypeSerializer": _lockable}


def snapshot_reader(types: TypeContext = NOTHING_DECLARED) -> SnapshotReader:
    """Return the reader of serializer snapshots with these declared types."""
    return SnapshotReader(SNAPSHOT_CLASSES, types, HIDDEN)
