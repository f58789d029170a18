"""Class declarations by the user, in Python, in JSON files or in Avro schema files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from statetool.errors import OptionError
from statetool.io import files
from statetool.types.avro_java import classes_of_schema
from statetool.types.declared import ClassDeclaration, LengthPrefix, class_of_fields, class_of_steps, enum_of, from_json
from statetool.types.java import parse_java_type
from statetool.types.python_types import (
    MapState,
    PythonState,
    PythonType,
    ValueState,
    parse_python_state,
    parse_python_type,
)

Declaration: TypeAlias = ClassDeclaration | str | os.PathLike[str] | Mapping[str, Any]
Declarations: TypeAlias = Declaration | Iterable[Declaration]
Schema: TypeAlias = Mapping[str, Any] | Sequence[str] | str
PythonTypes: TypeAlias = Mapping[str, PythonState | PythonType | str | Sequence[PythonType | str]]
_AVRO_TYPES = ("record", "error", "enum")


class DeclaredClasses:
    """The classes that a program has declared, by name. A later declaration of a name replaces the earlier one."""

    def __init__(self) -> None:
        self._by_name: dict[str, ClassDeclaration] = {}

    def add(self, classes: Iterable[ClassDeclaration]) -> None:
        """Declare classes."""
        self._by_name = {**self._by_name, **{c.name: c for c in classes}}

    def get(self, name: str) -> ClassDeclaration:
        """Return a declared class."""
        return self._by_name[name]

    def all(self) -> tuple[ClassDeclaration, ...]:
        """Return all classes, in the order of their first declarations."""
        return tuple(self._by_name.values())


#: Those of the process: :func:`declare` and the functions beside it add to them, each snapshot takes them when it is opened.
DECLARED: Final = DeclaredClasses()


def declare(
    name: str,
    schema: Schema,
    *,
    extends: Sequence[str] = (),
    final: bool = False,
    record: bool = False,
    generic: bool = False,
    parameters: Sequence[str] = (),
    serializer: str = "",
    hash_code: str = "",
    numbers: Sequence[int] = (),
) -> ClassDeclaration:
    """Declare a class that snapshots do not describe; every :func:`statetool.load` after it knows the class.

    The process owns the declaration, not a snapshot: open savepoints do not change, and declaring the name again replaces it. To declare a
    class for one savepoint only, pass it to ``statetool.load(..., declarations=[...])``.

    Parameters
    ----------
    name
        The class name as returned by ``Class.getName()``: ``com.acme.Outer$Inner``.
    schema
        Its fields and their Java types, ``{"id": "long", "tags": "List<String>", "owner": "com.acme.Person"}``: all fields that are
        neither static nor transient, including those of superclasses. A box (``Integer``) differs from its primitive (``int``). Their order
        does not matter, as Kryo and POJOs sort fields by name. For a ``Value`` or ``Writable`` class, use the order of its ``write``
        method. For a POJO that the snapshot describes, only the fields whose type arguments it lacks are needed
        (``{"tags": "List<String>"}``). For an enum, the list of its constants in source order. An Avro schema, as a dict or JSON text, is
        accepted too (:mod:`statetool.types.avro_java`).
    extends
        Superclasses and interfaces that fields of other classes use to refer to it.
    final, record
        Whether the class is ``final`` or a Java record: Kryo leaves out the names of final classes.
    generic
        Whether Flink does not treat it as a POJO, so that Kryo writes it as a field of a POJO too.
    parameters
        Names of its type parameters, if fields use them.
    serializer
        Class of the job's Kryo serializer that writes it. The schema then lists the calls of the serializer's ``write`` method, in
        their order: ``{"cents": "writeLong", "count": "writeInt(true)", "owner": "writeObject(com.acme.Person)"}``.
    hash_code
        Formula of its ``hashCode()``, such as ``Objects.hash(a, b)`` (:mod:`statetool.types.conventions`), if it is the class of a key.
    numbers
        For an enum of Thrift, the numbers of its constants.

    Returns
    -------
    ClassDeclaration
        Pass it to ``statetool.load(..., declarations=[...])`` to use it for one savepoint only.

    Raises
    ------
    OptionError
        The type of a field or the formula is not valid, or the numbers do not fit the constants.
    """
    described = _json(schema, f"the schema of {name}") if isinstance(schema, str) else schema
    if isinstance(described, Mapping) and described.get("type") in _AVRO_TYPES:
        return _declare(classes_of_schema(described, name=name), name)
    if not isinstance(described, Mapping):
        declared = enum_of(name, described, extends=extends)
    elif serializer:
        declared = class_of_steps(name, described, serializer, extends=extends, final=final)
    else:
        declared = class_of_fields(
            name, described, extends=extends, final=final, record=record, generic=generic, parameters=parameters
        )
    return _declare([replace(declared, hash_code=hash_code, numbers=tuple(numbers))], name)


def _declare(classes: Iterable[ClassDeclaration], name: str) -> ClassDeclaration:
    """Declare classes, and return the one of this name."""
    DECLARED.add(classes)
    return DECLARED.get(name)


def python_types(types: PythonTypes) -> tuple[tuple[str, PythonState], ...]:
    """Return the declared states of Python operators by name. A pair of types is a map state.

    Raises
    ------
    OptionError
        A type is not a PyFlink type.
    """
    return tuple((name, _python_state(name, state)) for name, state in types.items())


def _python_state(name: str, given: PythonState | PythonType | str | Sequence[PythonType | str]) -> PythonState:
    if isinstance(given, PythonState):
        return given
    if isinstance(given, PythonType):
        return ValueState(given)
    if isinstance(given, str):
        return parse_python_state(given)
    types = [t if isinstance(t, PythonType) else parse_python_type(t) for t in given]
    if len(types) != 2:
        raise OptionError(f"state {name!r} is declared by {len(types)} types", hint="give one type, or key and value")
    return MapState(*types)


def declare_protobuf(
    name: str,
    descriptor: bytes | str | os.PathLike[str] = b"",
    message: str = "",
    *,
    serializer: str = "",
    length_prefix: LengthPrefix = "varint",
) -> ClassDeclaration:
    """Declare a class as a Protobuf message. Values are shown as JSON text.

    Messages are written through Kryo by chill's ``ProtobufSerializer``, or by a ``TypeSerializer`` of the job that writes the length of a
    message and the message.

    Parameters
    ----------
    name
        The Java class.
    descriptor
        A ``FileDescriptorSet``, or a file written by ``protoc --descriptor_set_out=FILE --include_imports``. Not needed for a message with
        a ``serializer`` if the job's jar contains the class (``statetool.load(..., jars=[...])``).
    message
        Full name of the message in its ``.proto`` file, ``acme.Order``.
    serializer
        Class of the snapshot of the job's ``TypeSerializer``, as in the error about the unknown class:
        ``com.acme.OrderSerializer$OrderSerializerSnapshot``. Declare each message of a serializer whose snapshot contains the name of the
        Java class. Declare one message for a serializer whose snapshot is empty.
    length_prefix
        How that serializer writes the length: ``varint`` for ``writeDelimitedTo``, ``int`` for ``writeInt``.

    Raises
    ------
    OptionError
        The descriptor or the message is missing, or the length prefix is not one of these.
    """
    if bool(descriptor) != bool(message) or not (message or serializer):
        raise OptionError(
            f"message {name} is declared without its {'name' if descriptor else 'descriptor'}",
            hint="pass the descriptor and the full name of the message; only a message with a serializer= is found in the job's jar",
        )
    raw = descriptor if isinstance(descriptor, bytes) else bytes(files.read_whole(os.fspath(descriptor)))
    declared = ClassDeclaration(
        name=name,
        kind="protobuf",
        final=True,
        descriptor=raw,
        message=message,
        serializer=serializer,
        length_prefix=length_prefix if serializer else "",
    )
    return _declare([declared], name)


def declare_thrift(
    name: str,
    fields: Sequence[str] | Mapping[str, str] = (),
    *,
    numbers: Sequence[int] = (),
    required: Sequence[str] = (),
) -> ClassDeclaration:
    """Declare a class as a Thrift struct, written through Kryo by chill's ``TBaseSerializer``. Values are shown as JSON text.

    Parameters
    ----------
    fields
        Names of the fields, or their names and Java types, ``{"id": "long", "parts": "List<shop.Part>"}``. The names inside a nested
        struct or enum need its type here, and its own declaration. Fields that are not declared, or that have another type in the
        value, are shown by their ids.
    numbers
        Ids of the fields. Defaults to 1, 2, and so on.
    required
        Names of the fields without which a value is refused, as by the generated class.

    Raises
    ------
    OptionError
        A type is not a valid Java type, or the numbers do not fit the names.
    """
    types = fields.items() if isinstance(fields, Mapping) else ()
    declared = ClassDeclaration(
        name=name,
        kind="thrift",
        fields=tuple((field, parse_java_type(kind)) for field, kind in types),
        constants=tuple(fields),
        numbers=tuple(numbers),
        required=tuple(required),
    )
    return _declare([declared], name)


def declare_from(*paths: str | os.PathLike[str]) -> tuple[ClassDeclaration, ...]:
    """Declare the classes of JSON files (``statetool declare``), Avro schema files or folders of them, as :func:`declare` does.

    Raises
    ------
    OptionError
        A file has no schema of a class. The error names the file.
    """
    classes = read_declarations(paths)
    DECLARED.add(classes)
    return classes


def declared_classes() -> tuple[ClassDeclaration, ...]:
    """Return the classes declared so far."""
    return DECLARED.all()


def read_declarations(declarations: Declarations) -> tuple[ClassDeclaration, ...]:
    """Return the classes of declarations, Avro schemas, files of either as JSON, and folders of Avro schema files (``.avsc``).

    Raises
    ------
    OptionError
        A schema is not that of a class. The error names the file.
    """
    if isinstance(declarations, ClassDeclaration | str | os.PathLike | Mapping):
        declarations = (declarations,)
    classes: list[ClassDeclaration] = []
    for declaration in declarations:
        if isinstance(declaration, ClassDeclaration):
            classes.append(declaration)
            continue
        if isinstance(declaration, Mapping):
            classes += _classes_of(declaration)
            continue
        for path in _schema_files(os.fspath(declaration)):
            try:
                classes += _classes_of(_json(_text(path), path))
            except OptionError as error:
                raise error.at(file=path) from None
    return tuple(classes)


def _classes_of(document: Any) -> tuple[ClassDeclaration, ...]:
    """Return the classes of one declaration or Avro schema, or of a list of either."""
    listed = document if isinstance(document, list) else [document]
    if any(isinstance(d, Mapping) and "class" in d for d in listed):
        return tuple(from_json(d) for d in listed)
    return classes_of_schema(document)


def _text(path: str) -> str:
    try:
        return files.read_whole(path).decode("utf-8")
    except UnicodeDecodeError as e:
        raise OptionError(f"not UTF-8: {e}") from e


def _schema_files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(path, n) for n in os.listdir(path) if n.endswith(".avsc"))


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise OptionError(f"{what} is not JSON: {e}") from e
