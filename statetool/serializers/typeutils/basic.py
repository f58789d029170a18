"""Primitives, strings, big numbers and the values of ``org.apache.flink.types``.

Numbers are big-endian (``DataOutputView``). Strings follow ``StringValue.writeString``: varint n + 1 (0 is null), then n UTF-16 code units
as varints; ``StringValue`` itself writes n and has no null. ``BigInteger``: i32 code, which is 0 for null, 1 to 3 for the constants 0, 1
and 10, otherwise byte count + 4, then two's complement. ``BigDecimal``: the same followed by an i32 scale. Follows
``org.apache.flink.api.common.typeutils.base``, Flink 1.3 to 2.3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import BigDec, BigInt, Constant, Fixed, FixedKind, Text
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.types import BigDecimalType, BigIntegerType, Scalar, java_hash

#: Exact arithmetic on decimals of any size.
EXACT: Final = Context(prec=999_999_999_999_999_999, Emax=999_999_999_999_999_999, Emin=-999_999_999_999_999_999)


def read_units(c: Cursor, n: int) -> str:
    """Read ``n`` UTF-16 code units written as varints; surrogate pairs are joined, lone surrogates are kept."""
    if n > c.left:
        raise c.fail(f"a string of {n} characters does not fit the {c.left} bytes left")
    raw = bytes(c.data[c.pos : c.pos + n])
    if raw.isascii():
        c.pos += n
        return raw.decode("ascii")
    units = []
    for _ in range(n):
        unit = c.varint()
        if unit > 0xFFFF:
            raise c.fail(f"{unit:#x} is not a UTF-16 unit")
        units.append(unit)
    return struct.pack(f">{n}H", *units).decode("utf-16-be", "surrogatepass")


def write_units(out: Output, value: str, extra: int) -> None:
    """Append the number of UTF-16 code units plus ``extra``, and the code units."""
    raw = value.encode("utf-16-be", "surrogatepass")
    out.varint(len(raw) // 2 + extra)
    for unit in struct.unpack(f">{len(raw) // 2}H", raw):
        out.varint(unit)


def read_string(c: Cursor) -> str | None:
    """Read a nullable Flink string."""
    n = c.varint()
    return None if n == 0 else read_units(c, n - 1)


def write_string(out: Output, value: str | None) -> None:
    """Append a nullable Flink string."""
    if value is None:
        out.varint(0)
    else:
        write_units(out, value, 1)


def read_big_integer(c: Cursor) -> int | None:
    """Read a ``BigInteger`` or null."""
    start = c.pos
    code = c.i4()
    if 0 <= code <= 3:
        return (None, 0, 1, 10)[code]
    if code < 5:
        raise c.fail(f"BigInteger code {code}", pos=start)
    return int.from_bytes(c.take(code - 4, "BigInteger"), "big", signed=True)


def write_big_integer(out: Output, value: int | None) -> None:
    """Append a ``BigInteger`` or null; 0, 1 and 10 as the codes that Flink uses for its constants."""
    code = {None: 0, 0: 1, 1: 2, 10: 3}.get(value)
    if code is not None:
        out.i4(code)
        return
    assert value is not None
    n = ((value if value >= 0 else ~value).bit_length() + 8) // 8
    out.i4(n + 4)
    out += value.to_bytes(n, "big", signed=True)


def read_big_decimal(c: Cursor) -> Decimal | None:
    """Read a ``BigDecimal`` or null; the scale is kept exactly."""
    unscaled = read_big_integer(c)
    if unscaled is None:
        return None
    return to_decimal(unscaled, c.i4())


def to_decimal(unscaled: int, scale: int) -> Decimal:
    """Return ``unscaled * 10 ** -scale`` with exactly that scale."""
    return Decimal((1 if unscaled < 0 else 0, _digits(abs(unscaled)), -scale))


def _digits(n: int) -> tuple[int, ...]:
    # str() rejects very long ints; Decimal's conversion does not.
    return Decimal(n).as_tuple().digits if n else (0,)


def from_decimal(value: Decimal) -> tuple[int, int]:
    """Return unscaled value and scale.

    Raises
    ------
    EncodeError
        NaN or infinite.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise EncodeError(f"{value} is not a BigDecimal")
    unscaled = int(Decimal((sign, digits, 0)).to_integral_value(context=EXACT))
    return unscaled, -exponent


def write_big_decimal(out: Output, value: Decimal | None) -> None:
    """Append a ``BigDecimal`` or null."""
    if value is None:
        out.i4(0)
        return
    unscaled, scale = from_decimal(value)
    write_big_integer(out, unscaled)
    out.i4(scale)


def _encode_bool(out: Output, value: Any) -> None:
    if not isinstance(value, bool):
        raise EncodeError(f"{value!r} is not a boolean")
    out.bool(value)


def _decode_char(c: Cursor) -> str:
    return chr(c.u2())


def _encode_char(out: Output, value: str) -> None:
    if len(value) != 1 or ord(value) > 0xFFFF:
        raise EncodeError(f"{value!r} is not one UTF-16 unit")
    out.u2(ord(value))


def _read_string_value(c: Cursor) -> str:
    return read_units(c, c.varint())


def _decode_void(c: Cursor) -> None:
    if c.u1() != 0:
        raise c.fail("expected the zero byte of a void value", pos=c.pos - 1)


def _encode_void(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds null")
    out.u1(0)


def _nothing(_: object) -> None:
    return None


def _write_nothing(_: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds null")


_NUMBERS: Final = (
    # name, logical, bytes, kernel kind, reader, writer, hash, hash of the Value class
    ("Byte", Scalar("int8"), 1, "i8", Cursor.i1, Output.i1, int, int),
    ("Short", Scalar("int16"), 2, "i16", Cursor.i2, Output.i2, int, int),
    ("Int", Scalar("int32"), 4, "i32", Cursor.i4, Output.i4, int, int),
    ("Long", Scalar("int64"), 8, "i64", Cursor.i8, Output.i8, java_hash.hash_long,
     lambda v: java_hash.to_int32(43 + java_hash.hash_long(v))),
    ("Float", Scalar("float32"), 4, "f32", Cursor.f4, Output.f4, java_hash.hash_float, java_hash.hash_float),
    ("Double", Scalar("float64"), 8, "f64", Cursor.f8, Output.f8, java_hash.hash_double,
     lambda v: java_hash.to_int32(31 + java_hash.hash_double(v))),
)  # fmt: skip


def _number_types() -> list[SimpleType]:
    types = []
    for name, logical, length, kind, decode, encode, hash_code, value_hash in _NUMBERS:
        for suffix, hashing in (("", hash_code), ("Value", value_hash)):
            types.append(
                SimpleType(
                    name=name + suffix,
                    logical=logical,
                    length=length,
                    op=Fixed(_kind(kind)),
                    decode=decode,
                    encode=encode,
                    hash_code=hashing,
                )
            )
    return types


def _kind(kind: str) -> FixedKind:
    return kind  # type: ignore[return-value]


def _boolean(name: str, hash_code: Callable[[Any], int]) -> SimpleType:
    return SimpleType(
        name=name, logical=Scalar("bool"), length=1, op=Fixed("bool"), decode=Cursor.bool, encode=_encode_bool,
        hash_code=hash_code,
    )  # fmt: skip


def _char(name: str) -> SimpleType:
    return SimpleType(
        name=name, logical=Scalar("string"), length=2, op=Fixed("char"), decode=_decode_char, encode=_encode_char,
        hash_code=ord,
    )  # fmt: skip


STRING: Final = SimpleType(
    name="String", logical=Scalar("string"), length=-1, op=Text(), nullable=True,
    decode=read_string, encode=write_string, hash_code=java_hash.hash_string,
)  # fmt: skip

TYPES: Final = (
    *_number_types(),
    _boolean("Boolean", java_hash.hash_bool),
    _boolean("BooleanValue", int),
    _char("Char"),
    _char("CharValue"),
    STRING,
    SimpleType(
        name="StringValue", logical=Scalar("string"), length=-1, op=Text(nullable=False),
        decode=_read_string_value, encode=lambda out, v: write_units(out, v, 0), hash_code=java_hash.hash_string,
    ),
    SimpleType(
        name="Void", logical=Scalar("null"), length=1, op=Constant(1), nullable=True,
        decode=_decode_void, encode=_encode_void,
    ),
    SimpleType(
        name="NullValue", logical=Scalar("null"), length=0, op=Constant(0), nullable=True,
        decode=_nothing, encode=_write_nothing, hash_code=lambda _: 53,
    ),
    # org.apache.flink.table.dataview
    SimpleType(
        name="Null", logical=Scalar("null"), length=1, op=Constant(1), nullable=True,
        decode=_decode_void, encode=_encode_void,
    ),
    SimpleType(
        name="BigInt", logical=BigIntegerType(), length=-1, op=BigInt(), nullable=True,
        decode=read_big_integer, encode=write_big_integer, hash_code=java_hash.hash_big_integer,
    ),
    SimpleType(
        name="BigDec", logical=BigDecimalType(), length=-1, op=BigDec(), nullable=True,
        decode=read_big_decimal, encode=write_big_decimal,
        hash_code=lambda v: java_hash.hash_big_decimal(*from_decimal(v)),
    ),
)  # fmt: skip

SNAPSHOTS: Final = simple_readers(TYPES)
