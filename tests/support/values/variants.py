"""Variants as Python values, from the layout of Parquet's variant encoding: a second reader besides Spark's, which PySpark has from 4 on.

Value: u8 with the kind in its two lowest bits (0 primitive, 1 short string, 2 object, 3 array); numbers are little-endian. Metadata: u8
(bits 6 and 7: size of offsets minus one), number of names, offsets, names.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any, Final

_NUMBERS: Final = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f"}
_CONSTANTS: Final = {0: None, 1: True, 2: False}
_STRING: Final = 16


def variant_value(value: bytes, metadata: bytes) -> Any:
    """Return a variant with JSON types; other types raise a ``KeyError`` with their number."""
    return _value(value, 0, _names(metadata))


def _number(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], "little")


def _names(metadata: bytes) -> list[str]:
    size = (metadata[0] >> 6) + 1
    n = _number(metadata, 1, size)
    offsets = [_number(metadata, 1 + size * (i + 1), size) for i in range(n + 1)]
    start = 1 + size * (n + 2)
    return [metadata[start + a : start + b].decode() for a, b in pairwise(offsets)]


def _value(raw: bytes, at: int, names: list[str]) -> Any:
    kind, header = raw[at] & 3, raw[at] >> 2
    if kind == 1:
        return raw[at + 1 : at + 1 + header].decode()
    if kind == 0:
        if header in _CONSTANTS:
            return _CONSTANTS[header]
        if header == _STRING:
            return raw[at + 5 : at + 5 + _number(raw, at + 1, 4)].decode()
        return struct.unpack_from(_NUMBERS[header], raw, at + 1)[0]
    is_object = kind == 2
    large = header >> (4 if is_object else 2) & 1
    offset_size, id_size = (header & 3) + 1, (header >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if large else 1
    n = _number(raw, at + 1, count_size)
    ids = at + 1 + count_size
    offsets = ids + n * id_size
    values = offsets + (n + 1) * offset_size
    elements = [_value(raw, values + _number(raw, offsets + i * offset_size, offset_size), names) for i in range(n)]
    if not is_object:
        return elements
    return {names[_number(raw, ids + i * id_size, id_size)]: v for i, v in enumerate(elements)}
