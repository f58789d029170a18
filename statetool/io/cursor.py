"""One reader for all big-endian, bounds-checked parsing of small structures.

Follows ``java.io.DataInput`` as Flink uses it (``DataInputView``). Values of large states go
through :mod:`statetool.kernels` instead.
"""

from __future__ import annotations

import builtins
import struct
from typing import ClassVar, Final

from statetool.errors import FormatError

_I1: Final = struct.Struct(">b")
_I2: Final = struct.Struct(">h")
_U2: Final = struct.Struct(">H")
_I4: Final = struct.Struct(">i")
_I4_I4: Final = struct.Struct(">ii")
_I8: Final = struct.Struct(">q")
_F4: Final = struct.Struct(">f")
_F8: Final = struct.Struct(">d")


class Cursor:
    """Reader of ``data[pos:end]``. Every read checks its bounds, and errors carry the offset.

    Parameters
    ----------
    data
        The bytes.
    pos, end
        First byte to read and first byte not to read, as indexes of ``data``.
    base
        Offset of ``data[0]`` in the file (or uncompressed region) that errors report.
    """

    __slots__ = ("base", "data", "end", "pos")
    #: Whether bytes that Java reads and never writes are damage.
    strict: ClassVar[bool] = True

    def __init__(
        self, data: bytes | bytearray | memoryview, pos: int = 0, end: int | None = None, *, base: int = 0
    ) -> None:
        self.data = memoryview(data)
        self.pos = pos
        self.end = len(self.data) if end is None else end
        self.base = base

    @property
    def offset(self) -> int:
        """Absolute offset of the next byte."""
        return self.base + self.pos

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return self.end - self.pos

    def fail(self, message: str, *, hint: str = "", pos: int | None = None) -> FormatError:
        """Return an error that carries the offset of ``pos`` (default: here)."""
        at = self.pos if pos is None else pos
        return FormatError(message, hint=hint).at(offset=self.base + at)

    def need(self, n: int, what: str = "bytes") -> int:
        """Check that ``n`` more bytes exist, step over them and return their start."""
        pos = self.pos
        if n < 0:
            raise self.fail(f"negative length {n} of {what}")
        if n > self.end - pos:
            raise self.fail(f"expected {n} more bytes of {what}, only {self.end - pos} are left")
        self.pos = pos + n
        return pos

    def take(self, n: int, what: str = "bytes") -> bytes:
        """Read exactly ``n`` bytes."""
        pos = self.need(n, what)
        return bytes(self.data[pos : pos + n])

    def skip(self, n: int) -> None:
        """Step over ``n`` bytes."""
        self.need(n)

    def bool(self) -> bool:
        """Read ``writeBoolean``: 0 or 1, anything else is damage."""
        b = self.data[self.need(1, "boolean")]
        if b > 1:
            raise self.fail(f"expected a boolean (0 or 1), found {b}", pos=self.pos - 1)
        return b == 1

    def u1(self) -> int:
        pos = self.pos
        if pos >= self.end:
            self.need(1)
        self.pos = pos + 1
        return self.data[pos]

    def i1(self) -> int:
        return int(_I1.unpack_from(self.data, self.need(1))[0])

    def i2(self) -> int:
        return int(_I2.unpack_from(self.data, self.need(2))[0])

    def u2(self) -> int:
        pos = self.pos
        if pos + 2 > self.end:
            self.need(2)
        self.pos = pos + 2
        value: int = _U2.unpack_from(self.data, pos)[0]
        return value

    def i4(self) -> int:
        pos = self.pos
        if pos + 4 > self.end:
            self.need(4)
        self.pos = pos + 4
        value: int = _I4.unpack_from(self.data, pos)[0]
        return value

    def i8(self) -> int:
        pos = self.pos
        if pos + 8 > self.end:
            self.need(8)
        self.pos = pos + 8
        value: int = _I8.unpack_from(self.data, pos)[0]
        return value

    def i8s(self, n: int) -> tuple[int, ...]:
        """Read ``n`` numbers of 8 bytes at once."""
        return struct.unpack_from(f">{n}q", self.data, self.need(8 * n))

    def f4(self) -> float:
        return float(_F4.unpack_from(self.data, self.need(4))[0])

    def f8(self) -> float:
        return float(_F8.unpack_from(self.data, self.need(8))[0])

    def count(self, what: str, *, at_least: int = 1) -> int:
        """Read an ``i4`` count of items that take at least ``at_least`` bytes each."""
        start = self.pos
        n = self.i4()
        if n < 0 or n * at_least > self.end - self.pos:
            raise self.fail(f"count {n} of {what} does not fit the {self.end - self.pos} bytes left", pos=start)
        return n

    def bytes4(self, what: str = "bytes") -> bytes:
        """Read an ``i4`` length and that many bytes."""
        return self.take(self.i4(), what)

    def numbered(self, what: str, *, keep: builtins.bool = True) -> list[tuple[int, bytes]]:
        """Read an ``i4`` count, then for each item an ``i4`` number, an ``i4`` length and that many bytes.

        There can be millions of them, so this is one loop.

        Parameters
        ----------
        what
            Name of an item, for messages.
        keep
            Return the items. Otherwise only step over them, and return an empty list.
        """
        items: list[tuple[int, bytes]] = []
        number_of_items = self.count(f"{what}s", at_least=8)
        data, end, pos = self.data, self.end, self.pos
        for _ in range(number_of_items):
            start = pos + 8
            if start > end:
                self.pos = pos
                self.need(8)
            number, size = _I4_I4.unpack_from(data, pos)
            pos = start + size
            if size < 0 or pos > end:
                self.pos = start
                self.need(size, what)
            if keep:
                items.append((number, bytes(data[start:pos])))
        self.pos = pos
        return items

    def utf(self) -> str:
        """Read ``writeUTF``: ``u2`` byte count, modified UTF-8."""
        n = self.u2()
        start = self.pos
        end = start + n
        if end > self.end:
            self.need(n, "UTF string")
        self.pos = end
        return decode_modified_utf8(bytes(self.data[start:end]), self, start)

    def varint(self) -> int:
        """Read an unsigned little-endian base-128 number of at most 5 bytes."""
        return self._base128(5)

    def varint64(self) -> int:
        """Read an unsigned little-endian base-128 number of at most 10 bytes."""
        return self._base128(10)

    def _base128(self, most: int) -> int:
        start = self.pos
        value = shift = 0
        while True:
            b = self.u1()
            value |= (b & 0x7F) << shift
            if b < 0x80:
                return value
            shift += 7
            if shift >= 7 * most:
                raise self.fail(f"variable-length number of more than {most} bytes", pos=start)

    def slice(self, n: int, what: str = "bytes") -> Cursor:
        """Return a cursor over the next ``n`` bytes and step over them."""
        start = self.need(n, what)
        return Cursor(self.data, start, start + n, base=self.base)

    def expect_end(self, what: str) -> None:
        """Raise unless everything was read."""
        if self.pos != self.end:
            raise self.fail(f"{self.end - self.pos} bytes trail after {what}")


def decode_modified_utf8(raw: bytes, cursor: Cursor, start: int) -> str:
    """Decode Java's modified UTF-8 (NUL is two bytes, each surrogate is encoded separately)."""
    if raw.isascii() and 0 not in raw:
        return raw.decode("ascii")
    try:
        # CESU-8 surrogate pairs are joined through UTF-16. C0 80 is a NUL.
        text = raw.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    except UnicodeDecodeError as e:
        raise cursor.fail(f"not modified UTF-8: {e.reason}", pos=start + e.start) from e


class LenientCursor(Cursor):
    """Reader that accepts bytes that Java accepts although it never writes them, as when a class reads values of another one."""

    __slots__ = ()
    strict = False

    def bool(self) -> bool:
        """Read ``readBoolean``: everything but 0 is true."""
        return self.data[self.need(1, "boolean")] != 0
