"""Bytes of one binary row, array or map of the table runtime: read and written at offsets, little-endian.

Follows ``BinarySection`` and ``AbstractBinaryWriter``. Variable parts follow the fixed-length part, each zero-padded to 8 bytes.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from statetool.errors import FormatError
from statetool.io.cursor import Cursor

_I1: Final = struct.Struct("<b")
_I2: Final = struct.Struct("<h")
_I4: Final = struct.Struct("<i")
_I8: Final = struct.Struct("<q")
_F4: Final = struct.Struct("<f")
_F8: Final = struct.Struct("<d")
_OFFSET_AND_SIZE: Final = struct.Struct("<ii")
_INLINE: Final = 0x80
MAX_INLINE: Final = 7


class Region:
    """Bytes ``start`` to ``end`` of ``data``; offsets count from ``start``, as in the format.

    ``base`` is the offset of ``data[0]`` in the file.
    """

    __slots__ = ("base", "data", "end", "left", "start")

    def __init__(self, data: memoryview, start: int, end: int, base: int) -> None:
        self.data = data
        self.start = start
        self.end = end
        self.base = base
        # Flink writes variable parts one after another. Overlapping parts could expand to far more data than exists.
        self.left = end - start

    @classmethod
    def of(cls, c: Cursor, size: int, what: str) -> Region:
        """Take the next ``size`` bytes of a cursor."""
        start = c.need(size, what)
        return cls(c.data, start, start + size, c.base)

    @property
    def size(self) -> int:
        return self.end - self.start

    def fail(self, message: str, at: int) -> FormatError:
        """Make (not raise) an error about offset ``at``."""
        return FormatError(message).at(offset=self.base + self.start + at)

    def need(self, at: int, size: int, what: str) -> int:
        """Check that ``size`` bytes exist and return their start in ``data``."""
        if not (at >= 0 and 0 <= size <= self.size - at):
            raise self.fail(f"{size} bytes of {what} at {at} are outside of the {self.size} bytes around it", 0)
        return self.start + at

    def bytes(self, at: int, size: int, what: str) -> bytes:
        start = self.need(at, size, what)
        return bytes(self.data[start : start + size])

    def flag(self, at: int) -> bool:
        b = self.data[self.need(at, 1, "boolean")]
        if b > 1:
            raise self.fail(f"expected a boolean (0 or 1), found {b}", at)
        return b == 1

    def i1(self, at: int) -> int:
        return int(_I1.unpack_from(self.data, self.need(at, 1, "number"))[0])

    def i2(self, at: int) -> int:
        return int(_I2.unpack_from(self.data, self.need(at, 2, "number"))[0])

    def i4(self, at: int) -> int:
        return int(_I4.unpack_from(self.data, self.need(at, 4, "number"))[0])

    def i8(self, at: int) -> int:
        return int(_I8.unpack_from(self.data, self.need(at, 8, "number"))[0])

    def f4(self, at: int) -> float:
        """Read a float, preserving all bits of a NaN (a hardware conversion would set one)."""
        start = self.need(at, 4, "number")
        value = float(_F4.unpack_from(self.data, start)[0])
        if not math.isnan(value):
            return value
        bits = int.from_bytes(self.data[start : start + 4], "little")
        return float(_F8.unpack((bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29).to_bytes(8, "little"))[0])

    def f8(self, at: int) -> float:
        return float(_F8.unpack_from(self.data, self.need(at, 8, "number"))[0])

    def bit(self, at: int) -> bool:
        """Read a bit; bit b is ``1 << b % 8`` of byte ``b / 8``."""
        return bool(self.data[self.start + (at >> 3)] >> (at & 7) & 1)

    def offset_and_high(self, at: int) -> tuple[int, int]:
        """Read a slot: its low half (a size, or nano of milli), and the offset in its high half."""
        low, offset = _OFFSET_AND_SIZE.unpack_from(self.data, self.need(at, 8, "slot"))
        return low, offset

    def part(self, at: int, what: str) -> Region:
        """Return the variable part that the slot at ``at`` refers to."""
        size, offset = self.offset_and_high(at)
        start = self.need(offset, size, what)
        self.left -= size
        if self.left < 0:
            raise self.fail("variable parts that overlap", at)
        return Region(self.data, start, start + size, self.base)

    def inline_or_part(self, at: int, what: str) -> Region:
        """Return up to 7 bytes in the slot itself, or the variable part that it refers to."""
        mark = self.data[self.need(at + 7, 1, what)]
        if not mark & _INLINE:
            return self.part(at, what)
        size = mark & 0x7F
        if size > MAX_INLINE:
            raise self.fail(f"{size} bytes of {what} inside of a slot", at)
        return Region(self.data, self.start + at, self.start + at + size, self.base)


class RegionWriter:
    """Builder of a region whose fixed-length part has ``fixed_size`` bytes."""

    __slots__ = ("data",)

    def __init__(self, fixed_size: int) -> None:
        self.data = bytearray(fixed_size)

    def i1(self, at: int, value: int) -> None:
        _I1.pack_into(self.data, at, value)

    def i2(self, at: int, value: int) -> None:
        _I2.pack_into(self.data, at, value)

    def i4(self, at: int, value: int) -> None:
        _I4.pack_into(self.data, at, value)

    def i8(self, at: int, value: int) -> None:
        _I8.pack_into(self.data, at, value)

    def f4(self, at: int, value: float) -> None:
        if math.isnan(value):
            bits = int.from_bytes(_F8.pack(value), "little")
            mantissa = bits >> 29 & 0x7FFFFF
            # A NaN with payload only in the bits that a float lacks must stay a NaN.
            narrow = bits >> 63 << 31 | 0x7F800000 | (mantissa or 0x400000)
            self.data[at : at + 4] = narrow.to_bytes(4, "little")
            return
        _F4.pack_into(self.data, at, value)

    def f8(self, at: int, value: float) -> None:
        _F8.pack_into(self.data, at, value)

    def set_bit(self, at: int) -> None:
        self.data[at >> 3] |= 1 << (at & 7)

    def slot(self, at: int, low: int, offset: int) -> None:
        """Write the two halves of a slot."""
        _OFFSET_AND_SIZE.pack_into(self.data, at, low, offset)

    def append(self, raw: bytes | bytearray, reserve: int = 0) -> int:
        """Append a variable part, padded (to ``reserve`` bytes if that is more), and return its offset."""
        offset = len(self.data)
        size = max((len(raw) + 7) // 8 * 8, reserve)
        self.data += raw
        self.data += bytes(size - len(raw))
        return offset

    def part(self, at: int, raw: bytes | bytearray) -> None:
        """Append a variable part and store its location in the slot at ``at``."""
        offset = self.append(raw)
        self.slot(at, len(raw), offset)

    def inline_or_part(self, at: int, raw: bytes) -> None:
        """Write up to 7 bytes into the slot, more as a variable part."""
        if len(raw) > MAX_INLINE:
            self.part(at, raw)
            return
        self.data[at : at + len(raw)] = raw
        self.data[at + 7] = _INLINE | len(raw)
