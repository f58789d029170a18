"""Avro binary encoding, read by the types of :mod:`statetool.serializers.avro.values`.

Those types read the elements of Flink's encoding. Here the same steps read zigzag varints (int, long, sizes, counts, indexes) and
little-endian floats. A negative block count is followed by the block's size in bytes.
"""

from __future__ import annotations

import struct
from typing import Final

from statetool.io.cursor import Cursor

_F4: Final = struct.Struct("<f")
_F8: Final = struct.Struct("<d")


class AvroBinaryCursor(Cursor):
    """Cursor that reads Avro's binary encoding in place of Flink's."""

    __slots__ = ()

    @classmethod
    def over(cls, c: Cursor) -> AvroBinaryCursor:
        """Return a cursor over the rest of another one."""
        return cls(c.data, c.pos, c.end, base=c.base)

    def _zigzag(self, bits: int) -> int:
        start = self.pos
        value = self.varint64()
        if value >> bits:
            raise self.fail(f"variable-length number of more than {bits} bits", pos=start)
        return value >> 1 ^ -(value & 1)

    def i4(self) -> int:
        return self._zigzag(32)

    def i8(self) -> int:
        return self._zigzag(64)

    def f4(self) -> float:
        return float(_F4.unpack_from(self.data, self.need(4))[0])

    def f8(self) -> float:
        return float(_F8.unpack_from(self.data, self.need(8))[0])

    def bytes4(self, what: str = "bytes") -> bytes:
        return self.take(self._zigzag(64), what)

    def varint(self) -> int:
        n = self._zigzag(64)
        if n < 0:
            self._zigzag(64)
        return abs(n)
