"""The counterpart of :mod:`statetool.io.cursor`: append big-endian values to a buffer."""

from __future__ import annotations

import struct

from statetool.errors import EncodeError


class Output(bytearray):
    """A byte buffer with Java's ``DataOutput`` methods."""

    def bool(self, v: bool) -> None:
        self.append(1 if v else 0)

    def u1(self, v: int) -> None:
        self += struct.pack(">B", v)

    def i1(self, v: int) -> None:
        self += struct.pack(">b", v)

    def i2(self, v: int) -> None:
        self += struct.pack(">h", v)

    def u2(self, v: int) -> None:
        self += struct.pack(">H", v)

    def i4(self, v: int) -> None:
        self += struct.pack(">i", v)

    def i8(self, v: int) -> None:
        self += struct.pack(">q", v)

    def f4(self, v: float) -> None:
        self += struct.pack(">f", v)

    def f8(self, v: float) -> None:
        self += struct.pack(">d", v)

    def bytes4(self, v: bytes | bytearray | memoryview) -> None:
        self.i4(len(v))
        self += v

    def utf(self, v: str) -> None:
        """Append ``writeUTF``; raises :class:`EncodeError` past 65,535 bytes."""
        raw = encode_modified_utf8(v)
        if len(raw) > 0xFFFF:
            raise EncodeError(f"string of {len(raw)} bytes is longer than writeUTF's 65535")
        self.u2(len(raw))
        self += raw

    def varint(self, v: int) -> None:
        while v >= 0x80:
            self.append((v & 0x7F) | 0x80)
            v >>= 7
        self.append(v)


def encode_modified_utf8(text: str) -> bytes:
    """Encode as Java's modified UTF-8: NUL as ``C0 80``, each surrogate as three bytes."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    halves = "".join(chr(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2))
    return halves.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")
