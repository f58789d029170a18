"""Lists, sets and maps: i32 n and the elements.

``Map``: n times key, bool value is null, value unless null. ``NullAwareMap``: a null flag also before the key. ``Set`` (2.x): a null flag
before each element. List and map views of the table runtime have the layout of the list or map that they wrap. Follows ``ListSerializer``,
``ArrayListSerializer``, ``SetSerializer``, ``MapSerializer``, ``NullAwareMapSerializer``.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Flagged, Op, Pairs, PerRecord, Repeated, or_per_record
from statetool.kernels.values.sizes import MAX_EMPTY_ELEMENTS
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.composite import (
    CompositeSerializer,
    after_flag,
    check_last,
    composite,
    inside,
    read_null,
    sequence,
)
from statetool.types import ListType, LogicalType, MapType
from statetool.types.java_hash import hash_chain, to_int32


def count_elements(c: Cursor, element: Serializer) -> int:
    """Read the number of elements that follow; zero-byte elements (``NullValue``) are limited by number."""
    if element.length != 0:
        return c.count("list elements")
    n = c.i4()
    if not 0 <= n <= MAX_EMPTY_ELEMENTS:
        raise c.fail(f"{n} list elements that take no bytes (at most {MAX_EMPTY_ELEMENTS})", pos=c.pos - 4)
    return n


def hash_or_zero(serializer: Serializer, value: Any) -> int:
    """``Objects.hashCode``: 0 for null."""
    return 0 if value is None else serializer.hash_code(value)


class ListSerializer(CompositeSerializer):
    """i32 n, n elements."""

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> list[Any]:
        element = self.nested[0]
        n = count_elements(c, element)
        with inside("element"):
            check_last(c, element, last=n <= 1)
            return [element.decode(c) for _ in range(n)]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "list")))
        with inside("element"):
            for item in value:
                self.nested[0].encode(out, item)

    def hash_code(self, value: Any) -> int:
        """``List.hashCode``."""
        return hash_chain((hash_or_zero(self.nested[0], item) for item in value), start=1)

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Repeated(self.nested[0].program()), self.decode)


class SetSerializer(ListSerializer):
    """i32 n, n times: bool is null, element unless null."""

    def decode(self, c: Cursor) -> list[Any]:
        element = self.nested[0]
        n = c.count("set elements")
        with inside("element"):
            check_last(c, element, last=n <= 1)
            return [read_null(c, element) if c.bool() else element.decode(c) for _ in range(n)]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "set")))
        with inside("element"):
            for item in value:
                present = item is not None or self.nested[0].none_is_value
                out.bool(not present)
                if present:
                    self.nested[0].encode(out, item)

    def hash_code(self, value: Any) -> int:
        """``Set.hashCode``: the sum of the hash codes of the elements."""
        return to_int32(sum(hash_or_zero(self.nested[0], item) for item in value))

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Repeated(after_flag(self.nested[0], 1)), self.decode)


class MapSerializer(CompositeSerializer):
    """i32 n, n times: key, bool value is null, value unless null. Duplicates and order are kept."""

    arity = 2
    steps = ("key", "value")

    @property
    def logical(self) -> LogicalType:
        return MapType(self.nested[0].logical, self.nested[1].logical)

    def decode(self, c: Cursor) -> list[tuple[Any, Any]]:
        pairs = []
        n = c.count("map entries")
        for i in range(n):
            with inside("key"):
                check_last(c, self.nested[0], last=False)
                k = self.decode_key(c)
            with inside("value"):
                check_last(c, self.nested[1], last=i == n - 1)
                pairs.append((k, read_null(c, self.nested[1]) if c.bool() else self.nested[1].decode(c)))
        return pairs

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "map")))
        for pair in value:
            k, v = sequence(pair, "map entry", 2)
            with inside("key"):
                self.encode_key(out, k)
            with inside("value"):
                present = v is not None or self.nested[1].none_is_value
                out.bool(not present)
                if present:
                    self.nested[1].encode(out, v)

    def decode_key(self, c: Cursor) -> Any:
        """Read one key."""
        return self.nested[0].decode(c)

    def encode_key(self, out: Output, key: Any) -> None:
        """Append one key."""
        self.nested[0].encode(out, key)

    def hash_code(self, value: Any) -> int:
        """``Map.hashCode``: the sum of key hash ^ value hash."""
        key, item = self.nested
        return to_int32(sum(hash_or_zero(key, k) ^ hash_or_zero(item, v) for k, v in value))

    def program(self) -> Op:
        key, value = self.nested
        if self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Pairs(key.program(), after_flag(value, 1)), self.decode)


class NullAwareMapSerializer(MapSerializer):
    """Map with a null flag before each key as well."""

    def decode_key(self, c: Cursor) -> Any:
        return None if c.bool() else self.nested[0].decode(c)

    def encode_key(self, out: Output, key: Any) -> None:
        out.bool(key is None)
        if key is not None:
            self.nested[0].encode(out, key)

    def program(self) -> Op:
        key, value = self.nested
        if self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Pairs(Flagged(key.program(), null_flag=1), after_flag(value, 1)), self.decode)


class WrapperSerializer(CompositeSerializer):
    """A serializer with the same bytes as the one inside it (data views, access checks)."""

    steps = ("wrapped",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.length = self.nested[0].length

    @property
    def logical(self) -> LogicalType:
        return self.nested[0].logical

    def decode(self, c: Cursor) -> Any:
        return self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.nested[0].encode(out, value)

    def hash_code(self, value: Any) -> int:
        return self.nested[0].hash_code(value)

    def program(self) -> Op:
        return self.nested[0].program()


class ViewSerializer(WrapperSerializer):
    """``ListView`` and ``MapView``: the list or map, hashed by ``Objects.hash``."""

    def hash_code(self, value: Any) -> int:
        return hash_chain((self.nested[0].hash_code(value),), start=1)


SNAPSHOTS: Final = {
    "ListSerializerSnapshot": composite(ListSerializer),
    "ArrayListSerializerSnapshot": composite(ListSerializer),
    "CollectionSerializerConfigSnapshot": composite(ListSerializer),
    "SetSerializerSnapshot": composite(SetSerializer),
    "MapSerializerSnapshot": composite(MapSerializer),
    "MapSerializerConfigSnapshot": composite(MapSerializer),
    "NullAwareMapSerializerSnapshot": composite(NullAwareMapSerializer),
    "ListViewSerializerSnapshot": composite(ViewSerializer),
    "MapViewSerializerSnapshot": composite(ViewSerializer),
    "SingleThreadAccessCheckingTypeSerializer$SingleThreadAccessCheckingTypeSerializerSnapshot": composite(
        WrapperSerializer
    ),
}
