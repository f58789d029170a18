"""Exact conversion of input columns to logical types, or an error."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import as_arrow, as_numpy, is_valid
from statetool.columns.types import COMPANION, is_variant
from statetool.errors import EncodeError
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    DecimalType,
    LogicalType,
    Scalar,
    StructType,
    TimestampType,
    VariantType,
)

_KIND_FIELD: Final = "_kind"
#: Bytes of an invalid UTF-8 string that its error shows.
_SHOWN_BYTES: Final = 40
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NUMBERS: Final = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
}


class TooWideError(EncodeError):
    """A timestamp beyond 64 bits of its unit. Plain values can be of any size."""


def mismatch(array: pa.Array, logical: LogicalType) -> EncodeError:
    """Return the error for a column that cannot be converted to a logical type."""
    name = logical.name if isinstance(logical, Scalar) else type(logical).__name__.removesuffix("Type").lower()
    return EncodeError(f"a column of type {array.type} where a {name} is written", hint="cast the column first")


def coerce(array: pa.Array, logical: LogicalType) -> pa.Array:
    """Convert a column without parts to plain values of a logical type.

    Integers of any size are converted, dictionaries are decoded.
    Timestamps become int64 in the unit of the type, dates int32 days, times of day int64 nanoseconds.

    Raises
    ------
    EncodeError
        The column has another type, or a value does not fit.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_null(kind) and not isinstance(logical, Scalar):
        return pa.nulls(len(array), pa.int64())
    match logical:
        case Scalar("bool") if pa.types.is_boolean(kind) or pa.types.is_null(kind):
            return array.cast(pa.bool_())
        case Scalar("int8" | "int16" | "int32" | "int64" as name) if pa.types.is_integer(kind) or pa.types.is_null(
            kind
        ):
            return _cast(array, _NUMBERS[name])
        case Scalar("float32" | "float64" as name):
            return _floats(array, _NUMBERS[name], logical)
        case Scalar("string") if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            return array.cast(pa.string()) if pa.types.is_null(kind) else _utf8(array)
        case Scalar("binary") if _is_binary(kind) or pa.types.is_null(kind):
            return array.cast(pa.binary()) if not pa.types.is_large_binary(kind) else array
        case Scalar("null"):
            if array.null_count != len(array):
                raise EncodeError("a value in a type that only holds null")
            return array
        case Scalar("time") if pa.types.is_time(kind):
            return _cast(array.cast(pa.time64("ns")), pa.int64())
        case Scalar("time") if pa.types.is_integer(kind) or pa.types.is_null(kind):
            return _cast(array, pa.int64())
        case Scalar("day_interval") if pa.types.is_duration(kind):
            return _rescale(array, kind.unit, "ms")
        case DateType() if pa.types.is_date32(kind):
            return array.cast(pa.int32())
        case TimestampType():
            return _timestamps(array, logical)
    raise mismatch(array, logical)


def _utf8(array: pa.Array) -> pa.Array:
    """Return strings after checking that all are UTF-8: Arrow does not check, and Spark can store other bytes in strings."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as invalid:
        wide = pa.types.is_large_string(array.type)
        for raw in array.view(pa.large_binary() if wide else pa.binary()).to_pylist():
            try:
                bytes(raw or b"").decode("utf-8")
            except UnicodeDecodeError as e:
                raise EncodeError(
                    f"a string that is not valid UTF-8: {_shorten(raw)}",
                    hint="decode the bytes in the encoding they are in, as decode(bytes, 'ISO-8859-1') in Spark, or write BINARY",
                ) from e
        raise EncodeError(f"strings that Arrow refuses: {invalid}") from invalid
    return array


def _shorten(raw: bytes) -> str:
    return repr(raw) if len(raw) <= _SHOWN_BYTES else f"{raw[:_SHOWN_BYTES]!r}..."


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as e:
        raise EncodeError(f"a value that does not fit {kind}: {e}") from e


def _floats(array: pa.Array, kind: pa.DataType, logical: LogicalType) -> pa.Array:
    if array.type.equals(kind):
        return array
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        raise mismatch(array, logical)
    numbers = _cast(array, kind)
    if pa.types.is_float64(array.type) and kind == pa.float32():
        same = pc.fill_null(pc.or_(pc.equal(numbers.cast(array.type), array), pc.is_nan(array)), True)
        if not pc.all(same, min_count=0).as_py():
            bad = array.filter(pc.invert(same))[0].as_py()
            raise EncodeError(
                f"{bad!r} is not exactly a float of 4 bytes", hint="declare the type as DOUBLE, or round first"
            )
    return numbers


def _timestamps(array: pa.Array, logical: TimestampType) -> pa.Array:
    if pa.types.is_struct(array.type) and {f.name for f in array.type} == {"timestamp", "nanos"}:
        return _with_nanos(array.field("timestamp"), array.field("nanos"), logical, is_valid(array))
    if not pa.types.is_timestamp(array.type) or (array.type.tz is not None) != logical.zoned:
        raise mismatch(array, logical)
    return _rescale(array, array.type.unit, logical.unit)


def plain_timestamps(array: pa.Array, logical: TimestampType) -> list[int | None]:
    """Return timestamps of any size in the unit of their type.

    Raises
    ------
    EncodeError
        As :func:`coerce`.
    """
    try:
        values: list[int | None] = _timestamps(array, logical).to_pylist()
    except TooWideError:
        below = None
        if pa.types.is_struct(array.type):
            below, array = array.field("nanos"), pc.struct_field(array, [0])
        factor = _PER_SECOND[logical.unit] // _PER_SECOND[array.type.unit]
        values = [None if v is None else v * factor for v in array.cast(pa.int64()).to_pylist()]
        if below is not None:
            values = [None if v is None else v + n for v, n in zip(values, below.to_pylist(), strict=True)]
    return values


def _rescale(array: pa.Array, unit: str, target: str) -> pa.Array:
    raw = array.cast(pa.int64())
    per_second, target_per_second = _PER_SECOND[unit], _PER_SECOND[target]
    if target_per_second >= per_second:
        try:
            return pc.multiply_checked(raw, target_per_second // per_second)
        except pa.ArrowInvalid as e:
            raise TooWideError(f"a timestamp beyond what {target} in 64 bits can hold") from e
    factor = per_second // target_per_second
    exact = pc.equal(pc.multiply(_floor_divide(raw, factor), factor), raw)
    if not pc.all(exact, min_count=0).as_py():
        bad = array.filter(pc.invert(exact))[0].as_py()
        raise EncodeError(f"{bad} has digits below the {target} that the type keeps", hint="truncate the column first")
    return _floor_divide(raw, factor)


def _floor_divide(raw: pa.Array, factor: int) -> pa.Array:
    values = as_numpy(raw, null=0).astype(np.int64) // factor
    return as_arrow(values, mask=~is_valid(raw))


def _with_nanos(stamps: pa.Array, nanos: pa.Array, logical: TimestampType, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Combine timestamps of microseconds with the nanoseconds below them."""
    present = is_valid(stamps) & valid
    try:
        below = as_numpy(coerce(nanos, Scalar("int64")), null=0)
    except EncodeError as error:
        raise error.inside("nanos") from error.__cause__
    if ((below < 0) | (below > 999)).any():
        raise EncodeError("nanoseconds below the microsecond are 0 to 999").inside("nanos")
    if (present & ~is_valid(nanos)).any():
        raise EncodeError("a timestamp without its nanoseconds").inside("nanos")
    if not pa.types.is_timestamp(stamps.type):
        raise mismatch(stamps, logical)
    micros = _cast(stamps, pa.timestamp("us", tz=stamps.type.tz))
    if logical.unit != "ns":
        if (present & (below != 0)).any():
            raise EncodeError(f"nanoseconds, digits below the {logical.unit} that the type keeps").inside("nanos")
        return _timestamps(micros, logical)
    rescaled = _timestamps(micros, logical)
    base = as_numpy(rescaled, null=0)
    if (base > np.iinfo(np.int64).max - below).any():
        raise TooWideError("a timestamp beyond what ns in 64 bits can hold")
    return as_arrow(base + below, mask=~present)


def list_parts(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return the number of elements of each list, and all elements.

    Raises
    ------
    EncodeError
        The column does not have lists, or a list is null.
    """
    kind = array.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise EncodeError(f"a column of type {kind} cannot be written as a list")
    if array.null_count:
        raise EncodeError("a null instead of a list", hint="use an empty list, or declare flink.nullable(...)")
    counts = as_numpy(pc.list_value_length(array)).astype(np.int64)
    return counts, array.flatten()


def map_parts(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array, pa.Array]:
    """Return the number of entries of each map, and all keys and values.

    Lists of structs of ``key`` and ``value`` are accepted as maps: they can hold a null key.
    """
    if pa.types.is_map(array.type):
        if array.null_count:
            raise EncodeError("a null instead of a map", hint="use an empty map, or declare flink.nullable(...)")
        offsets = as_numpy(array.offsets).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        return np.diff(offsets), array.keys.slice(first, last - first), array.items.slice(first, last - first)
    if pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type):
        names = [f.name for f in array.type.value_type]
        if names == ["key", "value"]:
            counts, entries = list_parts(array)
            keys, values = (_field(entries, i) for i in range(2))
            return counts, keys, values
    raise EncodeError(f"a column of type {array.type} cannot be written as a map")


def struct_parts(array: pa.Array, logical: StructType, *, kind_field: bool = False) -> list[pa.Array]:
    """Return the columns of a struct in the order of its logical type. Companions of timestamps are joined to them.

    Fields are matched by name. If the type's names are only positions (``f0``, ``_1``), a struct with as many fields under
    other names is matched by order.

    Raises
    ------
    EncodeError
        Fields are missing, or there are more.
    """
    if not pa.types.is_struct(array.type):
        raise EncodeError(f"a column of type {array.type} cannot be written as a struct")
    if is_variant(array.type) and not isinstance(logical, VariantType):
        raise EncodeError(
            "a VARIANT cannot be written as a struct",
            hint="declare the type as flink.sql('VARIANT'), or extract its fields with variant_get(column, path, type)",
        )
    actual = [f.name for f in array.type]
    if len(set(actual)) != len(actual):
        raise EncodeError(f"a struct with two fields of one name: {', '.join(actual)}")
    expected = [f.name for f in logical.fields]
    fields = expected[:-1] if kind_field else expected
    columns: list[pa.Array] = []
    used = 0
    if not set(fields) <= set(actual) and _positional(fields) and len(actual) - (_KIND_FIELD in actual) == len(fields):
        names = [n for n in actual if n != _KIND_FIELD]
    else:
        names = fields
    for name, field in zip(names, logical.fields, strict=False):
        if name not in actual:
            raise EncodeError(
                f"no field {name!r} among {', '.join(actual) or 'none'}", hint="name the fields as the type does"
            )
        column = _field(array, actual.index(name))
        used += 1
        if isinstance(field.type, TimestampType) and name + COMPANION in actual and name + COMPANION not in expected:
            below = _field(array, actual.index(name + COMPANION))
            column = with_companion(column, below)
            used += 1
        columns.append(column)
    if kind_field:
        if _KIND_FIELD in actual:
            columns.append(_field(array, actual.index(_KIND_FIELD)))
            used += 1
        else:
            columns.append(pa.array(["+I"] * len(array), type=pa.string()))
    if used != len(actual):
        unknown = sorted(set(actual) - set(names) - {_KIND_FIELD})
        raise EncodeError(f"fields that the type does not have: {', '.join(unknown)}", hint="drop them from the column")
    return columns


def _positional(names: list[str]) -> bool:
    return names in ([f"f{i}" for i in range(len(names))], [f"_{i + 1}" for i in range(len(names))])


def _field(array: pa.Array, i: int) -> pa.Array:
    """Return one field of structs, null if the struct is null."""
    return pc.struct_field(array, [i])


def with_companion(stamps: pa.Array, below: pa.Array) -> pa.Array:
    """Return structs of timestamps and the nanoseconds below them, null if the timestamp is null."""
    return pa.StructArray.from_arrays([stamps, below], names=["timestamp", "nanos"], mask=as_arrow(~is_valid(stamps)))


def big_numbers(array: pa.Array, logical: BigDecimalType | BigIntegerType | DecimalType) -> list[Any]:
    """Return decimals, integers or their text in a form that ``Decimal`` accepts."""
    if pa.types.is_string(array.type):
        array = _utf8(array)
    if pa.types.is_decimal(array.type) or pa.types.is_integer(array.type) or pa.types.is_string(array.type):
        return array.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_null(array.type):
        return [None] * len(array)
    raise mismatch(array, logical)
