"""Lists, sets and maps: i32 n and the elements.

``Map``: n times key, bool value is null, value unless null. ``NullAwareMap``: a null flag before the key as well.
``Set`` (2.x): a null flag before each element. List and map views of the table runtime are the list or map that they
wrap. Follows ``ListSerializer``, ``ArrayListSerializer``, ``SetSerializer``, ``MapSerializer``, ``NullAwareMapSerializer``.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.program import Flagged, Op, Pairs, Repeated
from statetool.serializers.composite import CompositeSerializer, composite, inside
from statetool.serializers.java_hash import hash_chain
from statetool.types import ListType, LogicalType, MapType


def _not_null(value: Any, what: str) -> Any:
    if value is None:
        raise EncodeError(f"null in a {what}, which has no null")
    return value


class ListSerializer(CompositeSerializer):
    """i32 n, n elements."""

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> list[Any]:
        element = self.nested[0]
        n = c.count("list elements", at_least=1 if element.length else 0)
        with inside("element"):
            return [element.decode(c) for _ in range(n)]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(_not_null(value, "list")))
        with inside("element"):
            for item in value:
                self.nested[0].encode(out, item)

    def hash_code(self, value: Any) -> int:
        element = self.nested[0]
        return hash_chain((0 if item is None else element.hash_code(item) for item in value), start=1)

    def program(self) -> Op:
        return Repeated(self.nested[0].program())


class SetSerializer(ListSerializer):
    """i32 n, n times: bool is null, element unless null."""

    def decode(self, c: Cursor) -> list[Any]:
        with inside("element"):
            return [None if c.bool() else self.nested[0].decode(c) for _ in range(c.count("set elements"))]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(_not_null(value, "set")))
        with inside("element"):
            for item in value:
                out.bool(item is None)
                if item is not None:
                    self.nested[0].encode(out, item)

    def hash_code(self, value: Any) -> int:
        return CompositeSerializer.hash_code(self, value)

    def program(self) -> Op:
        return Repeated(Flagged(self.nested[0].program(), null_flag=1))


class MapSerializer(CompositeSerializer):
    """i32 n, n times: key, bool value is null, value unless null. Duplicates and order are kept."""

    arity = 2
    steps = ("key", "value")

    @property
    def logical(self) -> LogicalType:
        return MapType(self.nested[0].logical, self.nested[1].logical)

    def decode(self, c: Cursor) -> list[tuple[Any, Any]]:
        pairs = []
        for _ in range(c.count("map entries")):
            with inside("key"):
                k = self.decode_key(c)
            with inside("value"):
                pairs.append((k, None if c.bool() else self.nested[1].decode(c)))
        return pairs

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(_not_null(value, "map")))
        for k, v in value:
            with inside("key"):
                self.encode_key(out, k)
            with inside("value"):
                out.bool(v is None)
                if v is not None:
                    self.nested[1].encode(out, v)

    def decode_key(self, c: Cursor) -> Any:
        """Read one key."""
        return self.nested[0].decode(c)

    def encode_key(self, out: Output, key: Any) -> None:
        """Append one key."""
        self.nested[0].encode(out, key)

    def program(self) -> Op:
        key, value = self.nested
        return Pairs(key.program(), Flagged(value.program(), null_flag=1))


class NullAwareMapSerializer(MapSerializer):
    """As map, with a null flag before each key."""

    def decode_key(self, c: Cursor) -> Any:
        return None if c.bool() else self.nested[0].decode(c)

    def encode_key(self, out: Output, key: Any) -> None:
        out.bool(key is None)
        if key is not None:
            self.nested[0].encode(out, key)

    def program(self) -> Op:
        key, value = self.nested
        return Pairs(Flagged(key.program(), null_flag=1), Flagged(value.program(), null_flag=1))


class WrapperSerializer(CompositeSerializer):
    """A serializer that writes just what the one inside it writes (data views, access checks)."""

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


SNAPSHOTS: Final = {
    "ListSerializerSnapshot": composite(ListSerializer),
    "ArrayListSerializerSnapshot": composite(ListSerializer),
    "CollectionSerializerConfigSnapshot": composite(ListSerializer),
    "SetSerializerSnapshot": composite(SetSerializer),
    "MapSerializerSnapshot": composite(MapSerializer),
    "MapSerializerConfigSnapshot": composite(MapSerializer),
    "NullAwareMapSerializerSnapshot": composite(NullAwareMapSerializer),
    "ListViewSerializerSnapshot": composite(WrapperSerializer),
    "MapViewSerializerSnapshot": composite(WrapperSerializer),
    "SingleThreadAccessCheckingTypeSerializer$SingleThreadAccessCheckingTypeSerializerSnapshot": composite(
        WrapperSerializer
    ),
}
