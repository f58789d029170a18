"""Hash codes of many encoded POJO keys at once, if their convention is a polynomial over simple fields.

They equal the hash codes that :class:`~statetool.java.hashing.formulas.HashedSerializer` computes value by value. Nothing is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from statetool.java.hashing.formulas import HashedSerializer
from statetool.java.hashing.key_hash import hash_keys
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import OK
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.types.conventions import BOOLEANS, ZEROS, Style, null_hash

_EXACT: Final = 2
_TYPES: Final = ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "Char", "String")


def hash_pojos(hashed: Serializer, data: Bytes, start: Int64s, end: Int64s) -> Int64s | None:
    """Return the hash codes of encoded keys, ``None`` if keys have to be decoded one by one.

    Parameters
    ----------
    data
        uint8[:], in which ``start .. end`` (int64[n]) are the keys.
    """
    if not isinstance(hashed, HashedSerializer) or hashed.convention.kind != "polynomial":
        return None
    pojo = hashed.serializer
    if not isinstance(pojo, PojoSerializer) or pojo.open or not len(start) or (data[start] != _EXACT).any():
        return None
    styles = hashed.convention.field_styles
    if len(set(hashed.places)) < len(styles):
        return None
    wanted = {place: (part, style) for place, part, style in zip(hashed.places, hashed.parts, styles, strict=True)}
    columns = _columns(pojo, wanted, data, start, end)
    if columns is None:
        return None
    codes = np.full(len(start), hashed.convention.start, dtype=np.int64)
    for place in hashed.places:
        codes = (codes * hashed.convention.multiplier + columns[place]) & 0xFFFFFFFF
    return codes.astype(np.uint32).view(np.int32).astype(np.int64)


def _columns(
    pojo: PojoSerializer, wanted: Mapping[int, tuple[Serializer, Style]], data: Bytes, start: Int64s, end: Int64s
) -> dict[int, Int64s] | None:
    """Return the hash codes of the wanted fields by their index."""
    columns: dict[int, Int64s] = {}
    positions = start + 1
    for place, (_, part) in enumerate(pojo.fields):
        program = compile_skip(part.program())
        if program is None or (positions >= end).any():
            return None
        present = np.flatnonzero(data[positions] == 0)
        starts, stops = positions[present] + 1, end[present]
        ends = np.empty_like(starts)
        if skip_many(data, program, starts, stops, ends)[0] != OK:
            return None  # decoding raises the error
        if place in wanted:
            hashed, style = wanted[place]
            hashes = _part_hashes(hashed, style, data, starts, ends)
            if hashes is None:
                return None
            columns[place] = np.full(len(start), null_hash(style), dtype=np.int64)
            columns[place][present] = hashes
        positions = positions + 1
        positions[present] = ends
    return columns if (positions == end).all() else None


def _part_hashes(part: Serializer, style: Style, data: Bytes, start: Int64s, end: Int64s) -> Int64s | None:
    """Return the hash codes of :func:`~statetool.java.hashing.formulas.part_hash` for non-null values, ``None`` for unsupported types."""
    if not isinstance(part, SimpleSerializer) or part.spec.name not in _TYPES:
        return None
    name = part.spec.name
    if name == "Boolean" and style in BOOLEANS:
        no, yes = BOOLEANS[style]
        return np.where(data[start] == 1, yes, no).astype(np.int64)
    if (name in ("Float", "Double") and style in ZEROS) or (name == "String" and (data[start] == 0).any()):
        return None
    return hash_keys(part, data, start, end)
