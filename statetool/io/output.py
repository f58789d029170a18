"""The counterpart of :mod:`statetool.io.cursor`: append big-endian values to a buffer."""

from __future__ import annotations

import math
import struct
from typing import Final

from statetool.errors import EncodeError

_U1: Final = struct.Struct(">B")
_I1: Final = struct.Struct(">b")
_I2: Final = struct.Struct(">h")
_U2: Final = struct.Struct(">H")
_I4: Final = struct.Struct(">i")
_I8: Final = struct.Struct(">q")
_F4: Final = struct.Struct(">f")
_F8: Final = struct.Struct(">d")


class Output(bytearray):
    """A byte buffer with Java's ``DataOutput`` methods.

    A number that does not fit raises :class:`~statetool.errors.EncodeError`.
    """

    def _pack(self, packer: struct.Struct, v: float) -> None:
        try:
            self += packer.pack(v)
        except (struct.error, OverflowError) as e:
            raise EncodeError(f"{v!r} cannot be written: {e}") from e

    def bool(self, v: bool) -> None:
        self.append(1 if v else 0)

    def u1(self, v: int) -> None:
        self._pack(_U1, v)

    def i1(self, v: int) -> None:
        self._pack(_I1, v)

    def i2(self, v: int) -> None:
        self._pack(_I2, v)

    def u2(self, v: int) -> None:
        self._pack(_U2, v)

    def i4(self, v: int) -> None:
        self._pack(_I4, v)

    def i8(self, v: int) -> None:
        self._pack(_I8, v)

    def f4(self, v: float) -> None:
        """Append a float as ``writeFloat`` does: every NaN has the bits ``7fc00000``."""
        self._pack(_F4, java_float(v))

    def f8(self, v: float) -> None:
        """Append a double as ``writeDouble`` does: every NaN has the bits ``7ff8000000000000``."""
        self._pack(_F8, java_float(v))

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


def java_float(v: float) -> float:
    """Return the number with NaN in the form of ``floatToIntBits`` and ``doubleToLongBits``, without sign and payload."""
    return v if v == v else math.nan


def encode_modified_utf8(text: str) -> bytes:
    """Encode as Java's modified UTF-8: NUL as ``C0 80``, each surrogate as three bytes."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    halves = "".join(chr(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2))
    return halves.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")
