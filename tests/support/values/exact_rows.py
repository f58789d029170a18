"""Columns of hostile values: strings that are not valid UTF-8, NaNs of every kind, maps with duplicate keys."""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

#: Invalid UTF-8: Latin-1, a surrogate, an overlong number, a truncated character, a byte that never occurs.
BAD_TEXTS: Final = (b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"x\xf0\x9f\x98", b"\xff")
_GOOD_TEXTS: Final = ("", "a", "Größe", "日本", "😀", "long enough for a separate part")
#: Bits of doubles: signs and payloads of NaN, quiet and signalling, both zeros, an infinity.
NAN_BITS: Final = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123, 0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001)
_DOUBLE_BITS: Final = (*NAN_BITS, 0, 1 << 63, 0x7FF0000000000000, 0x3FF8000000000000)
NARROW_NAN_BITS: Final = (0x7FC00000, 0xFFC00000, 0x7FC00123, 0xFFFFFFFF)
_FLOAT_BITS: Final = (*NARROW_NAN_BITS, 0, 1 << 31, 0x7F800000, 0x3FC00000)


def texts(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array of binaries as one of ``kind``, with strings in their places, whatever their bytes are."""
    n, buffers = len(array), array.buffers()
    if pa.types.is_map(kind):
        entries = texts(
            pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"]),
            pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]),
        )
        return pa.Array.from_buffers(kind, n, buffers[:2], children=[entries])
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, n, buffers[:2], children=[texts(array.values, kind.value_type)])
    if pa.types.is_struct(kind):
        parts = [texts(array.field(i), kind[i].type) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, n, buffers[:1], children=parts)
    return pa.Array.from_buffers(kind, n, buffers, array.null_count) if pa.types.is_string(kind) else array


def as_binaries(kind: pa.DataType) -> pa.DataType:
    """Return a type with binaries instead of strings."""
    if pa.types.is_map(kind):
        return pa.map_(as_binaries(kind.key_type), as_binaries(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(as_binaries(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, as_binaries(f.type)) for f in kind])
    return pa.binary() if pa.types.is_string(kind) else kind


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Return a column; strings are given as bytes."""
    return texts(pa.array(values, as_binaries(kind)), kind)


_LEAVES: Final[dict[pa.DataType, Callable[[random.Random], Any]]] = {
    pa.bool_(): lambda r: r.random() < 0.5,
    pa.int8(): lambda r: r.randint(-128, 127),
    pa.int16(): lambda r: r.randint(-(1 << 15), (1 << 15) - 1),
    pa.int32(): lambda r: r.randint(-(1 << 31), (1 << 31) - 1),
    pa.int64(): lambda r: r.choice((0, -1, (1 << 63) - 1, -(1 << 63), r.getrandbits(40))),
    pa.float32(): lambda r: struct.unpack(">f", struct.pack(">I", r.choice(_FLOAT_BITS)))[0],
    pa.float64(): lambda r: struct.unpack(">d", struct.pack(">Q", r.choice(_DOUBLE_BITS)))[0],
    pa.string(): lambda r: r.choice(BAD_TEXTS) if r.random() < 0.01 else r.choice(_GOOD_TEXTS).encode(),
    pa.binary(): lambda r: r.choice((*BAD_TEXTS, b"", b"bytes")),
    pa.date32(): lambda r: dt.date(1, 1, 1) + dt.timedelta(r.randrange(3_000_000)),
    pa.timestamp("us"): lambda r: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=r.randint(-(1 << 50), 1 << 50)),
    pa.timestamp("us", "UTC"): lambda r: (
        dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=r.randint(-(1 << 50), 1 << 50))
    ),
    pa.decimal128(20, 4): lambda r: Decimal(r.randint(-(10**19), 10**19)).scaleb(-4),
}
_PLAIN: Final = tuple(_LEAVES)
#: Java hashes arrays by identity. Maps inside of maps are unrealistic keys.
_KEYS: Final = tuple(k for k in _PLAIN if k != pa.binary())


def kind_of(r: random.Random, depth: int = 2) -> pa.DataType:
    """Draw a type."""
    shape = r.choice(("leaf", "list", "map", "struct")) if depth else "leaf"
    if shape == "list":
        return pa.list_(kind_of(r, depth - 1))
    if shape == "map":
        return pa.map_(r.choice(_KEYS), kind_of(r, depth - 1))
    if shape == "struct":
        return pa.struct([pa.field(f"f{i}", kind_of(r, depth - 1)) for i in range(r.randint(1, 3))])
    return r.choice(_PLAIN)


def value_of(r: random.Random, kind: pa.DataType) -> Any:
    """Draw a value that is not null; fields and values of maps may be."""
    if pa.types.is_list(kind):
        return [value_of(r, kind.value_type) for _ in range(r.randrange(4))]
    if pa.types.is_map(kind):
        keys = [value_of(r, kind.key_type) for _ in range(r.randrange(4))]
        if r.random() > 0.02:
            keys = list({identity(k): k for k in keys}.values())
        return [(k, None if r.random() < 0.1 else value_of(r, kind.item_type)) for k in keys]
    if pa.types.is_struct(kind):
        return {f.name: None if r.random() < 0.1 else value_of(r, f.type) for f in kind}
    return _LEAVES[kind](r)


def identity(value: Any) -> Any:
    """Return a form that is equal for values that are equal in Java, for read and for drawn values."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        return tuple(identity(v) for v in value)
    if isinstance(value, dict):
        return tuple((name, identity(v)) for name, v in value.items() if name != "_kind")
    return value


def is_bad(value: Any, kind: pa.DataType) -> bool:
    """Return True if a value contains a string that is not valid UTF-8, or a map with a duplicate key."""
    if value is None:
        return False
    if pa.types.is_map(kind):
        if len({identity(k) for k, _ in value}) < len(value):
            return True
        return any(is_bad(k, kind.key_type) or is_bad(v, kind.item_type) for k, v in value)
    if pa.types.is_list(kind):
        return any(is_bad(v, kind.value_type) for v in value)
    if pa.types.is_struct(kind):
        return any(is_bad(value[f.name], f.type) for f in kind)
    return pa.types.is_string(kind) and value in BAD_TEXTS
