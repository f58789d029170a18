"""Keys with a ``BigDecimal``, found by their numbers: Java's ``1.5`` and ``1.50`` are two keys, in two key groups, and one number.

Nothing tells the scales of an operator's keys beforehand, so all of its keys are read.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import numpy as np

from statetool.entries.selection import key_starts
from statetool.formats.keyed.distinct import distinct
from statetool.hashing.keys import KeyHasher, decode_key
from statetool.serializers.base import Serializer
from statetool.snapshot.operator import OperatorInventory


def equal_keys(
    operator: OperatorInventory, key: Serializer, wanted: Collection[bytes]
) -> tuple[tuple[bytes, ...], frozenset[int]]:
    """Return the bytes of an operator's keys that are equal as numbers to some encoded keys, and their key groups."""
    numbers = {_number(_decoded(key, raw)) for raw in wanted}
    hasher = KeyHasher(key)
    found: dict[bytes, None] = {}
    groups: set[int] = set()
    for source in operator.keyed.sources(raw=True):
        header = source.header()
        for batch in source.batches():
            start = key_starts(batch, header)
            end = hasher.ends(batch.data, start, batch.key_end)
            _, first = distinct(batch.data, start, end, batch.group)
            for i in first.tolist():
                if _number(decode_key(key, batch.data, int(start[i]), int(end[i]))) in numbers:
                    found[bytes(batch.data[start[i] : end[i]])] = None
                    groups.add(int(batch.group[i]))
    return tuple(found), frozenset(groups)


def _decoded(key: Serializer, raw: bytes) -> Any:
    return decode_key(key, np.frombuffer(raw, dtype=np.uint8), 0, len(raw))


def _number(value: Any) -> Any:
    """Return what is the same for keys that differ in the scales of their decimals only."""
    match value:
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            text = "".join(map(str, digits)).lstrip("0")
            short = text.rstrip("0")
            return ("decimal", sign, short, int(exponent) + len(text) - len(short)) if short else ("decimal",)
        case float():
            return struct.pack(">d", value)  # not a number equals itself
        case tuple() | list():
            return tuple(map(_number, value))
    return value
