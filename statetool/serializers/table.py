"""The table of all supported snapshot classes, and the reader for them.

Families of Flink name classes without their package. :mod:`statetool.serializers.core.packages` has the packages, because some classes moved
between releases. No two families have the same name. Classes of other libraries belong to :mod:`statetool.serializers.plugins`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import full_name, known_name
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.types.declared import NOTHING_DECLARED, TypeContext

#: Modules by family. A class is looked up in this order: families that nearly every job has come first, those with many modules last.
FAMILIES: Final = {
    "basic": "typeutils.basic",
    "temporal": "typeutils.temporal",
    "arrays": "typeutils.arrays",
    "collections": "typeutils.collections",
    "tuples": "typeutils.tuples",
    "row": "typeutils.row",
    "pojo": "typeutils.pojo",
    "enums": "typeutils.enums",
    "options": "typeutils.options",
    "runtime": "runtime",
    "streaming": "streaming",
    "sql": "sql.runtime",
    "rowdata": "sql.rowdata",
    "external": "sql.external",
    "user": "typeutils.user",
    "legacy": "simple_types",
    "kryo": "kryo.serializer",
    "avro": "avro.serializer",
    "cep": "cep",
}


def plugin_classes(package: str) -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of a Java package that plug-ins read, by full name."""
    # Only snapshots with classes of other libraries pay for the import of importlib.metadata.
    from statetool.serializers import plugins

    return plugins.plugin_classes(package)


def bundled_classes() -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of the bundled libraries, by full name."""
    from statetool.serializers import plugins

    return plugins.bundled_classes()


def snapshot_classes(family: str) -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of a family, by name without the package."""
    module = import_module(f"statetool.serializers.{FAMILIES[family]}")
    return cast("Mapping[str, SnapshotClass]", module.SNAPSHOTS)


class _SnapshotClasses(Mapping[str, SnapshotClass]):
    """All snapshot classes by full name. A family is imported when a class is not in the families before it.

    Iteration yields the classes of Flink's families and of the bundled libraries, each by one name.
    """

    def __init__(self, declared: Mapping[str, SnapshotClass]) -> None:
        self._found = dict(declared)

    def __getitem__(self, class_name: str) -> SnapshotClass:
        if class_name not in self._found:
            known = known_name(class_name)
            if not known:
                self._found |= plugin_classes(class_name.rpartition(".")[0])
            for classes in map(snapshot_classes, FAMILIES) if known else ():
                if known in classes:
                    self._found[class_name] = classes[known]
                    break
        return self._found[class_name]

    def __iter__(self) -> Iterator[str]:
        yield from (full_name(name) for family in FAMILIES for name in snapshot_classes(family))
        yield from bundled_classes()

    def __len__(self) -> int:
        return sum(1 for _ in self)


SNAPSHOT_CLASSES: Final = _SnapshotClasses({})


def _lockable(element: Serializer) -> Serializer:
    from statetool.serializers.cep import lockable

    return lockable(element)


#: By the serializer class's name without its package.
HIDDEN: Final = {"Lockable$LockableTypeSerializer": _lockable}


def snapshot_reader(types: TypeContext = NOTHING_DECLARED) -> SnapshotReader:
    """Return the reader of serializer snapshots with these declared types."""
    if any(c.kind == "protobuf" and c.serializer for c in types.classes):
        from statetool.serializers.messages import declared_classes

        return SnapshotReader(_SnapshotClasses(declared_classes(types)), types, HIDDEN)
    return SnapshotReader(SNAPSHOT_CLASSES, types, HIDDEN)
