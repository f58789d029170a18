"""Serializers without parts: their snapshot has no payload (``SimpleTypeSerializerSnapshot``).

Version 3 has nothing after the version number, version 2 (Flink 1.7) has the serializer's class name, and up to 1.6
``ParameterlessTypeSerializerConfig`` contains the serializer's class name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.types import LogicalType, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleType:
    """One such type.

    ``name`` is the simple name of Flink's serializer class without ``Serializer``. ``length`` is ``getLength()``, ``size`` the bytes on the
    wire if these differ.
    """

    name: str
    logical: LogicalType
    length: int
    decode: Callable[[Cursor], Any]
    encode: Callable[[Output, Any], None]
    op: Op | None = None
    size: int | None = None
    nullable: bool = False
    none_is_value: bool = False
    hash_code: Callable[[Any], int] | None = None

    def serializer(self, java_class: str) -> SimpleSerializer:
        """Return the serializer of a class for which no snapshot was stored."""
        return SimpleSerializer(f"{java_class}${self.name}SerializerSnapshot", 3, self, None)


class SimpleSerializer(Serializer):
    """A serializer of a :class:`SimpleType`."""

    def __init__(self, snapshot_class: str, version: int, spec: SimpleType, class_in_payload: str | None) -> None:
        super().__init__(snapshot_class, version)
        self.spec = spec
        self.length = spec.length
        self.nullable = spec.nullable
        self.none_is_value = spec.none_is_value
        self._class_in_payload = class_in_payload

    @property
    def logical(self) -> LogicalType:
        return self.spec.logical

    @property
    def type_name(self) -> str:
        return self.spec.name

    def decode(self, c: Cursor) -> Any:
        return self.spec.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        try:
            self.spec.encode(out, value)
        except (TypeError, AttributeError, UnicodeError, OverflowError, struct.error) as e:
            raise EncodeError(f"{value!r} is not a value of {self.type_name}: {e}") from e

    def skip(self, c: Cursor) -> None:
        size = self.spec.size if self.spec.size is not None else self.length
        if size >= 0:
            c.skip(size)
        else:
            self.spec.decode(c)

    def hash_code(self, value: Any) -> int:
        if self.spec.hash_code is None:
            return super().hash_code(value)
        return 0 if value is None and self.spec.logical != Scalar("null") else self.spec.hash_code(value)

    def program(self) -> Op:
        return self.spec.op if self.spec.op is not None else PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        if self._class_in_payload is not None:
            out.utf(self._class_in_payload)


def simple_readers(specs: Iterable[SimpleType]) -> dict[str, SnapshotClass]:
    """Return snapshot readers by the simple class name of the snapshot (``XSerializer$XSerializerSnapshot``)."""
    return {f"{spec.name}Serializer${spec.name}SerializerSnapshot": simple_class(spec) for spec in specs}


def simple_class(spec: SimpleType) -> SnapshotClass:
    """Return the reader of the snapshots of a type."""

    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        return SimpleSerializer(name, version, spec, c.utf() if version == 2 else None)

    return SnapshotClass(read, (2, 3))
