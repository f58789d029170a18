"""Base of serializers with nested serializers (``CompositeTypeSerializerSnapshot``).

Version 3: i32 911108, i32 outer version, outer payload, nested block. Versions 1 and 2 (Flink 1.7): outer payload, nested block; the
snapshot version itself is the outer version. Flink 1.6 and older: a resilient list, which for tuples ends with a Java stream of their
class.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from statetool.errors import EncodeError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Flagged, NonNullFlag, Op
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import (
    COMPOSITE_MAGIC,
    SnapshotClass,
    SnapshotReader,
    check_version,
    write_nested,
)


class CompositeSerializer(Serializer):
    """A serializer with parts.

    ``outer_version`` is the version of the outer payload (``None`` for the form of Flink 1.7, which uses
    the snapshot's version).
    """

    #: Required number of nested serializers; ``None`` for any number.
    arity: int | None = 1
    #: The step to each part, for messages.
    steps: tuple[str, ...] = ("element",)

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Serializer, ...]) -> None:
        super().__init__(name, version)
        self.outer_version = outer_version
        self.outer = outer
        self.nested = nested
        self._framed_only = any(part.needs_frame for part in nested)

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        return tuple(zip(self.steps, self.nested, strict=True))

    @property
    def replaceable(self) -> bool:
        return True

    def with_child(self, step: str, part: Serializer) -> Serializer:
        changed = copy.copy(self)
        changed.nested = tuple(part if name == step else old for name, old in self.children())
        return changed

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> Any:
        """Read the outer payload of this outer version; most classes have none."""
        return None

    @staticmethod
    def legacy_outer(c: Cursor, name: str) -> Any:
        """Read the data that followed the resilient list up to Flink 1.6."""
        return None

    def write_outer(self, out: Output) -> None:
        """Append the outer payload."""

    @property
    def needs_frame(self) -> bool:
        return self._framed_only

    def write_payload(self, out: Output) -> None:
        if self.snapshot_version >= 3:
            out.i4(COMPOSITE_MAGIC)
            out.i4(self.outer_version)
        self.write_outer(out)
        write_nested(out, self.nested)


def after_flag(part: Serializer, null_flag: int) -> Op:
    """Return the program of a part after a null flag; if ``None`` represents an object, the flag never means null."""
    if part.none_is_value:
        return NonNullFlag(part.program(), 1 - null_flag)
    return Flagged(part.program(), null_flag=null_flag)


def read_null(c: Cursor, part: Serializer) -> Any:
    """Return ``None`` for a null flag; raise an error if ``None`` represents an object."""
    if part.none_is_value:
        raise c.fail(f"a null in the place of a {part.type_name}, whose None is an object", pos=c.pos - 1)
    return None


class inside:
    """Add the failing part of a type to errors (a generator would cost more than most values)."""

    __slots__ = ("step",)

    def __init__(self, step: str) -> None:
        self.step = step

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StatetoolError):
            error.inside(self.step)


def sequence(value: Any, what: str, size: int | None = None) -> Sequence[Any]:
    """Return ``value`` if it is a list or tuple (of ``size`` parts).

    Raises
    ------
    EncodeError
        It is neither, or has another size.
    """
    if not isinstance(value, (list, tuple)):
        raise EncodeError(f"{value!r} is not a value of a {what}")
    if size is not None and len(value) != size:
        raise EncodeError(f"{len(value)} values for the {size} parts of a {what}")
    return value


def check_last(c: Cursor, part: Serializer, *, last: bool) -> None:
    """Raise an error when reading on after a value whose end cannot be found.

    Raises
    ------
    UnknownSerializerError
        ``part`` only ends at the end of its frame, and something would follow it.
    """
    if part.needs_frame and not last:
        raise UnknownSerializerError(
            f"the end of a value of {part.type_name} cannot be found, and more follows it",
            hint=part.missing_declaration_hint
            or "values of this type can be read only where they end a frame; on_error='keep_raw' keeps the bytes",
        ).at(offset=c.offset)


def sum_of_lengths(parts: tuple[Serializer, ...]) -> int:
    """Return the ``getLength()`` of a serializer that only writes its parts: -1 if one of them varies."""
    lengths = [part.length for part in parts]
    return -1 if any(n < 0 for n in lengths) else sum(lengths)


def composite(cls: type[CompositeSerializer], *, outer_versions: tuple[int, ...] = (1,)) -> SnapshotClass:
    """Return the reader of a composite snapshot, which up to Flink 1.6 was a plain resilient list."""

    def build(
        c: Cursor, name: str, version: int, outer_version: int, outer: Any, parts: tuple[Serializer, ...]
    ) -> Serializer:
        if cls.arity is not None and len(parts) != cls.arity:
            raise c.fail(f"{name} has {len(parts)} nested serializers, expected {cls.arity}")
        try:
            return cls(name, version, outer_version, outer, parts)
        except StatetoolError as error:
            raise error.at(offset=c.offset) from error.__cause__

    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        outer_version = version  # as written by Flink 1.7
        if version == 3:
            if c.i4() != COMPOSITE_MAGIC:
                raise c.fail(f"expected the magic number of a composite snapshot in {name}", pos=c.pos - 4)
            outer_version = c.i4()
            check_version(c, f"{name} outer", outer_version, outer_versions)
        outer = cls.read_outer(c, outer_version)
        return build(c, name, version, outer_version, outer, reader.nested(c))

    def read_list(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        parts = reader.resilient_list(c)
        return build(c, name, version, min(outer_versions), cls.legacy_outer(c, name), parts)

    # The list of TTL had version 0, all others 1.
    return SnapshotClass(read, (1, 2, 3), read_list, (0, 1), outer_versions)
