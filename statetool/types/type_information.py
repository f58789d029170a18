"""The result of Flink's type extraction for a Java type, as a tree: the serializer of a field, and those of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from statetool.types.java import PRIMITIVES

Kind = Literal[
    "simple", "pojo", "kryo", "tuple", "either", "array", "enum", "copyable", "value", "avro", "nullable", "list", "set", "map",
    "row", "variable", "unknown",
]  # fmt: skip

#: Classes with a serializer of Flink's own, by class. The value is the name of the serializer's class without ``Serializer``.
SIMPLE: Final = {
    **dict(
        zip(PRIMITIVES.values(), ("Boolean", "Byte", "Short", "Char", "Int", "Long", "Float", "Double"), strict=True)
    ),
    "java.lang.String": "String",
    "java.lang.Void": "Void",
    "java.math.BigInteger": "BigInt",
    "java.math.BigDecimal": "BigDec",
    "java.util.Date": "Date",
    "java.sql.Date": "SqlDate",
    "java.sql.Time": "SqlTime",
    "java.sql.Timestamp": "SqlTimestamp",
    "java.time.Instant": "Instant",
}
_COLLECTIONS: Final = {"list": "java.util.List", "set": "java.util.Set", "map": "java.util.Map"}
_EITHER: Final = "org.apache.flink.types.Either"


@dataclass(frozen=True, slots=True)
class TypeInformation:
    """The serializer of a type.

    Attributes
    ----------
    kind
        ``simple`` for serializers without settings. ``nullable`` wraps another one, as Flink 2.x does for collections. ``variable`` is a
        type variable of the class itself, whose type only the job's code gives. ``unknown`` if class files do not determine it.
    java_class
        ``Class.getName()`` of the values, of the elements of an array, or of the variable's name. Empty for containers.
    name
        Name of a simple serializer without ``Serializer``, or the reason of an unknown one.
    parts
        Serializers of fields, elements, or keys and values.
    fields
        For a POJO, the name of each field and the class that declares it, in the order of ``parts``.
    constants
        Constants of an enum, or the schema of an Avro class; empty if they are not known.
    """

    kind: Kind
    java_class: str = ""
    name: str = ""
    parts: tuple[TypeInformation, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    constants: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the tree as text: ``TUPLE org.apache.flink.api.java.tuple.Tuple2(String, KRYO java.util.UUID)``."""
        if self.kind == "simple":
            return self.name
        shown = [str(part) for part in self.parts]
        if self.kind == "pojo":
            shown = [f"{name}: {part}" for (name, _), part in zip(self.fields, shown, strict=True)]
        head = self.kind.upper() + (f" {self.java_class}" if self.java_class and self.kind not in _NAMELESS else "")
        return f"{head}({', '.join(shown)})" if shown else head

    @property
    def type_class(self) -> str:
        """Return the class of the values by ``Class.getName()``, empty if it is not known."""
        match self.kind:
            case "array":
                return array_name(self.java_class)
            case "nullable":
                return self.parts[0].type_class
            case "either":
                return _EITHER
            case "variable" | "unknown":
                return ""
        return _COLLECTIONS.get(self.kind, self.java_class)

    @property
    def reason(self) -> str:
        """Return why the serializer, or one of its parts, is not known; empty if all are."""
        return next((part.name for part in self.walk() if part.kind == "unknown"), "")

    @property
    def is_settled(self) -> bool:
        """Return True if class files determine the whole serializer."""
        return not any(part.kind in ("unknown", "variable") for part in self.walk())

    def walk(self) -> Iterator[TypeInformation]:
        """Yield the serializer and all its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()


_NAMELESS: Final = ("either", "nullable", "list", "set", "map", "unknown")


def array_name(element: str) -> str:
    """Return the ``Class.getName()`` of arrays of a class."""
    return f"[{element}" if element.startswith("[") else f"[L{element};"


def simple(java_class: str) -> TypeInformation:
    """Return the serializer of Flink's own for a class, which must have one."""
    return TypeInformation("simple", java_class, SIMPLE[java_class])


def kryo(java_class: str) -> TypeInformation:
    """Return Kryo's serializer of a class."""
    return TypeInformation("kryo", java_class)


def unknown(reason: str) -> TypeInformation:
    """Return a serializer that class files do not determine."""
    return TypeInformation("unknown", "", reason)
