"""Bit masks of ``MaskUtils``: bit i is in byte i / 8 at position 7 - i % 8; unused low bits are 0."""

from __future__ import annotations

from collections.abc import Sequence

from statetool.io.cursor import Cursor
from statetool.io.output import Output


def read_mask(c: Cursor, n: int) -> list[bool]:
    """Read ``n`` flags."""
    raw = c.take((n + 7) // 8, "bit mask")
    flags = [bool(raw[i >> 3] >> (7 - (i & 7)) & 1) for i in range(n)]
    if n % 8 and raw[-1] & (0xFF >> (n % 8)):
        raise c.fail("unused bits of a bit mask are set", pos=c.pos - 1)
    return flags


def write_mask(out: Output, flags: Sequence[bool]) -> None:
    """Append flags."""
    raw = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        if flag:
            raw[i >> 3] |= 0x80 >> (i & 7)
    out += raw
