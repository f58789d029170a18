"""Instructions of methods, as far as constants follow from them: the constants of an enum.

The static initializer of an enum creates each constant by ``new Color("RED", 0, ...)`` and stores it in a static field. The ordinal decides
what serializers write, and the order of fields in a class file does not have to be that of the ordinals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.class_file import ENUM, ClassFile, Constants

_ICONST_M1: Final = 0x02
_ICONST_5: Final = 0x08
_BIPUSH: Final = 0x10
_SIPUSH: Final = 0x11
_LDC: Final = 0x12
_LDC_W: Final = 0x13
PUTSTATIC: Final = 0xB3
INVOKEVIRTUAL: Final = 0xB6
NEW: Final = 0xBB
_TABLESWITCH: Final = 0xAA
_LOOKUPSWITCH: Final = 0xAB
_WIDE: Final = 0xC4
_IINC: Final = 0x84
_LAST: Final = 0xC9


def _operand_bytes() -> dict[int, int]:
    """Return the bytes after each instruction of fixed size."""
    sizes = dict.fromkeys(range(_LAST + 1), 0)
    one = (0x10, 0x12, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9, 0xBC)
    two = (0x11, 0x13, 0x14, 0x84, *range(0x99, 0xA9), *range(0xB2, 0xB9), 0xBB, 0xBD, 0xC0, 0xC1, 0xC6, 0xC7)
    four = (0xB9, 0xBA, 0xC8, 0xC9)
    return sizes | dict.fromkeys(one, 1) | dict.fromkeys(two, 2) | {0xC5: 3} | dict.fromkeys(four, 4)


_OPERANDS: Final = _operand_bytes()


@dataclass(frozen=True, slots=True)
class EnumConstants:
    """Constants of an enum in the order of their ordinals.

    Attributes
    ----------
    bodies
        Those among them that have a body.
    numbers
        The next int after the ordinal of each constant, which is the argument of a constructor that takes nothing else. Empty if a
        constant has none.
    """

    names: tuple[str, ...]
    bodies: tuple[str, ...]
    numbers: tuple[int, ...] = ()


def instructions(code: bytes) -> Iterator[tuple[int, Cursor]]:
    """Yield each instruction and a cursor at its operands.

    Raises
    ------
    FormatError
        An invalid instruction, or a truncated one.
    """
    c = Cursor(code)
    while c.left:
        start = c.pos
        operation = c.u1()
        operands = Cursor(c.data, c.pos, c.end)
        if operation in (_TABLESWITCH, _LOOKUPSWITCH):
            c.skip(-c.pos % 4 + 4)
            if operation == _TABLESWITCH:
                low, high = c.i4(), c.i4()
                c.skip(4 * (high - low + 1))
            else:
                c.skip(8 * c.i4())
        elif operation == _WIDE:
            c.skip(4 if c.u1() == _IINC else 2)
        elif operation in _OPERANDS:
            c.skip(_OPERANDS[operation])
        else:
            raise c.fail(f"invalid instruction {operation:#x}", pos=start)
        yield operation, operands


def enum_constants(cls: ClassFile) -> EnumConstants | None:
    """Return the constants of an enum, ``None`` if its static initializer does not create them as compilers do.

    Raises
    ------
    FormatError
        The static initializer is damaged.
    """
    initializer = next((m.code for m in cls.methods if m.name == "<clinit>"), b"")
    expected = {f.name for f in cls.fields if f.access & ENUM}
    found: dict[str, tuple[str, int, str, int | None]] = {}
    created: _Created | None = None
    for operation, operands in instructions(initializer):
        if operation == NEW and created is None:
            created = _Created(cls.constants.class_name(operands.u2()))
        elif operation == PUTSTATIC and created is not None:
            target = cls.constants.member(operands.u2())
            # Objects for the arguments of a constant come between its creation and its field.
            if target.owner == cls.name and target.name in expected and target.name not in found:
                if created.name is None or created.ordinal is None:
                    return None
                found[target.name] = created.name, created.ordinal, created.cls, created.number
            created = None
        elif created is not None:
            created.take(constant(operation, operands, cls.constants))
    ordered = sorted(found.values(), key=lambda constant: constant[1])
    names = tuple(name for name, _, _, _ in ordered)
    if (
        set(found) != expected
        or [n for _, n, _, _ in ordered] != list(range(len(ordered)))
        or len(set(names)) < len(names)
    ):
        return None
    bodies = tuple(name for name, _, constant_class, _ in ordered if constant_class != cls.name)
    numbers = tuple(number for _, _, _, number in ordered if number is not None)
    return EnumConstants(names, bodies, numbers if len(numbers) == len(names) else ())


class _Created:
    """An object under construction, with the first text and the two ints after it among the arguments of its constructor."""

    def __init__(self, cls: str) -> None:
        self.cls = cls
        self.name: str | None = None
        self.ordinal: int | None = None
        self.number: int | None = None

    def take(self, constant: str | int | None) -> None:
        if isinstance(constant, str) and self.name is None:
            self.name = constant
        elif isinstance(constant, int) and self.name is not None and self.ordinal is None:
            self.ordinal = constant
        elif isinstance(constant, int) and self.ordinal is not None and self.number is None:
            self.number = constant


def constant(operation: int, operands: Cursor, constants: Constants) -> str | int | None:
    """Return the text or int that an instruction pushes, ``None`` if it pushes none."""
    if _ICONST_M1 <= operation <= _ICONST_5:
        return operation - _ICONST_M1 - 1
    if operation == _BIPUSH:
        return operands.i1()
    if operation == _SIPUSH:
        return operands.i2()
    if operation in (_LDC, _LDC_W):
        loaded = constants.loaded(operands.u1() if operation == _LDC else operands.u2())
        return loaded if isinstance(loaded, str | int) else None
    return None
