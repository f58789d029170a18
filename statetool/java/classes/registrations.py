"""Serializers that a job's code registers with Kryo, if classes are named as constants: ``config.registerTypeWithKryoSerializer(A.class, B.class)``.

The code may run under conditions, or not at all, so a registration in a class file names a serializer but proves nothing. A snapshot stores
the registrations of its job, which count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statetool.java.classes.bytecode import CALLS, Opcode, instructions
from statetool.java.classes.class_file import ClassConstant, ClassFile
from statetool.java.classes.class_path import ClassPath
from statetool.types.java import PRIMITIVES

_CLASS: Final = "Ljava/lang/Class;"
#: Methods that register a serializer, and whether it also serves subclasses.
_METHODS: Final = {
    "registerTypeWithKryoSerializer": False, "addDefaultKryoSerializer": True, "registerKryoSerializer": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Registration:
    """A serializer for a type, and for its subclasses if ``is_default``; ``job`` is the class whose code registers it."""

    java_class: str
    serializer: str
    is_default: bool
    job: str


def find_registrations(class_path: ClassPath) -> list[Registration]:
    """Return the registrations in the code of all classes that are not of Flink.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    found: dict[Registration, None] = {}
    for name in class_path.registering:
        cls = None if name.startswith("org.apache.flink.") else class_path.read(name)
        if cls is not None:
            found |= dict.fromkeys(_registrations_of(cls))
    return list(found)


def _registrations_of(cls: ClassFile) -> Iterator[Registration]:
    for method in cls.methods:
        #: The last classes that were loaded or created, which are the arguments if nothing else came between.
        classes: list[str] = []
        for operation, operands in instructions(method.code):
            if operation in (Opcode.LDC, Opcode.LDC_W):
                loaded = cls.constants.loaded(operands.u1() if operation == Opcode.LDC else operands.u2())
                classes = [*classes, loaded.name] if isinstance(loaded, ClassConstant) else []
            elif operation == Opcode.NEW:
                classes = [*classes, cls.constants.class_name(operands.u2())]
            elif operation in CALLS:
                called = cls.constants.member(operands.u2())
                if called.name in _METHODS and called.descriptor.startswith(f"({_CLASS}") and len(classes) == 2:
                    java_class, serializer = classes
                    yield Registration(
                        PRIMITIVES.get(java_class, java_class), serializer, _METHODS[called.name], cls.name
                    )
                if called.name != "<init>" or not called.descriptor.startswith("()"):
                    classes = []
            elif operation != Opcode.DUP:
                classes = []
