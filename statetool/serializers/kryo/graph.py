"""A Kryo object graph: classes, references, and the bodies of classes with parts.

A value is a class and an object. Class: varint 0 null; 1 by name: varint name id, followed by the name at its first occurrence in this
value; k >= 2 id k - 2. Object: for a class with references, varint 0 null, 1 new, k >= 2 the (k - 2)-th object of this value. Boxes (and
enums in Kryo 5) have no references; if they can be null, one byte 0 or 1 precedes them. Follows ``Kryo``, ``DefaultClassResolver``,
``MapReferenceResolver``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError, FormatError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaEnum, JavaObject, JavaStream
from statetool.io.output import Output
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs import containers
from statetool.serializers.kryo.codecs.steps import read_steps, write_steps
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import Obj, box_class, is_box
from statetool.serializers.kryo.values import Args
from statetool.serializers.typeutils.composite import inside
from statetool.types.declared import ClassDeclaration
from statetool.types.java import PRIMITIVES, JavaType

_SHOWN_FIELDS: Final = 20
_SHOWN_BYTES: Final = 24
_MAX_DEPTH: Final = 120
_JAVA_HEAD: Final = b"\xac\xed\x00\x05"
_JAVA_ENUM: Final = b"\xac\xed\x00\x05\x7e"


class CyclicValueError(FormatError):
    """An object that contains itself. Flink reads it, and no column shows it."""


class GraphReader:
    """Reader of one value; classes and references start from scratch for each value."""

    c: Cursor
    gen: wire.Generation

    def __init__(self, c: Cursor, kryo: KryoInstance, *, skipping: bool = False) -> None:
        self.c = c
        self.gen = kryo.gen
        self.kryo = kryo
        self.classes = kryo.classes
        self.skipping = skipping
        self._names: list[str] = []
        self._objects: list[Obj | None] = []
        self._streams: dict[str, JavaStream] = {}
        self._depth = 0

    def class_name(self) -> str | None:
        """Read a class; ``None`` for null."""
        start = self.c.pos
        k = self.c.varint()
        if k == 0:
            return None
        if k >= 2:
            name = self.kryo.registry.name_of(k - 2)
            if name is None:
                raise self.c.fail(f"Kryo class id {k - 2}, which nothing is registered for", pos=start)
            return name
        name_id = self.c.varint()
        if name_id > len(self._names):
            raise self.c.fail(f"the name of class {name_id} comes before that of class {len(self._names)}", pos=start)
        if name_id == len(self._names):
            self._names.append(wire.read_string(self.c) or "")
        return self._names[name_id]

    def value(self, args: Args = ()) -> Obj | None:
        """Read a class and its object."""
        name = self.class_name()
        return None if name is None else self.object(name, args)

    def object(self, name: str, args: Args = (), *, nullable: bool = False) -> Obj | None:
        """Read an object of a known class; ``nullable`` if null has a separate marker."""
        start = self.c.pos
        if not self._has_reference(name) or self._is_java_enum(name):
            if nullable and not self._present(start):
                return None
            return Obj(name, self._body(name, args))
        k = self.c.varint()
        if k == 0:
            if not nullable:
                raise self.c.fail(f"a null {name} where there can be none", pos=start)
            return None
        if k >= 2:
            return self._referenced(k - 2, start)
        index = len(self._objects)
        self._objects.append(None)
        obj = Obj(name, None)
        if self.skipping:
            self._objects[index] = obj
        try:
            obj.value = self._body(name, args)
        except containers.NullContainerError:
            if self.c.strict:
                raise
            self._objects[index] = None
            return None
        self._objects[index] = obj
        return obj

    def _present(self, start: int) -> bool:
        mark = self.c.varint()
        if mark > 1:
            raise self.c.fail(f"{mark} where 0 (null) or 1 must be", pos=start)
        return mark == 1

    def _referenced(self, index: int, start: int) -> Obj:
        if index >= len(self._objects):
            raise self.c.fail(f"a reference to object {index} of {len(self._objects)}", pos=start)
        obj = self._objects[index]
        if obj is None:
            raise CyclicValueError(
                "an object that contains itself cannot be shown in a table",
                hint="leave the state out with states=[...], or keep its bytes with on_error='keep_raw'",
            ).at(offset=self.c.base + start)
        return obj

    def _has_reference(self, name: str) -> bool:
        has_reference = self.kryo.references.get(name)
        if has_reference is None:
            declared = self.classes.declared(name)
            has_reference = not is_box(name) and (self.gen == 2 or declared is None or declared.kind != "enum")
            self.kryo.references[name] = has_reference
        return has_reference

    def _is_java_enum(self, name: str) -> bool:
        """Return True for an enum that Java serialization wrote in Kryo 5, which has no reference. Its class may not be declared."""
        c = self.c
        return self.gen == 5 and self.kryo.by_java(name) and bytes(c.data[c.pos : min(c.pos + 5, c.end)]) == _JAVA_ENUM

    def final(self, name: str) -> Any:
        """Read an object of a final class that cannot be null, and return its value."""
        start = self.c.pos
        obj = self.object(name)
        if obj is None or obj.cls != name or obj.value is None:
            raise self.c.fail(f"a reference to something else where a {name} must be", pos=start)
        return obj.value

    def field(self, declared: JavaType) -> Obj | None:
        """Read the value of a field (or component) of a declared type."""
        if declared.name in PRIMITIVES:
            return Obj(declared.name, self._body(box_class(declared.name), ()))
        if self.classes.is_final(declared):
            return self.object(declared.binary_name, declared.args, nullable=True)
        return self.value(declared.args)

    def java(self, name: str) -> Any:
        """Read an object in Java serialization; later objects of a class continue in the stream of the first."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = JavaStream(self.c)
        value = stream.read()
        self.kryo.java_classes |= stream.classes
        self.kryo.java_constants |= stream.constants
        return value

    def _body(self, name: str, args: Args) -> Any:
        if self._depth > _MAX_DEPTH:
            raise self.c.fail(f"Kryo objects nested deeper than {_MAX_DEPTH}")
        self._depth += 1
        try:
            return self._read_body(name, args)
        finally:
            self._depth -= 1

    def _read_body(self, name: str, args: Args) -> Any:
        read = self.kryo.readers.get(name)
        if read is None:
            read = self.kryo.readers[name] = _reader_of(self.kryo, name)
        if self.kryo.watch is None:
            return read(self, args)
        value = read(self, args)
        self.kryo.watch(name, value)
        return value

    def record(self, declared: ClassDeclaration, args: Args) -> dict[str, Obj | None]:
        """Read the fields of a class."""
        fields = self.kryo.fields.get((declared.name, args))
        if fields is None:
            fields = self.kryo.fields[declared.name, args] = fields_of(declared, args, self.gen)
        values: dict[str, Obj | None] = {}
        name, start = "", self.c.pos
        try:
            for name, kind in fields:
                values[name] = self.field(kind)
        except StatetoolError as error:
            self._blame_declaration(error, declared, start)
            raise error.inside(name) from error.__cause__
        return values

    def _blame_declaration(self, error: StatetoolError, declared: ClassDeclaration, start: int) -> None:
        """Add a hint to an error without one: the innermost declaration, which the bytes contradict."""
        if not isinstance(error, FormatError) or isinstance(error, UnknownSerializerError) or error.hint:
            return
        if self.kryo.context.find(declared.name) is None:
            return
        fields = ", ".join(f"{n}: {kind}" for n, kind in declared.fields[:_SHOWN_FIELDS])
        first_bytes = bytes(self.c.data[start : min(start + _SHOWN_BYTES, self.c.end)]).hex(" ")
        causes = "the declaration is wrong, or they are damaged"
        if unknown := sorted({kind.binary_name for _, kind in declared.fields if not self._is_known(kind.binary_name)}):
            causes += f", or a class is final and not declared (add the jar of {', '.join(unknown[:_SHOWN_FIELDS])})"
        error.hint = f"{declared.name} is declared with {fields or 'no fields'}, and its bytes begin with {first_bytes}: {causes}"

    def _is_known(self, name: str) -> bool:
        return name in PRIMITIVES or name.startswith("java.") or self.classes.declared(name) is not None

    def constant(self, declared: ClassDeclaration) -> str:
        """Read a constant of an enum."""
        start = self.c.pos
        ordinal = self.c.varint() - 1
        if not 0 <= ordinal < len(declared.constants):
            raise self.c.fail(
                f"constant {ordinal} of {declared.name}, declared with {len(declared.constants)}", pos=start
            )
        return declared.constants[ordinal]

    def undeclared(self, name: str) -> bytes:
        """Read an object of an undeclared class written by Java serialization (every ``Throwable``): its stream names the class."""
        start = self.c.pos
        head = bytes(self.c.data[start : min(start + 4, self.c.end)])
        if head == _JAVA_HEAD or "java.lang.Throwable" in self._streams:
            try:
                return self.java_bytes(name, "java.lang.Throwable")
            except StatetoolError:
                self._streams.pop("java.lang.Throwable", None)
                self.c.pos = start
        raise self.unknown(name).at(offset=self.c.offset)

    def unknown(self, name: str) -> UnknownSerializerError:
        """Make the error for an undeclared class."""
        return self.kryo.unknown(name)

    def java_bytes(self, name: str, stream: str) -> bytes:
        """Read an object in Java serialization and return its bytes."""
        start = self.c.pos
        obj = self.java(stream)
        if not isinstance(obj, JavaObject | JavaEnum) or obj.cls.name != name:
            raise self.c.fail(f"not a {name} in a Java stream", pos=start)
        return bytes(self.c.data[start : self.c.pos])


def _reader_of(kryo: KryoInstance, name: str) -> Callable[[GraphReader, Args], Any]:
    """Return the reader for bodies of a class."""
    body = kryo.registry.body(name)
    if body is not None:
        read = body.read
        return lambda g, args: read(g)
    if kryo.custom(name) is not None:
        return lambda g, args: _refuse(g, name)
    if kryo.by_java(name):
        return lambda g, args: g.java_bytes(name, name)
    if kryo.is_message(name):
        return lambda g, args: g.c.take(g.c.varint(), "message")
    library = kryo.registry.container(name)
    if library is not None:
        read_library = library[0]
        return lambda g, args: read_library(g, name, args)
    container = containers.find(name, kryo.gen)
    if container is not None:
        read_elements = container.read
        return lambda g, args: read_elements(g, name, args)
    declared = kryo.classes.declared(name)
    if kryo.is_scala_object(name):
        return lambda g, args: None
    if declared is None:
        return lambda g, args: g.undeclared(name)
    match declared.kind:
        case "record":
            return lambda g, args: g.record(declared, args)
        case "written":
            return lambda g, args: read_steps(g, declared)
        case "enum":
            return lambda g, args: g.constant(declared)
        case "collection":
            return lambda g, args: containers.COLLECTION.read(g, name, args)
        case "map":
            return lambda g, args: containers.MAP.read(g, name, args)
    return lambda g, args: _refuse(g, name)


def _refuse(g: GraphReader, name: str) -> Any:
    raise g.unknown(name).at(offset=g.c.offset)


class GraphWriter:
    """Writer of one value; every object is new, so none refers to another one."""

    out: Output
    gen: wire.Generation

    def __init__(self, out: Output, kryo: KryoInstance) -> None:
        self.out = out
        self.gen = kryo.gen
        self.kryo = kryo
        self.classes = kryo.classes
        self._names: dict[str, int] = {}
        self._streams: set[str] = set()

    def java(self, name: str) -> None:
        """Note that an object is written in a Java stream: a second one would have to continue in the stream of the first."""
        if name in self._streams:
            raise EncodeError(f"a second {name} in one value, which would go on in the Java stream of the first")
        self._streams.add(name)

    def class_name(self, name: str | None) -> None:
        """Append a class."""
        if name is None:
            self.out.append(0)
            return
        class_id = self.kryo.registry.id_of(box_class(name))
        if class_id is not None:
            self.out.varint(class_id + 2)
            return
        self.out.append(1)
        if name in self._names:
            self.out.varint(self._names[name])
            return
        self.out.varint(len(self._names))
        self._names[name] = len(self._names)
        wire.write_class_name(self.out, name, self.gen)

    def value(self, obj: Obj | None, args: Args = ()) -> None:
        """Append a class and its object."""
        self.class_name(None if obj is None else obj.cls)
        if obj is not None:
            self.object(obj, args)

    def object(self, obj: Obj | None, args: Args = (), *, nullable: bool = False) -> None:
        """Append an object whose class is known."""
        if obj is None:
            if not nullable:
                raise EncodeError("a null where there can be none")
            self.out.append(0)
            return
        declared = self.classes.declared(obj.cls)
        is_enum = (declared is not None and declared.kind == "enum") or (
            isinstance(obj.value, bytes) and obj.value.startswith(_JAVA_ENUM)
        )
        bare = is_box(obj.cls) or (self.gen == 5 and is_enum)
        if nullable or not bare:
            self.out.append(1)
        self._body(obj, args)

    def field(self, declared: JavaType, obj: Obj | None) -> None:
        """Append the value of a field of a declared type."""
        if declared.name in PRIMITIVES:
            if obj is None:
                raise EncodeError(f"a null for a field of type {declared}")
            self._body(Obj(box_class(declared.name), obj.value), ())
        elif self.classes.is_final(declared):
            if obj is not None and obj.cls != declared.binary_name:
                raise EncodeError(f"a {obj.cls} for a field of type {declared}")
            self.object(obj, declared.args, nullable=True)
        else:
            self.value(obj, declared.args)

    def _body(self, obj: Obj, args: Args) -> None:
        kryo = self.kryo
        body = kryo.registry.body(obj.cls)
        if body is not None:
            try:
                body.write(self, obj.value)
            except (TypeError, AttributeError, ValueError, OverflowError) as e:
                if isinstance(e, StatetoolError):
                    raise
                raise EncodeError(f"{obj.value!r} is not a {obj.cls}: {e}") from e
            return
        if kryo.custom(obj.cls) is not None:
            raise kryo.unknown(obj.cls)
        if kryo.is_message(obj.cls):
            self.out.varint(len(obj.value))
            self.out += obj.value
            return
        library = kryo.registry.container(obj.cls)
        if library is not None:
            library[1](self, obj, args)
            return
        container = containers.find(obj.cls, self.gen)
        declared = kryo.classes.declared(obj.cls)
        in_java = (declared is None and container is None) or kryo.by_java(obj.cls)
        if in_java and isinstance(obj.value, bytes):
            if not obj.value.startswith(_JAVA_HEAD):
                raise EncodeError(f"the {obj.cls} is not a complete Java stream")
            self.java(obj.cls if kryo.by_java(obj.cls) else "java.lang.Throwable")
            self.out += obj.value
        elif container is not None:
            container.write(self, obj, args)
        elif kryo.is_scala_object(obj.cls):
            return
        elif declared is None:
            raise kryo.unknown(obj.cls)
        elif declared.kind == "record":
            self._record(declared, obj, args)
        elif declared.kind == "written":
            write_steps(self, declared, obj.value)
        elif declared.kind == "enum":
            if obj.value not in declared.constants:
                raise EncodeError(f"{obj.value!r} is not a constant of {obj.cls}")
            self.out.varint(declared.constants.index(obj.value) + 1)
        elif declared.kind == "collection":
            containers.COLLECTION.write(self, obj, args)
        elif declared.kind == "map":
            containers.MAP.write(self, obj, args)
        else:
            raise kryo.unknown(obj.cls)

    def _record(self, declared: ClassDeclaration, obj: Obj, args: Args) -> None:
        kinds = fields_of(declared, args, self.gen)
        if not isinstance(obj.value, dict) or obj.value.keys() != {n for n, _ in kinds}:
            raise EncodeError(f"{obj.value!r} does not have exactly the fields of {obj.cls}")
        for name, kind in kinds:
            with inside(name):
                self.field(kind, obj.value[name])


def fields_of(declared: ClassDeclaration, args: Args, gen: wire.Generation) -> list[tuple[str, JavaType]]:
    """Return a class's fields in Kryo's order, with the types that determine the wire format.

    Kryo knows type arguments from the field that holds the object: at all levels in Kryo 5 (not in records), only those of the field itself
    in Kryo 2.24.
    """
    arguments = dict(zip(declared.parameters, args, strict=False))
    fields = []
    for name, kind in sorted(declared.fields):
        kind = resolve_type(kind, arguments)
        if declared.record and gen == 5 and not kind.is_array:
            kind = JavaType(kind.name)
        elif gen == 2 and not kind.is_array:
            kind = JavaType(kind.name, tuple(a if a.is_array else JavaType(a.name) for a in kind.args))
        fields.append((name, kind))
    return fields


def resolve_type(kind: JavaType, arguments: dict[str, JavaType]) -> JavaType:
    """Return a type with type arguments in place of its type parameters; a parameter without an argument is read as an Object."""
    if kind.name in arguments and not kind.args:
        return arguments[kind.name]
    return (
        JavaType(kind.name, tuple(resolve_type(a, arguments) for a in kind.args), kind.as_json) if kind.args else kind
    )
