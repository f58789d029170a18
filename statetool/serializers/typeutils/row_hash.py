"""Hash code of ``Row``, which includes the contents of arrays, lists and maps (``RowUtils.deepHashCodeRow``, Flink 1.13 and later).

``31 * kind + D``, where D is the array rule applied to the fields. For a part: null 0; list or object array: start 1, ``31 h + part``; map:
1 plus the sum of ``key ^ value``; primitive array: 31 + ``Arrays.hashCode``; everything else: 31 + its ``hashCode()``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.typeutils.arrays import ARRAY_ELEMENTS, GenericArraySerializer
from statetool.serializers.typeutils.collections import ListSerializer, MapSerializer, SetSerializer
from statetool.serializers.typeutils.options import NullableSerializer
from statetool.types.java_hash import hash_chain, to_int32


def hash_row(kind: int, parts: Iterable[Serializer], values: Iterable[Any]) -> int:
    """Return ``Row.hashCode`` of a row without field names.

    Raises
    ------
    UnsupportedError
        A field has no stable hash code.
    """
    return to_int32(31 * kind + hash_chain((_deep(s, v) for s, v in zip(parts, values, strict=False)), start=1))


def _deep(s: Serializer, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(s, NullableSerializer):
        return _deep(s.nested[0], value)
    if isinstance(s, MapSerializer):
        key, item = s.nested
        return to_int32(1 + sum(_deep(key, k) ^ _deep(item, v) for k, v in value))
    if isinstance(s, GenericArraySerializer) or (isinstance(s, ListSerializer) and not isinstance(s, SetSerializer)):
        return hash_chain((_deep(s.nested[0], v) for v in value), start=1)
    if isinstance(s, SimpleSerializer) and s.spec.name in ARRAY_ELEMENTS:
        return _array(s.spec.name, value)
    return to_int32(31 + s.hash_code(value))


def _array(name: str, value: Any) -> int:
    if isinstance(value, bytes):
        return to_int32(31 + hash_chain((b - 256 if b > 127 else b for b in value), start=1))
    hash_code = ARRAY_ELEMENTS[name].hash_code
    assert hash_code is not None
    if name == "StringArray":
        # An array of objects: each string counts as a part.
        return hash_chain((0 if v is None else to_int32(31 + hash_code(v)) for v in value), start=1)
    return to_int32(31 + hash_chain(map(hash_code, value), start=1))
