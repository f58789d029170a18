"""Flink's type extraction on class files: which serializer each field of a class gets.

Follows ``TypeExtractor`` of Flink 1.20 and 2.3, method by method: ``createTypeInfoWithTypeHierarchy``, ``privateGetForClass`` and
``analyzePojo``. What Flink takes from running code (``@TypeInfo``) or from classes outside of the jars is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statetool.java.classes.bytecode import Opcode, constant, enum_constants, instructions
from statetool.java.classes.class_file import (
    ABSTRACT,
    FINAL,
    INTERFACE,
    PUBLIC,
    STATIC,
    TRANSIENT,
    Annotation,
    ClassFile,
    Member,
)
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.library_types import FIELDLESS, is_never_pojo, library_type
from statetool.java.classes.signatures import (
    ClassSignature,
    GenericType,
    class_signature,
    parse_method,
    parse_parameters,
    parse_type,
)
from statetool.types.java import PRIMITIVES
from statetool.types.type_information import SIMPLE, TypeInformation, kryo, simple, unknown

_PARSER: Final = "org.apache.avro.Schema$Parser"
TYPE_INFO: Final = "org.apache.flink.api.common.typeinfo.TypeInfo"
_TYPES: Final = "org.apache.flink.types."
_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"
_EITHER: Final = frozenset((f"{_TYPES}Either", f"{_TYPES}Either$Left", f"{_TYPES}Either$Right"))
_VALUES: Final = {
    f"{_TYPES}{n}Value": f"{n}Value"
    for n in ("Boolean", "Byte", "Short", "Char", "Int", "Long", "Float", "Double", "String", "Null")
}
_COPYABLE: Final = (f"{_TYPES}CopyableValue", f"{_TYPES}Record")
_OTHER_VALUES: Final = tuple(
    f"{_TYPES}{n}" for n in ("Value", "Key", "NormalizableKey", "ResettableValue", "MapValue", "ListValue")
)
_WRITABLE: Final = "org.apache.hadoop.io.Writable"
_AVRO: Final = "org.apache.avro.specific.SpecificRecordBase"
_OBJECTS: Final = ("java.lang.Object", "java.lang.Class")
#: Arrays with a serializer of their elements' boxes.
_BOXES: Final = frozenset(PRIMITIVES.values())
_LISTS: Final = ("java.util.List", "java.util.Collection", "java.lang.Iterable", "java.util.SequencedCollection")
#: Packages of interfaces that no jar has to contain, and that give no field a getter.
_PROVIDED: Final = (
    "java.",
    "javax.",
    "scala.",
    "kotlin.",
    "org.apache.flink.",
    "org.apache.avro.",
    "com.esotericsoftware.kryo.",
)
_MOST_PARTS: Final = 20_000
_MAX_DEPTH: Final = 200
#: Returns the type that a factory makes.
Factory = Callable[[str], TypeInformation | None]
_WRITES_ITSELF: Final = ("readObject", "writeObject")
_OBJECT: Final = GenericType("class", "java.lang.Object")


class _InvalidTypesError(Exception):
    """Flink's ``InvalidTypesException``: the enclosing class leaves the field to Kryo."""


class _UnknownTypeError(Exception):
    """The class files do not determine what Flink does."""


@dataclass(frozen=True, slots=True)
class _Class:
    """A class as reflection shows it. The names of type variables begin with that of the class that declares them."""

    name: str
    access: int
    parameters: tuple[str, ...]
    superclass: GenericType | None
    fields: tuple[Member, ...]
    methods: tuple[Member, ...]
    file: ClassFile | None = None

    def type_of(self, field: Member) -> GenericType:
        """Return the declared type of a field, with its type arguments."""
        return _owned(parse_type(field.signature or field.descriptor), self.name, self.parameters)

    @property
    def is_record(self) -> bool:
        is_below = self.superclass is not None and self.superclass.name == "java.lang.Record"
        return is_below and bool(self.access & FINAL)


def extract_type(
    class_path: ClassPath, name: str, major: Literal[1, 2], factory: Factory | None = None
) -> TypeInformation:
    """Return the serializer that a release of Flink makes of a class, ``TypeInformation.of(name.class)``.

    Parameters
    ----------
    major
        The major version of Flink.
    factory
        Returns the type that a factory of ``@TypeInfo`` makes, by its class.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    return _Extractor(class_path, major, factory=factory).root(name)


def extract_kind(class_path: ClassPath, name: str, major: Literal[1, 2]) -> str:
    """Return the kind of serializer that a release of Flink makes of a class, without those of its fields.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    return _Extractor(class_path, major, with_fields=False).root(name).kind


def extract_generic(class_path: ClassPath, given: GenericType, major: Literal[1, 2]) -> TypeInformation:
    """Return the serializer that a release of Flink makes of a type with its type arguments.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    if given.kind == "class" and not given.args:
        return _Extractor(class_path, major).root(given.name)
    return _Extractor(class_path, major).argument(given)


def extract_argument(
    class_path: ClassPath, function: str, interface: str, index: int, major: Literal[1, 2]
) -> TypeInformation | None:
    """Return the serializer that a release of Flink makes of a type argument of an interface that a class implements.

    Follows ``TypeExtractor.getUnaryOperatorReturnType`` and its siblings for classes that give the type.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    given = _argument_of(class_path, function, interface, index)
    return extract_generic(class_path, given, major) if given is not None and given.kind in ("class", "array") else None


def _argument_of(class_path: ClassPath, name: str, interface: str, index: int) -> GenericType | None:
    """Return a type argument of an interface of a class, through the classes between them, ``None`` if no class file gives it."""
    cls = class_path.read(name)
    signature = None if cls is None else class_signature(cls)
    above = () if signature is None else (signature.superclass, *signature.interfaces)
    for parent in above:
        if parent.name == interface:
            return parent.args[index] if index < len(parent.args) else None
    for parent in above:
        file = class_path.read(parent.name) if interface in class_path.supertypes(parent.name) else None
        if file is None or parent.name == name:
            continue
        found = _argument_of(class_path, parent.name, interface, index)
        if found is None or found.kind != "variable":
            return found
        names = [parameter for parameter, _ in class_signature(file).parameters]
        at = names.index(found.name) if found.name in names else len(names)
        return parent.args[at] if at < len(parent.args) else None
    return None


class _Extractor:
    def __init__(
        self, class_path: ClassPath, major: Literal[1, 2], *, with_fields: bool = True, factory: Factory | None = None
    ) -> None:
        self._path = class_path
        self._factory = factory
        self._major = major
        self._with_fields = with_fields
        self._classes: dict[str, _Class | None] = {}
        self._parts = 0
        #: Classes of elements whose extraction has not ended: Flink 2.x starts anew for elements of collections.
        self._roots: list[str] = []

    def root(self, name: str) -> TypeInformation:
        cls = self._find(name)
        parameters = cls.parameters if cls is not None else ()
        args = tuple(GenericType("open", v.rpartition("#")[2]) for v in parameters)
        return self.argument(GenericType("class", name, args))

    def argument(self, given: GenericType) -> TypeInformation:
        try:
            return self._begin(given)
        except _UnknownTypeError as reason:
            return unknown(str(reason))
        except _InvalidTypesError:
            return unknown(f"Flink does not create a serializer for {given.name} without its type arguments")

    def _begin(self, given: GenericType) -> TypeInformation:
        name = _raw(given)
        if name in self._roots:
            raise _UnknownTypeError(f"Flink does not end, as {name} has a collection of itself")
        self._roots.append(name)
        try:
            return self._create([given], given)
        finally:
            self._roots.pop()

    def _create(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation:
        """Follows ``createTypeInfoWithTypeHierarchy``."""
        self._parts += 1
        if self._parts > _MOST_PARTS or len(hierarchy) > _MAX_DEPTH:
            raise _UnknownTypeError("it has too many parts")
        try:
            return self._create_known(hierarchy, given)
        except _UnknownTypeError as reason:
            return unknown(str(reason))

    def _create_known(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation:
        if given.kind == "open":
            return TypeInformation("variable", given.name)
        if given.kind == "variable":
            bound = self._materialize(hierarchy, given)
            if bound.kind == "variable":
                raise _InvalidTypesError
            return self._create(hierarchy, bound)
        if not _is_class_type(given):
            if given.kind != "array":
                raise _InvalidTypesError  # a wildcard
            part = self._create(hierarchy, given.args[0])
            return _array(part)
        if (made := self._of_factory(hierarchy, given)) is not None:
            return made
        if given.kind == "class" and self._is_tuple(given.name):
            return self._tuple(hierarchy, given)
        return self._of_class(hierarchy, given)

    def _of_factory(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation | None:
        """Follows ``createTypeInfoFromFactory``: the annotation of a class or of its closest superclass."""
        above = list(hierarchy)
        at: GenericType | None = given
        while at is not None and at.kind == "class" and at.name != "java.lang.Object":
            above.append(at)
            if at.name in _EITHER:
                return self._either(above, at)
            cls = self._find(at.name)
            if cls is None:
                return None
            if cls.file is not None and any(a.name == TYPE_INFO for a in cls.file.annotations):
                if (made := self._made_by(cls.file.annotations)) is not None:
                    return made
                raise _UnknownTypeError(f"@TypeInfo of {cls.name} gives it its own serializer")
            at = cls.superclass
        return None

    def _made_by(self, annotations: Iterable[Annotation]) -> TypeInformation | None:
        """Return the type that the factory of ``@TypeInfo`` makes, ``None`` if that is not known."""
        names = [a.value for a in annotations if a.name == TYPE_INFO and a.value]
        return self._factory(names[0]) if self._factory is not None and len(names) == 1 else None

    def _either(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation:
        """Follows ``EitherTypeInfoFactory``."""
        parts = []
        if len(given.args) != 2:
            raise _InvalidTypesError
        for arg in given.args:
            bound = self._materialize(hierarchy, arg) if arg.kind == "variable" else arg
            if bound.kind == "variable":
                raise _InvalidTypesError
            parts.append(self._create([*hierarchy, bound], bound))
        return TypeInformation("either", parts=tuple(parts))

    def _is_tuple(self, name: str) -> bool:
        return name.startswith(_TUPLE) or any(s.startswith(_TUPLE) for s in self._path.supertypes(name))

    def _tuple(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation:
        if given.name == _TUPLE:
            raise _InvalidTypesError
        above = list(hierarchy)
        at = given
        public = 0
        while not at.name.startswith(_TUPLE):
            above.append(at)
            cls = self._needed(at.name)
            public += sum(bool(f.access & PUBLIC) and not f.access & (STATIC | TRANSIENT) for f in cls.fields)
            at = cls.superclass or _OBJECT
        if at.name == f"{_TUPLE}0":
            return TypeInformation("simple", at.name, "Tuple0")
        if not at.args:
            raise _InvalidTypesError
        above.append(at)
        parts = []
        for arg in at.args:
            bound = self._materialize(above, arg) if arg.kind == "variable" else arg
            if bound.kind == "variable":
                raise _InvalidTypesError
            parts.append(self._create([*above, bound], bound))
        if public:
            # A tuple with more fields is treated as a POJO.
            found = self._pojo(given, list(hierarchy))
            if found is None:
                raise _UnknownTypeError(f"{given.name} is a tuple with fields of its own, and no POJO")
            return found
        return TypeInformation("tuple", given.name, parts=tuple(parts))

    def _of_class(self, hierarchy: list[GenericType], given: GenericType) -> TypeInformation:
        """Follows ``privateGetForClass``."""
        name = _raw(given)
        if name in _OBJECTS or sum(_raw(t) == name for t in hierarchy) > 1:
            return kryo(name)
        if given.kind == "array":
            return self._class_array(hierarchy, given.args[0])
        if (box := PRIMITIVES.get(name, name)) in SIMPLE:
            return simple(box)
        supertypes = (name, *self._path.supertypes(name))
        if _WRITABLE in supertypes:
            raise _UnknownTypeError(f"{name} is a Writable, which another library writes")
        if (value := _value(supertypes)) is not None:
            return value
        cls = self._path.read(name)
        if cls is not None and "java.lang.Enum" in supertypes:
            return _enum(cls)
        if self._major == 2:
            if name in (f"{_TYPES}variant.Variant", f"{_TYPES}bitmap.Bitmap"):
                return TypeInformation("simple", name, name.rpartition(".")[2])
            if (collection := self._collection(given)) is not None:
                return collection
        if cls is None:
            return library_type(name)
        if _AVRO in supertypes:
            schema = schema_constant(cls)
            return TypeInformation("avro", name, constants=() if schema is None else (schema,))
        if cls.is_interface:
            return kryo(name)
        try:
            return self._pojo(given, list(hierarchy)) or kryo(name)
        except _InvalidTypesError:
            return kryo(name)

    def _class_array(self, hierarchy: list[GenericType], element: GenericType) -> TypeInformation:
        if element.name in PRIMITIVES:
            letter = dict(zip(PRIMITIVES, "ZBSCIJFD", strict=True))[element.name]
            return TypeInformation("simple", f"[{letter}", f"{SIMPLE[PRIMITIVES[element.name]]}PrimitiveArray")
        if element.name == "java.lang.String":
            return TypeInformation("simple", "[Ljava.lang.String;", "StringArray")
        if element.name in _BOXES:
            return TypeInformation("array", element.name, parts=(simple(element.name),))
        return _array(self._create(hierarchy, element))

    def _collection(self, given: GenericType) -> TypeInformation | None:
        """Return the serializer of an interface of collections whose type arguments are classes, in Flink 2.x."""
        if not given.args or not all((_is_class_type(a) and not a.args) or _is_plain_array(a) for a in given.args):
            return None
        kind: Literal["map", "list", "set"]
        if given.name == "java.util.Map":
            kind = "map"
        elif given.name in _LISTS:
            kind = "list"
        elif given.name == "java.util.Set":
            kind = "set"
        else:
            return None
        parts = [self._begin(arg) for arg in given.args]
        if kind != "set":
            # Elements of lists and keys of maps may be null.
            parts[0] = TypeInformation("nullable", parts=(parts[0],))
        return TypeInformation("nullable", parts=(TypeInformation(kind, parts=tuple(parts)),))

    def _pojo(self, given: GenericType, hierarchy: list[GenericType]) -> TypeInformation | None:
        """Return the serializer of a class by its fields, ``None`` if it is no POJO. Follows ``analyzePojo``."""
        cls = self._needed(given.name)
        if not cls.access & PUBLIC:
            return kryo(cls.name)
        levels, missing = self._levels(given, hierarchy)
        methods = self._methods(levels)
        if missing:
            if is_never_pojo(missing) or not _has_constructor(cls) or _writes_itself(levels):
                return None
            raise _UnknownTypeError(f"{missing}, a superclass of {cls.name}, is not in the jar")
        fields = [(level, f) for level in levels for f in level.fields if not f.access & (STATIC | TRANSIENT)]
        if not fields:
            return kryo(cls.name)
        if len({f.name for _, f in fields}) < len(fields):
            raise _InvalidTypesError
        parts = {}
        for level, field in fields:
            if not cls.is_record and not self._is_valid(field, level, cls, methods, hierarchy):
                if unread := self._missing_interface(levels):
                    raise _UnknownTypeError(f"{unread}, an interface of {cls.name}, is not in the jar")
                return None
            parts[field.name] = level.name, self._field(field, level, hierarchy)
        if _writes_itself(levels) or not (cls.is_record or _has_constructor(cls)):
            return None
        names = sorted(parts)
        return TypeInformation(
            "pojo",
            cls.name,
            parts=tuple(parts[n][1] for n in names),
            fields=tuple((n, parts[n][0]) for n in names),
        )

    def _field(self, field: Member, level: _Class, hierarchy: list[GenericType]) -> TypeInformation:
        if not self._with_fields:
            return unknown("only the class itself is asked for")
        if any(a.name == TYPE_INFO for a in field.annotations):
            made = self._made_by(field.annotations)
            return (
                made
                if made is not None
                else unknown(f"@TypeInfo of field {field.name!r} of {level.name} gives it its own serializer")
            )
        given = level.type_of(field)
        try:
            found = self._create([*hierarchy, given], given)
        except _InvalidTypesError:
            return kryo(_raw(given) or "java.lang.Object")
        # Flink leaves the whole field to Kryo if the job does not give the variable.
        return TypeInformation("variable", str(found)) if _depends_on_job(found) else found

    def _levels(self, given: GenericType, hierarchy: list[GenericType]) -> tuple[list[_Class], str]:
        """Return a class and its superclasses, and the first superclass that is not known. Their types are added to the hierarchy."""
        levels: list[_Class] = []
        at: GenericType | None = given
        while at is not None and at.name != "java.lang.Object":
            hierarchy.append(at)
            cls = self._find(at.name)
            if cls is None:
                return levels, "" if at.name in FIELDLESS else at.name
            levels.append(cls)
            at = cls.superclass
            if len(levels) > _MAX_DEPTH:
                raise _UnknownTypeError("it has too many superclasses")
        return levels, ""

    def _methods(self, levels: Sequence[_Class]) -> list[tuple[_Class, Member]]:
        """Return the public methods of a class, also those of its superclasses and interfaces, with the class of each."""
        interfaces = dict.fromkeys(
            s for level in levels for s in self._path.supertypes(level.name) if level.file is not None
        )
        others = [c for n in interfaces if (c := self._find(n)) is not None and c.access & INTERFACE]
        found = [(c, m) for c in levels for m in c.methods if m.access & PUBLIC]
        return found + [(c, m) for c in others for m in c.methods if m.access & PUBLIC and not m.access & STATIC]

    def _missing_interface(self, levels: Sequence[_Class]) -> str:
        names = (s for level in levels for s in self._path.supertypes(level.name))
        return next((n for n in names if n not in self._path and not n.startswith(_PROVIDED)), "")

    def _is_valid(
        self,
        field: Member,
        level: _Class,
        cls: _Class,
        methods: Iterable[tuple[_Class, Member]],
        hierarchy: list[GenericType],
    ) -> bool:
        """Return True if a field is public or has a getter and a setter. Follows ``isValidPojoField``."""
        if field.access & PUBLIC:
            return True
        name = field.name.lower().replace("_", "")
        declared = level.type_of(field)
        erased = parse_type(field.descriptor)
        accepted = {declared}
        if declared.kind == "variable":
            accepted.add(self._materialize(hierarchy, declared))
        boxed = _boxed(erased)
        getters = (f"get{name}", f"is{name}", name)
        setters = [f"set{name}", f"{name}_$eq"]
        if self._major == 2 and name.startswith("is"):
            setters.append(f"set{name[2:]}")
        has_getter = has_setter = False
        for owner, method in methods:
            method_name = _property_name(method.name)
            if not method_name.endswith(name) and method_name not in setters:
                continue
            parameters, result = parse_parameters(method.descriptor)
            generic_parameters, generic_result = _method_types(method, owner)
            if method_name in getters and not parameters:
                has_getter |= generic_result in accepted or result == boxed
            if method_name in setters and len(parameters) == 1 and result in (None, GenericType("class", cls.name)):
                has_setter |= generic_parameters[0] in accepted or parameters[0] == boxed
        return has_getter and has_setter

    def _materialize(self, hierarchy: Sequence[GenericType], variable: GenericType) -> GenericType:
        """Follows ``materializeTypeVariable``."""
        for given in reversed(hierarchy):
            if given.kind != "class" or not given.args or (cls := self._find(given.name)) is None:
                continue
            for name, arg in zip(cls.parameters, given.args, strict=False):
                if name == variable.name:
                    if arg.kind != "variable":
                        return arg
                    variable = arg
        return variable

    def _needed(self, name: str) -> _Class:
        cls = self._find(name)
        if cls is None:
            raise _UnknownTypeError(f"{name} is not in the jar")
        return cls

    def _find(self, name: str) -> _Class | None:
        if name not in self._classes:
            self._classes[name] = self._read(name)
        return self._classes[name]

    def _read(self, name: str) -> _Class | None:
        cls = self._path.read(name)
        if cls is not None:
            signature: ClassSignature = class_signature(cls)
            parameters = tuple(f"{name}#{n}" for n, _ in signature.parameters)
            superclass = _owned(signature.superclass, name, parameters) if cls.superclass else None
            if cls.is_interface:
                superclass = None
            return _Class(name, cls.access, parameters, superclass, cls.fields, cls.methods, cls)
        number = name.removeprefix(_TUPLE)
        if number != name and number.isdecimal():
            variables = [f"T{i}" for i in range(int(number))]
            fields = tuple(
                Member(access=PUBLIC, name=f"f{i}", descriptor="Ljava/lang/Object;", signature=f"T{v};")
                for i, v in enumerate(variables)
            )
            return _Class(name, PUBLIC, tuple(f"{name}#{v}" for v in variables), None, fields, ())
        return None


def _depends_on_job(found: TypeInformation) -> bool:
    return found.kind == "variable" or (found.kind != "pojo" and any(map(_depends_on_job, found.parts)))


def _array(part: TypeInformation) -> TypeInformation:
    """Return the serializer of an array, given that of its elements."""
    if not part.type_class:
        return unknown(part.reason) if part.reason else TypeInformation("variable", f"{part}[]")
    return TypeInformation("array", part.type_class, parts=(part,))


def _value(supertypes: Sequence[str]) -> TypeInformation | None:
    """Return the serializer of a class that implements ``Value``, ``None`` for others. Follows ``ValueTypeInfo``."""
    name = supertypes[0]
    if name == f"{_TYPES}Value":
        raise _InvalidTypesError
    if own := next((s for s in supertypes if s in _VALUES), None):
        return TypeInformation("simple", name, _VALUES[own])
    if any(s in _COPYABLE for s in supertypes):
        return TypeInformation("copyable", name)
    if any(s in _OTHER_VALUES for s in supertypes):
        return TypeInformation("value", name)
    return None


def _enum(cls: ClassFile) -> TypeInformation:
    if not cls.is_enum:
        raise _UnknownTypeError(f"{cls.name} is the class of one constant of an enum")
    found = enum_constants(cls)
    if found is None:
        raise _UnknownTypeError(f"the constants of {cls.name} cannot be told from its static initializer")
    return TypeInformation("enum", cls.name, constants=tuple(found.names))


def _has_constructor(cls: _Class) -> bool:
    """Return True if Flink accepts the no-argument constructor of a class. An abstract class may have none."""
    constructor = next((m for m in cls.methods if m.name == "<init>" and m.descriptor == "()V"), None)
    return bool(cls.access & ABSTRACT) if constructor is None else bool(constructor.access & PUBLIC)


def _writes_itself(levels: Iterable[_Class]) -> bool:
    return any(m.name in _WRITES_ITSELF for level in levels for m in level.methods)


def _raw(given: GenericType) -> str:
    """Return ``Class.getName()`` of a class, or of an array of classes; empty for other types."""
    if given.kind == "class":
        return given.name
    if not _is_plain_array(given):
        return ""
    element = given.args[0]
    if element.name in PRIMITIVES:
        return f"[{dict(zip(PRIMITIVES, 'ZBSCIJFD', strict=True))[element.name]}"
    return f"[{_raw(element)}" if element.kind == "array" else f"[L{element.name};"


def _is_plain_array(given: GenericType) -> bool:
    """Return True for an array that reflection shows as a class: no type arguments or variables in it."""
    if given.kind != "array":
        return False
    element = given.args[0]
    return _is_plain_array(element) or (element.kind == "class" and not element.args)


def _is_class_type(given: GenericType) -> bool:
    return given.kind == "class" or _is_plain_array(given)


def _boxed(kind: GenericType) -> GenericType:
    return GenericType("class", PRIMITIVES.get(kind.name, kind.name)) if kind.kind == "class" else kind


def _owned(given: GenericType, owner: str, parameters: Sequence[str]) -> GenericType:
    """Return a type with the names of its variables behind that of the class that declares them."""
    if given.kind == "variable":
        name = f"{owner}#{given.name}"
        # Variables of an enclosing class or of a method are never bound.
        return GenericType("variable", name if name in parameters else f"?{name}")
    return GenericType(given.kind, given.name, tuple(_owned(a, owner, parameters) for a in given.args))


def _method_types(method: Member, owner: _Class) -> tuple[tuple[GenericType, ...], GenericType | None]:
    parameters, result = parse_method(method.signature) if method.signature else parse_parameters(method.descriptor)
    owned = tuple(_owned(p, owner.name, owner.parameters) for p in parameters)
    return owned, None if result is None else _owned(result, owner.name, owner.parameters)


def _property_name(method: str) -> str:
    lower = method.lower()
    if not method.endswith("_$eq"):
        return lower.replace("_", "")
    return f"{lower.removesuffix('_$eq').replace('_', '')}_$eq"


def schema_constant(cls: ClassFile) -> str | None:
    """Return the text of a generated class's schema, ``None`` if its static initializer does not parse it as generated code does.

    Raises
    ------
    FormatError
        The static initializer is damaged.
    """
    initializer = next((m.code for m in cls.methods if m.name == "<clinit>"), b"")
    texts: list[str] | None = None
    parsed: str | None = None
    for operation, operands in instructions(initializer):
        if operation == Opcode.NEW:
            texts, parsed = ([] if cls.constants.class_name(operands.u2()) == _PARSER else None), None
        elif operation == Opcode.INVOKEVIRTUAL:
            called = cls.constants.member(operands.u2())
            # A long schema comes in several texts.
            parsed = "".join(texts) if texts and (called.owner, called.name) == (_PARSER, "parse") else None
            texts = None
        elif operation == Opcode.PUTSTATIC:
            if parsed is not None and cls.constants.member(operands.u2()).name == "SCHEMA$":
                return parsed if _is_record(parsed) else None
            parsed = None
        elif texts is not None and isinstance(text := constant(operation, operands, cls.constants), str):
            texts.append(text)
    return None


def _is_record(text: str) -> bool:
    try:
        schema = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(schema, dict) and schema.get("type") == "record"
