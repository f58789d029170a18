"""Hash codes of JDK classes that Kryo wrote: what the class's own ``hashCode()`` gives of the values that they are shown as."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from statetool.serializers.basic import TYPES as BASIC
from statetool.serializers.java_hash import hash_long
from statetool.serializers.temporal import TYPES as TEMPORAL
from statetool.types import LogicalType, Scalar

_SPECS: Final = {t.name: t for t in (*BASIC, *TEMPORAL)}
#: Flink's own type of the same Java class.
_NAMES: Final = {
    "java.lang.Boolean": "Boolean",
    "java.lang.Byte": "Byte",
    "java.lang.Character": "Char",
    "java.lang.Double": "Double",
    "java.lang.Float": "Float",
    "java.lang.Integer": "Int",
    "java.lang.Long": "Long",
    "java.lang.Short": "Short",
    "java.lang.String": "String",
    "java.math.BigDecimal": "BigDec",
    "java.math.BigInteger": "BigInt",
    "java.sql.Date": "SqlDate",
    "java.sql.Time": "SqlTime",
    "java.sql.Timestamp": "SqlTimestamp",
    "java.time.Instant": "Instant",
    "java.time.LocalDate": "LocalDate",
    "java.time.LocalDateTime": "LocalDateTime",
    "java.time.LocalTime": "LocalTime",
    "java.util.Date": "Date",
}


def jdk_hash(type_class: str, logical: LogicalType) -> Callable[[Any], int] | None:
    """Return ``hashCode()`` of a JDK class over plain values of a logical type, ``None`` for other classes."""
    if type_class == "java.util.UUID" and logical == Scalar("string"):
        return _hash_uuid
    spec = _SPECS.get(_NAMES.get(type_class, ""))
    return spec.hash_code if spec is not None and spec.logical == logical else None


def _hash_uuid(value: str) -> int:
    bits = uuid.UUID(value).int
    return hash_long(bits >> 64 ^ bits & 0xFFFFFFFFFFFFFFFF)
