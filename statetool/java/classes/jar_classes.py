"""Classes of the job's jars as a source of declarations: read when a value needs them, and sent to tasks that may not have the jars."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, Literal

from statetool.errors import SnapshotNotFoundError, UnsupportedError
from statetool.java.classes.class_file import ABSTRACT
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.code_text import without_line_numbers
from statetool.java.classes.declarations import UndeclaredClass, declare_class, is_known_without_jar
from statetool.java.classes.execute import components_of, create, equals, hash_code
from statetool.java.classes.flink_calls import (
    find_building_code,
    find_calls,
    find_key_types,
    find_record_types,
    function_types,
)
from statetool.java.classes.hash_codes import find_convention
from statetool.java.classes.java_serialization import serializable_class
from statetool.java.classes.scala_classes import case_class_parameters, enumeration_values, own_hash_code
from statetool.java.classes.signatures import GenericType, class_signature, parse_type
from statetool.java.classes.traces import trace_job, type_of_factory
from statetool.java.classes.type_extraction import TYPE_INFO, extract_argument, extract_type
from statetool.types.conventions import Convention
from statetool.types.declared import ClassDeclaration, ClassSource
from statetool.types.execution import Creation, Result, Some
from statetool.types.flink_calls import FlinkCall
from statetool.types.java import PRIMITIVES
from statetool.types.serializable import SerializableClass
from statetool.types.traced import TracedJob
from statetool.types.type_information import TypeInformation

#: Classes that are compared to see whether the code of a serializer changed.
_MOST_CLASSES: Final = 3000
_Found = ClassDeclaration | UndeclaredClass | None


class JarClasses(ClassSource):
    """Declarations of the classes in jars.

    Tasks get the declarations that the driver has read so far. They open the jars only for classes that are not among them.

    Parameters
    ----------
    paths
        Jars, folders or class files (:class:`~statetool.java.classes.class_path.ClassPath`).
    has_subclasses
        Whether :meth:`subclasses` finds any.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]], *, has_subclasses: bool = True) -> None:
        self.paths = tuple(os.fspath(path) for path in paths)
        self._has_subclasses = has_subclasses
        self._class_path: ClassPath | None = None
        self._found: dict[tuple[str, int | None], _Found] = {}
        self._below: dict[tuple[str, int | None], tuple[ClassDeclaration, ...]] = {}
        self._hash_codes: dict[str, Convention | str] = {}
        self._informations: dict[tuple[str, bool], TypeInformation | None] = {}
        self._found_calls: tuple[tuple[FlinkCall, ...], tuple[FlinkCall, ...]] | None = None
        self._named_types: dict[tuple[str, int | None], Mapping[str, TypeInformation]] = {}

    def open(self) -> JarClasses:
        """Index the jars, so that errors in them are reported at once.

        Raises
        ------
        SnapshotNotFoundError
            A jar does not exist.
        FormatError, UnsupportedError
            A jar is damaged, or too large.
        """
        self._opened("")
        return self

    def find(self, name: str, kryo: Literal[2, 5] | None) -> ClassDeclaration | None:
        found = self._find(name, kryo)
        return found if isinstance(found, ClassDeclaration) else None

    def reason(self, name: str, kryo: Literal[2, 5] | None) -> str:
        found = self._find(name, kryo)
        return found.reason if isinstance(found, UndeclaredClass) else ""

    def hash_code(self, name: str) -> Convention | None:
        found = self._hash_code(name)
        return found if isinstance(found, Convention) else None

    def hash_reason(self, name: str) -> str:
        found = self._hash_code(name)
        return "" if isinstance(found, Convention) else found

    def _hash_code(self, name: str) -> Convention | str:
        """Return the convention, or the reason against it; empty for classes outside of the jars."""
        if name not in self._hash_codes:
            path = self._opened(name)
            cls = None if is_known_without_jar(name) else path.read(name)
            self._hash_codes[name] = "" if cls is None else find_convention(path, cls)
        return self._hash_codes[name]

    def has(self, name: str) -> bool:
        return name in self._opened(name)

    def type_information(self, name: str, kryo: Literal[2, 5] | None) -> TypeInformation | None:
        # Flink 2.x is the first with Kryo 5.
        key = name, kryo == 5
        if key not in self._informations:
            path = self._opened(name)
            found = (
                extract_type(path, name, 2 if kryo == 5 else 1, partial(type_of_factory, path))
                if name in path
                else None
            )
            self._informations[key] = found
        return self._informations[key]

    def record_types(self, kryo: Literal[2, 5] | None) -> Mapping[str, TypeInformation]:
        if ("records", kryo) not in self._named_types:
            self._named_types["records", kryo] = find_record_types(self._opened(""), 2 if kryo == 5 else 1)
        return self._named_types["records", kryo]

    def key_types(self, kryo: Literal[2, 5] | None) -> Mapping[str, TypeInformation]:
        if ("keys", kryo) not in self._named_types:
            self._named_types["keys", kryo] = find_key_types(self._opened(""), 2 if kryo == 5 else 1)
        return self._named_types["keys", kryo]

    def argument_information(
        self, function: str, interface: str, index: int, kryo: Literal[2, 5] | None
    ) -> TypeInformation | None:
        path = self._opened("")
        below = path.subclasses(interface)
        named = [function] if function in below else [n for n in below if n.rpartition(".")[2] == function]
        return extract_argument(path, named[0], interface, index, 2 if kryo == 5 else 1) if len(named) == 1 else None

    def is_abstract(self, name: str) -> bool:
        cls = self._opened(name).read(name)
        return cls is not None and bool(cls.access & ABSTRACT) and not cls.is_enum

    def create(self, name: str, values: Mapping[str, Any]) -> Creation:
        path = self._opened(name)
        cls = path.read(name)
        if cls is None:
            return Creation()
        if self.is_abstract(name):
            return Creation(fails="is abstract")
        if not cls.is_record:
            return create(path, name, None if cls.is_enum else "()V")
        members = list(components_of(cls))
        arguments = [_argument(values, m.name, m.descriptor) for m in members]
        return create(path, name, f"({''.join(m.descriptor for m in members)})V", arguments)

    def execute_hash(self, value: Any) -> Result:
        return hash_code(self._opened(""), value)

    def execute_equals(self, value: Any, other: Any) -> Result:
        return equals(self._opened(""), value, other)

    def field_descriptors(self, name: str) -> Mapping[str, str]:
        path = self._opened(name)
        classes = [path.read(n) for n in (*reversed(path.supertypes(name)), name) if n in path]
        return {m.name: m.descriptor for cls in classes if cls is not None and not cls.is_interface for m in cls.fields}

    def implementations(self, name: str) -> tuple[str, ...]:
        return tuple(self._opened("").subclasses(name))

    def has_field(self, name: str, field: str) -> bool:
        return field in self.field_descriptors(name)

    def has_record_code(self, name: str) -> bool:
        cls = self._opened(name).read(name)
        if cls is None or not cls.is_record:
            return False
        members = list(components_of(cls))
        unknown = {m.name: Some(f"the component {m.name}", may_be_null=True) for m in members}
        made = self.create(name, unknown)
        return bool(made.fails or made.unknown) or any(made.fields.get(n) is not v for n, v in unknown.items())

    def serializable(self, name: str) -> SerializableClass | None:
        path = self._opened(name)
        cls = path.read(name)
        return None if cls is None else serializable_class(path, cls)

    def is_same(self, name: str, other: ClassSource) -> bool:
        if not isinstance(other, JarClasses) or not self.has(name):
            return False
        own, others = self._opened(name), other._opened(name)
        unchecked, seen = [name], {name}
        while unchecked:
            checked = unchecked.pop()
            one, other_one = own.read_bytes(checked), others.read_bytes(checked)
            if one is None or other_one is None or without_line_numbers(one) != without_line_numbers(other_one):
                return False
            cls = own.read(checked)
            kinds = [] if cls is None else [parse_type(f.signature or f.descriptor) for f in cls.fields if f.is_stored]
            annotations = [] if cls is None else [*cls.annotations, *(a for f in cls.fields for a in f.annotations)]
            given = [a.value for a in annotations if a.name == TYPE_INFO]
            named = (*own.supertypes(checked), *given, *(n for k in kinds for n in _class_names(k)))
            found = {n for n in named if n in own}
            unchecked += found - seen
            seen |= found
        return True

    def has_same_classes(self, other: ClassSource) -> bool:
        return isinstance(other, JarClasses) and self._opened("").checksums() == other._opened("").checksums()

    def changed_classes(self, other: ClassSource) -> tuple[str, ...]:
        if not isinstance(other, JarClasses):
            return ()
        others = other._opened("").checksums()
        return tuple(sorted(n for n, checksum in self._opened("").checksums().items() if others.get(n) != checksum))

    def texts(self, names: Collection[str]) -> frozenset[str]:
        path = self._opened("")
        classes = (path.read(name) for name in names)
        return frozenset(text for cls in classes if cls is not None for text in cls.constants.strings())

    def has_same_code(self, name: str, other: ClassSource) -> bool:
        if not isinstance(other, JarClasses) or not self.has(name):
            return False
        own, others = self._opened(name), other._opened(name)
        unchecked, seen = [name], {name}
        while unchecked and len(seen) < _MOST_CLASSES:
            checked = unchecked.pop()
            one, other_one, cls = own.read_bytes(checked), others.read_bytes(checked), own.read(checked)
            if one is None or other_one is None or cls is None:
                return False
            if without_line_numbers(one) != without_line_numbers(other_one):
                return False
            # An enclosing class is named, and says nothing about the code of the class.
            found = {n for n in cls.constants.classes() if n in own and not checked.startswith(f"{n}$")}
            unchecked += found - seen
            seen |= found
        return not unchecked

    def case_class(self, name: str) -> tuple[tuple[str, str], ...] | None:
        cls = self._opened(name).read(name)
        return None if cls is None else case_class_parameters(cls)

    def enumeration_values(self, name: str) -> tuple[str, ...]:
        cls = self._opened(name).read(name)
        return () if cls is None else enumeration_values(cls)

    def own_hash_code(self, name: str) -> str:
        cls = self._opened(name).read(name)
        return "" if cls is None else own_hash_code(cls)

    def function_types(self) -> Mapping[str, tuple[str, ...]]:
        return function_types(self._opened(""))

    def flink_calls(self) -> tuple[FlinkCall, ...]:
        return self._calls[0]

    def own_calls(self) -> tuple[FlinkCall, ...]:
        return self._calls[1]

    def has_same_building(self, other: ClassSource) -> bool:
        if not isinstance(other, JarClasses):
            return False
        return self.has_same_classes(other) or self._building == other._building

    @cached_property
    def _building(self) -> str:
        return find_building_code(self._opened(""))

    @cached_property
    def traced_job(self) -> TracedJob:
        places = [call.place for call in self.own_calls() if call.use == "builds"]
        return trace_job(self._opened(""), places)

    @property
    def _calls(self) -> tuple[tuple[FlinkCall, ...], tuple[FlinkCall, ...]]:
        if self._found_calls is None:
            found = tuple(find_calls(self._opened("")))
            self._found_calls = (tuple(c for c in found if not c.use), tuple(c for c in found if c.use))
        return self._found_calls

    def subclasses(self, name: str, kryo: Literal[2, 5] | None) -> tuple[ClassDeclaration, ...]:
        if not self._has_subclasses or name.startswith("[") or is_known_without_jar(name):
            return ()
        key = name, kryo
        if key not in self._below:
            path = self._opened(name)
            # Everything may implement an interface of a library, so only classes of the jars are asked.
            below = path.subclasses(name) if name in path else []
            found = [d for d in (self.find(n, kryo) for n in below) if d is not None]
            self._below[key] = tuple(d for d in found if not self.is_abstract(d.name) and self._is_described(d, kryo))
        return self._below[key]

    def without_subclasses(self) -> JarClasses:
        source = JarClasses(self.paths, has_subclasses=False)
        source._class_path, source._found = self._class_path, self._found
        return source

    def _find(self, name: str, kryo: Literal[2, 5] | None) -> _Found:
        if name.startswith("[") or name in PRIMITIVES or is_known_without_jar(name):
            return None
        key = name, kryo
        if key not in self._found:
            self._found[key] = declare_class(self._opened(name), name, kryo=kryo)
        return self._found[key]

    def _opened(self, name: str) -> ClassPath:
        if self._class_path is None:
            try:
                self._class_path = ClassPath(self.paths)
            except SnapshotNotFoundError as error:
                if not name:
                    raise
                raise UnsupportedError(
                    f"class {name} is in a jar that does not exist on this machine: {error.message}",
                    hint="put the jar where all executors can read it, such as s3://",
                ) from error
        return self._class_path

    def _is_described(self, declared: ClassDeclaration, kryo: Literal[2, 5] | None) -> bool:
        """Return True unless Flink writes the class as a POJO with serializers that its class file does not determine."""
        found = self.type_information(declared.name, kryo)
        if found is None or not found.is_settled:
            return False
        # Each use of a class with type parameters has other fields, and its own subclasses.
        return not any(self._has_parameters(part.java_class) for part in found.walk() if part.kind == "pojo")

    def _has_parameters(self, name: str) -> bool:
        cls = self._opened(name).read(name)
        return cls is not None and bool(class_signature(cls).parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JarClasses) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[tuple[str, ...], bool]:
        return self.paths, self._has_subclasses

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_class_path": None}


def _argument(values: Mapping[str, Any], name: str, descriptor: str) -> Any:
    """Return the argument of a canonical constructor: a stored value, or the default of a component that has none."""
    value = values.get(name)
    if value is None:
        return None if descriptor[0] in "L[" else 0.0 if descriptor in ("F", "D") else 0
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | str | Some) else Some(f"the component {name}")


def _class_names(kind: GenericType) -> Iterator[str]:
    yield kind.name
    for arg in kind.args:
        yield from _class_names(arg)
