"""Conversion of Arrow columns to plain values (:mod:`statetool.types.logical`): the inverse of :mod:`statetool.columns.from_plain`."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa

from statetool.columns.arrays import as_arrow, is_valid
from statetool.columns.coerce import (
    big_numbers,
    coerce,
    list_parts,
    map_parts,
    mismatch,
    plain_timestamps,
    struct_parts,
)
from statetool.columns.map_keys import refuse_same_keys
from statetool.columns.types import SCALED_DECIMAL
from statetool.errors import EncodeError, StatetoolError
from statetool.serializers.libraries.roaring import bitmap_bytes
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)


def arrow_to_plain(array: pa.Array, logical: LogicalType, *, last_access_ms: int | None = None) -> list[Any]:
    """Return plain values of a column.

    Raises
    ------
    EncodeError
        The column has another type, or a value does not fit.
    """
    match logical:
        case BigDecimalType() if pa.types.is_struct(array.type):
            return _with_scale(array)
        case BigDecimalType() | BigIntegerType() | DecimalType():
            return [_big(v, logical) for v in big_numbers(array, logical)]
        case TimestampType():
            return plain_timestamps(array, logical)
        case BitmapType():
            counts, ints = list_parts(array.filter(as_arrow(is_valid(array))))
            lists = _cut(coerce(ints, Scalar("int32")).to_pylist(), counts.tolist())
            bitmaps = iter([bitmap_bytes(values) for values in lists])
            return [next(bitmaps) if v else None for v in is_valid(array).tolist()]
        case ListType() | MapType() | StructType() | TtlType():
            valid = is_valid(array)
            if valid.all():
                return _nested_to_plain(array, logical, last_access_ms)
            present = iter(_nested_to_plain(array.filter(as_arrow(valid)), logical, last_access_ms))
            return [next(present) if v else None for v in valid.tolist()]
    plain: list[Any] = coerce(array, logical).to_pylist()
    return plain


def _nested_to_plain(array: pa.Array, logical: LogicalType, access: int | None) -> list[Any]:
    match logical:
        case ListType(element):
            counts, elements = list_parts(array)
            values = _inside("element", elements, element, access)
            return _cut(values, counts.tolist())
        case MapType(key, value):
            counts, keys, values_array = map_parts(array)
            pairs = zip(_inside("key", keys, key, access), _inside("value", values_array, value, access), strict=True)
            maps = _cut(list(pairs), counts.tolist())
            for entries in maps:
                refuse_same_keys(entries, key)
            return maps
        case StructType(fields):
            columns = struct_parts(array, logical, kind_field=_has_kind(logical))
            parts = [_inside(f.name, c, f.type, access) for f, c in zip(fields, columns, strict=True)]
            return list(zip(*parts, strict=True)) if parts else [()] * len(array)
        case TtlType(value):
            if access is not None:
                return [(access, v) for v in _inside("value", array, value, None)]
            kind = StructType.of(last_access=TimestampType("ms", zoned=True), value=value)
            return _nested_to_plain(array, kind, None)
    raise NotImplementedError(type(logical).__name__)


def _has_kind(logical: StructType) -> bool:
    return bool(logical.fields) and logical.fields[-1].name == "_kind"


def _inside(step: str, array: pa.Array, logical: LogicalType, access: int | None) -> list[Any]:
    try:
        return arrow_to_plain(array, logical, last_access_ms=access)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__


def _cut(values: list[Any], counts: list[int]) -> list[list[Any]]:
    rows, at = [], 0
    for n in counts:
        rows.append(values[at : at + n])
        at += n
    return rows


def _with_scale(array: pa.Array) -> list[Any]:
    """Return numbers with their scales: as many digits after the decimal point as the scale, or more if the number has more.

    A number without a scale has only the digits that it needs.
    """
    if [f.name for f in array.type] != [f.name for f in SCALED_DECIMAL]:
        raise mismatch(array, BigDecimalType())
    decimals, scales = array.flatten()
    numbers = [_big(v, BigDecimalType()) for v in big_numbers(decimals, BigDecimalType())]
    return [
        None if number is None else _of_scale(number, scale)
        for number, scale in zip(numbers, coerce(scales, Scalar("int32")).to_pylist(), strict=True)
    ]


def _of_scale(number: Decimal, scale: int | None) -> Decimal:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)))
    while whole and whole % 10 == 0:
        whole, exponent = whole // 10, exponent + 1
    if not whole:
        exponent = 0 if scale is None else -scale
    scale = max(-exponent, 0 if scale is None else scale)
    whole *= 10 ** (exponent + scale)
    return Decimal((sign, tuple(map(int, str(whole))), -scale))


def _big(value: Any, logical: BigDecimalType | BigIntegerType | DecimalType) -> Any:
    if value is None:
        return None
    try:
        number = value if isinstance(value, Decimal) else Decimal(value)
    except InvalidOperation as e:
        raise EncodeError(f"{value!r} is not a number") from e
    if not number.is_finite():
        raise EncodeError(f"{value!r} is not a number")
    if isinstance(logical, BigIntegerType):
        if number != number.to_integral_value():
            raise EncodeError(f"{value} is not an integer")
        return int(number)
    if isinstance(logical, DecimalType):
        with localcontext() as exact:
            exact.prec = 100
            scaled = number.quantize(Decimal((0, (1,), -logical.scale)))
        if scaled != number or len(scaled.as_tuple().digits) > logical.precision:
            raise EncodeError(f"{value} does not fit DECIMAL({logical.precision}, {logical.scale})")
        return scaled
    return number
