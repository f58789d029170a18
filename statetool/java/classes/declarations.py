"""Declarations of user classes from their class files, by the rules of Kryo's ``FieldSerializer`` and of Flink's ``TypeExtractor``.

A class is declared if its fields alone determine its serialized form. Otherwise there is a reason: it has custom serialization, or its form
depends on facts that a class file does not contain. Nothing is guessed.

Kryo 2.24 and 5 differ for fields of a superclass whose type is a type variable: Kryo 5 knows the type argument that the subclass gives it,
Kryo 2.24 writes the field like an ``Object``. Kryo omits the names of final classes only if it knows them.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import FormatError, OptionError
from statetool.java.classes.bytecode import enum_constants
from statetool.java.classes.class_file import FINAL, MODULE, STATIC, SYNTHETIC, ClassFile, Member
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.hash_codes import find_convention
from statetool.java.classes.messages import (
    ALL_MESSAGES,
    MESSAGES,
    PROTOBUF,
    THRIFT,
    THRIFT_ENUM,
    NoDescriptorError,
    protobuf_descriptor,
    thrift_fields,
    thrift_types,
)
from statetool.java.classes.registrations import Registration, find_registrations
from statetool.java.classes.signatures import OBJECT_TYPE, GenericType, class_signature, parse_type
from statetool.java.classes.type_extraction import TYPE_INFO, extract_kind
from statetool.types.declared import ClassDeclaration, enum_of
from statetool.types.java import ARRAY, OBJECT, PRIMITIVES, JavaType

#: Packages whose classes statetool knows without declarations.
_KNOWN_PACKAGES: Final = ("java.", "javax.", "scala.")
#: Superclasses outside of jars that have no fields.
_BASES: Final = frozenset(
    (
        "java.lang.Object",
        "java.lang.Record",
        "java.lang.Enum",
        "java.lang.Number",
        "org.apache.avro.specific.SpecificRecordBase",
    )
)
_COLLECTIONS: Final = frozenset(
    f"java.util.{n}"
    for n in (
        "Collection", "List", "Set", "Queue", "Deque", "AbstractCollection", "AbstractList", "AbstractSequentialList",
        "AbstractSet", "AbstractQueue", "ArrayList", "LinkedList", "Vector", "Stack", "HashSet", "LinkedHashSet", "ArrayDeque",
    )
)  # fmt: skip
_MAPS: Final = frozenset(
    f"java.util.{n}"
    for n in ("Map", "AbstractMap", "HashMap", "LinkedHashMap", "Hashtable", "concurrent.ConcurrentHashMap")
)
#: Collections and maps that also write a comparator, or other parts than their elements.
_OTHER_CONTAINERS: Final = frozenset(
    f"java.util.{n}"
    for n in (
        "SortedSet", "NavigableSet", "TreeSet", "PriorityQueue", "SortedMap", "NavigableMap", "TreeMap", "EnumMap", "Properties",
        "IdentityHashMap", "WeakHashMap", "concurrent.ConcurrentSkipListMap", "concurrent.ConcurrentSkipListSet", "BitSet",
    )
)  # fmt: skip
#: Types outside of jars that are not final.
_OPEN: Final = (
    _COLLECTIONS
    | _MAPS
    | _OTHER_CONTAINERS
    | frozenset(f"java.lang.{n}" for n in ("Object", "Number", "Comparable", "CharSequence", "Iterable"))
    | {"java.io.Serializable", "java.util.Date", "java.math.BigDecimal", "java.math.BigInteger"}
)
#: Supertypes with custom serialization, and the reason that is shown.
_VALUE: Final = "its method write() decides the order of the fields (Value)"
_OWN_CODE: Final = {
    "com.esotericsoftware.kryo.KryoSerializable": "it writes itself (KryoSerializable)",
    # No jar of a job has these interfaces, so that their own supertypes are not known.
    **{
        f"org.apache.flink.types.{n}": _VALUE
        for n in ("Value", "CopyableValue", "ResettableValue", "Key", "NormalizableKey", "MapValue", "ListValue")
    },
    **{
        f"org.apache.flink.types.{n}Value": _VALUE
        for n in ("Boolean", "Byte", "Short", "Char", "Int", "Long", "Float", "Double", "String")
    },
    "org.apache.hadoop.io.Writable": "its method write() decides the order of the fields (Writable)",
}
#: Supertypes of Scala for which Flink 1.x registers serializers with Kryo, if the job has flink-scala.
_SCALA_OWN: Final = ("scala.collection.", "scala.Enumeration$")
_KRYO: Final = "com.esotericsoftware.kryo."


@dataclass(frozen=True, slots=True)
class UndeclaredClass:
    """A class whose fields do not determine its serialized form, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class JarDeclarations:
    """Declared classes, and those that cannot be declared from their class files."""

    declared: tuple[ClassDeclaration, ...]
    undeclared: tuple[UndeclaredClass, ...]


class _UndeclarableError(Exception):
    """The reason why a class cannot be declared."""


def declare_classes(
    class_path: ClassPath, patterns: Sequence[str] = (), *, kryo: Literal[2, 5] | None = None
) -> JarDeclarations:
    """Return the declarations of classes, and the reasons for classes without one.

    Parameters
    ----------
    patterns
        Class names, in which ``*`` stands for any characters. By default all classes.
    kryo
        Version of Kryo, if known. Few classes depend on it.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    names = [n for n in class_path if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    registrations = [r for r in find_registrations(class_path) if r.serializer in class_path]
    found = [c for c in (declare_class(class_path, name, kryo=kryo) for name in names) if c is not None]
    found = [_with_registration(class_path, c, registrations) for c in found]
    return JarDeclarations(
        tuple(c for c in found if isinstance(c, ClassDeclaration)),
        tuple(c for c in found if isinstance(c, UndeclaredClass)),
    )


def _with_registration(
    class_path: ClassPath, found: ClassDeclaration | UndeclaredClass, registrations: Sequence[Registration]
) -> ClassDeclaration | UndeclaredClass:
    """Return the reason instead of the declaration of a class if the job registers a serializer of its own for it."""
    if isinstance(found, UndeclaredClass) or found.kind in ("protobuf", "thrift"):
        return found
    supertypes = class_path.supertypes(found.name)
    for registered in registrations:
        if registered.java_class == found.name or (registered.is_default and registered.java_class in supertypes):
            return UndeclaredClass(found.name, f"{registered.job} registers {registered.serializer} for it with Kryo")
    return found


def is_known_without_jar(name: str) -> bool:
    """Return True if statetool knows a class without declaration, by its package."""
    return name.startswith(_KNOWN_PACKAGES)


def declare_class(
    class_path: ClassPath, name: str, *, kryo: Literal[2, 5] | None = None
) -> ClassDeclaration | UndeclaredClass | None:
    """Return the declaration of a class, or the reason against it.

    ``None`` for classes that need none: interfaces, exceptions (Java serialization names their fields), Scala objects, classes of enum
    constants, and classes outside of the class path.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    if is_known_without_jar(name):
        return None
    cls = class_path.read(name)
    if cls is None or cls.is_interface or cls.access & (MODULE | SYNTHETIC):
        return None
    supertypes = class_path.supertypes(name)
    if any(s.startswith("java.") and s.endswith(("Throwable", "Exception", "Error")) for s in supertypes):
        return None
    if any(f.name == "MODULE$" and f.access & STATIC for f in cls.fields):
        return None
    if not cls.is_enum and "java.lang.Enum" in supertypes:
        return None
    try:
        return _ClassReader(class_path, cls, supertypes, kryo).declare()
    except (_UndeclarableError, OptionError) as error:
        return UndeclaredClass(name, str(error))
    except FormatError as error:
        raise error.at(file=class_path.file_of(name)) from error


@dataclass(frozen=True, slots=True)
class _Level:
    """A class or one of its superclasses, with the types that its type variables have in the class."""

    cls: ClassFile
    variables: dict[str, GenericType]


class _ClassReader:
    def __init__(
        self, class_path: ClassPath, cls: ClassFile, supertypes: list[str], kryo: Literal[2, 5] | None
    ) -> None:
        self._path = class_path
        self._cls = cls
        self._supertypes = supertypes
        self._kryo = kryo
        self._signature = class_signature(cls)
        self._own = dict(self._signature.parameters)

    def declare(self) -> ClassDeclaration:
        if message := self._message():
            return message
        levels = self._levels()
        self._refuse_own_code(levels)
        # The names by which fields refer to the class. Interfaces of the JDK say nothing about its fields.
        extends = tuple(s for s in self._supertypes if s in self._path)
        if self._cls.is_enum:
            return self._enum(extends)
        if container := self._container(levels, extends):
            return container
        is_pojo = extract_kind(self._path, self._cls.name, 2 if self._kryo == 5 else 1) == "pojo"
        fields: dict[str, JavaType] = {}
        for level in levels:
            for field in level.cls.fields:
                if not field.is_stored and not (self._kryo == 2 and field.is_synthetic):
                    continue
                if field.name in fields:
                    raise _UndeclarableError(f"it has two fields {field.name!r}, one of them in a superclass")
                if annotation := next((a for a in field.annotations if a.name.startswith(_KRYO)), None):
                    raise _UndeclarableError(f"field {field.name!r} is annotated with {annotation}")
                fields[field.name] = self._field_type(field, level, is_pojo)
        return ClassDeclaration(
            name=self._cls.name,
            fields=tuple(fields.items()),
            extends=extends,
            final=self._cls.is_record or bool(self._cls.access & FINAL),
            record=self._cls.is_record,
            generic=not is_pojo,
            parameters=tuple(self._own),
            hash_code=self._hash_code(),
        )

    def _hash_code(self) -> str:
        found = find_convention(self._path, self._cls)
        return "" if isinstance(found, str) else str(found)

    def _message(self) -> ClassDeclaration | None:
        """Return the declaration of a Protobuf message or Thrift struct, which chill's serializers write."""
        name, is_final = self._cls.name, bool(self._cls.access & FINAL)
        # A job registers serializers for superclasses in libraries too.
        extends = tuple(s for s in self._supertypes if not is_known_without_jar(s))
        if any(s in THRIFT for s in self._supertypes):
            members = thrift_fields(self._cls)
            names = members.names
            return ClassDeclaration(
                name=name,
                kind="thrift",
                fields=tuple(thrift_types(self._cls, names.values()).items()),
                constants=tuple(names.values()),
                numbers=tuple(names),
                required=members.required,
                extends=tuple(dict.fromkeys((*extends, THRIFT[0]))),
                final=is_final,
            )
        if not any(s in MESSAGES for s in self._supertypes):
            return None
        if not any(s in PROTOBUF for s in self._supertypes):
            raise _UndeclarableError(
                "it is a Protobuf message without a descriptor (lite): use statetool.declare_protobuf"
            )
        try:
            found = protobuf_descriptor(self._path, self._cls)
        except NoDescriptorError as reason:
            raise _UndeclarableError(
                f"it is a Protobuf message, but {reason}: use statetool.declare_protobuf"
            ) from None
        return ClassDeclaration(
            name=name,
            kind="protobuf",
            descriptor=found.files,
            message=found.message,
            extends=tuple(dict.fromkeys((*extends, *ALL_MESSAGES))),
            final=is_final,
        )

    def _levels(self) -> list[_Level]:
        """Return the class and its superclasses."""
        levels = [_Level(self._cls, {n: GenericType("variable", n) for n in self._own})]
        while (parent := levels[-1].cls.superclass) not in _BASES or parent in self._path:
            above = self._path.read(parent)
            if above is None:
                if is_container(parent):
                    break
                raise _UndeclarableError(f"its superclass {parent} is not in the jar")
            if any(level.cls.name == above.name for level in levels):
                raise FormatError(f"class {above.name} is its own superclass")
            args = class_signature(levels[-1].cls).superclass.args
            bounds = class_signature(above).parameters
            given = [_substitute(a, levels[-1].variables) for a in args] if len(args) == len(bounds) else []
            named = dict(zip((n for n, _ in bounds), given, strict=False)) if given else dict(bounds)
            levels.append(_Level(above, named))
        return levels

    def _refuse_own_code(self, levels: list[_Level]) -> None:
        for supertype, reason in _OWN_CODE.items():
            if supertype in self._supertypes:
                raise _UndeclarableError(reason)
        if scala := next((s for s in self._supertypes if s.startswith(_SCALA_OWN)), None):
            raise _UndeclarableError(f"it is a {scala}, which Flink 1.x writes with the serializers of chill")
        interfaces = [c for s in self._supertypes if (c := self._path.read(s)) is not None and c.is_interface]
        for cls in (*(level.cls for level in levels), *interfaces):
            for annotation in cls.annotations:
                if annotation.name == TYPE_INFO or annotation.name.startswith(_KRYO):
                    raise _UndeclarableError(f"{annotation} of {cls.name} gives it its own serializer")

    def _enum(self, extends: tuple[str, ...]) -> ClassDeclaration:
        constants = enum_constants(self._cls)
        if constants is None:
            raise _UndeclarableError("the order of its constants cannot be told from its static initializer")
        if bool(self._cls.access & FINAL) == bool(constants.bodies):
            raise _UndeclarableError("it is final though constants have bodies, or the reverse")
        return enum_of(
            self._cls.name,
            (f"{n}{{}}" if n in constants.bodies else n for n in constants.names),
            extends=extends,
            numbers=constants.numbers if self._is_thrift_enum() else (),
        )

    def _is_thrift_enum(self) -> bool:
        """Return True for an enum that Thrift's compiler generated: its constructor takes nothing but the number."""
        constructors = {m.descriptor for m in self._cls.methods if m.name == "<init>"}
        return THRIFT_ENUM in self._supertypes and constructors == {"(Ljava/lang/String;II)V"}

    def _container(self, levels: list[_Level], extends: tuple[str, ...]) -> ClassDeclaration | None:
        """Return the declaration of a class that is itself a collection or map: Kryo writes its elements, and none of its fields."""
        outside = [s for s in self._supertypes if s in _COLLECTIONS | _MAPS | _OTHER_CONTAINERS]
        if not outside:
            return None
        if other := [s for s in outside if s in _OTHER_CONTAINERS]:
            raise _UndeclarableError(f"it is a {other[0]}, which writes more than its elements")
        kind: Literal["collection", "map"] = "map" if outside[0] in _MAPS else "collection"
        count = 2 if kind == "map" else 1
        element_types: tuple[JavaType, ...] = ()
        for level in levels:
            signature = class_signature(level.cls)
            for above in (signature.superclass, *signature.interfaces):
                if above.name in outside and len(above.args) == count and not element_types:
                    given = [_substitute(a, level.variables) for a in above.args]
                    element_types = tuple(self._element_type(g) for g in given)
        return ClassDeclaration(
            name=self._cls.name,
            kind=kind,
            element_types=element_types or (OBJECT,) * count,
            extends=extends,
            final=bool(self._cls.access & FINAL),
            generic=True,
            parameters=tuple(self._own),
        )

    def _element_type(self, given: GenericType) -> JavaType:
        return OBJECT if _has_variable(given) else self._java_type(given)

    def _field_type(self, field: Member, level: _Level, is_pojo: bool) -> JavaType:
        declared = parse_type(field.signature or field.descriptor)
        try:
            if level.cls is self._cls:
                return self._java_type(declared)
            return self._inherited_type(declared, level, is_pojo)
        except _UndeclarableError as error:
            raise _UndeclarableError(f"field {field.name!r}: {error}") from None

    def _inherited_type(self, declared: GenericType, level: _Level, is_pojo: bool) -> JavaType:
        """Return the type of a superclass's field. Type variables make a difference between Kryo 2.24 and 5."""
        if not _has_variable(declared):
            return self._java_type(declared)
        bound = _substitute(declared, level.variables)
        if not (self._has_final(bound) or _has_variable(bound)):
            return self._java_type(bound)
        if self._kryo == 5:
            # The type argument of a superclass is known by its class, without its own type arguments.
            return self._java_type(_substitute(declared, {n: _raw(t) for n, t in level.variables.items()}))
        names = set(_variables(declared))
        if names & set(self._own):
            if all(level.variables.get(n) == GenericType("variable", n) for n in names):
                return self._java_type(bound)
            raise _UndeclarableError("type variables of the class and of a superclass have the same name")
        if self._kryo is None or is_pojo:
            raise _UndeclarableError(
                f"its type is {_shown(bound)} only by a type argument for a superclass, which Kryo 2.24 does not know"
            )
        if any(_has_variable(element) for element in _array_elements(declared)):
            raise _UndeclarableError("it is an array of a type variable of a superclass")
        if declared.kind == "variable":
            # A field has the class of the variable's bound; as a type argument, the variable says nothing.
            return self._java_type(_erased(declared, dict(class_signature(level.cls).parameters)))
        erased = _substitute(declared, dict.fromkeys(names, OBJECT_TYPE))
        return self._java_type(erased)

    def _java_type(self, given: GenericType) -> JavaType:
        match given.kind:
            case "class":
                return JavaType(given.name, tuple(self._java_type(a) for a in given.args))
            case "variable":
                bound = self._own.get(given.name, OBJECT_TYPE)
                if self._is_final(bound):
                    raise _UndeclarableError(f"type variable {given.name} is bound by the final class {_shown(bound)}")
                return JavaType(given.name) if given.name in self._own else OBJECT
            case "array":
                if _has_variable(given.args[0]):
                    raise _UndeclarableError(f"it is an array of the type variable {_shown(given.args[0])}")
                return JavaType(ARRAY, (self._java_type(given.args[0]),))
            case "any":
                return OBJECT
        if self._is_final(given.args[0]):
            raise _UndeclarableError(f"a wildcard is bound by the final class {_shown(given.args[0])}")
        return self._java_type(given.args[0]) if given.kind == "extends" else OBJECT

    def _is_final(self, given: GenericType) -> bool:
        """Return True if Kryo omits the names of a class, or if that is not known."""
        while given.kind == "array":
            given = given.args[0]
        if given.kind != "class":
            return False
        if given.name in PRIMITIVES:
            return True
        cls = self._path.read(given.name)
        if cls is None:
            return given.name not in _OPEN
        return bool(cls.access & FINAL)

    def _has_final(self, given: GenericType) -> bool:
        return self._is_final(given) or any(self._has_final(a) for a in given.args)


def is_container(name: str) -> bool:
    """Return True if a class of the JDK is a collection or map."""
    return name in _COLLECTIONS or name in _MAPS or name in _OTHER_CONTAINERS


def _substitute(given: GenericType, variables: dict[str, GenericType]) -> GenericType:
    """Return a type with the types of its type variables in their place."""
    if given.kind == "variable":
        return variables.get(given.name, OBJECT_TYPE)
    if not given.args:
        return given
    return GenericType(given.kind, given.name, tuple(_substitute(a, variables) for a in given.args))


def _array_elements(given: GenericType) -> Iterator[GenericType]:
    """Yield the types of the elements of arrays in a type."""
    if given.kind == "array":
        yield given.args[0]
    for arg in given.args:
        yield from _array_elements(arg)


def _raw(given: GenericType) -> GenericType:
    """Return a class without its type arguments; type variables and arrays stay."""
    return GenericType("class", given.name) if given.kind == "class" else given


def _erased(given: GenericType, bounds: dict[str, GenericType]) -> GenericType:
    """Return the class of a field whose type is a type variable."""
    seen: set[str] = set()
    while given.kind == "variable" and given.name not in seen:
        seen.add(given.name)
        given = bounds.get(given.name, OBJECT_TYPE)
    return OBJECT_TYPE if given.kind == "variable" else _raw(given)


def _variables(given: GenericType) -> Iterator[str]:
    if given.kind == "variable":
        yield given.name
    for arg in given.args:
        yield from _variables(arg)


def _has_variable(given: GenericType) -> bool:
    return next(_variables(given), None) is not None


def _shown(given: GenericType) -> str:
    """Return a type in Java syntax."""
    match given.kind:
        case "array":
            return f"{_shown(given.args[0])}[]"
        case "any":
            return "?"
        case "extends" | "super":
            return f"? {given.kind} {_shown(given.args[0])}"
    return given.name + (f"<{', '.join(map(_shown, given.args))}>" if given.args else "")


def names_in(kinds: Iterable[JavaType]) -> Iterator[str]:
    """Yield the names of all classes in types."""
    for kind in kinds:
        yield kind.name
        yield from names_in(kind.args)
