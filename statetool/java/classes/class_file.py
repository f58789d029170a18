"""Parser of Java class files, from Java 1.0 to 25 and later releases without new kinds of constants.

A class file is big-endian::

    u4 0xCAFEBABE | u2 minor, major | u2 constants + 1, constants | u2 access flags | u2 class, superclass | u2 n, interfaces
    u2 n, fields | u2 n, methods | u2 n, attributes        a field or method: u2 flags, name, descriptor | u2 n, attributes

Follows chapter 4 of the Java Virtual Machine Specification. Only the parts that determine how values are serialized become attributes of
:class:`ClassFile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statetool.errors import FormatError
from statetool.io.cursor import Cursor

MAGIC: Final = b"\xca\xfe\xba\xbe"
PUBLIC: Final = 0x0001
PRIVATE: Final = 0x0002
PROTECTED: Final = 0x0004
STATIC: Final = 0x0008
FINAL: Final = 0x0010
TRANSIENT: Final = 0x0080
INTERFACE: Final = 0x0200
ABSTRACT: Final = 0x0400
SYNTHETIC: Final = 0x1000
ANNOTATION: Final = 0x2000
ENUM: Final = 0x4000
MODULE: Final = 0x8000
_OLDEST: Final = 45
_TEXT: Final = 1
_INTEGER: Final = 3
_FLOAT: Final = 4
_LONG: Final = 5
_DOUBLE: Final = 6
_CLASS: Final = 7
_STRING: Final = 8
_MEMBERS: Final = (9, 10, 11)
_NAME_AND_TYPE: Final = 12
_METHOD_HANDLE: Final = 15
_METHOD_TYPE: Final = 16
_INVOKE_DYNAMIC: Final = 18
_TWO_ENTRIES: Final = (5, 6)  # long and double count as two constants
#: Bytes after the tag of a constant, for all tags except that of texts.
CONSTANT_BYTES: Final = {
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2,
}  # fmt: skip
#: Maximum depth of annotations in annotations.
_MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Annotation:
    """The name of an annotation, and the class that it names as its value, empty if it names none."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        return f"@{self.name.rpartition('.')[2]}({self.value})" if self.value else f"@{self.name.rpartition('.')[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A field or method.

    Attributes
    ----------
    descriptor
        Type without type arguments: ``Ljava/util/List;``.
    signature
        Type with type arguments, empty if it has none: ``Ljava/util/List<TT;>;``.
    annotations
        Annotations that are visible at run time.
    code
        Instructions of a method, empty if it has none.
    constant
        Index of the constant value of a static field, 0 if it has none.
    handlers
        Offsets in the code where a method goes on after exceptions that it catches.
    """

    access: int
    name: str
    descriptor: str
    signature: str = ""
    annotations: tuple[Annotation, ...] = ()
    code: bytes = b""
    constant: int = 0
    handlers: tuple[int, ...] = ()

    @property
    def is_synthetic(self) -> bool:
        """Whether it is a field made by the compiler, such as ``this$0``, which the Kryo of Flink 1.x writes as any other (``KryoBase``)."""
        return bool(self.access & SYNTHETIC) and not self.access & (STATIC | TRANSIENT)

    @property
    def is_stored(self) -> bool:
        """Whether it is a field that serializers by field write: neither static, transient nor made by the compiler."""
        return not self.access & (STATIC | TRANSIENT | SYNTHETIC)


@dataclass(frozen=True, slots=True)
class MemberReference:
    """A field or method that instructions refer to."""

    owner: str
    name: str
    descriptor: str


@dataclass(frozen=True, slots=True)
class ClassConstant:
    """A class that instructions load: ``Order.class``."""

    name: str


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A method that links ``invokedynamic`` instructions, and the indexes of its constant arguments."""

    method: MemberReference
    arguments: tuple[int, ...]


class Constants:
    """The constant pool. Texts are decoded when they are used.

    Parameters
    ----------
    c
        Cursor at the pool. On return, it is at the first byte after the pool.
    """

    def __init__(self, c: Cursor) -> None:
        self._c = c
        self._at: dict[int, tuple[int, int]] = {}
        self._texts: dict[int, str] = {}
        count, index = c.u2(), 1
        while index < count:
            start = c.pos
            tag = c.u1()
            self._at[index] = tag, c.pos
            if tag == _TEXT:
                c.skip(c.u2())
            elif tag in CONSTANT_BYTES:
                c.skip(CONSTANT_BYTES[tag])
            else:
                raise c.fail(f"invalid constant of kind {tag} in a class file", pos=start)
            index += 2 if tag in _TWO_ENTRIES else 1

    def _find(self, index: int, *tags: int) -> Cursor:
        tag, at = self._at.get(index, (0, self._c.pos))
        if tag not in tags:
            raise self._c.fail(f"constant {index} has kind {tag}, expected {' or '.join(map(str, tags))}")
        return Cursor(self._c.data, at, self._c.end, base=self._c.base)

    def text(self, index: int) -> str:
        """Return the text at an index."""
        if (text := self._texts.get(index)) is None:
            text = self._texts[index] = self._find(index, _TEXT).utf()
        return text

    def class_name(self, index: int) -> str:
        """Return the ``Class.getName()`` of the class at an index."""
        name = self.text(self._find(index, _CLASS).u2()).replace("/", ".")
        if not name or (";" in name and not name.startswith("[")):
            raise self._c.fail(f"invalid name {name!r} of a class")
        return name

    def optional_class_name(self, index: int) -> str:
        """Return the class name at an index, empty for index 0."""
        return self.class_name(index) if index else ""

    def member(self, index: int) -> MemberReference:
        """Return the field or method at an index."""
        c = self._find(index, *_MEMBERS)
        owner, described = self.class_name(c.u2()), self._find(c.u2(), _NAME_AND_TYPE)
        return MemberReference(owner, self.text(described.u2()), self.text(described.u2()))

    def loaded(self, index: int) -> str | int | float | ClassConstant | None:
        """Return the constant that ``ldc`` loads, ``None`` for method handles and types."""
        tag = self._at.get(index, (0, 0))[0]
        if tag == _STRING:
            return self.text(self._find(index, _STRING).u2())
        if tag == _CLASS:
            return ClassConstant(self.class_name(index))
        if tag in (_INTEGER, _FLOAT, _LONG, _DOUBLE):
            c = self._find(index, tag)
            return {_INTEGER: c.i4, _FLOAT: c.f4, _LONG: c.i8, _DOUBLE: c.f8}[tag]()
        return None

    def dynamic(self, index: int) -> tuple[int, str, str]:
        """Return the index of the bootstrap method of an ``invokedynamic``, and its name and descriptor."""
        c = self._find(index, _INVOKE_DYNAMIC)
        bootstrap, described = c.u2(), self._find(c.u2(), _NAME_AND_TYPE)
        return bootstrap, self.text(described.u2()), self.text(described.u2())

    def method_handle(self, index: int) -> MemberReference:
        """Return the field or method of a method handle."""
        c = self._find(index, _METHOD_HANDLE)
        c.skip(1)
        return self.member(c.u2())

    def classes(self) -> Iterator[str]:
        """Yield the classes that the class file refers to; those of arrays are left out."""
        for index, (tag, _) in self._at.items():
            if tag == _CLASS and not (name := self.class_name(index)).startswith("["):
                yield name

    def method_types(self) -> Iterator[str]:
        """Yield the descriptors of the methods that lambdas and method references implement, with their type arguments."""
        yield from filter(None, map(self.method_type, self._at))

    def method_type(self, index: int) -> str | None:
        """Return the descriptor of a method type, ``None`` for other constants."""
        is_type = self._at.get(index, (0, 0))[0] == _METHOD_TYPE
        return self.text(self._find(index, _METHOD_TYPE).u2()) if is_type else None

    def strings(self) -> Iterator[str]:
        """Yield the string constants of the code."""
        for index, (tag, _) in self._at.items():
            if tag == _STRING:
                yield self.text(self._find(index, _STRING).u2())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFile:
    """A parsed class.

    Attributes
    ----------
    access
        Flags as ``Class.getModifiers()`` returns them: those of a nested class are stored with its enclosing class.
    superclass
        Empty for ``java.lang.Object``.
    signature
        Type parameters, superclass and interfaces with type arguments, empty if there are none.
    is_record
        Whether it is a Java record.
    bootstraps
        Methods that link ``invokedynamic`` instructions.
    """

    name: str
    access: int
    superclass: str
    interfaces: tuple[str, ...]
    signature: str
    annotations: tuple[Annotation, ...]
    is_record: bool
    fields: tuple[Member, ...]
    methods: tuple[Member, ...]
    constants: Constants
    bootstraps: tuple[Bootstrap, ...] = ()

    @property
    def is_enum(self) -> bool:
        return self.superclass == "java.lang.Enum"

    @property
    def is_interface(self) -> bool:
        return bool(self.access & INTERFACE)


def parse_class(data: bytes, file: str) -> ClassFile:
    """Parse a class file.

    Parameters
    ----------
    file
        Its name, for errors.

    Raises
    ------
    FormatError
        Not a valid class file. The error has the file and the offset.
    """
    try:
        return _parse(Cursor(data))
    except FormatError as error:
        raise error.at(file=file) from error


def string_constants(data: bytes) -> Iterator[str]:
    """Yield the string constants of a class file.

    Raises
    ------
    FormatError
        The constants are damaged.
    """
    yield from _read_constants(Cursor(data)).strings()


def _read_constants(c: Cursor) -> Constants:
    if c.take(4, "a class file") != MAGIC:
        raise c.fail("not a class file", pos=0)
    c.skip(2)
    major = c.u2()
    if major < _OLDEST:
        raise c.fail(f"class file of version {major}, the oldest is {_OLDEST}", pos=6)
    return Constants(c)


def _parse(c: Cursor) -> ClassFile:
    constants = _read_constants(c)
    access = c.u2()
    name = constants.class_name(c.u2())
    superclass = constants.optional_class_name(c.u2())
    interfaces = tuple(constants.class_name(c.u2()) for _ in range(c.u2()))
    fields = tuple(_read_member(c, constants) for _ in range(c.u2()))
    methods = tuple(_read_member(c, constants) for _ in range(c.u2()))
    signature, is_record = "", False
    annotations: tuple[Annotation, ...] = ()
    bootstraps: tuple[Bootstrap, ...] = ()
    for kind, body in _attributes(c, constants):
        match kind:
            case "Signature":
                signature = constants.text(body.u2())
            case "BootstrapMethods":
                bootstraps = tuple(_read_bootstrap(body, constants) for _ in range(body.u2()))
            case "Record":
                is_record = superclass == "java.lang.Record"
            case "RuntimeVisibleAnnotations":
                annotations = _read_annotations(body, constants)
            case "InnerClasses":
                access = _nested_access(body, constants, name, access)
    c.expect_end("a class file")
    return ClassFile(
        name=name,
        access=access,
        superclass=superclass,
        interfaces=interfaces,
        signature=signature,
        annotations=annotations,
        is_record=is_record,
        fields=fields,
        methods=methods,
        constants=constants,
        bootstraps=bootstraps,
    )


def _read_bootstrap(c: Cursor, constants: Constants) -> Bootstrap:
    method = constants.method_handle(c.u2())
    return Bootstrap(method, tuple(c.u2() for _ in range(c.u2())))


def _attributes(c: Cursor, constants: Constants) -> Iterator[tuple[str, Cursor]]:
    for _ in range(c.u2()):
        name = constants.text(c.u2())
        size = c.i4() & 0xFFFFFFFF
        yield name, c.slice(size, f"attribute {name!r}")


def _read_member(c: Cursor, constants: Constants) -> Member:
    access, name, descriptor = c.u2(), constants.text(c.u2()), constants.text(c.u2())
    signature, code, constant = "", b"", 0
    handlers: tuple[int, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    for kind, body in _attributes(c, constants):
        match kind:
            case "Signature":
                signature = constants.text(body.u2())
            case "RuntimeVisibleAnnotations":
                annotations = _read_annotations(body, constants)
            case "Code":
                body.skip(4)
                code = body.take(body.i4(), "instructions")
                # Each entry has the range of the code, the handler, and the class.
                entries = [tuple(body.u2() for _ in range(4)) for _ in range(body.u2())]
                handlers = tuple(dict.fromkeys(entry[2] for entry in entries))
            case "ConstantValue":
                constant = body.u2()
    return Member(
        access=access,
        name=name,
        descriptor=descriptor,
        signature=signature,
        annotations=annotations,
        code=code,
        constant=constant,
        handlers=handlers,
    )


def _nested_access(c: Cursor, constants: Constants, name: str, access: int) -> int:
    """Return the flags of a class as its enclosing class declares them: a class file knows neither private nor static."""
    for _ in range(c.u2()):
        inner = constants.class_name(c.u2())
        c.skip(4)
        flags = c.u2()
        if inner == name:
            return flags
    return access


def _read_annotations(c: Cursor, constants: Constants) -> tuple[Annotation, ...]:
    return tuple(_read_annotation(c, constants, 0) for _ in range(c.u2()))


def _read_annotation(c: Cursor, constants: Constants, depth: int) -> Annotation:
    """Return an annotation and step over its other values."""
    name, value = constants.text(c.u2()), ""
    for _ in range(c.u2()):
        member, start = constants.text(c.u2()), c.pos
        _skip_value(c, constants, depth)
        if member == "value" and c.data[start] == ord("c"):
            value = _class_of(constants.text(int.from_bytes(c.data[start + 1 : start + 3], "big")))
    return Annotation(_class_of(name), value)


def _class_of(descriptor: str) -> str:
    return descriptor.removeprefix("L").removesuffix(";").replace("/", ".")


def _skip_value(c: Cursor, constants: Constants, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise c.fail(f"annotations nested deeper than {_MAX_DEPTH}")
    start = c.pos
    tag = chr(c.u1())
    if tag == "[":
        for _ in range(c.u2()):
            _skip_value(c, constants, depth + 1)
    elif tag == "@":
        _read_annotation(c, constants, depth + 1)
    elif tag in "BCDFIJSZsce":
        c.skip(4 if tag == "e" else 2)
    else:
        raise c.fail(f"invalid annotation value of kind {tag!r}", pos=start)
