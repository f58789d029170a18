"""``hashCode()`` of Avro records, computed like ``GenericData.hashCode`` in several releases of Avro.

It determines the key group of a key, and changed between Avro releases. The hash of a string starts with 0 up to 1.11 and with 1 in 1.12.
In 1.12 only the first nine fields and elements count, including those of nested records, and the hash of a nested record continues from the
hash so far. Values of logical types are hashed as the numbers and bytes that generic records hold. Maps have no stable order to hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statetool.errors import UnsupportedError
from statetool.io.output import Output
from statetool.serializers.avro import values as av
from statetool.types.java_hash import hash_bool, hash_chain, hash_double, hash_float, hash_long, to_int32


def avro_hash(kind: av.AvroType, value: Any, *, text_start: int, most: int) -> int:
    """Return the hash code of a plain value.

    Parameters
    ----------
    text_start
        Initial hash of a string: 0 or 1.
    most
        The number of the field or element at which the hash ends, 0 for no limit.

    Raises
    ------
    UnsupportedError
        A map or a recursive record.
    """
    return _Hasher(text_start, most).of(kind, value)


class _Hasher:
    def __init__(self, text_start: int, limit: int) -> None:
        self.text_start = text_start
        self.limit = limit
        self.left = limit
        self.code = 1

    def of(self, kind: av.AvroType, value: Any) -> int:
        match kind:
            case av.RecordType():
                parts = zip(kind.fields, value, kind.ignored, strict=True)
                return self.chain(parts)
            case av.ArrayType(items=items):
                return self.chain((items, item, False) for item in value)
            case av.UnionType():
                return self.union(kind, value)
            case av.EnumType(symbols=symbols):
                return symbols.index(value)
            case av.FixedType():
                return hash_chain(_signed_bytes(value), start=1)
            case av.DecimalValue():
                raw = _encode(kind, value)
                return hash_chain(_signed_bytes(raw), start=1) if kind.size is not None else _buffer_hash(raw[4:])
            case av.Leaf():
                return self.leaf(kind, value)
        raise UnsupportedError(
            f"hashCode() of an Avro {'map' if isinstance(kind, av.MapOf) else 'record inside of itself'} is not known"
        )

    def chain(self, parts: Iterable[tuple[av.AvroType, Any, bool]]) -> int:
        """Hash fields or elements, counting them."""
        if not self.limit:
            return hash_chain((self.of(kind, v) for kind, v, ignored in parts if not ignored), start=1)
        for kind, value, ignored in parts:
            self.left -= 1
            if self.left <= 0:
                break
            if not ignored:
                before = 31 * self.code
                self.code = to_int32(before + self.of(kind, value))
        return self.code

    def union(self, kind: av.UnionType, value: Any) -> int:
        if value is None:
            return 0
        if kind.single:
            return self.of(kind.branches[kind.members[0]], value)
        member = next(i for i, v in enumerate(value) if v is not None)
        return self.of(kind.branches[kind.members[member]], value[member])

    def leaf(self, kind: av.Leaf, value: Any) -> int:
        match kind.name:
            case "null":
                return 0
            case "boolean":
                return hash_bool(value)
            case "float":
                return hash_float(value)
            case "double":
                return hash_double(value)
            case "bytes":
                return _buffer_hash(value)
            case "string":
                return hash_chain(_signed_bytes(value.encode("utf-8")), start=self.text_start)
        raw = _encode(kind, value)
        number = int.from_bytes(raw, "big", signed=True)
        return number if len(raw) == 4 else hash_long(number)


def _signed_bytes(raw: bytes) -> Iterable[int]:
    return (b - 256 if b > 127 else b for b in raw)


def _buffer_hash(raw: bytes) -> int:
    """``ByteBuffer.hashCode``: from the last byte to the first."""
    return hash_chain(_signed_bytes(raw[::-1]), start=1)


def _encode(kind: av.AvroType, value: Any) -> bytes:
    out = Output()
    kind.encode(out, value)
    return bytes(out)
