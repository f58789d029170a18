"""Hash codes of keys by the conventions for ``hashCode()`` of user classes.

A :class:`HashFormula` has the convention (:mod:`statetool.types.conventions`) of each class in a key that user code hashes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from statetool.errors import OptionError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.avro.hash import avro_hash
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import TtlAwareSerializer
from statetool.serializers.typeutils.arrays import ARRAY_ELEMENTS, GenericArraySerializer
from statetool.serializers.typeutils.collections import hash_or_zero
from statetool.serializers.typeutils.composite import CompositeSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.options import NullableSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import CaseClassSerializer, scala_hash, scala_product_hash
from statetool.types import LogicalType, Scalar
from statetool.types.conventions import BOOLEANS, ZEROS, Convention, Style, null_hash, parse_convention
from statetool.types.declared import TypeContext
from statetool.types.java_hash import hash_chain, hash_string, to_int32

_BOOL: Final = Scalar("bool")


@dataclass(frozen=True, slots=True)
class HashFormula:
    """The conventions of all classes whose ``hashCode()`` is defined in user code; picklable."""

    classes: tuple[tuple[str, Convention], ...]

    def __str__(self) -> str:
        return "; ".join(f"{name}: {convention}" for name, convention in self.classes)

    def of(self, class_name: str) -> Convention | None:
        """Return the convention of a class, ``None`` if unknown."""
        return dict(self.classes).get(class_name)

    @classmethod
    def declared(cls, words: Mapping[str, str]) -> HashFormula:
        """Return the formula of conventions as text, by the full name of their Java class."""
        return cls(tuple(sorted((name, parse_convention(text)) for name, text in words.items())))

    def knows(self, names: Iterable[str]) -> bool:
        """Return True if it has the conventions of all these classes."""
        return all(self.of(name) is not None for name in names)

    def with_types(self, names: Iterable[str], types: TypeContext) -> HashFormula:
        """Return the formula with the conventions that declarations and the job's jar have for further classes."""
        found = {name: types.hash_code(name) for name in names if self.of(name) is None}
        added = tuple((name, convention) for name, convention in found.items() if convention is not None)
        return HashFormula(tuple(sorted((*self.classes, *added), key=itemgetter(0)))) if added else self


def user_class(serializer: Serializer) -> str | None:
    """Return the name of the class whose ``hashCode()`` is needed and defined in user code, ``None`` for other types."""
    match serializer:
        case PojoSerializer():
            return serializer.pojo_class
        case CaseClassSerializer():
            return str(serializer.outer)
        case EnumSerializer():
            return serializer.enum_class
        case AvroSerializer():
            return serializer.runtime_class or serializer.type_name
        case KryoSerializer() if serializer.fields:
            return serializer.type_class
    return None


def user_classes(key: Serializer) -> dict[str, Serializer]:
    """Return the user classes inside a key type, outer ones first, with a serializer of each."""
    classes: dict[str, Serializer] = {}
    for serializer in _hashed_parts(key):
        name = user_class(serializer)
        if name is not None:
            classes.setdefault(name, serializer)
    return classes


def _hashed_parts(serializer: Serializer) -> Iterator[Serializer]:
    for part in all_parts(serializer):
        yield part
        if isinstance(part, KryoSerializer):
            for inner in part.fields.values():
                yield from _hashed_parts(inner)


def formula_hash(formula: HashFormula, key: Serializer) -> Callable[[Any], int]:
    """Return a function that computes ``hashCode()`` of plain keys under a formula.

    Raises
    ------
    OptionError
        The class does not have a declared field.
    """
    return hash_serializer(key, formula).hash_code


def hash_serializer(serializer: Serializer, formula: HashFormula) -> Serializer:
    """Return the serializer with the formula's hash codes for the classes that the formula names."""
    name = user_class(serializer)
    convention = formula.of(name) if name is not None else None
    if convention is not None:
        return HashedSerializer(serializer, convention, formula)
    if isinstance(serializer, CompositeSerializer):
        inner = tuple(hash_serializer(s, formula) for s in serializer.nested)
        if any(a is not b for a, b in zip(inner, serializer.nested, strict=True)):
            changed = copy.copy(serializer)
            changed.nested = inner
            return changed
    if isinstance(serializer, TtlAwareSerializer):
        return hash_serializer(serializer.wrapped, formula)
    return serializer


class HashedSerializer(Serializer):
    """The serializer of a user class, with a convention for its hash code."""

    def __init__(self, serializer: Serializer, convention: Convention, formula: HashFormula) -> None:
        super().__init__(serializer.snapshot_class, serializer.snapshot_version)
        self.serializer = serializer
        self.convention = convention
        self.length = serializer.length
        self.nullable = serializer.nullable
        if (convention.kind == "avro") != isinstance(serializer, AvroSerializer):
            raise OptionError(
                f"{user_class(serializer)} does not hash as {convention}",
                hint="avro[1, 10]() is for Avro records, and only that",
            )
        parts = class_fields(serializer)
        names = list(parts)
        if unknown := [f for f in convention.fields if f not in parts]:
            raise OptionError(
                f"{user_class(serializer)} has no field {', '.join(map(repr, unknown))}",
                hint=f"use one of its fields: {', '.join(names) or 'none'}",
            )
        self.places = [names.index(f) for f in convention.fields]
        self.parts = [hash_serializer(parts[f], formula) for f in convention.fields]
        is_open_pojo = isinstance(serializer, PojoSerializer) and serializer.open
        self._class_field = is_open_pojo or (isinstance(serializer, KryoSerializer) and serializer.is_open)

    @property
    def logical(self) -> LogicalType:
        return self.serializer.logical

    def decode(self, c: Cursor) -> Any:
        return self.serializer.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.serializer.encode(out, value)

    def hash_code(self, value: Any) -> int:
        convention = self.convention
        serializer = self.serializer
        if isinstance(serializer, EnumSerializer):
            return hash_string(value) if convention.kind == "name" else serializer.ids[serializer.names.index(value)]
        if isinstance(serializer, AvroSerializer):
            return avro_hash(serializer.root, value, text_start=convention.start, most=convention.multiplier)
        if self._class_field and value[-1] != user_class(serializer):
            raise UnsupportedError(f"hashCode() of {value[-1]}, a subclass of {user_class(serializer)}, is not known")
        picked = [(part, value[place]) for part, place in zip(self.parts, self.places, strict=True)]
        if convention.kind in ("scala", "scala2.13"):
            hashes = [0 if v is None else scala_hash(part, v) for part, v in picked]
            prefix = str(user_class(serializer)) if convention.kind == "scala2.13" else None
            return scala_product_hash(hashes, class_name=prefix)
        return combine(
            convention, [part_hash(part, v, s) for (part, v), s in zip(picked, convention.field_styles, strict=True)]
        )


def combine(convention: Convention, hashes: list[int]) -> int:
    """Combine the hash codes of the parts into one by a convention."""
    match convention.kind:
        case "xor":
            h = 0
            for part in hashes:
                h ^= part
            return to_int32(h)
        case "sum":
            return to_int32(sum(hashes))
        case "linear":
            return to_int32(
                convention.start + sum(f * part for f, part in zip(convention.factors, hashes, strict=True))
            )
    h = convention.start
    for part in hashes:
        h = to_int32(convention.multiplier * h + part)
    return to_int32(h)


def class_fields(serializer: Serializer) -> dict[str, Serializer]:
    """Return the fields of a user class by name."""
    if isinstance(serializer, PojoSerializer):
        return dict(serializer.fields)
    if isinstance(serializer, KryoSerializer):
        return serializer.fields
    return {} if isinstance(serializer, EnumSerializer | AvroSerializer) else dict(serializer.children())


def part_hash(part: Serializer, value: Any, style: Style) -> int:
    """Return the hash code of a field as the ``hashCode()`` of its class counts it.

    Raises
    ------
    UnsupportedError
        Its hash code differs between processes, or is unknown.
    """
    if value is None:
        return null_hash(style)
    if isinstance(part, NullableSerializer):
        return part_hash(part.nested[0], value, style)
    if style in ("name", "ordinal"):
        return _enum_hash(part, value, style)
    logical = part.logical
    if logical == _BOOL and style in BOOLEANS:
        return BOOLEANS[style][bool(value)]
    if logical in ZEROS.get(style, ()) and value == 0:
        return 0
    # A class that has an array as a field hashes its elements (Arrays.hashCode).
    if isinstance(part, SimpleSerializer) and part.spec.name in ARRAY_ELEMENTS:
        if isinstance(value, bytes):
            return hash_chain((b - 256 if b > 127 else b for b in value), start=1)
        of_element = ARRAY_ELEMENTS[part.spec.name].hash_code
        assert of_element is not None
        return hash_chain((0 if v is None else of_element(v) for v in value), start=1)
    if isinstance(part, GenericArraySerializer):
        return hash_chain((hash_or_zero(part.nested[0], v) for v in value), start=1)
    return part.hash_of_elements(value) if isinstance(part, KryoSerializer) else part.hash_code(value)


def _enum_hash(part: Serializer, value: Any, style: Style) -> int:
    """Return the hash code of the name or ordinal of an enum field."""
    names = (
        part.names if isinstance(part, EnumSerializer) else part.constants if isinstance(part, KryoSerializer) else ()
    )
    if value not in names:
        raise UnsupportedError(f"{value!r} of type {part.type_name} is not an enum whose {style} is hashed")
    return hash_string(value) if style == "name" else names.index(value)
