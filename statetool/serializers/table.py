"""The one table from Flink's snapshot classes to readers.

Classes are found by what follows the last ``.`` of their name, because packages moved between releases. A name
that two families claim is an error at import.
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
    kryo,
    legacy,
    options,
    pojo,
    row,
    rowdata,
    runtime,
    sql,
    sql_external,
    streaming,
    temporal,
    tuples,
    user,
)
from statetool.serializers.snapshot import Reader

#: Types without parts by the simple name of their serializer class.
SIMPLE_TYPES: Final = legacy.by_serializer_class(
    basic.TYPES,
    temporal.TYPES,
    arrays.TYPES,
    streaming.TYPES,
    cep.TYPES,
    sql.TYPES,
    (tuples.TUPLE0, user.JAVA, runtime.VOID_NAMESPACE),
    (runtime.TIME_WINDOW, runtime.GLOBAL_WINDOW, runtime.COUNT_WINDOW),
)

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
    "legacy": {"ParameterlessTypeSerializerConfig": legacy.parameterless(SIMPLE_TYPES)},
}


def _merge() -> dict[str, Reader]:
    table: dict[str, Reader] = {}
    for family, readers in FAMILIES.items():
        for name, reader in readers.items():
            if name in table:
                raise RuntimeError(f"snapshot class {name} is claimed twice, the second time by {family}")
            table[name] = reader
    return table


READERS: Final = MappingProxyType(_merge())


def find_reader(snapshot_class: str) -> Reader | None:
    """Return the reader of a snapshot class by its Java name, in whatever package it lay."""
    return READERS.get(snapshot_class.rpartition(".")[2])
