"""Conversion of plain values (:mod:`statetool.types.logical`) to Arrow, for types that kernels do not support."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from statetool.columns.types import arrow_type, keeps_nanos, member_fields, needs_nanos
from statetool.errors import DecodeError, StatetoolError
from statetool.kernels.core.codes import DATE_RANGE, LONE_SURROGATE, NANOS, RANGE, coded_error
from statetool.serializers.libraries.roaring import bitmap_ints
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)
from statetool.types.options import ReadOptions

_PER_SECOND: Final = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MILLIS: Final = TimestampType("ms", zoned=True)
_EXACT_38: Final = Context(prec=38, traps=[Inexact, InvalidOperation])
_SCALE_18: Final = Decimal((0, (1,), -18))


def plain_to_arrow(
    values: Sequence[Any], logical: LogicalType, options: ReadOptions, *, offsets: Sequence[int] | None = None
) -> pa.Array:
    """Convert plain values to an Arrow array. ``offsets`` are the positions of the values, for errors.

    Raises
    ------
    DecodeError
        The Arrow type cannot hold a value exactly. The error names the option that can.
    """
    kind = arrow_type(logical, options)
    rows: list[Any] = []
    try:
        for value in values:
            rows.append(to_python(value, logical, options))
    except StatetoolError as error:
        raise error.at(offset=_at(offsets, len(rows))) from error.__cause__
    try:
        return pa.array(rows, type=kind)
    except (pa.ArrowException, OverflowError):
        for i, row in enumerate(rows):
            try:
                pa.array([row], type=kind)
            except (pa.ArrowException, OverflowError) as e:
                raise DecodeError(f"a value that does not fit {kind}: {e}").at(offset=_at(offsets, i)) from e
        raise


def _at(offsets: Sequence[int] | None, index: int) -> int | None:
    return None if offsets is None else int(offsets[index])


def null_key_error() -> DecodeError:
    """Return the error for a map with a null key, which Arrow and Spark cannot hold."""
    return DecodeError(
        "a map with a null key, which Arrow and Spark maps cannot hold",
        hint="read the state in its long form with op.state(name)",
    )


def to_python(value: Any, logical: LogicalType, options: ReadOptions) -> Any:
    """Return a plain value in a form that ``pa.array`` accepts."""
    if value is None:
        return None
    match logical:
        case Scalar("string"):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise coded_error(LONE_SURROGATE) from None
            return value
        case Scalar("day_interval"):
            return _interval_micros(value)
        case Scalar():
            return value
        case BitmapType():
            return bitmap_ints(value)
        case BigDecimalType():
            if options.decimals == "string":
                return str(value)
            decimal = scale_decimal(value)
            return decimal if options.decimals == "plain" else {"decimal": decimal, "scale": scale_of(value)}
        case BigIntegerType():
            if options.decimals == "string":
                return str(Decimal(value))
            if abs(value) >= 10**38:
                raise decimal_error("BigInteger", "38 digits")
            return Decimal(value)
        case DecimalType():
            return value
        case DateType():
            if not -(1 << 31) <= value < 1 << 31:
                raise coded_error(DATE_RANGE)
            return value
        case TimestampType():
            return _timestamp(value, logical, options)
        case ListType(element):
            return [_step("element", v, element, options) for v in value if not _is_hidden(v, element, options)]
        case MapType(k, v):
            if any(a is None for a, _ in value):
                raise null_key_error()
            return [
                (_step("key", a, k, options), _step("value", b, v, options))
                for a, b in value
                if not _is_hidden(b, v, options)
            ]
        case StructType(fields):
            row: dict[str, Any] = {}
            for part, v in zip(fields, value, strict=True):
                _put(row, part.name, part.type, _step(part.name, v, part.type, options), options)
            return row
        case TtlType(inner):
            access, inner_value = value
            if options.ttl == "raw":
                row = {"last_access": _timestamp(access, _MILLIS, options)}
                _put(row, "value", inner, _step("value", inner_value, inner, options), options)
                return row
            return None if _is_hidden(value, logical, options) else _step("value", inner_value, inner, options)
    return value


def _step(step: str, value: Any, logical: LogicalType, options: ReadOptions) -> Any:
    try:
        return to_python(value, logical, options)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__


def _is_hidden(value: Any, logical: LogicalType, options: ReadOptions) -> bool:
    """Return True if a value is hidden because it has expired."""
    if options.ttl != "hide_expired" or not isinstance(logical, TtlType) or value is None:
        return False
    assert options.ttl_ms is not None
    assert options.now_ms is not None
    return bool(value[0] + options.ttl_ms <= options.now_ms)


def _put(row: dict[str, Any], name: str, logical: LogicalType, value: Any, options: ReadOptions) -> None:
    if needs_nanos(logical, options):
        first, second = (f.name for f in member_fields(name, logical, options))
        row[first] = None if value is None else value["timestamp"]
        row[second] = None if value is None else value["nanos"]
    else:
        row[name] = value


def _timestamp(value: int, logical: TimestampType, options: ReadOptions) -> Any:
    below = 0
    if logical.unit == "ns":
        micros, below = divmod(value, 1000)
    else:
        micros = value * (1_000_000 // _PER_SECOND[logical.unit])
    if not -(1 << 63) <= micros < 1 << 63:
        raise coded_error(RANGE)
    if keeps_nanos(logical, options):
        return {"timestamp": micros, "nanos": below}
    if below and options.nanos != "truncate":
        raise coded_error(NANOS)
    return micros


def _interval_micros(millis: int) -> int:
    if not -(1 << 63) <= millis * 1000 < 1 << 63:
        raise coded_error(RANGE)
    return millis * 1000


def decimal_error(what: str, limit: str) -> DecodeError:
    """Return the error for a big number that does not fit its decimal."""
    return DecodeError(
        f"a {what} of more than {limit}", hint="pass decimals='string' to read big numbers as text, exactly"
    )


def scale_of(value: Decimal) -> int:
    """Return the number of digits after the decimal point, negative if trailing zeros before it are not written."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def scale_decimal(value: Decimal) -> Decimal:
    """Return the same number with 18 digits after the decimal point.

    Raises
    ------
    DecodeError
        It has more digits after the decimal point, or more than 38 in total.
    """
    try:
        return value.quantize(_SCALE_18, context=_EXACT_38)
    except (Inexact, InvalidOperation):
        raise decimal_error("BigDecimal", "20 digits before or 18 behind the point") from None
