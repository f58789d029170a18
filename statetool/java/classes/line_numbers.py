"""Class files without their line numbers, which change with every line above the class in its source."""

from __future__ import annotations

from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.class_file import CONSTANT_BYTES

_TEXT: Final = 1
_TWO_ENTRIES: Final = (5, 6)
#: Magic and version.
_HEAD_BYTES: Final = 8


def without_line_numbers(data: bytes) -> bytes:
    """Return a class file without the line numbers of its methods.

    Raises
    ------
    FormatError
        Not a valid class file.
    """
    return _Stripper(data).run()


class _Stripper:
    def __init__(self, data: bytes) -> None:
        self._c = Cursor(data)
        #: Index in the constant pool of the names of attributes.
        self._names: dict[int, bytes] = {}
        self._lines: list[tuple[int, int]] = []

    def run(self) -> bytes:
        c = self._c
        c.skip(_HEAD_BYTES)
        self._read_names()
        c.skip(6)
        c.skip(2 * c.u2())
        for _ in range(2):
            for _ in range(c.u2()):
                c.skip(6)
                self._attributes()
        kept, pos = [], 0
        for start, end in self._lines:
            kept.append(c.data[pos:start])
            pos = end
        return b"".join((*kept, c.data[pos:]))

    def _read_names(self) -> None:
        c = self._c
        count, index = c.u2(), 1
        while index < count:
            tag = c.u1()
            if tag == _TEXT:
                self._names[index] = bytes(c.take(c.u2()))
            elif tag in CONSTANT_BYTES:
                c.skip(CONSTANT_BYTES[tag])
            else:
                raise c.fail(f"invalid constant of kind {tag} in a class file")
            index += 2 if tag in _TWO_ENTRIES else 1

    def _attributes(self) -> None:
        c = self._c
        for _ in range(c.u2()):
            name, size = self._names.get(c.u2()), c.i4()
            start = c.pos
            c.skip(size)
            end = c.pos
            if name == b"LineNumberTable":
                self._lines.append((start, end))
            elif name == b"Code":
                c.pos = start + 4
                c.skip(c.i4())
                c.skip(8 * c.u2())
                self._attributes()
                c.pos = end
