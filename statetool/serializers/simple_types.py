"""All types without parts, or with fixed parts, by serializer class.

Java streams name a serializer by its class, and so does ``ParameterlessTypeSerializerConfig``, the snapshot of all these types up to Flink
1.6.
"""

from __future__ import annotations

from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers import arrays, basic, cep, runtime, sql, streaming, temporal, tuples, user
from statetool.serializers.base import Serializer
from statetool.serializers.simple import SimpleSerializer, SimpleType
from statetool.serializers.snapshot import SnapshotClass, SnapshotReader

_WINDOWS: Final = (runtime.TIME_WINDOW, runtime.GLOBAL_WINDOW, runtime.COUNT_WINDOW)
_TYPES: Final = (
    *basic.TYPES,
    *temporal.TYPES,
    *arrays.TYPES,
    *streaming.TYPES,
    *cep.TYPES,
    *sql.TYPES,
    tuples.TUPLE0,
    user.JAVA,
    runtime.VOID_NAMESPACE,
)
#: By the part of the class name after the last ``.``.
_BY_CLASS: Final = {
    **{f"{t.name}Serializer": t for t in _TYPES},
    **{f"{t.name}$Serializer": t for t in _WINDOWS},
}


def serializer_of_class(java_class: str) -> Serializer | None:
    """Return the serializer of a serializer class without parts, ``None`` for any other class."""
    spec = _simple_type(java_class)
    return None if spec is None else spec.serializer()


def _simple_type(java_class: str) -> SimpleType | None:
    return _BY_CLASS.get(java_class.rpartition(".")[2])


def _read_parameterless(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    """Read the name of a serializer's class: that of an inner class contains ``$``, or is the result of ``getCanonicalName``."""
    at = c.offset
    serializer_class = c.utf()
    # The serializers of windows are inner classes named Serializer; all others have distinct names.
    inner = serializer_class.replace(".Serializer", "$Serializer")
    spec = _simple_type(inner if inner.endswith("$Serializer") else inner.replace("$", "."))
    if spec is not None:
        return SimpleSerializer(name, version, spec, serializer_class)
    make = cep.FIXED.get(serializer_class.replace("$", ".").rpartition(".")[2])
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
