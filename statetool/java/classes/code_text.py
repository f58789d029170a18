"""Code that is equal if it is the same in two class files: instructions of a method as text, and class files without their line numbers.

Instructions have constants instead of their indexes. Line numbers change with every line above the class in its source.
"""

from __future__ import annotations

from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import Opcode, instructions
from statetool.java.classes.class_file import CONSTANT_BYTES, ClassConstant, ClassFile, Member

_ICONST_M1: Final = Opcode.ICONST_M1
_ICONST_5: Final = Opcode.ICONST_5
_LCONST_0: Final = Opcode.LCONST_0
_LCONST_1: Final = Opcode.LCONST_1
_BIPUSH: Final = Opcode.BIPUSH
_SIPUSH: Final = Opcode.SIPUSH
_LDC: Final = Opcode.LDC
_LDC_W: Final = Opcode.LDC_W
_LDC2_W: Final = Opcode.LDC2_W
_MEMBERS: Final = range(Opcode.GETSTATIC, Opcode.INVOKEDYNAMIC)
_INVOKEDYNAMIC: Final = Opcode.INVOKEDYNAMIC
#: ``new``, ``anewarray``, ``checkcast`` and ``instanceof``.
_CLASSES: Final = (Opcode.NEW, Opcode.ANEWARRAY, Opcode.CHECKCAST, Opcode.INSTANCEOF)
_TEXT: Final = 1
_TWO_ENTRIES: Final = (5, 6)
#: Magic and version.
_HEAD_BYTES: Final = 8


def code_text(cls: ClassFile, method: Member) -> str:
    """Return the instructions of a method. Targets of jumps are left out.

    Raises
    ------
    FormatError
        The code is damaged.
    """
    parts = []
    for operation, operands in instructions(method.code):
        if operation in _MEMBERS:
            parts.append(f"{operation} {cls.constants.member(operands.u2())}")
        elif operation in _CLASSES:
            parts.append(f"{operation} {cls.constants.class_name(operands.u2())}")
        elif operation == _INVOKEDYNAMIC:
            parts.append(f"{operation} {_dynamic_text(cls, operands.u2())}")
        elif (constant := constant_text(cls, operation, operands)) is not None:
            parts.append(f"{operation} {constant}")
        else:
            parts.append(str(operation))
    return "\n".join(parts)


def constant_text(cls: ClassFile, operation: int, operands: Cursor, *, full_names: bool = False) -> str | None:
    """Return the text of a constant that an instruction pushes, ``None`` if it pushes none. Class names are simple unless ``full_names``."""
    if _ICONST_M1 <= operation <= _ICONST_5:
        return str(operation - _ICONST_M1 - 1)
    if operation in (_LCONST_0, _LCONST_1):
        return str(operation - _LCONST_0)
    if operation in (_BIPUSH, _SIPUSH):
        return str(operands.i1() if operation == _BIPUSH else operands.i2())
    if operation not in (_LDC, _LDC_W, _LDC2_W):
        return None
    loaded = cls.constants.loaded(operands.u1() if operation == _LDC else operands.u2())
    if isinstance(loaded, str):
        return f'"{loaded}"'
    if isinstance(loaded, ClassConstant):
        return f"{loaded.name if full_names else loaded.name.rpartition('.')[2]}.class"
    return str(loaded)


def _dynamic_text(cls: ClassFile, index: int) -> str:
    bootstrap, name, descriptor = cls.constants.dynamic(index)
    linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
    # Concatenation of texts has its constants there.
    texts = [] if linked is None else [t for a in linked.arguments if isinstance(t := cls.constants.loaded(a), str)]
    return f"{name}{descriptor}{texts}"


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
