"""The table of all supported Flink snapshot classes, and the reader for them.

Families name classes without their package. :mod:`statetool.serializers.packages` has the packages, because some classes moved between
releases. A name claimed by two families is an error at import.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from statetool.serializers import (
    arrays,
    avro,
    basic,
    cep,
    collections,
    enums,
    options,
    pojo,
    row,
    rowdata,
    runtime,
    simple_types,
    sql,
    sql_external,
    streaming,
    temporal,
    tuples,
    user,
)
from statetool.serializers.beam import serializer as beam
from statetool.serializers.kryo import serializer as kryo
from statetool.serializers.snapshot import SnapshotClass, SnapshotReader
from statetool.types.declared import NOTHING_DECLARED, TypeContext

FAMILIES: Final = {
    "basic": basic.SNAPSHOTS,
    "temporal": temporal.SNAPSHOTS,
    "arrays": arrays.SNAPSHOTS,
    "collections": collections.SNAPSHOTS,
    "tuples": tuples.SNAPSHOTS,
    "row": row.SNAPSHOTS,
    "pojo": pojo.SNAPSHOTS,
    "enums": enums.SNAPSHOTS,
    "options": options.SNAPSHOTS,
    "runtime": runtime.SNAPSHOTS,
    "streaming": streaming.SNAPSHOTS,
    "cep": cep.SNAPSHOTS,
    "sql": sql.SNAPSHOTS,
    "rowdata": rowdata.SNAPSHOTS,
    "external": sql_external.SNAPSHOTS,
    "avro": avro.SNAPSHOTS,
    "user": user.SNAPSHOTS,
    "kryo": kryo.SNAPSHOTS,
    "beam": beam.SNAPSHOTS,
    "legacy": simple_types.SNAPSHOTS,
}


def _merge() -> dict[str, SnapshotClass]:
    table: dict[str, SnapshotClass] = {}
    for family, readers in FAMILIES.items():
        for name, reader in readers.items():
            if name in table:
                raise RuntimeError(f"snapshot class {name} is claimed twice, the second time by {family}")
            table[name] = reader
    return table


SNAPSHOT_CLASSES: Final = MappingProxyType(_merge())

#: By the serializer class's name without its package.
HIDDEN: Final = MappingProxyType({"Lockable$LockableTypeSerializer": cep.lockable})


def snapshot_reader(types: TypeContext = NOTHING_DECLARED) -> SnapshotReader:
    """Return the reader of serializer snapshots with these declared types."""
    return SnapshotReader(SNAPSHOT_CLASSES, types, HIDDEN)
