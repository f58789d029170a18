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


class Opcode:
    """Numbers of instructions: each is the position of its name. They are no enum, which takes milliseconds to make."""

    # fmt: off
    (
        NOP, ACONST_NULL, ICONST_M1, ICONST_0, ICONST_1, ICONST_2, ICONST_3, ICONST_4, ICONST_5, LCONST_0, LCONST_1,
        FCONST_0, FCONST_1, FCONST_2, DCONST_0, DCONST_1, BIPUSH, SIPUSH, LDC, LDC_W, LDC2_W, ILOAD, LLOAD, FLOAD,
        DLOAD, ALOAD, ILOAD_0, ILOAD_1, ILOAD_2, ILOAD_3, LLOAD_0, LLOAD_1, LLOAD_2, LLOAD_3, FLOAD_0, FLOAD_1,
        FLOAD_2, FLOAD_3, DLOAD_0, DLOAD_1, DLOAD_2, DLOAD_3, ALOAD_0, ALOAD_1, ALOAD_2, ALOAD_3, IALOAD, LALOAD,
        FALOAD, DALOAD, AALOAD, BALOAD, CALOAD, SALOAD, ISTORE, LSTORE, FSTORE, DSTORE, ASTORE, ISTORE_0, ISTORE_1,
        ISTORE_2, ISTORE_3, LSTORE_0, LSTORE_1, LSTORE_2, LSTORE_3, FSTORE_0, FSTORE_1, FSTORE_2, FSTORE_3,
        DSTORE_0, DSTORE_1, DSTORE_2, DSTORE_3, ASTORE_0, ASTORE_1, ASTORE_2, ASTORE_3, IASTORE, LASTORE, FASTORE,
        DASTORE, AASTORE, BASTORE, CASTORE, SASTORE, POP, POP2, DUP, DUP_X1, DUP_X2, DUP2, DUP2_X1, DUP2_X2, SWAP,
        IADD, LADD, FADD, DADD, ISUB, LSUB, FSUB, DSUB, IMUL, LMUL, FMUL, DMUL, IDIV, LDIV, FDIV, DDIV, IREM, LREM,
        FREM, DREM, INEG, LNEG, FNEG, DNEG, ISHL, LSHL, ISHR, LSHR, IUSHR, LUSHR, IAND, LAND, IOR, LOR, IXOR, LXOR,
        IINC, I2L, I2F, I2D, L2I, L2F, L2D, F2I, F2L, F2D, D2I, D2L, D2F, I2B, I2C, I2S, LCMP, FCMPL, FCMPG, DCMPL,
        DCMPG, IFEQ, IFNE, IFLT, IFGE, IFGT, IFLE, IF_ICMPEQ, IF_ICMPNE, IF_ICMPLT, IF_ICMPGE, IF_ICMPGT, IF_ICMPLE,
        IF_ACMPEQ, IF_ACMPNE, GOTO, JSR, RET, TABLESWITCH, LOOKUPSWITCH, IRETURN, LRETURN, FRETURN, DRETURN,
        ARETURN, RETURN, GETSTATIC, PUTSTATIC, GETFIELD, PUTFIELD, INVOKEVIRTUAL, INVOKESPECIAL, INVOKESTATIC,
        INVOKEINTERFACE, INVOKEDYNAMIC, NEW, NEWARRAY, ANEWARRAY, ARRAYLENGTH, ATHROW, CHECKCAST, INSTANCEOF,
        MONITORENTER, MONITOREXIT, WIDE, MULTIANEWARRAY, IFNULL, IFNONNULL, GOTO_W, JSR_W,
    ) = range(0xCA)
    # fmt: on


_ICONST_M1: Final = Opcode.ICONST_M1
_ICONST_5: Final = Opcode.ICONST_5
_BIPUSH: Final = Opcode.BIPUSH
_SIPUSH: Final = Opcode.SIPUSH
_LDC: Final = Opcode.LDC
_LDC_W: Final = Opcode.LDC_W
_TABLESWITCH: Final = Opcode.TABLESWITCH
_LOOKUPSWITCH: Final = Opcode.LOOKUPSWITCH
_WIDE: Final = Opcode.WIDE
_IINC: Final = Opcode.IINC
_LAST: Final = Opcode.JSR_W
#: Calls of methods that the class file names: all but ``invokedynamic``.
CALLS: Final = (Opcode.INVOKEVIRTUAL, Opcode.INVOKESPECIAL, Opcode.INVOKESTATIC, Opcode.INVOKEINTERFACE)


def _operand_bytes() -> dict[int, int]:
    """Return the bytes after each instruction of fixed size."""
    sizes = dict.fromkeys(range(_LAST + 1), 0)
    one = (
        Opcode.BIPUSH,
        Opcode.LDC,
        *range(Opcode.ILOAD, Opcode.ILOAD_0),
        *range(Opcode.ISTORE, Opcode.ISTORE_0),
        Opcode.RET,
        Opcode.NEWARRAY,
    )
    two = (
        Opcode.SIPUSH,
        Opcode.LDC_W,
        Opcode.LDC2_W,
        Opcode.IINC,
        *range(Opcode.IFEQ, Opcode.RET),
        *range(Opcode.GETSTATIC, Opcode.INVOKEINTERFACE),
        Opcode.NEW,
        Opcode.ANEWARRAY,
        Opcode.CHECKCAST,
        Opcode.INSTANCEOF,
        Opcode.IFNULL,
        Opcode.IFNONNULL,
    )
    four = (Opcode.INVOKEINTERFACE, Opcode.INVOKEDYNAMIC, Opcode.GOTO_W, Opcode.JSR_W)
    return sizes | dict.fromkeys(one, 1) | dict.fromkeys(two, 2) | {Opcode.MULTIANEWARRAY: 3} | dict.fromkeys(four, 4)


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
        if operation == Opcode.NEW and created is None:
            created = _Created(cls.constants.class_name(operands.u2()))
        elif operation == Opcode.PUTSTATIC and created is not None:
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
