"""Calls of Flink's API in the code of a job, with their constant arguments: state descriptors, windows and patterns.

A job declares them by calls such as ``new ValueStateDescriptor<>("sum", Types.INT)`` or ``TumblingEventTimeWindows.of(Duration.ofSeconds(10))``. The
instructions are read in the order of the class file, and branches are not followed: a call shows what the code can do, never that it does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import instructions
from statetool.java.classes.class_file import SYNTHETIC, ClassFile, Member
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.code_text import code_text, constant_text
from statetool.types.flink_calls import COMPUTED, LAMBDA, FlinkCall

_FLINK: Final = "org.apache.flink."
#: Loads of variables, of fields of an object, and of elements of an array.
_LOADS: Final = (*range(0x15, 0x36), 0xB4)
_STORES: Final = range(0x36, 0x57)
_GETSTATIC: Final = 0xB2
_PUTSTATIC: Final = 0xB3
_PUTFIELD: Final = 0xB5
_INVOKES: Final = (0xB6, 0xB7, 0xB8, 0xB9)
_INVOKESTATIC: Final = 0xB8
_INVOKEDYNAMIC: Final = 0xBA
#: Index of the method of a lambda among the arguments of its bootstrap method.
_IMPLEMENTATION: Final = 1
#: Hex digits by which lambdas are told apart.
_DIGITS: Final = 8
_NEW: Final = 0xBB


def find_calls(class_path: ClassPath) -> Iterator[FlinkCall]:
    """Yield the calls in the code of all classes that are not of Flink.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    for name in class_path.declaring:
        cls = None if name.startswith(_FLINK) else class_path.read(name)
        if cls is not None:
            for method in cls.methods:
                yield from _calls_of(cls, method)


def _calls_of(cls: ClassFile, method: Member) -> Iterator[FlinkCall]:
    #: Arguments since the last call of Flink, and those of the objects under construction around them.
    pushed: list[str] = []
    outer: list[tuple[str, list[str]]] = []
    for operation, operands in instructions(method.code):
        if operation == _NEW:
            outer.append((cls.constants.class_name(operands.u2()), pushed))
            pushed = []
        elif operation in _INVOKES:
            called = cls.constants.member(operands.u2())
            is_flink = called.owner.startswith(_FLINK)
            if called.name == "<init>" and outer and outer[-1][0] == called.owner:
                if is_flink:
                    yield FlinkCall(called.owner, called.name, tuple(pushed), f"{cls.name}.{method.name}")
                _, before = outer.pop()
                pushed = before if is_flink else [*before, _simple(called.owner), *pushed]
            elif is_flink:
                yield FlinkCall(called.owner, called.name, tuple(pushed), f"{cls.name}.{method.name}")
                pushed = []
            elif operation == _INVOKESTATIC and called.owner.startswith("java."):
                pushed.append(f"{_simple(called.owner)}.{called.name}")
            else:
                pushed.append(COMPUTED)
        elif operation in _STORES or operation in (_PUTFIELD, _PUTSTATIC):
            pushed = []
        elif (argument := _argument(cls, operation, operands)) is not None:
            pushed.append(argument)


def _argument(cls: ClassFile, operation: int, operands: Cursor) -> str | None:
    """Return the text of an argument that an instruction pushes, ``None`` if it pushes none."""
    if (constant := constant_text(cls, operation, operands)) is not None:
        return constant
    if operation == _GETSTATIC:
        member = cls.constants.member(operands.u2())
        text = f"{_simple(member.owner)}.{member.name}"
        # A field of the job may have any value.
        return text if member.owner.startswith((_FLINK, "java.")) else COMPUTED + text
    if operation == _INVOKEDYNAMIC:
        return _lambda(cls, operands.u2())
    return COMPUTED if operation in _LOADS else None


def _lambda(cls: ClassFile, index: int) -> str:
    """Return the text of a lambda: the hash of its code, as its name has a number, which changes with other code; or a method."""
    bootstrap, _, _ = cls.constants.dynamic(index)
    linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
    if (
        linked is None
        or not linked.method.owner.endswith("LambdaMetafactory")
        or len(linked.arguments) < _IMPLEMENTATION + 1
    ):
        return COMPUTED
    target = cls.constants.method_handle(linked.arguments[_IMPLEMENTATION])
    body = next((m for m in cls.methods if (m.name, m.descriptor) == (target.name, target.descriptor)), None)
    if target.owner != cls.name or body is None or not body.access & SYNTHETIC:
        return f"{_simple(target.owner)}::{target.name}"
    return f"{LAMBDA} {hashlib.sha256(code_text(cls, body).encode()).hexdigest()[:_DIGITS]}"


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
