"""Fields of a Protobuf message with a length, without its descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.io.cursor import Cursor

LENGTH_DELIMITED: Final = 2


def read_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and bytes of the fields of a message that have a length.

    Raises
    ------
    FormatError
        The bytes are not those of a message.
    """
    c = Cursor(message)
    while c.left:
        tag = c.varint64()
        kind = tag & 7
        if kind == LENGTH_DELIMITED:
            yield tag >> 3, c.take(c.varint())
        elif kind == 0:
            c.varint64()
        elif kind in (1, 5):
            c.skip(8 if kind == 1 else 4)
        else:
            raise c.fail(f"kind {kind} of a field")
