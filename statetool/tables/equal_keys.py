"""Find keys by value if equal values can have different bytes.

The ``BigDecimal`` s ``1.5`` and ``1.50`` in Java are two keys in two key groups, but one number. The entries of a map are in the order of
the job's map. Scales and orders are not known in advance, so all keys of an operator are read.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import numpy as np

from statetool.entries.selection import key_starts
from statetool.formats.keyed.distinct import distinct
from statetool.hashing.keys import KeyHasher, decode_key
from statetool.serializers.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types import ListType, LogicalType, MapType, StructType


def equal_keys(operator: OperatorInventory, key: Serializer, wanted: Collection[bytes]) -> list[tuple[bytes, int]]:
    """Return the bytes and key group of each of an operator's keys that equals one of the given encoded keys."""
    values = {_comparable(_decode(key, raw), key.logical) for raw in wanted}
    hasher = KeyHasher(key)
    found: dict[tuple[bytes, int], None] = {}
    for source in operator.keyed.sources(raw=True):
        header = source.header()
        for batch in source.batches():
            start = key_starts(batch, header)
            end = hasher.ends(batch.data, start, batch.key_end)
            _, first = distinct(batch.data, start, end, batch.group)
            for i in first.tolist():
                value = decode_key(key, batch.data, int(start[i]), int(end[i]))
                if _comparable(value, key.logical) in values:
                    found[bytes(batch.data[start[i] : end[i]]), int(batch.group[i])] = None
    return list(found)


def _decode(key: Serializer, raw: bytes) -> Any:
    return decode_key(key, np.frombuffer(raw, dtype=np.uint8), 0, len(raw))


def _comparable(value: Any, logical: LogicalType) -> Any:
    """Return a value that is equal for keys that differ only in the scales of decimals and the order of map entries."""
    match logical, value:
        case _, Decimal():
            sign, digits, exponent = value.as_tuple()
            text = "".join(map(str, digits)).lstrip("0")
            short = text.rstrip("0")
            return ("decimal", sign, short, int(exponent) + len(text) - len(short)) if short else ("decimal",)
        case _, float():
            return struct.pack(">d", value)  # NaN equals itself
        case MapType(key, item), list() | tuple():
            return frozenset((_comparable(k, key), _comparable(v, item)) for k, v in value)
        case ListType(element), list() | tuple():
            return tuple(_comparable(v, element) for v in value)
        case StructType(fields), list() | tuple():
            kinds = [field.type for field in fields]
            return tuple(_comparable(v, kind) for v, kind in zip_longest(value, kinds))
    return value
