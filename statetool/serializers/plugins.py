"""Serializers of other libraries than Flink: bundled ones, and those of other packages in the entry point group ``statetool.serializers``.

The name of an entry point is a Java package. Its object maps full names of snapshot classes of that package to their readers
(:class:`~statetool.serializers.core.snapshot.SnapshotClass`). It is loaded when a snapshot has a class of that package.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from statetool.errors import OptionError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import known_name
from statetool.serializers.core.snapshot import ReadPayload, SnapshotClass, SnapshotReader

GROUP: Final = "statetool.serializers"
#: Objects of the bundled libraries by Java package, as ``module:object``.
BUNDLED: Final = {
    "com.datasqrl.flinkrunner.stdlib.json": "statetool.serializers.libraries.datasqrl:SNAPSHOTS",
    "org.apache.beam.runners.flink.translation.types": "statetool.serializers.libraries.beam.serializer:SNAPSHOTS",
    "org.apache.flinkx.api.serializer": "statetool.serializers.libraries.flinkx.serializer:SNAPSHOTS",
    "org.apache.fluss.flink.sink.state": "statetool.serializers.libraries.fluss:SNAPSHOTS",
    "org.apache.flink.statefun.flink.common.protobuf": "statetool.serializers.libraries.statefun:MESSAGES",
    "org.apache.flink.statefun.flink.core.message": "statetool.serializers.libraries.statefun:ENVELOPES",
    "org.apache.flink.statefun.flink.core.types.remote": "statetool.serializers.libraries.statefun:REMOTE_VALUES",
    "pl.touk.nussknacker.engine.flink.api.typeinfo.caseclass": "statetool.serializers.libraries.nussknacker:CASE_CLASSES",
    "pl.touk.nussknacker.engine.flink.api.typeinfo.option": "statetool.serializers.libraries.nussknacker:OPTIONS",
    "pl.touk.nussknacker.engine.flink.typeinformation": "statetool.serializers.libraries.nussknacker:FIXED_VALUES",
    "pl.touk.nussknacker.engine.process.typeinformation.internal.typedobject": (
        "statetool.serializers.libraries.nussknacker:TYPED_MAPS"
    ),
}


def plugin_classes(package: str) -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of a Java package that plug-ins read, by full name.

    Raises
    ------
    OptionError
        A plug-in cannot be loaded, does not follow the contract, or reads a class that another one reads.
    """
    classes: dict[str, SnapshotClass] = {}
    owners: dict[str, str] = {}
    for point in _points(tuple(sys.path)).get(package, ()):
        owner = _owner(point)
        for name, snapshot_class in _load(point, owner).items():
            if name in owners:
                raise OptionError(
                    f"two packages read {name}: {owners[name]} and {owner}",
                    hint=f"uninstall one of them: pip uninstall {owner}",
                )
            owners[name] = owner
            classes[name] = snapshot_class if owner == "statetool" else _guard(snapshot_class, owner)
    return classes


def bundled_classes() -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of the bundled libraries, by full name."""
    points = (EntryPoint(package, value, GROUP) for package, value in BUNDLED.items())
    return {name: c for point in points for name, c in _load(point, "statetool").items()}


@lru_cache(maxsize=1)
def _points(path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points by Java package, found on this path (Spark adds files to the path of a worker). Nothing is imported."""
    found = {package: (EntryPoint(package, value, GROUP),) for package, value in BUNDLED.items()}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def _owner(point: EntryPoint) -> str:
    """Return the name of the Python package that has an entry point."""
    if point.dist is not None:
        return str(point.dist.name)
    return point.value.partition(":")[0].partition(".")[0]


def _load(point: EntryPoint, owner: str) -> Mapping[str, SnapshotClass]:
    what = f"the serializers of the package {owner} ({point.value})"
    try:
        classes = point.load()
    except Exception as error:
        raise OptionError(
            f"{what} cannot be loaded: {type(error).__name__}: {error}",
            hint=f"reinstall it (pip install --force-reinstall {owner}), or uninstall it (pip uninstall {owner})",
        ) from error
    if not isinstance(classes, Mapping) or not all(isinstance(c, SnapshotClass) for c in classes.values()):
        raise OptionError(f"{what} are not a mapping of class names to SnapshotClass")
    for name in classes:
        if name.rpartition(".")[0] != point.name or known_name(name):
            raise OptionError(f"{what} cannot read {name}: the entry point is for other classes of {point.name}")
    return classes


def _guard(snapshot_class: SnapshotClass, owner: str) -> SnapshotClass:
    """Return the class with readers whose failures name the package."""

    def guard(read: ReadPayload) -> ReadPayload:
        def guarded(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
            try:
                return read(reader, c, name, version)
            except (StatetoolError, RecursionError):
                raise
            except Exception as error:
                raise OptionError(
                    f"the package {owner} failed to read {name}: {type(error).__name__}: {error}",
                    hint=f"report it to its authors, or uninstall it (pip uninstall {owner})",
                ) from error

        return guarded

    return snapshot_class._replace(
        read=guard(snapshot_class.read),
        legacy=snapshot_class.legacy and guard(snapshot_class.legacy),
        of_stream=snapshot_class.of_stream and guard(snapshot_class.of_stream),
    )
