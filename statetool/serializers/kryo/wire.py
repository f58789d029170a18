"""Kryo's numbers and strings.

Variable-length numbers: 7 bits per byte, least significant first, high bit = more; a long has at most 9 bytes, the last with 8 bits. Signed
ones are zigzag-encoded. Fixed-width numbers are big-endian in Kryo 2.24, little-endian in Kryo 5.

A string whose first byte is below 0x80 is ASCII up to the byte with the high bit set. Otherwise the first bytes are its number of UTF-16
code units plus 1 (0 = null): 6 bits and 0x40 = more, then 7 bits per byte. Each code unit follows in 1 to 3 bytes.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output, java_float

#: 2 is Kryo 2.24 (Flink 1.x), 5 is Kryo 5 (Flink 2.x).
Generation = Literal[2, 5]
_MASK32: Final = (1 << 32) - 1
_MASK64: Final = (1 << 64) - 1
#: Longest string that each generation writes as plain ASCII.
_LONGEST_ASCII: Final = {2: 63, 5: 32}
_FORMATS: Final = {
    (gen, kind): struct.Struct(order + kind)
    for gen, order in ((2, ">"), (5, "<"))
    for kind in ("h", "H", "i", "q", "f", "d")
}


def read_fixed(c: Cursor, gen: Generation, kind: str) -> float:
    """Read a number of fixed width, ``kind`` as in :mod:`struct`."""
    packer = _FORMATS[gen, kind]
    value: float = packer.unpack_from(c.data, c.need(packer.size))[0]
    return value


def write_fixed(out: Output, gen: Generation, kind: str, value: float) -> None:
    """Append a number of fixed width; of floats, Kryo knows one NaN as Java does."""
    try:
        out += _FORMATS[gen, kind].pack(java_float(value))
    except (struct.error, OverflowError) as e:
        raise EncodeError(f"{value!r} cannot be written: {e}") from e


def read_varint(c: Cursor) -> int:
    """Read an unsigned variable-length int."""
    return c.varint() & _MASK32


def read_signed(c: Cursor) -> int:
    """Read a zigzag int."""
    raw = read_varint(c)
    return (raw >> 1) ^ -(raw & 1)


def write_signed(out: Output, value: int) -> None:
    """Append a zigzag int."""
    out.varint(((value << 1) ^ (value >> 31)) & _MASK32)


def read_positive(c: Cursor) -> int:
    """Read an int written as if it were positive: negative ones take 5 bytes."""
    raw = read_varint(c)
    return raw - (1 << 32) if raw >> 31 else raw


def write_positive(out: Output, value: int) -> None:
    """Append an int as if it were positive."""
    out.varint(value & _MASK32)


def _read_varlong(c: Cursor) -> int:
    value = shift = 0
    while True:
        b = c.u1()
        if shift == 56:
            return value | b << 56
        value |= (b & 0x7F) << shift
        if b < 0x80:
            return value
        shift += 7


def _write_varlong(out: Output, value: int) -> None:
    for _ in range(8):
        if value < 0x80:
            out.append(value)
            return
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def read_signed_long(c: Cursor) -> int:
    """Read a zigzag long."""
    raw = _read_varlong(c)
    return (raw >> 1) ^ -(raw & 1)


def write_signed_long(out: Output, value: int) -> None:
    """Append a zigzag long."""
    _write_varlong(out, ((value << 1) ^ (value >> 63)) & _MASK64)


def read_positive_long(c: Cursor) -> int:
    """Read a long written as if it were positive."""
    raw = _read_varlong(c)
    return raw - (1 << 64) if raw >> 63 else raw


def write_positive_long(out: Output, value: int) -> None:
    """Append a long as if it were positive."""
    _write_varlong(out, value & _MASK64)


def read_flagged(c: Cursor) -> tuple[bool, int]:
    """Read a flag and a varint that share their first byte (Kryo 5)."""
    first = c.u1()
    value = first & 0x3F
    if first & 0x40:
        value |= c.varint() << 6
    return first >= 0x80, value & _MASK32


def write_flagged(out: Output, flag: bool, value: int) -> None:
    """Append a flag and a varint that share their first byte."""
    first = (value & 0x3F) | (0x80 if flag else 0)
    if value >> 6:
        out.append(first | 0x40)
        out.varint(value >> 6)
    else:
        out.append(first)


def read_string(c: Cursor) -> str | None:
    """Read a string; lone surrogates are kept."""
    start = c.need(1, "string")
    first = c.data[start]
    if first < 0x80:
        pos = start
        while c.data[c.need(1, "string")] < 0x80:
            pos += 1
        raw = bytearray(c.data[start : c.pos])
        raw[-1] &= 0x7F
        return raw.decode("ascii")
    count = first & 0x3F
    if first & 0x40:
        count |= c.varint() << 6
    if count < 2:
        return "" if count else None
    count -= 1
    if count > c.left:
        raise c.fail(f"a string of {count} characters does not fit the {c.left} bytes left", pos=start)
    plain = bytes(c.data[c.pos : c.pos + count])
    if plain.isascii():
        c.pos += count
        return plain.decode("ascii")
    units = [_read_unit(c) for _ in range(count)]
    return struct.pack(f"<{count}H", *units).decode("utf-16-le", "surrogatepass")


def _read_unit(c: Cursor) -> int:
    first = c.u1()
    if first < 0x80:
        return first
    if first >> 5 == 6:
        return (first & 0x1F) << 6 | c.u1() & 0x3F
    if first >> 4 == 14:
        return (first & 0x0F) << 12 | (c.u1() & 0x3F) << 6 | c.u1() & 0x3F
    raise c.fail(f"byte {first:#04x} does not start a character of a Kryo string", pos=c.pos - 1)


def write_string(out: Output, value: str | None, gen: Generation, *, ascii_form: bool = True) -> None:
    """Append a string like Kryo; ``ascii_form=False`` for ``CharSequence`` in Kryo 2.24, which never uses the ASCII form."""
    if value is None:
        out.append(0x80)
        return
    if ascii_form and value.isascii() and 2 <= len(value) <= _LONGEST_ASCII[gen]:
        _write_ascii(out, value)
        return
    raw = value.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(raw) // 2}H", raw)
    write_flagged(out, True, len(units) + 1)
    for unit in units:
        if unit < 0x80:
            out.append(unit)
        elif unit < 0x800:
            out += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            out += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))


def write_class_name(out: Output, name: str, gen: Generation) -> None:
    """Append a class name: Kryo 5 does not limit the length of its ASCII form there."""
    if gen == 5 and name.isascii() and len(name) > 1:
        _write_ascii(out, name)
    else:
        write_string(out, name, gen)


def _write_ascii(out: Output, value: str) -> None:
    out += value.encode("ascii")
    out[-1] |= 0x80
