"""Descriptors of Protobuf messages and names in Thrift structs, from the classes that their compilers generate.

A file of Protobuf has an outer class, whose static initializer builds the descriptor from string constants::

    descriptorData = {"..."};
    FileDescriptor.internalBuildGeneratedFileFrom(descriptorData, new FileDescriptor[] {Other.getDescriptor()});

The static method ``getDescriptor`` of a message returns a field of the outer class, ``internal_static_acme_Order_descriptor``, whose name is
that of the message.

A Thrift struct has constants ``new TField("id", type, (short) 1)`` and ``new FieldMetaData("id", TFieldRequirementType.REQUIRED, ...)``, where the
compiler of Java writes the constant 1, and a Java field per field: ``List<Part> parts``. A union has a static method instead: ``Choice parts(List<Part> value)``. A constant of an enum has its number after its ordinal: ``new Kind("LARGE", 1, 5)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.io.protobuf_wire import LENGTH_DELIMITED, read_fields
from statetool.java.classes.bytecode import Opcode, constant, instructions
from statetool.java.classes.class_file import STATIC, ClassFile, MemberReference
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.signatures import GenericType, parse_parameters, parse_type
from statetool.types.java import ARRAY, OBJECT, JavaType

#: Superclasses of generated messages with a descriptor, and all supertypes of messages.
PROTOBUF: Final = tuple(
    f"com.google.protobuf.{base}{inner}"
    for base in ("GeneratedMessageV3", "GeneratedMessage")
    for inner in ("", "$ExtendableMessage")
)
MESSAGES: Final = (
    *PROTOBUF,
    *(f"com.google.protobuf.{n}" for n in ("GeneratedMessageLite", "AbstractMessage", "Message", "MessageLite")),
)
#: Supertypes that all generated messages have.
ALL_MESSAGES: Final = tuple(f"com.google.protobuf.{n}" for n in ("AbstractMessage", "Message", "MessageLite"))
#: Supertypes of Thrift structs. Unions have the second one, which has the first one.
THRIFT: Final = ("org.apache.thrift.TBase", "org.apache.thrift.TUnion")
THRIFT_ENUM: Final = "org.apache.thrift.TEnum"
_THRIFT_FIELD: Final = "org.apache.thrift.protocol.TField"
_THRIFT_METADATA: Final = "org.apache.thrift.meta_data.FieldMetaData"
_REQUIRED: Final = 1
_DESCRIPTORS: Final = "com.google.protobuf.Descriptors"
_FILE_DESCRIPTOR: Final = "()Lcom/google/protobuf/Descriptors$FileDescriptor;"
_DESCRIPTOR: Final = "Lcom/google/protobuf/Descriptors$Descriptor;"
_MAX_FILES: Final = 1000
_MAX_DEPTH: Final = 64


class NoDescriptorError(Exception):
    """The reason why a message has no descriptor in the jar."""


@dataclass(frozen=True, slots=True)
class MessageDescriptor:
    """A serialized ``FileDescriptorSet``, and the full name of the message in it."""

    files: bytes
    message: str


def protobuf_descriptor(class_path: ClassPath, cls: ClassFile) -> MessageDescriptor:
    """Return the descriptor of a generated Protobuf message.

    Raises
    ------
    NoDescriptorError
        Its code is not that of the compiler, or a class is not in the jar.
    FormatError
        A class is damaged.
    """
    field = _returned_field(class_path, cls, "getDescriptor")
    if field is None:
        raise NoDescriptorError("its method getDescriptor is not that of protoc")
    files: dict[str, bytes] = {}
    _add_files(class_path, field.owner, files, 0)
    names = list(_message_names(files[field.owner]))
    matching = [n for n in names if f"internal_static_{n.replace('.', '_')}_descriptor" == field.name]
    if len(matching) != 1:
        raise NoDescriptorError(f"{len(matching)} messages of its descriptor fit {field.name}")
    out = Output()
    for data in files.values():
        out.append(1 << 3 | LENGTH_DELIMITED)
        out.varint(len(data))
        out += data
    return MessageDescriptor(bytes(out), matching[0])


@dataclass(frozen=True, slots=True)
class ThriftFields:
    """Names of the fields of a generated Thrift struct by their ids, and the required ones."""

    names: dict[int, str]
    required: tuple[str, ...]


def thrift_fields(cls: ClassFile) -> ThriftFields:
    """Return the fields of a generated Thrift struct.

    Raises
    ------
    FormatError
        The class is damaged.
    """
    names: dict[int, str] = {}
    required: dict[str, None] = {}
    text, number, is_described = "", 0, False
    for operation, operands in _code_of(cls, "<clinit>", "()V"):
        value = constant(operation, operands, cls.constants)
        if isinstance(value, str):
            text = value
        elif isinstance(value, int):
            number = value
            if is_described and number == _REQUIRED:
                required[text] = None
            is_described = False
        elif operation == Opcode.NEW:
            is_described = cls.constants.class_name(operands.u2()) == _THRIFT_METADATA
        elif operation == Opcode.INVOKESPECIAL:
            called = cls.constants.member(operands.u2())
            if (called.owner, called.name) == (_THRIFT_FIELD, "<init>") and text:
                names[number] = text
    return ThriftFields(names, tuple(n for n in required if n in names.values()))


def thrift_types(cls: ClassFile, names: Collection[str]) -> dict[str, JavaType]:
    """Return the Java types of the fields of a generated Thrift struct or union.

    Raises
    ------
    FormatError
        The class is damaged.
    """
    kinds = {f.name: parse_type(f.signature or f.descriptor) for f in cls.fields if not f.access & STATIC}
    for method in cls.methods:
        if method.name in names and method.access & STATIC:
            parameters, result = parse_parameters(method.signature or method.descriptor)
            if len(parameters) == 1 and result == GenericType("class", cls.name):
                kinds.setdefault(method.name, parameters[0])
    return {name: _java_type(kinds[name]) for name in names if name in kinds}


def _java_type(given: GenericType) -> JavaType:
    if given.kind == "array":
        return JavaType(ARRAY, (_java_type(given.args[0]),))
    return JavaType(given.name, tuple(map(_java_type, given.args))) if given.kind == "class" else OBJECT


def _code_of(cls: ClassFile, name: str, descriptor: str) -> Iterator[tuple[int, Cursor]]:
    for method in cls.methods:
        if (method.name, method.descriptor) == (name, descriptor) and method.access & STATIC:
            yield from instructions(method.code)


def _returned_field(class_path: ClassPath, cls: ClassFile, method: str) -> MemberReference | None:
    """Return the static field that a method returns, itself or through the accessor that Java 8 makes for private fields."""
    for operation, operands in _code_of(cls, method, f"(){_DESCRIPTOR}"):
        if operation not in (Opcode.GETSTATIC, Opcode.INVOKESTATIC):
            continue
        member = cls.constants.member(operands.u2())
        if operation == Opcode.GETSTATIC:
            return member if member.descriptor == _DESCRIPTOR else None
        outer = (
            class_path.read(member.owner)
            if member.name.startswith("access$") and not method.startswith("access$")
            else None
        )
        return None if outer is None else _returned_field(class_path, outer, member.name)
    return None


def _add_files(class_path: ClassPath, outer: str, files: dict[str, bytes], depth: int) -> None:
    """Add the descriptor of an outer class, after those that it imports."""
    if outer in files:
        return
    cls = class_path.read(outer)
    if cls is None:
        raise NoDescriptorError(f"its descriptor is in {outer}, which is not in the jar")
    if depth > _MAX_DEPTH or len(files) >= _MAX_FILES:
        raise NoDescriptorError("its descriptor imports too many files")
    parts: list[str] = []
    imports: list[str] = []
    is_built = False
    for operation, operands in _code_of(cls, "<clinit>", "()V"):
        value = constant(operation, operands, cls.constants)
        if isinstance(value, str):
            parts.append(value)
        elif operation == Opcode.INVOKESTATIC:
            called = cls.constants.member(operands.u2())
            if called.owner.startswith(_DESCRIPTORS) and called.name == "internalBuildGeneratedFileFrom":
                is_built = True
                break
            if (called.name, called.descriptor) == ("getDescriptor", _FILE_DESCRIPTOR):
                imports.append(called.owner)
    if not is_built:
        raise NoDescriptorError(f"{outer} does not build its descriptor as protoc does")
    for imported in imports:
        if imported != outer:
            _add_files(class_path, imported, files, depth + 1)
    try:
        files[outer] = "".join(parts).encode("latin-1")
    except UnicodeEncodeError:
        raise NoDescriptorError(f"the descriptor of {outer} is not text of single bytes") from None


def _message_names(file: bytes) -> Iterator[str]:
    """Yield the full names of all messages in a ``FileDescriptorProto`` (package 2, message_type 4)."""
    try:
        fields = list(read_fields(file))
        package = next((data.decode("utf-8") for number, data in fields if number == 2), "")
        for number, data in fields:
            if number == 4:
                yield from _names_in(data, f"{package}." if package else "", 0)
    except (FormatError, UnicodeDecodeError):
        raise NoDescriptorError("its descriptor is damaged") from None


def _names_in(message: bytes, prefix: str, depth: int) -> Iterator[str]:
    """Yield the full names of a ``DescriptorProto`` (name 1, nested_type 3) and the messages inside."""
    if depth > _MAX_DEPTH:
        raise NoDescriptorError(f"its messages are nested deeper than {_MAX_DEPTH}")
    fields = list(read_fields(message))
    name = prefix + next((data.decode("utf-8") for number, data in fields if number == 1), "")
    yield name
    for number, data in fields:
        if number == 3:
            yield from _names_in(data, f"{name}.", depth + 1)
