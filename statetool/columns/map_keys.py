"""Keys of maps: detection of keys that are equal in Java, and of maps inside keys, whose order is unknown."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_arrow, is_valid
from statetool.columns.coerce import list_parts, map_parts, struct_parts
from statetool.errors import EncodeError, StatetoolError
from statetool.formats.keyed.distinct import distinct
from statetool.kernels.core.arrays import Bytes
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.streaming import TraversableSerializer
from statetool.serializers.typeutils.collections import SetSerializer
from statetool.serializers.typeutils.row import KIND_FIELD
from statetool.types import ListType, LogicalType, MapType, StructType, TtlType

_Int64s = npt.NDArray[np.int64]
#: Entries of a map that may be in another order, or have the same key.
_SEVERAL: Final = 2
_OTHER_KEY: Final = "RocksDB may not find it: let the job key by a row, or by a list of sorted entries"


def same_key_error() -> EncodeError:
    """Return the error for a map that has the same key twice. Java keeps only the last one."""
    return EncodeError(
        "a map with the same key twice",
        hint="keep one entry per key, as Spark's map_from_entries does with spark.sql.mapKeyDedupPolicy=LAST_WIN",
    )


def has_map(logical: LogicalType) -> bool:
    """Return True if values of a type contain maps."""
    match logical:
        case MapType():
            return True
        case ListType(element):
            return has_map(element)
        case TtlType(value):
            return has_map(value)
        case StructType(fields):
            return any(has_map(f.type) for f in fields)
    return False


def refuse_same_bytes(data: Bytes, offsets: _Int64s, counts: _Int64s) -> None:
    """Refuse maps with the same key twice, compared by the bytes of their keys. Keys must not contain maps.

    Parameters
    ----------
    data, offsets
        uint8[:] and int64[n + 1]: encoded keys of maps one after another.
    counts
        int64[:]: the entries of each map.
    """
    ids, first = distinct(data, offsets[:-1], offsets[1:], np.repeat(np.arange(len(counts)), counts))
    if len(first) < len(ids):
        raise same_key_error()


def refuse_same_keys(entries: Sequence[tuple[Any, Any]], key: LogicalType) -> None:
    """Refuse plain entries of one map with the same key twice."""
    if len(entries) >= _SEVERAL and len({_identity(k, key) for k, _ in entries}) < len(entries):
        raise same_key_error()


def _identity(value: Any, logical: LogicalType) -> Hashable:
    """Return an object that is equal for values equal in Java: NaN equals itself, and zeros with different signs differ."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return value.as_tuple()
    match logical, value:
        case ListType(element), list() | tuple():
            return tuple(_identity(v, element) for v in value)
        case MapType(key, item), list() | tuple():
            return frozenset((_identity(k, key), _identity(v, item)) for k, v in value)
        case StructType(fields), list() | tuple():
            return tuple(_identity(v, f.type) for v, f in zip(value, fields, strict=False))
    return value  # type: ignore[no-any-return]


def refuse_order(serializer: Serializer, array: pa.Array) -> None:
    """Refuse keys that contain sets, or maps of several entries.

    RocksDB finds a key by its bytes, which are in the order of the job's set or map. That order depends on its class. In a
    ``HashMap``, it also depends on the largest size its table ever had, and on the order of insertion.

    Raises
    ------
    EncodeError
        The error has the path inside the type.
    """
    if len(array) and (unordered := next(filter(_is_set, all_parts(serializer)), None)) is not None:
        raise EncodeError(
            f"a {unordered.type_name} inside of a key, whose order in the job is not known", hint=_OTHER_KEY
        )
    _refuse_order(array, serializer.logical)


def _is_set(part: Serializer) -> bool:
    if isinstance(part, KryoSerializer):
        return part.type_class.endswith("Set")
    if isinstance(part, TraversableSerializer):
        return "Set[" in part.outer or "Map[" in part.outer
    return isinstance(part, SetSerializer)


def _refuse_order(array: pa.Array, logical: LogicalType) -> None:
    if not has_map(logical):
        return
    valid = is_valid(array)
    present = array if valid.all() else array.filter(as_arrow(valid))
    match logical:
        case MapType(key, value):
            counts, keys, values = map_parts(present)
            if counts.max(initial=0) >= _SEVERAL:
                raise EncodeError(
                    f"a map of {counts.max()} entries inside of a key, whose order in the job is not known",
                    hint=_OTHER_KEY,
                )
            _inside("key", keys, key)
            _inside("value", values, value)
        case ListType(element):
            _inside("element", list_parts(present)[1], element)
        case StructType(fields):
            kind_field = bool(fields) and fields[-1].name == KIND_FIELD
            for field, column in zip(fields, struct_parts(present, logical, kind_field=kind_field), strict=True):
                _inside(field.name, column, field.type)


def _inside(step: str, array: pa.Array, logical: LogicalType) -> None:
    try:
        _refuse_order(array, logical)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__
