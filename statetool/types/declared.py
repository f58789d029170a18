"""Declarations of classes that a snapshot does not describe, in the form that travels with a read.

A :class:`TypeContext` is part of each split, so that tasks on other machines decode in the same way as the driver.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from statetool.errors import OptionError, several
from statetool.types.conventions import Convention, parse_convention
from statetool.types.flink_calls import FlinkCall
from statetool.types.java import JavaType, parse_java_type
from statetool.types.python_types import PythonState
from statetool.types.type_information import TypeInformation

if TYPE_CHECKING:
    from statetool.types.execution import Creation, Result
    from statetool.types.serializable import SerializableClass
    from statetool.types.traced import TracedJob

#: Maximum number of fields, constants or steps of a declaration in messages.
_SHOWN_PARTS: Final = 6

#: Package of Avro, whose private fields differ between its releases.
_AVRO: Final = "org.apache.avro."

LengthPrefix = Literal["varint", "int"]
LENGTH_PREFIXES: Final = get_args(LengthPrefix)
Kind = Literal["record", "enum", "collection", "map", "java", "protobuf", "thrift", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDeclaration:
    """Declaration of one user class.

    Attributes
    ----------
    name
        ``Class.getName()``: inner classes with ``$``.
    kind
        ``record`` for a class with fields; ``enum``; ``collection`` and ``map`` for a class that itself implements
        ``java.util.Collection`` or ``Map``; ``java`` if written by Java serialization; ``protobuf`` and ``thrift`` for messages;
        ``written`` if written by a Kryo serializer of the job.
    fields
        Name and declared type of every field that is neither static nor transient, including those of superclasses.
        Their order does not matter: Kryo sorts them by name. A primitive and its box differ on the wire.
        For a ``written`` class, a name and the type of the decoded value for each of ``steps``. For a ``thrift`` struct, the known
        types of its fields.
    constants
        Constants of an enum in the order of the source; for a Thrift struct, the names of its fields.
    numbers
        Thrift's numbers of ``constants``: ids of fields, or values of an enum. Empty if a struct's fields are 1, 2, ..., or if Thrift
        does not know the enum.
    required
        Names of the fields without which a Thrift struct is refused.
    bodies
        Constants of an enum that have a body (methods).
    element_types
        Type arguments of a collection or map class.
    parameters
        Names of the class's type parameters.
    extends
        Superclasses and interfaces whose fields may hold this class.
    final
        Whether the class is ``final`` (records, and enums without bodies, always are): Kryo omits the name of a final class.
    record
        Whether it is a Java ``record``.
    generic
        Whether Flink does not treat it as a POJO (no public no-argument constructor, no setters), so that Kryo writes it when it is a
        field of one.
    descriptor, message
        Serialized ``FileDescriptorSet`` and full name of the message, for ``protobuf``.
    serializer, steps
        Class of the serializer, and the methods that its ``write`` calls, for ``written``. For a ``protobuf`` message that a
        ``TypeSerializer`` of the job writes, the class of that serializer's snapshot.
    length_prefix
        How that ``TypeSerializer`` writes the length before the message: ``varint`` (``writeDelimitedTo``) or ``int`` (``writeInt``).
    hash_code
        Convention of its ``hashCode()`` (:mod:`statetool.types.conventions`), which determines the key groups of keys; empty if unknown.
    """

    name: str
    kind: Kind = "record"
    fields: tuple[tuple[str, JavaType], ...] = ()
    constants: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    required: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    element_types: tuple[JavaType, ...] = ()
    parameters: tuple[str, ...] = ()
    extends: tuple[str, ...] = ()
    final: bool = False
    record: bool = False
    generic: bool = False
    descriptor: bytes = b""
    message: str = ""
    serializer: str = ""
    steps: tuple[str, ...] = ()
    length_prefix: str = ""
    hash_code: str = ""

    def __str__(self) -> str:
        members = [f"{n}: {kind}" for n, kind in self.fields] or list(self.constants) or list(self.steps)
        shown = ", ".join(members[:_SHOWN_PARTS]) + (", ..." if len(members) > _SHOWN_PARTS else "")
        return f"{self.name} ({shown or self.kind})"

    def __post_init__(self) -> None:
        names = [n for n, _ in self.fields]
        if twice := {n for n in names if names.count(n) > 1}:
            raise OptionError(f"class {self.name} is declared with {', '.join(sorted(twice))} twice")
        if self.numbers and len(self.numbers) != len(self.constants):
            counts = f"{several(len(self.numbers), 'number')} for {several(len(self.constants), 'name')}"
            raise OptionError(f"class {self.name} is declared with {counts}")
        has_prefix = self.kind == "protobuf" and bool(self.serializer)
        if self.length_prefix not in (LENGTH_PREFIXES if has_prefix else ("",)):
            raise OptionError(
                f"class {self.name} is declared with the length prefix {self.length_prefix!r}",
                hint=f"{' or '.join(LENGTH_PREFIXES)} for a Protobuf message with a serializer, otherwise none",
            )
        if self.hash_code:
            parse_convention(self.hash_code)

    @property
    def needs_descriptor(self) -> bool:
        """Whether it is a Protobuf message whose descriptor has to be found in the job's jar."""
        return self.kind == "protobuf" and not self.descriptor

    @property
    def by_number(self) -> dict[int, str]:
        """Names of a Thrift struct's fields, or of an enum's constants, by Thrift's numbers."""
        if self.kind == "thrift" and not self.numbers:
            return dict(enumerate(self.constants, 1))
        return dict(zip(self.numbers, self.constants, strict=False))


class ClassSource:
    """Classes that are declared when a value needs them. Sources travel with a read and are equal if they know the same classes."""

    def find(self, name: str, kryo: Literal[2, 5] | None) -> ClassDeclaration | None:
        """Return the declaration of a class, ``None`` if the source has none."""
        raise NotImplementedError

    def subclasses(self, name: str, kryo: Literal[2, 5] | None) -> tuple[ClassDeclaration, ...]:
        """Return the declarations of all subclasses of a class."""
        raise NotImplementedError

    def without_subclasses(self) -> ClassSource:
        """Return a source that finds the same classes by name, and no subclasses."""
        raise NotImplementedError

    def reason(self, name: str, kryo: Literal[2, 5] | None) -> str:
        """Return the reason why the source has a class but cannot declare it, empty otherwise."""
        raise NotImplementedError

    def hash_code(self, name: str) -> Convention | None:
        """Return the convention of a class's ``hashCode()``, ``None`` if the source does not know it."""
        raise NotImplementedError

    def hash_reason(self, name: str) -> str:
        """Return the reason why the source has a class but no convention for its ``hashCode()``, empty otherwise."""
        raise NotImplementedError

    def has(self, name: str) -> bool:
        """Return True if the source has a class, whether or not it can declare it."""
        raise NotImplementedError

    def is_abstract(self, name: str) -> bool:
        """Return True if the source has a class of which no objects can be created: an abstract class."""
        raise NotImplementedError

    def create(self, name: str, values: Mapping[str, Any]) -> Creation:
        """Create an object of a class without running it: a record with the values of its components, any other one without values."""
        raise NotImplementedError

    def has_record_code(self, name: str) -> bool:
        """Return True if the canonical constructor of a record does more than to set the components."""
        raise NotImplementedError

    def execute_hash(self, value: Any) -> Result:
        """Return the result of ``hashCode()`` of an object, executed without a JVM."""
        raise NotImplementedError

    def execute_equals(self, value: Any, other: Any) -> Result:
        """Return the result of ``equals`` of two objects, executed without a JVM."""
        raise NotImplementedError

    def field_descriptors(self, name: str) -> Mapping[str, str]:
        """Return the types of the fields of a class and its superclasses in the source."""
        raise NotImplementedError

    def implementations(self, name: str) -> tuple[str, ...]:
        """Return the names of all classes of the source that extend or implement a class, which the source need not have."""
        raise NotImplementedError

    def has_field(self, name: str, field: str) -> bool:
        """Return True if a class or a superclass in the source declares a field, stored or not."""
        raise NotImplementedError

    def serializable(self, name: str) -> SerializableClass | None:
        """Return a class as Java serialization sees it, ``None`` if the source does not have it."""
        raise NotImplementedError

    def is_same(self, name: str, other: ClassSource) -> bool:
        """Return True if another source has the same class, with the same superclasses and the same classes of fields."""
        raise NotImplementedError

    def has_same_code(self, name: str, other: ClassSource) -> bool:
        """Return True if another source has the same class, and the same classes to which it refers directly or through others."""
        raise NotImplementedError

    def case_class(self, name: str) -> tuple[tuple[str, str], ...] | None:
        """Return names and descriptors of the parameters of a case class, ``None`` if the source has no such case class."""
        raise NotImplementedError

    def enumeration_values(self, name: str) -> tuple[str, ...]:
        """Return the names of the values of a Scala enumeration in the order of their ids."""
        raise NotImplementedError

    def own_hash_code(self, name: str) -> str:
        """Return the code of the ``hashCode()`` that the job defines for a case class, empty if scalac generated it."""
        raise NotImplementedError

    def has_same_classes(self, other: ClassSource) -> bool:
        """Return True if another source has the same classes and no others."""
        raise NotImplementedError

    def flink_calls(self) -> tuple[FlinkCall, ...]:
        """Return the calls of Flink's API with which the code of the job declares states, windows and patterns."""
        raise NotImplementedError

    def own_calls(self) -> tuple[FlinkCall, ...]:
        """Return the calls of the job's own code that get types, streams or states, create key selectors, or store states in fields."""
        raise NotImplementedError

    def has_same_building(self, other: ClassSource) -> bool:
        """Return True if another source has the same code that may decide how streams are built and which states are declared."""
        raise NotImplementedError

    @property
    def traced_job(self) -> TracedJob:
        """The operators as executing the code of the job shows them."""
        raise NotImplementedError

    def function_types(self) -> Mapping[str, tuple[str, ...]]:
        """Return the type arguments of each class of the job that extends or implements one of Flink's, as texts."""
        raise NotImplementedError

    def changed_classes(self, other: ClassSource) -> tuple[str, ...]:
        """Return the classes that another source has otherwise, or not at all."""
        raise NotImplementedError

    def texts(self, names: Collection[str]) -> frozenset[str]:
        """Return the texts in the code of some classes, of those that the source has."""
        raise NotImplementedError

    def record_types(self, kryo: Literal[2, 5] | None) -> Mapping[str, TypeInformation]:
        """Return the types of records that the code of the job names, by their texts."""
        raise NotImplementedError

    def key_types(self, kryo: Literal[2, 5] | None) -> Mapping[str, TypeInformation]:
        """Return the types of the keys of operators, by their uids, as far as the code of the job shows them."""
        raise NotImplementedError

    def argument_information(
        self, function: str, interface: str, index: int, kryo: Literal[2, 5] | None
    ) -> TypeInformation | None:
        """Return what Flink's type extraction makes of a type argument of an interface that a function of the job implements.

        Parameters
        ----------
        function
            Name of the class, which may be without its package.
        interface
            Name of the interface or abstract class.
        """
        raise NotImplementedError

    def type_information(self, name: str, kryo: Literal[2, 5] | None) -> TypeInformation | None:
        """Return what Flink's type extraction makes of a class, ``None`` if the source does not have it."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeContext:
    """Type information for a snapshot from outside its serializer snapshots.

    Attributes
    ----------
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), ``None`` if unknown, in which case Kryo values stay bytes.
    classes
        The user's declarations.
    chill
        Whether Flink's default registrations (ids 73 to 84) exist, as in every cluster.
    python
        Types of the states of Python jobs by state name (``count``), or, to distinguish operators, by operator and state
        (``counter.count``).
    unsafe_pickle
        Whether pickled Python values may be unpickled, which runs any code that they contain.
    source
        Further classes. Those in ``classes`` take precedence.
    renewed
        Whether POJOs and enums have the fields and constants of the source's classes instead of those that the snapshot describes, as in a
        job that starts with these classes.
    former, former_kryo
        If ``renewed``, the classes of the job that wrote the snapshot, if they are known, and its version of Kryo.
    tried
        Whether all values of the old snapshot are read with these classes, so that no rule about unknown classes is needed.
    inside
        Subclasses that the snapshot does not describe and whose fields are being read: one of them may have a field of its superclass.
    """

    kryo: Literal[2, 5] | None = None
    classes: tuple[ClassDeclaration, ...] = ()
    chill: bool = True
    python: tuple[tuple[str, PythonState], ...] = ()
    unsafe_pickle: bool = False
    source: ClassSource | None = None
    renewed: bool = False
    former: ClassSource | None = None
    former_kryo: Literal[2, 5] | None = None
    tried: bool = False
    inside: tuple[str, ...] = ()

    def of_operator(self, *names: str | None) -> TypeContext:
        """Return the type information for one operator, by its uid and id."""
        heads = tuple(f"{n}." for n in names if n)
        states = [(s[len(h) :], t) for s, t in self.python for h in heads if s.startswith(h)]
        # The last declaration of a name wins, so those that name the operator come last.
        return replace(self, python=(*self.python, *states)) if states else self

    def find(self, name: str) -> ClassDeclaration | None:
        """Return the declaration of a class; the last one wins."""
        given = next((c for c in reversed(self.classes) if c.name == name), None)
        if self.source is None or (given is not None and not given.needs_descriptor):
            return given
        in_jar = self.source.find(name, self.kryo)
        if given is None:
            return in_jar
        is_message = in_jar is not None and in_jar.kind == "protobuf"
        return replace(given, descriptor=in_jar.descriptor, message=in_jar.message) if in_jar and is_message else given

    def messages_of(self, serializer: str) -> tuple[ClassDeclaration, ...]:
        """Return the declared Protobuf messages that a ``TypeSerializer`` writes, given the class of its snapshot."""
        names = dict.fromkeys(c.name for c in self.classes if c.kind == "protobuf")
        declared = (self.find(name) for name in names)
        return tuple(c for c in declared if c is not None and c.serializer == serializer)

    def type_information(self, name: str) -> TypeInformation | None:
        """Return what Flink's type extraction makes of a class of the job's jar, ``None`` for others and those that the user declared."""
        if self.source is None or self.is_declared(name):
            return None
        return self.source.type_information(name, self.kryo)

    def former_information(self, name: str) -> TypeInformation | None:
        """Return what Flink made of a class of the job that wrote the snapshot, by the rules of its release."""
        return None if self.former is None else self.former.type_information(name, self.former_kryo)

    def is_declared(self, name: str) -> bool:
        """Return True if the user declared a class. The job's jar does not count."""
        return any(c.name == name for c in self.classes)

    def reason(self, name: str) -> str:
        """Return the reason why a class cannot be declared from the job's jar, empty if there is none."""
        return "" if self.source is None else self.source.reason(name, self.kryo)

    def hash_code(self, name: str) -> Convention | None:
        """Return the convention of a class's ``hashCode()``, ``None`` if it is neither declared nor in the job's jar."""
        declared = next((c.hash_code for c in reversed(self.classes) if c.name == name), "")
        if declared:
            return parse_convention(declared)
        return None if self.source is None else self.source.hash_code(name)

    def hash_reason(self, name: str) -> str:
        """Return the reason why the job's jar gives no convention for a class's ``hashCode()``, empty if there is none."""
        return "" if self.source is None else self.source.hash_reason(name)

    def within(self, name: str) -> tuple[ClassDeclaration, ...]:
        """Return the declared classes needed to read values of a class: its own, and those of its fields and elements."""
        classes: dict[str, ClassDeclaration] = {}
        names = [name]
        while names:
            declared = self.find(names.pop())
            if declared is None or declared.name in classes:
                continue
            classes[declared.name] = declared
            kinds = [*(kind for _, kind in declared.fields), *declared.element_types]
            while kinds:
                kind = kinds.pop()
                names += [kind.name, *(s.name for s in self.subclasses(kind.name))]
                kinds += kind.args
        return tuple(classes.values())

    def subclasses(self, name: str) -> tuple[ClassDeclaration, ...]:
        """Return the declared subclasses of a class, in the order of their declaration. Those of the source come last."""
        declared = {c.name for c in self.classes}
        found = () if self.source is None else self.source.subclasses(name, self.kryo)
        found = tuple(c for c in found if c.name not in declared)
        below = {name, *(c.name for c in found)}
        classes: dict[str, ClassDeclaration] = {}
        grown = True
        while grown:
            grown = False
            for c in self.classes:
                if c.name not in classes and c.name != name and below & set(c.extends):
                    classes[c.name] = c
                    below.add(c.name)
                    grown = True
        return (*(c for c in self.classes if classes.get(c.name) is c), *found)


NOTHING_DECLARED = TypeContext()


def renewed_class(types: TypeContext, name: str) -> ClassDeclaration | None:
    """Return the class of this name with which a job starts, ``None`` if the snapshot describes it."""
    return types.find(name) if types.renewed else None


def leaves_kryo(types: TypeContext, name: str) -> bool:
    """Return True if a job starts with a class that has a serializer of Flink's, and the former one was left to Kryo."""
    if not types.renewed:
        return False
    before, after = types.former_information(name), types.type_information(name)
    return before is not None and after is not None and before.kind == "kryo" != after.kind


def class_of_fields(
    name: str,
    fields: Mapping[str, str],
    *,
    extends: Sequence[str] = (),
    final: bool = False,
    record: bool = False,
    generic: bool = False,
    parameters: Sequence[str] = (),
) -> ClassDeclaration:
    """Declare a class by its fields, with types in Java syntax.

    Raises
    ------
    OptionError
        A type is not a valid Java type.
    """
    parsed = tuple((n, parse_java_type(t)) for n, t in fields.items())
    return ClassDeclaration(
        name=name,
        fields=parsed,
        extends=tuple(extends),
        final=final or record,
        record=record,
        generic=generic,
        parameters=tuple(parameters),
    )


_NUMBERS: Final = {
    "writeInt": "int", "writeVarInt": "int", "writeLong": "long", "writeVarLong": "long", "writeShort": "short", "writeChar": "char",
    "writeByte": "byte", "writeBoolean": "boolean", "writeFloat": "float", "writeDouble": "double",
}  # fmt: skip
_VARIABLE: Final = ("writeInt", "writeVarInt", "writeLong", "writeVarLong")
_STEP: Final = re.compile(r"(\w+)(?:\((.+)\))?")


def class_of_steps(
    name: str, steps: Mapping[str, str], serializer: str, *, extends: Sequence[str] = (), final: bool = False
) -> ClassDeclaration:
    """Declare a class that a Kryo serializer of the job writes, by the methods that its ``write`` calls.

    Raises
    ------
    OptionError
        Not a known method of Kryo's ``Output``.
    """
    fields = tuple((field, _type_of_step(field, step.replace(" ", ""))) for field, step in steps.items())
    return ClassDeclaration(
        name=name,
        kind="written",
        fields=fields,
        steps=tuple(s.replace(" ", "") for s in steps.values()),
        serializer=serializer,
        extends=tuple(extends),
        final=final,
    )


def _type_of_step(field: str, step: str) -> JavaType:
    parsed = _STEP.fullmatch(step)
    method, argument = (parsed[1], parsed[2]) if parsed is not None else ("", None)
    plain = argument is None and "Var" not in method
    if method in _NUMBERS and (plain or (method in _VARIABLE and argument in ("true", "false"))):
        return JavaType(_NUMBERS[method])
    if method == "writeString" and argument is None:
        return JavaType("java.lang.String")
    if method == "writeClassAndObject" and argument is None:
        return JavaType("java.lang.Object")
    if method in ("writeObject", "writeObjectOrNull") and argument is not None:
        return parse_java_type(argument)
    raise OptionError(
        f"{step!r} for {field!r} is not a method by which a Kryo serializer writes",
        hint=f"{', '.join(_NUMBERS)}, writeString, writeClassAndObject, writeInt(true) (or false, also writeLong) where the second "
        "argument is given, writeObject(com.acme.Person), writeObjectOrNull(com.acme.Person)",
    )


def enum_of(
    name: str, constants: Iterable[str], *, extends: Sequence[str] = (), numbers: Sequence[int] = ()
) -> ClassDeclaration:
    """Declare an enum by its constants in the order of the source; write a constant that has a body with braces: ``"PLUS{}"``."""
    given = tuple(constants)
    bodies = tuple(c[:-2] for c in given if c.endswith("{}"))
    names = tuple(c.removesuffix("{}") for c in given)
    return ClassDeclaration(
        name=name,
        kind="enum",
        constants=names,
        numbers=tuple(numbers),
        bodies=bodies,
        final=not bodies,
        extends=tuple(extends),
    )


def to_json(declared: ClassDeclaration) -> dict[str, Any]:
    """Return a declaration as JSON, without properties that have their default."""
    tree = {
        "class": declared.name,
        "kind": declared.kind,
        "fields": {n: str(t) for n, t in declared.fields},
        "element_types": [str(t) for t in declared.element_types],
        "constants": list(declared.constants),
        "numbers": list(declared.numbers),
        "required": list(declared.required),
        "bodies": list(declared.bodies),
        "parameters": list(declared.parameters),
        "extends": list(declared.extends),
        "final": declared.final,
        "record": declared.record,
        "generic": declared.generic,
        "descriptor": declared.descriptor.hex(),
        "message": declared.message,
        "serializer": declared.serializer,
        "steps": list(declared.steps),
        "length_prefix": declared.length_prefix,
        "hash_code": declared.hash_code,
    }
    return {name: value for name, value in tree.items() if name in ("class", "kind") or value}


def from_json(tree: Mapping[str, Any]) -> ClassDeclaration:
    """Return the declaration that :func:`to_json` wrote.

    Raises
    ------
    OptionError
        Not such a declaration.
    """
    if not isinstance(tree, Mapping):
        raise OptionError(f"{tree!r} is not a declaration of a class")
    flags = ("final", "record", "generic")
    texts = ("message", "serializer", "length_prefix", "hash_code")
    lists = ("constants", "required", "bodies", "parameters", "extends", "steps")
    known = {"class", "kind", "fields", "element_types", "descriptor", "numbers", *flags, *texts, *lists}
    fields, name, kind = tree.get("fields", {}), tree.get("class"), tree.get("kind", "record")
    if not (
        set(tree) <= known
        and isinstance(name, str)
        and kind in get_args(Kind)
        and isinstance(fields, Mapping)
        and all(isinstance(tree.get(n, False), bool) for n in flags)
        and all(isinstance(tree.get(n, ""), str) for n in (*texts, "descriptor"))
        and all(_are_texts(tree.get(n, ())) for n in (*lists, "element_types"))
        and _are_numbers(tree.get("numbers", ()))
    ):
        raise OptionError(f"{tree!r} is not a declaration of a class")
    try:
        descriptor = bytes.fromhex(tree.get("descriptor", ""))
    except ValueError as e:
        raise OptionError(f"the descriptor of class {name} is not hexadecimal") from e
    return ClassDeclaration(
        name=name,
        kind=kind,
        fields=tuple((n, parse_java_type(t)) for n, t in fields.items()),
        element_types=tuple(parse_java_type(t) for t in tree.get("element_types", ())),
        descriptor=descriptor,
        constants=tuple(tree.get("constants", ())),
        numbers=tuple(tree.get("numbers", ())),
        required=tuple(tree.get("required", ())),
        bodies=tuple(tree.get("bodies", ())),
        parameters=tuple(tree.get("parameters", ())),
        extends=tuple(tree.get("extends", ())),
        final=tree.get("final", False),
        record=tree.get("record", False),
        generic=tree.get("generic", False),
        message=tree.get("message", ""),
        serializer=tree.get("serializer", ""),
        steps=tuple(tree.get("steps", ())),
        length_prefix=tree.get("length_prefix", ""),
        hash_code=tree.get("hash_code", ""),
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)


def skeleton_of_steps(name: str, serializer: str) -> str:
    """Return a template for the declaration of a class that a serializer of the job writes, for messages."""
    return (
        f'say what its write method calls, in that order: statetool.declare("{name}", {{"field": "writeLong", "other": "writeString", '
        f'...}}, serializer="{serializer}")'
    )


def skeleton(name: str) -> str:
    """Return a template for a declaration, for messages."""
    if name.startswith(_AVRO):
        return "pass the job's jar, or Avro's own one, which has this class: jars=[...] (--jar FILE)"
    return (
        "pass the job's jar: jars=[...] (--jar FILE). Without it, declare the class: "
        f'statetool.declare("{name}", {{"field": "java.lang.String", "count": "int", ...}}) with every'
        " field and its Java type, or an Avro schema file by declarations=[...] (--declare FILE)"
    )
