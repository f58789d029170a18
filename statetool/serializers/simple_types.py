"""All types without parts, or with fixed parts, by serializer class.

Java streams name a serializer by its class, and so does ``ParameterlessTypeSerializerConfig``, the snapshot of all these types up to Flink
1.6.
"""

from __future__ import annotations

from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers import cep, runtime, streaming
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import binary_name, known_name
from statetool.serializers.core.simple import SimpleSerializer, SimpleType
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.sql import runtime as sql
from statetool.serializers.typeutils import arrays, basic, temporal, tuples, user

_WINDOWS: Final = (runtime.TIME_WINDOW, runtime.GLOBAL_WINDOW, runtime.COUNT_WINDOW)
_TYPES: Final = (
    *basic.TYPES,
    *temporal.TYPES,
    *arrays.TYPES,
    *streaming.TYPES,
    *sql.TYPES,
    tuples.TUPLE0,
    user.JAVA,
    runtime.VOID_NAMESPACE,
)
#: By the serializer class's name without its package.
_BY_CLASS: Final = {
    **{f"{t.name}Serializer": t for t in _TYPES if t.name not in streaming.OUTER},
    **{f"{outer}{t.name}Serializer": t for t in streaming.TYPES for outer in streaming.OUTER.get(t.name, ())},
    **{f"{t.name}${t.name}Serializer": t for t in cep.TYPES},
    **{f"{t.name}$Serializer": t for t in _WINDOWS},
}


def serializer_of_class(java_class: str) -> Serializer | None:
    """Return the serializer of a serializer class without parts, ``None`` for any other class."""
    spec = _simple_type(java_class)
    return None if spec is None else spec.serializer(java_class)


def _simple_type(java_class: str) -> SimpleType | None:
    return _BY_CLASS.get(known_name(java_class))


def _read_parameterless(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    """Read the name of a serializer's class: that of an inner class contains ``$``, or is the result of ``getCanonicalName``."""
    at = c.offset
    serializer_class = c.utf()
    inner = binary_name(serializer_class)
    spec = _simple_type(inner)
    if spec is not None:
        return SimpleSerializer(name, version, spec, serializer_class)
    make = cep.FIXED.get(known_name(inner))
    if make is None:
        raise UnknownSerializerError(f"serializer class {serializer_class!r} is not known").at(offset=at)
    serializer = make(name, version)
    out = Output()
    out.utf(name)
    out.i4(version)
    out.utf(serializer_class)
    serializer.legacy_bytes = bytes(out)
    return serializer


SNAPSHOTS: Final = {"ParameterlessTypeSerializerConfig": SnapshotClass(_read_parameterless, (1,))}
