"""Hash codes of keys by executing the ``hashCode()`` of their classes, with the values of stored keys."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.hashing.formulas import class_fields, user_class
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import CaseClassSerializer
from statetool.types import LogicalType
from statetool.types.declared import TypeContext
from statetool.types.execution import Boxed, Constant, Instance, Known, Result, Some
from statetool.types.java import BOXES


@dataclass(slots=True)
class Executed:
    """What came of the keys so far: the first reason that is not known, the first type hashed by its address, and the methods executed."""

    types: TypeContext
    unknown: str = ""
    address: str = ""
    visited: frozenset[tuple[str, str, int]] = frozenset()

    def take(self, result: Result) -> int:
        """Keep what a result says, and return it, 0 if it is not known."""
        self.visited |= result.visited
        self.unknown = self.unknown or result.unknown
        self.address = self.address or result.address
        return result.value if isinstance(result.value, int) else 0

    def serializer(self, key: Serializer) -> Serializer:
        """Return the serializer of a key whose hash codes come from the classes of a job."""
        if user_class(key) is not None and not isinstance(key, CaseClassSerializer):
            return _ExecutedSerializer(key, self)
        if isinstance(key, CompositeSerializer):
            changed = copy.copy(key)
            changed.nested = tuple(self.serializer(s) for s in key.nested)
            return changed
        return key

    def value(self, serializer: Serializer, value: Any, descriptor: str = "") -> Any:
        """Return a value of a key as the object that a job has."""
        if value is None:
            return None
        if isinstance(serializer, EnumSerializer):
            return self._constant(serializer.enum_class, value)
        if isinstance(serializer, KryoSerializer) and serializer.constants:
            return self._constant(serializer.type_class, value)
        if isinstance(serializer, PojoSerializer) or (isinstance(serializer, KryoSerializer) and serializer.fields):
            return self._instance(serializer, value)
        if isinstance(value, bool | int | float | str) and descriptor:
            return _scalar(value, descriptor, serializer)
        if isinstance(value, list) and descriptor[:1] == "[" and descriptor[1:] in ("I", "J", "S", "B", "D", "F", "Z"):
            return [int(v) if isinstance(v, bool) else v for v in value]
        if descriptor[:1] == "[":
            return Some("an array")
        try:
            return Known(f"a value of {serializer.type_name}", hash_code=serializer.hash_code(value))
        except StatetoolError:
            return Some(f"a value of {serializer.type_name}")

    def _constant(self, name: str, value: Any) -> Any:
        declared = self.types.find(name)
        constants = () if declared is None else declared.constants
        return Constant(name, value, constants.index(value)) if value in constants else Some(f"a constant of {name}")

    def _instance(self, serializer: Serializer, value: Any) -> Any:
        name = str(user_class(serializer))
        parts = class_fields(serializer)
        is_open = serializer.open if isinstance(serializer, PojoSerializer) else getattr(serializer, "is_open", False)
        source = self.types.source
        if (is_open and value[-1] != name) or source is None:
            return Some(f"an object of a subclass of {name}")
        descriptors: Mapping[str, str] = source.field_descriptors(name)
        fields = {
            field: self.value(part, value[place], descriptors.get(field, ""))
            for place, (field, part) in enumerate(parts.items())
        }
        return Instance(name, {**self._not_stored(name, descriptors, parts), **fields})

    def _not_stored(self, name: str, descriptors: Mapping[str, str], stored: Collection[str]) -> Mapping[str, Any]:
        """Return the fields of an object that its constructor sets and no serializer stores, such as transient ones."""
        missing = descriptors.keys() - set(stored)
        if not missing or self.types.source is None:
            return {}
        made = self.types.source.create(name, {})
        if made.fails or made.unknown:
            return {field: Some(f"the field {field}", may_be_null=True) for field in missing}
        return {field: value for field, value in made.fields.items() if field in missing}


def _scalar(value: Any, descriptor: str, serializer: Serializer) -> Any:
    if len(descriptor) == 1:
        return (
            ord(value)
            if descriptor == "C" and isinstance(value, str)
            else int(value)
            if isinstance(value, bool)
            else value
        )
    name = descriptor[1:-1].replace("/", ".")
    if name == "java.lang.String" and isinstance(value, str):
        return value
    if name in BOXES and not isinstance(value, str):
        return Boxed(name, int(value) if isinstance(value, bool) else value)
    try:
        return Known(f"a value of {serializer.type_name}", hash_code=serializer.hash_code(value))
    except StatetoolError:
        return Some(f"a value of {serializer.type_name}")


class _ExecutedSerializer(Serializer):
    """The serializer of a user class, with the hash codes of its method."""

    def __init__(self, serializer: Serializer, executed: Executed) -> None:
        super().__init__(serializer.snapshot_class, serializer.snapshot_version)
        self.serializer = serializer
        self._executed = executed

    @property
    def logical(self) -> LogicalType:
        return self.serializer.logical

    def decode(self, c: Cursor) -> Any:
        return self.serializer.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.serializer.encode(out, value)

    def hash_code(self, value: Any) -> int:
        executed = self._executed
        source = executed.types.source
        if source is None:
            return executed.take(Result(unknown="is not in a jar"))
        return executed.take(source.execute_hash(executed.value(self.serializer, value)))


def is_equal_to_itself(executed: Executed, key: Serializer, value: Any) -> bool:
    """Return False if ``equals`` of a job's class says that a key is not equal to its copy."""
    source = executed.types.source
    one, other = executed.value(key, value), executed.value(key, value)
    if source is None or not isinstance(one, Instance):
        return True
    result = source.execute_equals(one, other)
    return bool(result.unknown) or bool(result.value)
