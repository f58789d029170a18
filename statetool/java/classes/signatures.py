"""Descriptors and generic signatures of class files as Java types.

``Ljava/util/List<+TT;>;`` is ``java.util.List<? extends T>``. Follows section 4.7.9.1 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import FormatError
from statetool.java.classes.class_file import ClassFile
from statetool.types.java import PRIMITIVES

_CODES: Final = dict(zip("ZBSCIJFD", PRIMITIVES, strict=True))
_MAX_DEPTH: Final = 64
#: ``open`` is a type argument that only the job's code gives.
Kind = Literal["class", "variable", "array", "extends", "super", "any", "open"]


@dataclass(frozen=True, slots=True)
class GenericType:
    """A type as a signature writes it.

    ``name`` is that of a class or type variable. An array has its element as the only argument, a wildcard (``extends``, ``super``) its
    bound, and ``any`` is ``?``.
    """

    kind: Kind
    name: str = ""
    args: tuple[GenericType, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassSignature:
    """Type parameters with their first bounds, superclass and interfaces of a class."""

    parameters: tuple[tuple[str, GenericType], ...]
    superclass: GenericType
    interfaces: tuple[GenericType, ...]


OBJECT_TYPE: Final = GenericType("class", "java.lang.Object")


def parse_type(text: str) -> GenericType:
    """Parse a descriptor or the signature of a field.

    Raises
    ------
    FormatError
        Not a valid signature.
    """
    reader = _Reader(text)
    parsed = reader.type()
    reader.expect_end()
    return parsed


def parse_parameters(descriptor: str) -> tuple[tuple[GenericType, ...], GenericType | None]:
    """Return the types of a method's parameters, and that of its result, ``None`` for void.

    Raises
    ------
    FormatError
        Not a valid descriptor of a method.
    """
    reader = _Reader(descriptor)
    reader.expect("(")
    parameters = []
    while not reader.skip(")"):
        parameters.append(reader.type())
    result = None if reader.skip("V") else reader.type()
    reader.expect_end()
    return tuple(parameters), result


def parse_method(signature: str) -> tuple[tuple[GenericType, ...], GenericType | None]:
    """Return the types of a method's parameters, and that of its result, from its signature with type arguments.

    A type variable of the method itself has no name.

    Raises
    ------
    FormatError
        Not a valid signature of a method.
    """
    reader = _Reader(signature)
    own = set()
    if reader.skip("<"):
        while not reader.skip(">"):
            own.add(reader.parameter()[0])
    reader.expect("(")
    parameters = []
    while not reader.skip(")"):
        parameters.append(_without_names(reader.type(), own))
    result = None if reader.skip("V") else _without_names(reader.type(), own)
    while reader.skip("^"):
        reader.type()
    reader.expect_end()
    return tuple(parameters), result


def _without_names(given: GenericType, own: set[str]) -> GenericType:
    if given.kind == "variable":
        return GenericType("variable") if given.name in own else given
    return GenericType(given.kind, given.name, tuple(_without_names(a, own) for a in given.args))


def parse_class_signature(text: str) -> ClassSignature:
    """Parse the signature of a class.

    Raises
    ------
    FormatError
        Not a valid signature.
    """
    reader = _Reader(text)
    parameters = []
    if reader.skip("<"):
        while not reader.skip(">"):
            parameters.append(reader.parameter())
    superclass = reader.type()
    interfaces = []
    while not reader.is_at_end:
        interfaces.append(reader.type())
    return ClassSignature(tuple(parameters), superclass, tuple(interfaces))


def class_signature(cls: ClassFile) -> ClassSignature:
    """Return the signature of a class, also if it has no type arguments."""
    if cls.signature:
        return parse_class_signature(cls.signature)
    return ClassSignature(
        (), GenericType("class", cls.superclass), tuple(GenericType("class", n) for n in cls.interfaces)
    )


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._depth = 0

    @property
    def is_at_end(self) -> bool:
        return self._pos >= len(self._text)

    def fail(self) -> FormatError:
        return FormatError(f"{self._text[:200]!r} is not a valid signature: unexpected character {self._pos}")

    def skip(self, text: str) -> bool:
        """Step over a text, and return True if it is next."""
        is_next = self._text.startswith(text, self._pos)
        self._pos += len(text) * is_next
        return is_next

    def expect(self, text: str) -> None:
        if not self.skip(text):
            raise self.fail()

    def expect_end(self) -> None:
        if not self.is_at_end:
            raise self.fail()

    def _until(self, ends: str) -> str:
        start = self._pos
        while not self.is_at_end and self._text[self._pos] not in ends:
            self._pos += 1
        if self.is_at_end or self._pos == start:
            raise self.fail()
        return self._text[start : self._pos]

    def parameter(self) -> tuple[str, GenericType]:
        """Read a type parameter and its first bound."""
        name = self._until(":")
        bounds = []
        while self.skip(":"):
            # The bound to a class may be left out.
            if self._text.startswith(("L", "T", "["), self._pos):
                bounds.append(self.type())
        return name, bounds[0] if bounds else OBJECT_TYPE

    def type(self) -> GenericType:
        if self._depth > _MAX_DEPTH:
            raise FormatError(f"a signature is nested deeper than {_MAX_DEPTH}")
        self._depth += 1
        try:
            return self._read_type()
        finally:
            self._depth -= 1

    def _read_type(self) -> GenericType:
        if self.skip("["):
            return GenericType("array", "[]", (self.type(),))
        if self.skip("T"):
            name = self._until(";")
            self.expect(";")
            return GenericType("variable", name)
        if self.skip("L"):
            return self._read_class()
        code = self._text[self._pos : self._pos + 1]
        if code not in _CODES:
            raise self.fail()
        self._pos += 1
        return GenericType("class", _CODES[code])

    def _read_class(self) -> GenericType:
        name = self._until("<;.")
        args: tuple[GenericType, ...] = ()
        while not self.skip(";"):
            if self.skip("<"):
                args = self._read_arguments()
            elif self.skip("."):
                name, args = f"{name}${self._until('<;.')}", ()
            else:
                raise self.fail()
        return GenericType("class", name.replace("/", "."), args)

    def _read_arguments(self) -> tuple[GenericType, ...]:
        args = []
        while not self.skip(">"):
            if self.skip("*"):
                args.append(GenericType("any"))
            elif self.skip("+"):
                args.append(GenericType("extends", "", (self.type(),)))
            elif self.skip("-"):
                args.append(GenericType("super", "", (self.type(),)))
            else:
                args.append(self.type())
        return tuple(args)
