"""Conversions between types without parts: possible conversions, and those that may refuse values."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from statetool.errors import EncodeError
from statetool.migration.choices import Change
from statetool.types import BigDecimalType, BigIntegerType, DateType, DecimalType, LogicalType, Scalar, TimestampType

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
_BITS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
#: Bits of integers that a float holds exactly.
_MANTISSA: Final = {"float32": 24, "float64": 53}
_DIGITS: Final = {"int8": 3, "int16": 5, "int32": 10, "int64": 19}
_UNITS: Final = ("ms", "us", "ns")


class LeafChange(NamedTuple):
    """A conversion. Values that it cannot convert exactly are refused when they are written, unless ``note`` says otherwise."""

    change: Change
    convert: Convert
    note: str = ""


def same(array: pa.Array) -> pa.Array:
    """Return the column unchanged. Writing it checks that every value fits."""
    return array


def leaf_change(old: LogicalType, new: LogicalType) -> LeafChange | None:
    """Return the conversion of values of one type to another, ``None`` if there is none.

    Examples
    --------
    >>> leaf_change(Scalar("int32"), Scalar("int64")).change
    'widen'
    >>> leaf_change(Scalar("int64"), Scalar("int32")).change
    'narrow'
    """
    match old, new:
        case Scalar(a), Scalar(b):
            return scalar_change(a, b)
        case Scalar(a), BigIntegerType() | BigDecimalType() if a in _BITS:
            return LeafChange("widen", same)
        case Scalar(a), DecimalType(precision, scale) if a in _BITS:
            return LeafChange("widen" if precision - scale >= _DIGITS[a] else "narrow", same)
        case BigIntegerType(), Scalar(b) if b in _BITS:
            return LeafChange("narrow", _cast(pa.int64()))
        case BigIntegerType() | BigDecimalType(), Scalar("string"):
            return LeafChange("retype", same)
        case BigIntegerType(), BigDecimalType():
            return LeafChange("widen", same)
        case BigDecimalType(), BigIntegerType():
            return LeafChange("narrow", _whole)
        case BigDecimalType(), DecimalType(precision, scale):
            return LeafChange("narrow", _cast(pa.decimal128(precision, scale)))
        case DecimalType(), BigDecimalType():
            return LeafChange("widen", same)
        case DecimalType(p, s), DecimalType(q, t):
            return LeafChange("widen" if t >= s and q - t >= p - s else "narrow", same)
        case TimestampType(), TimestampType() if old.zoned == new.zoned:
            wider = _UNITS.index(new.unit) >= _UNITS.index(old.unit)
            return LeafChange("widen" if wider else "narrow", same)
        case TimestampType(zoned=True), Scalar("int64"):
            return LeafChange("narrow", _epoch_millis, "milliseconds; digits below are refused")
        case DateType(), TimestampType(zoned=False):
            return LeafChange("retype", _cast(pa.timestamp("us")), "start of the day")
        case BigDecimalType(), Scalar("float64"):
            return LeafChange("narrow", _doubles, "values are rounded to the nearest double")
    return None


def exact_number(value: Any, kind: str) -> Any:
    """Return a number as one of another type.

    Raises
    ------
    EncodeError
        The type does not have this number.
    """
    if kind in _BITS:
        whole = int(value) if isinstance(value, int) or (math.isfinite(value) and value == int(value)) else None
        negative_zero = isinstance(value, float) and value == 0 and math.copysign(1, value) < 0
        if whole is None or negative_zero or not -(1 << _BITS[kind]) <= whole < 1 << _BITS[kind]:
            raise EncodeError(f"a value that does not fit {kind}: {value}")
        return whole
    try:
        number = float(value)
        kept = number if kind == "float64" else struct.unpack(">f", struct.pack(">f", number))[0]
    except OverflowError as e:
        raise EncodeError(f"a value that does not fit {kind}: {value}") from e
    same_number = kept == value if isinstance(value, int) else struct.pack(">d", kept) == struct.pack(">d", value)
    if not same_number:
        raise EncodeError(f"a value that does not fit {kind}: {value}")
    return kept


def _epoch_millis(array: pa.Array) -> pa.Array:
    """Return timestamps as milliseconds since 1970.

    Raises
    ------
    EncodeError
        A timestamp has digits below the millisecond.
    """
    is_struct = pa.types.is_struct(array.type)
    micros = (
        (pc.struct_field(array, "timestamp") if is_struct else array).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    )
    millis = pc.divide(micros, 1000)
    below = [pc.subtract(micros, pc.multiply(millis, 1000)), *([pc.struct_field(array, "nanos")] if is_struct else [])]
    if any(pc.any(pc.not_equal(digits, 0)).as_py() for digits in below):
        raise EncodeError("a timestamp with digits below the millisecond")
    return millis


def by_value(convert: Callable[[Any], Any]) -> Convert:
    """Return the conversion of a column of texts or bytes, value by value; nulls stay."""
    return lambda array: pa.array([None if v is None else convert(v) for v in array.to_pylist()], array.type)


def strings_of_objects(array: pa.Array) -> pa.Array:
    """Return objects, as JSON text, as strings.

    Raises
    ------
    EncodeError
        An object is no string.
    """
    values = [None if text is None else json.loads(text) for text in array.to_pylist()]
    if (other := next((v for v in values if v is not None and not isinstance(v, str)), None)) is not None:
        raise EncodeError(f"an object that is no string: {json.dumps(other)[:80]}")
    return pa.array(values, pa.string())


def objects_of_strings(array: pa.Array) -> pa.Array:
    """Return strings as objects, as JSON text."""
    return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in array.to_pylist()], pa.string())


def _doubles(array: pa.Array) -> pa.Array:
    """Return decimal numbers (as text) as the nearest doubles.

    Raises
    ------
    EncodeError
        A number is larger than all doubles.
    """
    numbers = [None if text is None else float(Decimal(text)) for text in array.to_pylist()]
    if any(n is not None and math.isinf(n) for n in numbers):
        raise EncodeError("a number that is larger than all doubles")
    return pa.array(numbers, pa.float64())


def scalar_change(old: str, new: str) -> LeafChange | None:
    """Return the conversion of values of one scalar type to another, ``None`` if there is none."""
    if old == "bool" and new in _BITS:
        return LeafChange("retype", _cast(pa.int8()), "false becomes 0, true becomes 1")
    if old in _BITS and new == "bool":
        return LeafChange("narrow", _booleans, "0 becomes false, 1 becomes true; other numbers are refused")
    if old in _BITS and new in _BITS:
        return LeafChange("widen" if _BITS[old] <= _BITS[new] else "narrow", same)
    if old in _BITS and new in _MANTISSA:
        return LeafChange("widen" if _BITS[old] <= _MANTISSA[new] else "narrow", same)
    if old in _MANTISSA and new in _MANTISSA:
        return LeafChange("widen" if new == "float64" else "narrow", same)
    if old in _MANTISSA and new in _BITS:
        return LeafChange("narrow", _cast(pa.int64()))
    if old in _BITS and new == "string":
        return LeafChange("retype", _cast(pa.string()))
    return None


def _cast(kind: pa.DataType) -> Convert:
    def convert(array: pa.Array) -> pa.Array:
        try:
            return array.cast(kind)
        except pa.ArrowInvalid as e:
            raise EncodeError(f"a value that does not fit {kind}: {e}") from e

    return convert


def _booleans(array: pa.Array) -> pa.Array:
    """Return the numbers 0 and 1 as booleans.

    Raises
    ------
    EncodeError
        Another number.
    """
    if not pc.all(pc.is_in(array, pa.array([0, 1, None], array.type))).as_py():
        raise EncodeError("a number that is neither 0 nor 1 for a boolean")
    return array.cast(pa.bool_())


def _whole(array: pa.Array) -> pa.Array:
    """Return decimal numbers (as text) as text of integers, so that 1.0 and 1.00 become one key."""
    integers: list[str | None] = []
    for text in array.to_pylist():
        number = None if text is None else Decimal(text)
        if number is not None and number != int(number):
            raise EncodeError(f"{text} is not an integer")
        integers.append(None if number is None else str(int(number)))
    return pa.array(integers, type=pa.string())


def constants_of(names: dict[str, str]) -> Convert:
    """Return the conversion that renames constants."""

    def convert(array: pa.Array) -> pa.Array:
        values = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        index = pa.compute.index_in(values, pa.array(list(names), type=pa.string()))
        renamed = pa.array(list(names.values()), type=pa.string()).take(index)
        return pa.compute.if_else(pa.compute.is_valid(index), renamed, values)

    return convert


def fill_default(value: Any, kind: pa.DataType) -> Callable[[int], pa.Array]:
    """Return a function from a number of rows to a column that repeats the value.

    Raises
    ------
    EncodeError
        The value does not belong to the type.
    """
    try:
        scalar = pa.scalar(_map_pairs(value, kind), type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        try:
            scalar = pa.scalar(str(value)).cast(kind)
        except pa.ArrowException as e:
            raise EncodeError(
                f"{value!r} is not a value of type {kind}", hint="set another one in the plan's 'fills'"
            ) from e
    return lambda n: pa.repeat(scalar, n)


def _map_pairs(value: Any, kind: pa.DataType) -> Any:
    return list(value.items()) if pa.types.is_map(kind) and isinstance(value, dict) else value
