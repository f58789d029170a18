"""Snapshot classes that only say the name of a serializer class: ``ParameterlessTypeSerializerConfig`` (Flink <= 1.6)."""

from __future__ import annotations

from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.serializers.base import Serializer
from statetool.serializers.simple import SimpleSerializer, SimpleType
from statetool.serializers.snapshot import Reader


def parameterless(types: dict[str, SimpleType]) -> Reader:
    """Return the reader; ``types`` are all simple types by the simple name of their serializer class."""

    def read(c: Cursor, name: str, version: int) -> Serializer:
        at = c.offset
        serializer_class = c.utf()
        spec = types.get(serializer_class.replace(".Serializer", "$Serializer").rpartition(".")[2])
        if spec is None:
            raise UnknownSerializerError(f"serializer class {serializer_class!r} is not known").at(offset=at)
        return SimpleSerializer(name, version, spec, serializer_class)

    return Reader(read, read)


def by_serializer_class(*families: tuple[SimpleType, ...]) -> dict[str, SimpleType]:
    """Index simple types by the simple name of Flink's serializer class."""
    return {_class_name(t.name): t for family in families for t in family}


_NESTED_CLASSES: Final = {"TimeWindow", "GlobalWindow", "CountWindow"}


def _class_name(name: str) -> str:
    return f"{name}$Serializer" if name in _NESTED_CLASSES else f"{name}Serializer"
