"""``ExternalSerializer``: values of a user class in SQL, written in the format of the internal serializer.

Outer payload of the snapshot: Java stream (data type), bool (input is internal). Nested: the internal serializer, which does not always
know the meaning of its numbers: that of a ``DATE`` is ``IntSerializer``. The data type does. Follows ``ExternalSerializer`` and
``InternalSerializers``, Flink 1.13 to 2.3.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import Clock, Op
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.binary_format import whole_millis
from statetool.serializers.sql.logical_types import SqlType, parse_logical_type
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.sql.runtime import TimestampDataSerializer
from statetool.serializers.typeutils.collections import WrapperSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer, composite
from statetool.types import DateType, LogicalType, Scalar, TimestampType

_NANOS: Final = 1_000_000


class ExternalSerializer(WrapperSerializer):
    """Value of the internal serializer, with the names and types of the data type."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.internal = self.nested[0]
        tree = read_java_stream(Cursor(self.outer))
        try:
            sql = parse_logical_type(tree.fields.get("logicalType") if isinstance(tree, JavaObject) else None)
        except UnsupportedError:
            return
        self.internal = with_names(self.nested[0], sql)

    @property
    def replaceable(self) -> bool:
        """Always False: the data type names the fields."""
        return False

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bytes:
        start = c.pos
        read_java_stream(c)
        c.bool()
        return bytes(c.data[start : c.pos])

    def write_outer(self, out: Output) -> None:
        out += self.outer

    @property
    def logical(self) -> LogicalType:
        return self.internal.logical

    def decode(self, c: Cursor) -> Any:
        return self.internal.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.internal.encode(out, value)

    def skip(self, c: Cursor) -> None:
        self.nested[0].skip(c)

    def hash_code(self, value: Any) -> int:
        """Raise an error: the object is of the user's class, not the internal one."""
        return CompositeSerializer.hash_code(self, value)

    def program(self) -> Op:
        return self.internal.program()


class NamedFieldsSerializer(Serializer):
    """Serializer with the same bytes and plain values as another one, but another logical type."""

    def __init__(self, part: Serializer, logical: LogicalType) -> None:
        super().__init__(part.snapshot_class, part.snapshot_version)
        self.part = part
        self._logical = logical
        self.length = part.length
        self.nullable = part.nullable

    @property
    def logical(self) -> LogicalType:
        return self._logical

    @property
    def type_name(self) -> str:
        return self.part.type_name

    def decode(self, c: Cursor) -> Any:
        return self.part.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.part.encode(out, value)

    def program(self) -> Op:
        return self.part.program()


class TimeSerializer(NamedFieldsSerializer):
    """``TIME``: i32 millis of day, decoded to nanoseconds."""

    def decode(self, c: Cursor) -> int:
        return c.i4() * _NANOS

    def encode(self, out: Output, value: Any) -> None:
        out.i4(whole_millis(value))

    def program(self) -> Op:
        return Clock("millis")


def with_names(part: Serializer, sql: SqlType) -> Serializer:
    """Return the internal serializer with the field names and the logical type that only the data type provides."""
    logical = part.logical
    if isinstance(part, RowDataSerializer) and len(sql.parts) == len(part.names):
        return part.with_names([name for name, _ in sql.parts])
    if isinstance(part, TimestampDataSerializer) and sql.root == "TIMESTAMP_LTZ":
        assert isinstance(logical, TimestampType)
        return NamedFieldsSerializer(part, TimestampType(logical.unit, zoned=True, digits=logical.digits))
    if logical == Scalar("int32") and sql.root == "DATE":
        return NamedFieldsSerializer(part, DateType())
    if logical == Scalar("int32") and sql.root == "TIME":
        return TimeSerializer(part, Scalar("time"))
    if logical == Scalar("int64") and sql.root == "INTERVAL DAY TO SECOND":
        return NamedFieldsSerializer(part, Scalar("day_interval"))
    return part


SNAPSHOTS: Final = {"ExternalSerializer$ExternalSerializerSnapshot": composite(ExternalSerializer)}
