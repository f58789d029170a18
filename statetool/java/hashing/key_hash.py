"""Java hash codes and key groups of many encoded keys at once.

``Serializer.hash_code`` of each decoded key is the reference path. Common types are hashed directly from their bytes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import check
from statetool.kernels.values import encode
from statetool.kernels.values.decode_fixed import load_fixed
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer

_NUMBERS: Final = {"Byte": 1, "Short": 2, "Int": 4, "Long": 8, "Boolean": 1, "Float": 4, "Double": 8, "Char": 2}


def is_number(serializer: Serializer) -> bool:
    """Return True if keys are numbers of a fixed size, or booleans."""
    return isinstance(serializer, SimpleSerializer) and serializer.spec.name in _NUMBERS


def hash_keys(serializer: Serializer, data: Bytes, start: Int64s, end: Int64s) -> Int64s:
    """Return the Java hash code of each encoded key.

    Parameters
    ----------
    data
        uint8[:].
    start, end
        int64[n]: range of each key in ``data``.

    Returns
    -------
    int64[n]
        Signed 32-bit numbers.

    Raises
    ------
    UnsupportedError
        The hash is defined in user code.
    """
    hashes = _by_kernels(serializer, data, start, end)
    if hashes is not None:
        return hashes
    view = data.data
    hashes = np.empty(len(start), dtype=np.int64)
    for i, (a, b) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        hashes[i] = serializer.hash_code(serializer.decode(Cursor(view, a, b)))
    return hashes


def key_groups(hashes: Int64s, max_parallelism: int) -> Int64s:
    """Return the key group of each hash code, as :func:`statetool.formats.key_groups.key_group_for`."""
    c = hashes.astype(np.uint32)
    c = c * np.uint32(0xCC9E2D51)
    c = _rotate(c, 15) * np.uint32(0x1B873593)
    c = _rotate(c, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    c ^= np.uint32(4)
    c = (c ^ c >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    c = (c ^ c >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    c ^= c >> np.uint32(16)
    spread = np.abs(c.view(np.int32)).view(np.uint32)
    spread[spread == 1 << 31] = 0
    # NumPy divides by a number with vector instructions, but computes remainders one by one.
    return (spread - spread // np.uint32(max_parallelism) * np.uint32(max_parallelism)).astype(np.int64)


def _rotate(c: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return c << np.uint32(by) | c >> np.uint32(32 - by)


def _by_kernels(serializer: Serializer, data: Bytes, start: Int64s, end: Int64s) -> Int64s | None:
    if type(serializer) is TupleSerializer:
        return _tuples(serializer, data, start, end)
    if not isinstance(serializer, SimpleSerializer):
        return None
    name = serializer.spec.name
    if name == "String":
        out = np.empty(len(start), dtype=np.int64)
        encode.hash_text(data, _behind_varint(data, start), end, out)
        return out
    size = _NUMBERS.get(name)
    if size is None:
        return None
    raw = _load(data, start, end, size)
    if name == "Boolean":
        return np.where(raw == 1, 1231, 1237).astype(np.int64)
    if name == "Char":
        return raw & 0xFFFF
    if name == "Float":
        return np.where(np.isnan(raw.astype(np.int32).view(np.float32)), 0x7FC00000, raw)
    if name == "Double":
        raw = np.where(np.isnan(raw.view(np.float64)), 0x7FF8 << 48, raw)
    if size == 8:
        words = raw.view(np.uint64)
        return (words ^ words >> np.uint64(32)).astype(np.uint32).view(np.int32).astype(np.int64)
    return raw


def _load(data: Bytes, start: Int64s, end: Int64s, size: int) -> Int64s:
    """Load big-endian signed integers."""
    raw, after = np.empty_like(start), np.empty_like(start)
    check(load_fixed(data, start, end, size, raw, after), start)
    return raw


def _behind_varint(data: Bytes, start: Int64s) -> Int64s:
    """Return the position after the length prefix of each string."""
    after = start.copy()
    in_number = np.ones(len(start), dtype=np.bool_)
    while in_number.any():
        in_number[in_number] = data[after[in_number]] >= 0x80
        after[in_number] += 1
    return after + 1


def _tuples(serializer: TupleSerializer, data: Bytes, start: Int64s, end: Int64s) -> Int64s | None:
    codes: Any = None
    positions = start
    for part in serializer.nested:
        program = compile_skip(part.program())
        if program is None:
            return None
        ends = np.empty_like(positions)
        if skip_many(data, program, positions, end, ends)[0] != 0:
            return None  # the reference path raises the error
        hashes = _by_kernels(part, data, positions, ends)
        if hashes is None:
            return None
        codes = hashes if codes is None else (31 * codes + hashes).astype(np.uint32).view(np.int32).astype(np.int64)
        positions = ends
    return codes if codes is None else np.asarray(codes, dtype=np.int64)
