"""Rows, arrays and maps of the table runtime, with the types stored in their snapshots.

Data: i32 size and that many bytes in a binary format (:mod:`statetool.serializers.sql.binary_format`). Snapshots:

=====================  ==========================================================================================
``RowData``            i32 n, n Java streams (logical types), nested block of n serializers
``BinaryRowData``      i32 number of fields, no types: values stay bytes until the user declares them
``ArrayData``          two Java streams: logical type and serializer of the element
``MapData``            four: logical types of key and value, their serializers
``RawValue``           nested block of the serializer of the value
=====================  ==========================================================================================

Java streams are parsed as data and written back as read. If one contains an unknown type, values stay bytes.
Follows ``RowDataSerializer``, ``BinaryRowDataSerializer``, ``ArrayDataSerializer``, ``MapDataSerializer``
and ``RawValueDataSerializer``, Flink 1.11 to 2.3.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Sequence
from typing import Any, Final

from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import BinaryData, Counted, Framed, Op, SlotKind
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.simple_types import serializer_of_class
from statetool.serializers.sql import binary_format as fmt
from statetool.serializers.sql.binary_region import Region
from statetool.serializers.sql.logical_types import SqlType, parse_logical_type
from statetool.serializers.typeutils.composite import CompositeSerializer, composite, inside, sequence
from statetool.serializers.typeutils.row import KIND_FIELD, ROW_KINDS
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.java_hash import hash_binary


def slot_format(sql: SqlType, part: Serializer | None = None) -> fmt.SlotFormat:
    """Return the layout of a type's values in a slot.

    Parameters
    ----------
    part
        Serializer of the type, if the snapshot has one: it knows the content of ``RAW`` values.
    """
    match sql.root:
        case "CHAR" | "VARCHAR":
            return fmt.TextFormat()
        case "BINARY" | "VARBINARY":
            return fmt.BytesFormat()
        case "DECIMAL":
            return fmt.DecimalFormat(sql.precision, sql.scale)
        case "DATE":
            return fmt.date_format()
        case "TIME":
            return fmt.TimeFormat()
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return fmt.TimestampFormat(sql.precision, zoned=sql.root == "TIMESTAMP_LTZ")
        case "ARRAY":
            return fmt.ArrayFormat(slot_format(sql.parts[0][1]))
        case "MAP" | "MULTISET":
            return fmt.MapFormat(slot_format(sql.parts[0][1]), slot_format(sql.parts[1][1]))
        case "ROW" | "STRUCTURED":
            return row_format(sql.parts, part.nested if isinstance(part, RowDataSerializer) else ())
        case "DISTINCT":
            return slot_format(sql.parts[0][1], part)
        case "RAW":
            return _raw_format(sql, part)
        case "VARIANT":
            return fmt.VariantFormat()
        case "BITMAP":
            return fmt.bitmap_format()
        case "NULL":
            return fmt.NullFormat()
    return fmt.NumberFormat(*_NUMBERS[sql.root])


_NUMBERS: Final[dict[str, tuple[SlotKind, LogicalType]]] = {
    "BOOLEAN": ("bool", Scalar("bool")),
    "TINYINT": ("i8", Scalar("int8")),
    "SMALLINT": ("i16", Scalar("int16")),
    "INT": ("i32", Scalar("int32")),
    "BIGINT": ("i64", Scalar("int64")),
    "FLOAT": ("f32", Scalar("float32")),
    "DOUBLE": ("f64", Scalar("float64")),
    # Months: Spark takes year-month intervals from Arrow only as YEAR_MONTH intervals, for which PyArrow has no arrays.
    "INTERVAL YEAR TO MONTH": ("i32", Scalar("int32")),
    "INTERVAL DAY TO SECOND": ("i64", Scalar("day_interval")),
}


def row_format(parts: Sequence[tuple[str, SqlType]], nested: Sequence[Serializer] = ()) -> fmt.RowFormat:
    """Return the format of a row of named fields; ``nested`` are their serializers, if known."""
    serializers = nested if len(nested) == len(parts) else (None,) * len(parts)
    return fmt.RowFormat(
        [n for n, _ in parts], [slot_format(t, part) for (_, t), part in zip(parts, serializers, strict=True)]
    )


def _raw_format(sql: SqlType, part: Serializer | None) -> fmt.SlotFormat:
    if isinstance(part, RawValueSerializer):
        inner: Serializer | None = part.nested[0]
    else:
        inner = serializer_of_class(sql.serializer)
    # Data views of accumulators are RAW values of a serializer that writes null as one byte; this byte distinguishes them from "no value".
    if inner is None or inner.logical == Scalar("null") or (inner.needs_frame and not inner.children()):
        return fmt.RawFormat(None, Scalar("binary"))
    return fmt.RawFormat(inner, inner.logical)


class BinaryDataSerializer(Serializer):
    """Base of serializers that write i32 size and bytes in a binary format; the base class decodes values as those bytes.

    ``payload`` is the snapshot's, exactly as read; ``sql`` are the types, ``reason`` explains why there are none.
    """

    def __init__(
        self, name: str, version: int, payload: bytes, sql: tuple[SqlType, ...] = (), *, reason: str = ""
    ) -> None:
        super().__init__(name, version)
        self.payload = payload
        self.sql = sql
        self.reason = reason

    @property
    def to_declare(self) -> str:
        """Return the declaration needed to decode values to more than bytes, empty if nothing helps."""
        return ""

    def declared_type(self) -> SqlType:
        """Return the SQL type for which Flink creates this serializer."""
        raise UnsupportedError(f"the types of {self.type_name} are not known")

    @property
    def type_name(self) -> str:
        name = self.snapshot_class.rpartition("$")[2].removesuffix("SerializerSnapshot")
        return f"{name} (bytes: {self.reason})" if self.reason else f"{name}<{', '.join(map(str, self.sql))}>"

    @property
    def logical(self) -> LogicalType:
        return Scalar("binary")

    def decode(self, c: Cursor) -> Any:
        return c.bytes4("binary data")

    def encode(self, out: Output, value: Any) -> None:
        out.bytes4(self.encode_body(value))

    def encode_body(self, value: Any) -> bytes:
        """Return the bytes after the size."""
        if not isinstance(value, bytes):
            raise EncodeError(f"{type(value).__name__} instead of the bytes of {self.type_name}", hint=self.to_declare)
        return value

    def skip(self, c: Cursor) -> None:
        c.skip(c.i4())

    def hash_code(self, value: Any) -> int:
        """Hash of a binary row, computed over its bytes."""
        if not self.snapshot_class.endswith("RowDataSerializerSnapshot"):
            return super().hash_code(value)
        return hash_binary(self.encode_body(value))

    def program(self) -> Op:
        return Counted()

    def write_payload(self, out: Output) -> None:
        out += self.payload


class RowDataSerializer(BinaryDataSerializer):
    """Struct of ``f0`` .. (or the given names), and ``_kind``: ``+I``, ``-U``, ``+U`` or ``-D``.

    As key of an operator (:meth:`as_key`) it has no ``_kind``: keys are ``+I``. Keys and other rows made by projections
    (:meth:`as_projection`) are written like projections write them.
    """

    def __init__(
        self, name: str, version: int, payload: bytes, sql: tuple[SqlType, ...], nested: tuple[Serializer, ...]
    ) -> None:
        super().__init__(name, version, payload, sql)
        self.nested = nested
        self.format = row_format([(f"f{i}", t) for i, t in enumerate(sql)], nested)
        self.row_kind = True
        self.projected = False

    def declared_type(self) -> SqlType:
        return SqlType(root="ROW", parts=tuple(zip(self.names, self.sql, strict=True)))

    def as_key(self) -> RowDataSerializer:
        key = self.as_projection()
        key.row_kind = False
        return key

    def as_projection(self) -> RowDataSerializer:
        """Return the serializer of rows that a generated projection made: sort keys, unique keys."""
        projection = copy.copy(self)
        projection.projected = True
        return projection

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return self.format.names

    def is_view(self, name: str) -> bool:
        """Return True if a field stands for a view of an accumulator, whose values are a state."""
        sql = self.sql[self.names.index(name)] if name in self.names else None
        return sql is not None and sql.root == "RAW" and "NullSerializer" in str(sql)

    def with_names(self, names: Sequence[str]) -> RowDataSerializer:
        """Return the serializer with other names for its fields."""
        named = copy.copy(self)
        named.format = fmt.RowFormat(names, self.format.fields)
        return named

    @property
    def logical(self) -> StructType:
        assert isinstance(self.format.logical, StructType)
        fields = self.format.logical.fields
        return StructType((*fields, Field(KIND_FIELD, Scalar("string")))) if self.row_kind else StructType(fields)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        r = Region.of(c, c.i4(), "binary row")
        kind, values = self.format.decode(r)
        if self.row_kind:
            return (*values, ROW_KINDS[kind])
        if kind:
            raise r.fail(f"a key of row kind {ROW_KINDS[kind]}", 0)
        return values

    def encode_body(self, value: Any) -> bytes:
        """Return the bytes of a row; ``_kind`` may be omitted and defaults to ``+I``."""
        return self._row(value, projected=self.projected)

    def _row(self, value: Any, *, projected: bool) -> bytes:
        n = len(self.format.fields)
        values = sequence(value, "row")
        kind = 0
        if len(values) == n + 1:
            if values[-1] not in ROW_KINDS:
                raise EncodeError(f"{values[-1]!r} is not a row kind ({', '.join(ROW_KINDS)})")
            kind = ROW_KINDS.index(values[-1])
            values = values[:n]
        with _plain_errors("row"):
            return self.format.encode(kind, values, projected=projected)

    def key_forms(self, value: Any) -> tuple[tuple[bytes, int | None], ...]:
        forms = [self._row(value, projected=True)]
        if self.format.has_long_nulls:
            forms.append(self._row(value, projected=False))
        return tuple((len(raw).to_bytes(4, "big") + raw, hash_binary(raw)) for raw in dict.fromkeys(forms))

    def program(self) -> Op:
        return BinaryData(self.format.op, self.row_kind)


class BinaryRowSerializer(BinaryDataSerializer):
    """``BinaryRowDataSerializer``: bytes of rows with a known number of fields, whose types only the user knows."""

    def __init__(self, name: str, version: int, payload: bytes) -> None:
        super().__init__(name, version, payload, reason="its snapshot has no types")
        self.arity = int.from_bytes(payload, "big", signed=True)
        self.row_kind = True
        self.projected = False

    @property
    def to_declare(self) -> str:
        return f'bytes of rows of {self.arity} fields until their types are declared, as in columns={{"key": "ROW<id BIGINT, ...>"}}'

    def as_key(self) -> BinaryRowSerializer:
        key = self.as_projection()
        key.row_kind = False
        return key

    def as_projection(self) -> BinaryRowSerializer:
        """Return the serializer of rows that a generated projection made."""
        projection = copy.copy(self)
        projection.projected = True
        return projection

    def with_types(self, sql: SqlType) -> RowDataSerializer:
        """Return the serializer of the same bytes with types, one per field."""
        types = tuple(t for _, t in sql.parts)
        row = RowDataSerializer(self.snapshot_class, self.snapshot_version, self.payload, types, ())
        row.legacy_bytes, row.proxy_bytes = self.legacy_bytes, self.proxy_bytes
        row.row_kind, row.projected = self.row_kind, self.projected
        return row


class ArrayDataSerializer(BinaryDataSerializer):
    """List of the element's type."""

    def __init__(self, name: str, version: int, payload: bytes, sql: tuple[SqlType, ...]) -> None:
        super().__init__(name, version, payload, sql)
        self.format = fmt.ArrayFormat(slot_format(sql[0]))

    def declared_type(self) -> SqlType:
        return SqlType(root="ARRAY", parts=(("element", self.sql[0]),))

    @property
    def logical(self) -> LogicalType:
        return self.format.logical

    def decode(self, c: Cursor) -> list[Any]:
        return self.format.decode(Region.of(c, c.i4(), "binary array"))

    def encode_body(self, value: Any) -> bytes:
        with _plain_errors("array"):
            return self.format.encode(value)

    def program(self) -> Op:
        return BinaryData(self.format.op)


class MapDataSerializer(BinaryDataSerializer):
    """Map of the types of key and value."""

    def __init__(self, name: str, version: int, payload: bytes, sql: tuple[SqlType, ...]) -> None:
        super().__init__(name, version, payload, sql)
        self.format = fmt.MapFormat(slot_format(sql[0]), slot_format(sql[1]))

    def declared_type(self) -> SqlType:
        return SqlType(root="MAP", parts=(("key", self.sql[0]), ("value", self.sql[1])))

    @property
    def logical(self) -> LogicalType:
        return self.format.logical

    def decode(self, c: Cursor) -> list[tuple[Any, Any]]:
        return self.format.decode(Region.of(c, c.i4(), "binary map"))

    def encode_body(self, value: Any) -> bytes:
        with _plain_errors("map"):
            return self.format.encode(value)

    def program(self) -> Op:
        return BinaryData(self.format.op)


class _plain_errors:
    """Converter of Python's errors for values of other types to ``EncodeError``."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (TypeError, AttributeError, UnicodeError, OverflowError, struct.error)):
            raise EncodeError(f"a value that does not fit its field in a binary {self.what}: {error}") from error


class RawValueSerializer(CompositeSerializer):
    """``RawValueDataSerializer``: i32 size, then a value of the inner serializer."""

    steps = ("value",)

    @property
    def needs_frame(self) -> bool:
        """Return False: the size determines the end of a value, whatever it contains."""
        return False

    @property
    def logical(self) -> LogicalType:
        return self.nested[0].logical

    def decode(self, c: Cursor) -> Any:
        inner = c.slice(c.i4(), "raw value")
        with inside("value"):
            value = self.nested[0].decode(inner)
        inner.expect_end("a raw value")
        return value

    def encode(self, out: Output, value: Any) -> None:
        inner = Output()
        self.nested[0].encode(inner, value)
        out.bytes4(inner)

    def skip(self, c: Cursor) -> None:
        c.skip(c.i4())

    def program(self) -> Op:
        return Framed(self.nested[0].program())


def _read_row_data(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    trees = [read_java_stream(c) for _ in range(c.count("logical types", at_least=5))]
    nested = reader.nested(c)
    # Stored from version 4 on (after Flink 2.3), and only if the job knew them.
    names = tuple(c.utf() for _ in trees) if version >= 4 and c.bool() else ()
    payload = bytes(c.data[start : c.pos])
    try:
        if len(nested) != len(trees):
            raise c.fail(f"{len(nested)} serializers for {len(trees)} fields of a row")
        row = RowDataSerializer(name, version, payload, tuple(map(parse_logical_type, trees)), nested)
        folded = {n.lower() for n in names}
        # Names that differ only in case, or a name _kind, cannot be columns of a table: no names are used.
        return row.with_names(names) if names and len(folded) == len(names) and KIND_FIELD not in folded else row
    except UnsupportedError as error:
        return BinaryDataSerializer(name, version, payload, reason=error.message)


def _read_binary_row(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return BinaryRowSerializer(name, version, c.take(4))


def _java_payload(cls: type[ArrayDataSerializer] | type[MapDataSerializer], types: int) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        start = c.pos
        trees = [read_java_stream(c) for _ in range(2 * types)][:types]
        payload = bytes(c.data[start : c.pos])
        try:
            return cls(name, version, payload, tuple(map(parse_logical_type, trees)))
        except UnsupportedError as error:
            return BinaryDataSerializer(name, version, payload, reason=error.message)

    return SnapshotClass(read, (3,))


SNAPSHOTS: Final = {
    "RowDataSerializer$RowDataSerializerSnapshot": SnapshotClass(_read_row_data, (3, 4)),
    "BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot": SnapshotClass(_read_binary_row, (3,)),
    "ArrayDataSerializer$ArrayDataSerializerSnapshot": _java_payload(ArrayDataSerializer, 1),
    "MapDataSerializer$MapDataSerializerSnapshot": _java_payload(MapDataSerializer, 2),
    "RawValueDataSerializer$RawValueDataSerializerSnapshot": composite(RawValueSerializer, outer_versions=(0,)),
}
