"""Conventions for ``hashCode()`` of user classes: their text form, and hash codes of keys.

A snapshot names a class and its fields, but its ``hashCode()`` is defined in user code. A :class:`HashFormula` has a readable convention
for each such class that a user can declare: ``Objects.hash(shop, country)``, ``record(a, b)``, ``lombok(a, b)``, ``commons(a, b)``,
``polynomial[17, 31](a, b)``, ``polynomial[1, 31, plain](a, b)``, ``xor(a, b)``, ``sum(a, b)``, ``scala(_1, _2)``, ``scala2.13(_1, _2)``.
For an enum: ``name()`` or ``ordinal()``. For an Avro record: ``avro[1, 10]()`` (Avro 1.12) or ``avro[0, 0]()`` (Avro 1.8), with the start
value of a string's hash and the field or element at which the hash ends.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from statetool.errors import OptionError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.arrays import ARRAY_ELEMENTS, GenericArraySerializer
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.avro_hash import avro_hash
from statetool.serializers.base import Serializer, all_parts
from statetool.serializers.collections import hash_or_zero
from statetool.serializers.composite import CompositeSerializer
from statetool.serializers.enums import EnumSerializer
from statetool.serializers.java_hash import hash_chain, hash_string, to_int32
from statetool.serializers.options import NullableSerializer
from statetool.serializers.pojo import PojoSerializer
from statetool.serializers.runtime import TtlAwareSerializer
from statetool.serializers.simple import SimpleSerializer
from statetool.serializers.tuples import CaseClassSerializer, scala_hash, scala_product_hash
from statetool.types import LogicalType, Scalar

Kind = Literal["polynomial", "xor", "sum", "scala", "scala2.13", "name", "ordinal", "avro"]
#: How parts are hashed, the most used style first: ``boxed`` as ``Objects.hashCode`` does; ``plain`` as IDEs write it (booleans 1
#: and 0, the zeros of a float 0; in ``plain-old`` those of a double too); ``kotlin`` booleans 1 and 0; ``lombok`` booleans 79 and 97,
#: null 43 (``lombok-boxed``: null 43 alone); ``commons`` booleans 0 and 1.
Style = Literal["boxed", "plain", "kotlin", "plain-old", "lombok", "lombok-boxed", "commons"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)
BOOLEANS: Final = {"plain": (0, 1), "kotlin": (0, 1), "plain-old": (0, 1), "lombok": (97, 79), "commons": (1, 0)}
ZEROS: Final = {"plain": (Scalar("float32"),), "plain-old": (Scalar("float32"), Scalar("float64"))}
_NAMED: Final[dict[str, tuple[int, int, Style]]] = {
    "Objects.hash": (1, 31, "boxed"),
    "record": (0, 31, "boxed"),
    "lombok": (1, 59, "lombok"),
    "commons": (17, 37, "commons"),
}
_WRITTEN: Final = re.compile(
    r"\s*([\w.]+?)\s*(?:\[\s*(-?\d+)\s*,\s*(-?\d+)\s*(?:,\s*([\w-]+)\s*)?\])?\s*\(([^()]*)\)\s*"
)
_AVRO: Final = re.compile(r"\s*avro\[\s*([01])\s*,\s*(\d+)\s*\]\(\s*\)\s*")
_BOOL: Final = Scalar("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """The hash convention of one class, with its ``fields`` in hashing order."""

    kind: Kind
    fields: tuple[str, ...] = ()
    start: int = 1
    multiplier: int = 31
    style: Style = "boxed"

    def __str__(self) -> str:
        if self.kind == "polynomial":
            shape = (self.start, self.multiplier, self.style)
            known = [n for n, s in _NAMED.items() if s == shape]
            words = f"{self.start}, {self.multiplier}" + (f", {self.style}" if self.style != "boxed" else "")
            return f"{known[0] if known else f'polynomial[{words}]'}({', '.join(self.fields)})"
        if self.kind == "avro":
            return f"avro[{self.start}, {self.multiplier}]()"
        return f"{self.kind}({', '.join(self.fields)})"


def parse_convention(text: str) -> Convention:
    """Parse the text form of a convention.

    Raises
    ------
    OptionError
        The text is not a convention.
    """
    if avro := _AVRO.fullmatch(text):
        return Convention(kind="avro", start=int(avro.group(1)), multiplier=int(avro.group(2)))
    match = _WRITTEN.fullmatch(text)
    name = match.group(1) if match else ""
    if match and (name in _NAMED or name in ("polynomial", "xor", "sum", "scala", "scala2.13", "name", "ordinal")):
        fields = tuple(f.strip() for f in match.group(5).split(",") if f.strip())
        start, multiplier, style = match.group(2), match.group(3), match.group(4) or "boxed"
        if (start is not None) == (name == "polynomial") and style in STYLES:
            if name in _NAMED:
                shape = _NAMED[name]
                return Convention(kind="polynomial", fields=fields, start=shape[0], multiplier=shape[1], style=shape[2])
            if name == "polynomial":
                return Convention(
                    kind="polynomial", fields=fields, start=int(start), multiplier=int(multiplier), style=_style(style)
                )
            return Convention(kind=name, fields=fields)  # type: ignore[arg-type]
    raise OptionError(
        f"{text!r} does not say how a class hashes",
        hint="write for example Objects.hash(a, b), record(a, b), lombok(a, b), polynomial[17, 31](a, b) or scala(_1, _2), with the "
        "fields in the order in which hashCode() takes them",
    )


def _style(text: str) -> Style:
    return next(s for s in STYLES if s == text)


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
    return None


def user_classes(key: Serializer) -> dict[str, Serializer]:
    """Return the user classes inside a key type, outer ones first, with a serializer of each."""
    classes: dict[str, Serializer] = {}
    for serializer in all_parts(key):
        name = user_class(serializer)
        if name is not None:
            classes.setdefault(name, serializer)
    return classes


def formula_hash(formula: HashFormula, key: Serializer) -> Callable[[Any], int]:
    """Return a function that computes ``hashCode()`` of plain keys under a formula.

    Raises
    ------
    OptionError
        The class does not have a declared field.
    """
    return hashed(key, formula).hash_code


def hashed(serializer: Serializer, formula: HashFormula) -> Serializer:
    """Return the serializer with the formula's hash codes for the classes that the formula names."""
    name = user_class(serializer)
    convention = formula.of(name) if name is not None else None
    if convention is not None:
        return HashedSerializer(serializer, convention, formula)
    if isinstance(serializer, CompositeSerializer):
        inner = tuple(hashed(s, formula) for s in serializer.nested)
        if any(a is not b for a, b in zip(inner, serializer.nested, strict=True)):
            changed = copy.copy(serializer)
            changed.nested = inner
            return changed
    if isinstance(serializer, TtlAwareSerializer):
        return hashed(serializer.wrapped, formula)
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
                hint=f"its fields are {', '.join(names) or 'none'}",
            )
        self.places = [names.index(f) for f in convention.fields]
        self.parts = [hashed(parts[f], formula) for f in convention.fields]
        self._class_field = isinstance(serializer, PojoSerializer) and serializer.open

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
        return combine(convention, [part_hash(part, v, convention.style) for part, v in picked])


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
    h = convention.start
    for part in hashes:
        h = to_int32(convention.multiplier * h + part)
    return to_int32(h)


def class_fields(serializer: Serializer) -> dict[str, Serializer]:
    """Return the fields of a user class by name."""
    if isinstance(serializer, PojoSerializer):
        return dict(serializer.fields)
    return {} if isinstance(serializer, EnumSerializer | AvroSerializer) else dict(serializer.children())


def null_hash(style: Style) -> int:
    """Return the hash code of a null field."""
    return 43 if style in ("lombok", "lombok-boxed") else 0


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
    return part.hash_code(value)
