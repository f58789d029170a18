"""Beam coders without parts: the nested encoding of their values.

==============================  ==============================================================================
VarInt, VarLong                 unsigned varint of the 32 or 64 bits
BigEndianShort, -Integer, ..    i16, i32, i64 big-endian
Boolean, Byte, Float, Double    u8, i8, f32, f64 big-endian
StringUtf8, ByteArray           varint size, UTF-8 or bytes
BigInteger, BigDecimal          byte array of the two's complement; varint scale, byte array
Instant                         i64 big-endian of the epoch millis with its sign bit flipped
Duration                        varint of the millis
Serializable                    one Java stream
GlobalWindow, Void              nothing
==============================  ==============================================================================

Follows ``org.apache.beam.sdk.coders``, 2.31 to 2.68.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import take_java_stream
from statetool.io.output import Output
from statetool.serializers.typeutils.basic import to_decimal
from statetool.types import BigDecimalType, BigIntegerType, LogicalType, Scalar, TimestampType

_SIGN: Final = -(1 << 63)
MILLIS: Final = TimestampType("ms", zoned=True)


def _read_only(out: Output, value: Any) -> None:
    raise EncodeError("values of this coder of Beam are read, not written", hint="their bytes can be carried over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coder:
    """One coder.

    ``least`` is the minimum number of bytes of a value. ``framed``: the end of a value is not known, so it must end its frame.
    """

    name: str
    logical: LogicalType
    decode: Callable[[Cursor], Any]
    encode: Callable[[Output, Any], None] = _read_only
    least: int = 1
    framed: bool = False


def read_varint(c: Cursor, bits: int) -> int:
    """Read an unsigned varint that contains a two's complement of ``bits``."""
    start = c.pos
    value = c.varint64()
    if value >> bits:
        raise c.fail(f"variable-length number of more than {bits} bits", pos=start)
    return value - (1 << bits) if value >> (bits - 1) else value


def _write_varint(bits: int) -> Callable[[Output, Any], None]:
    def write(out: Output, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise EncodeError(f"{value!r} is not a number of {bits} bits")
        out.varint(value & ((1 << bits) - 1))

    return write


def read_size(c: Cursor) -> int:
    size = read_varint(c, 32)
    if size < 0:
        raise c.fail(f"negative size {size}")
    return size


def read_bytes(c: Cursor) -> bytes:
    """Read a varint size and that many bytes."""
    return c.take(read_size(c))


def write_bytes(out: Output, value: Any) -> None:
    if not isinstance(value, (bytes, bytearray)):
        hint = 'a key of a command is JSON: {"bytes": "056b65792d33"}'
        raise EncodeError(f"{value!r} is not bytes", hint=hint if isinstance(value, str) else "")
    out.varint(len(value))
    out += value


def _utf8(c: Cursor, raw: bytes, start: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise c.fail(f"not UTF-8: {e.reason}", pos=start) from e


def read_text(c: Cursor) -> str:
    """Read a varint size and UTF-8."""
    start = c.pos
    return _utf8(c, read_bytes(c), start)


def _write_text(out: Output, value: Any) -> None:
    if not isinstance(value, str):
        raise EncodeError(f"{value!r} is not text")
    write_bytes(out, value.encode("utf-8", "surrogatepass"))


def read_instant(c: Cursor) -> int:
    """Read epoch millis."""
    return c.i8() ^ _SIGN


def _read_decimal(c: Cursor) -> Any:
    scale = read_varint(c, 32)
    return to_decimal(_read_big(c), scale)


def _read_big(c: Cursor) -> int:
    return int.from_bytes(read_bytes(c), "big", signed=True)


def _write_bool(out: Output, value: Any) -> None:
    if not isinstance(value, bool):
        raise EncodeError(f"{value!r} is not a boolean")
    out.bool(value)


def _nothing(c: Cursor) -> None:
    return None


def _write_nothing(out: Output, value: Any) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in the place of nothing")


TEXT: Final = Coder(name="StringUtf8", logical=Scalar("string"), decode=read_text, encode=_write_text)
BYTES: Final = Coder(name="ByteArray", logical=Scalar("binary"), decode=read_bytes, encode=write_bytes)
VAR_INT: Final = Coder(
    name="VarInt", logical=Scalar("int32"), decode=lambda c: read_varint(c, 32), encode=_write_varint(32)
)
VAR_LONG: Final = Coder(
    name="VarLong", logical=Scalar("int64"), decode=lambda c: read_varint(c, 64), encode=_write_varint(64)
)
INSTANT: Final = Coder(
    name="Instant", logical=MILLIS, decode=read_instant, encode=lambda out, v: out.i8(v ^ _SIGN), least=8
)

#: By name.
PLAIN: Final = {
    leaf.name: leaf
    for leaf in (
        TEXT,
        BYTES,
        VAR_INT,
        VAR_LONG,
        INSTANT,
        Coder(name="BigEndianShort", logical=Scalar("int16"), decode=Cursor.i2, encode=Output.i2, least=2),
        Coder(name="BigEndianInteger", logical=Scalar("int32"), decode=Cursor.i4, encode=Output.i4, least=4),
        Coder(name="BigEndianLong", logical=Scalar("int64"), decode=Cursor.i8, encode=Output.i8, least=8),
        Coder(name="Boolean", logical=Scalar("bool"), decode=Cursor.bool, encode=_write_bool),
        Coder(name="Byte", logical=Scalar("int8"), decode=Cursor.i1, encode=Output.i1),
        Coder(name="Float", logical=Scalar("float32"), decode=Cursor.f4, encode=Output.f4, least=4),
        Coder(name="Double", logical=Scalar("float64"), decode=Cursor.f8, encode=Output.f8, least=8),
        Coder(name="BigInteger", logical=BigIntegerType(), decode=_read_big),
        Coder(name="BigDecimal", logical=BigDecimalType(), decode=_read_decimal, least=2),
        Coder(name="BitSet", logical=Scalar("binary"), decode=read_bytes, encode=write_bytes),
        Coder(name="ByteString", logical=Scalar("binary"), decode=read_bytes, encode=write_bytes),
        Coder(name="TextualInteger", logical=Scalar("string"), decode=read_text, encode=_write_text),
        Coder(name="Duration", logical=Scalar("int64"), decode=lambda c: read_varint(c, 64), encode=_write_varint(64)),
        Coder(name="Void", logical=Scalar("null"), decode=_nothing, encode=_write_nothing, least=0),
        Coder(name="Serializable", logical=Scalar("binary"), decode=take_java_stream, least=5),
        # FlinkKeyUtils: the key of the job, encoded by its coder.
        Coder(name="ByteBuffer", logical=Scalar("binary"), decode=read_bytes, encode=write_bytes),
        Coder(name="GlobalWindow", logical=Scalar("string"), decode=lambda c: "GlobalWindow", least=0),
    )
}
