"""Protocols of the reader and the writer of one value, which codecs call for nested objects (:mod:`statetool.serializers.kryo.graph`)."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.wire import Generation
from statetool.types.declared import ClassDeclaration
from statetool.types.java import JavaType

#: Type arguments of a declared type.
Args: TypeAlias = tuple[JavaType, ...]


class Classes(Protocol):
    """Properties of classes that determine the layout of values."""

    def declared(self, name: str) -> ClassDeclaration | None:
        """Return the declaration of a class."""
        ...

    def is_final(self, declared: JavaType) -> bool:
        """Return True if Kryo omits the class of values of a declared type."""
        ...


class ValueReader(Protocol):
    """Reader of one value."""

    c: Cursor
    gen: Generation

    @property
    def classes(self) -> Classes:
        """Properties of classes."""
        ...

    def class_name(self) -> str | None:
        """Read a class; ``None`` for null."""
        ...

    def value(self, args: Args = ()) -> Obj | None:
        """Read a class and its object."""
        ...

    def object(self, name: str, args: Args = (), *, nullable: bool = False) -> Obj | None:
        """Read an object of a known class; ``nullable`` if null has a separate marker."""
        ...

    def final(self, name: str) -> Any:
        """Read an object of a final class that cannot be null, and return its value."""
        ...

    def field(self, declared: JavaType) -> Obj | None:
        """Read the value of a field (or component) of a declared type."""
        ...

    def java(self, name: str) -> Any:
        """Read an object in Java serialization; later objects of a class continue in the stream of the first."""
        ...

    def unknown(self, name: str) -> UnknownSerializerError:
        """Make the error for an undeclared class."""
        ...


class ValueWriter(Protocol):
    """Writer of one value."""

    out: Output
    gen: Generation

    @property
    def classes(self) -> Classes:
        """Properties of classes."""
        ...

    def java(self, name: str) -> None:
        """Note that an object is written in a Java stream."""
        ...

    def class_name(self, name: str | None) -> None:
        """Append a class."""
        ...

    def value(self, obj: Obj | None, args: Args = ()) -> None:
        """Append a class and its object."""
        ...

    def object(self, obj: Obj | None, args: Args = (), *, nullable: bool = False) -> None:
        """Append an object whose class is known."""
        ...

    def field(self, declared: JavaType, obj: Obj | None) -> None:
        """Append the value of a field of a declared type."""
        ...
