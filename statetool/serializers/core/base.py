"""Base class of bound serializers.

A :class:`Serializer` is created by reading a serializer snapshot. It knows its logical type, decodes, encodes and skips single values with
plain Python (the readable reference, values as in :mod:`statetool.types.logical`), describes its bytes to the kernels
(:meth:`Serializer.program`), and writes its snapshot back exactly as it was read. :mod:`statetool.serializers.table` maps class names to
implementations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from statetool.errors import FormatError, StatetoolError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord
from statetool.types import LogicalType, Scalar
from statetool.types.declared import ClassDeclaration
from statetool.types.java import JavaType

_SHOWN_DECLARATIONS: Final = 3


class Serializer(ABC):
    """A Flink ``TypeSerializer`` restored from its snapshot.

    Attributes
    ----------
    snapshot_class
        Java class name of the snapshot, as read (old package names are kept).
    snapshot_version
        Version number after the class name.
    length
        Flink's ``TypeSerializer.getLength()``: bytes of every value, or -1 if they vary.
        It decides whether composite keys have length markers.
    depth
        Levels of nested serializers, including this one.
    legacy_bytes, proxy_bytes
        Exact bytes of a snapshot in an old form (without and with its proxy); ``None`` for current ones.
    """

    length: int = -1
    #: Whether ``decode`` can return ``None`` for a top-level value.
    nullable: bool = False
    #: Whether ``None`` represents an object (Scala's ``None`` and ``()``) instead of Java's null.
    none_is_value: bool = False
    depth: int = 1

    def __init__(self, snapshot_class: str, snapshot_version: int) -> None:
        self.snapshot_class = snapshot_class
        self.snapshot_version = snapshot_version
        self.legacy_bytes: bytes | None = None
        self.proxy_bytes: bytes | None = None

    @property
    @abstractmethod
    def logical(self) -> LogicalType:
        """Logical type of the values."""

    @abstractmethod
    def decode(self, c: Cursor) -> Any:
        """Read one value (plain, see :mod:`statetool.types.logical`).

        Raises
        ------
        DecodeError, FormatError
            With the offset and the path inside the type.
        """

    @abstractmethod
    def encode(self, out: Output, value: Any) -> None:
        """Append one value, byte for byte as Flink writes it.

        Raises
        ------
        EncodeError
            The value cannot be written by this serializer.
        """

    def _repr_html_(self) -> str:
        """Return the type as an HTML list for notebooks."""
        inner = "".join(f"<li>{escape(str(step))}: {child._repr_html_()}</li>" for step, child in self.children())
        return escape(self.type_name) + (f"<ul>{inner}</ul>" if inner else "")

    def skip(self, c: Cursor) -> None:
        """Skip one value (``length`` is not reliable for this: ``VoidNamespace`` reports 0 but takes 1 byte)."""
        self.decode(c)

    def hash_code(self, value: Any) -> int:
        """Return Java's ``hashCode()`` of the object, as a signed 32-bit int.

        Raises
        ------
        UnsupportedError
            The hash is computed by user code or is not stable (POJO, enum, arrays, ...).
        """
        raise UnsupportedError(
            f"hashCode() of {self.type_name} is not known",
            hint="keys of this type keep the key groups that they were read from",
        )

    def null_form(self) -> bytes | None:
        """Return the bytes of Java's null at top level, ``None`` if there are none or if ``None`` represents an object."""
        if not self.nullable or self.none_is_value or self.logical == Scalar("null"):
            return None
        out = Output()
        self.encode(out, None)
        return bytes(out)

    def as_key(self) -> Serializer:
        """Return the serializer in the variant used for the keys of an operator."""
        return self

    def key_forms(self, value: Any) -> tuple[tuple[bytes, int | None], ...]:
        """Return every form in which Flink may have written a key, with its hash code (``None`` if user code computes it).

        Raises
        ------
        EncodeError
            Not a key of this type.
        """
        out = Output()
        self.encode(out, value)
        try:
            return ((bytes(out), self.hash_code(value)),)
        except UnsupportedError:
            return ((bytes(out), None),)

    def program(self) -> Op:
        """Describe the bytes to the kernels. Types that kernels do not support are decoded record by record."""
        return PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        """Append the part of the snapshot after class name and version."""

    def write_snapshot(self, out: Output) -> None:
        """Append the versioned snapshot (``TypeSerializerSnapshot.writeVersionedSnapshot``)."""
        if self.legacy_bytes is not None:
            out += self.legacy_bytes
            return
        out.utf(self.snapshot_class)
        out.i4(self.snapshot_version)
        self.write_payload(out)

    def declarations(self) -> tuple[ClassDeclaration, ...]:
        """Return the user's class declarations used to read values."""
        return tuple(dict.fromkeys(d for _, s in self.children() for d in s.declarations()))

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        """Return nested serializers with the step that leads to each (field name, ``element``, ``key``, ...)."""
        return ()

    @property
    def replaceable(self) -> bool:
        """Return True if :meth:`with_child` can replace a nested serializer."""
        return False

    def with_child(self, step: str, part: Serializer) -> Serializer:
        """Return this serializer with a nested serializer replaced by one that reads and writes the same bytes."""
        raise UnsupportedError(f"no part of {self.type_name} can be replaced")

    @property
    def needs_frame(self) -> bool:
        """Return True if the end of a value cannot be found, so that it is only readable if it fills a frame."""
        return False

    @property
    def missing_declaration_hint(self) -> str:
        """Hint for the user on how to decode values that stay bytes, empty if nothing helps."""
        return next((m for _, child in self.children() if (m := child.missing_declaration_hint)), "")

    def replace_fields(self, fields: Mapping[str, Serializer]) -> None:
        """Give some fields other serializers; only POJOs have fields whose serializer may be unknown."""

    def with_java_type(self, kind: JavaType) -> Serializer:
        """Return the serializer for values of a declared Java type; only Kryo's decodes more with it."""
        return self

    @property
    def type_name(self) -> str:
        """Short name for messages and ``op.states``: ``Map<String, Long>``, ``POJO com.acme.Order``."""
        name = type(self).__name__.removesuffix("Serializer")
        nested = ", ".join(child.type_name for _, child in self.children())
        return f"{name}<{nested}>" if nested else name


def all_parts(serializer: Serializer) -> Iterator[Serializer]:
    """Yield a serializer and all serializers nested in it."""
    yield serializer
    for _, child in serializer.children():
        yield from all_parts(child)


def blame(error: StatetoolError, *serializers: Serializer) -> None:
    """Add a hint to an error about bytes that did not fit: one of the declarations used may be wrong."""
    declared = tuple(dict.fromkeys(d for s in serializers for d in s.declarations()))
    if not declared or not isinstance(error, FormatError) or "declare" in error.hint:
        return
    shown = ", ".join(map(str, declared[:_SHOWN_DECLARATIONS]))
    more = f" and {len(declared) - _SHOWN_DECLARATIONS} more" if len(declared) > _SHOWN_DECLARATIONS else ""
    error.hint = f"read as declared: {shown}{more}; a declaration is wrong, or the bytes are damaged"
