"""Columns as bytes: what was decoded from Flink's bytes is encoded to the same bytes, by kernels and value by value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statetool.arrow.decode import as_data, decode_column
from statetool.arrow.encode import _Plain, encode_column, pack
from statetool.arrow.to_plain import arrow_to_plain
from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.serializers.base import Serializer
from statetool.serializers.snapshot import read_proxied, read_snapshot
from statetool.types.options import ReadOptions
from tests.serializer_check import Case
from tests.serializers.golden import generated

EXACT = ReadOptions(ttl="raw", nanos="companion", decimals="string")


_CASES = [case for cases in generated().values() for case in cases if case.data and case.snapshot]


def frames_of(serializer: Serializer, data: bytes) -> list[bytes]:
    """Cut a file of values into values."""
    c = Cursor(data)
    frames = []
    while c.left:
        start = c.pos
        serializer.skip(c)
        frames.append(data[start : c.pos])
    return frames


def columns_of(case: Case) -> tuple[Serializer, pa.Array, list[bytes]]:
    """Decode a case into a column; skip what cannot be."""
    assert case.snapshot is not None
    assert case.data is not None
    try:
        c = Cursor(case.snapshot)
        proxied = case.snapshot[:4] in (b"\0\0\0\1", b"\0\0\0\2")
        serializer = read_proxied(c) if proxied else read_snapshot(c)
        if serializer.framed_only or serializer.length == 0:
            pytest.skip("values of no own size")
        frames = frames_of(serializer, case.data)
        sizes = np.array([len(f) for f in frames], dtype=np.int64)
        ends = np.cumsum(sizes)
        data = as_data(case.data)
        array, _ = decode_column(serializer.program(), serializer.logical, data, ends - sizes, ends, EXACT)
    except StatetoolError as error:
        pytest.skip(f"not readable: {error.message}")
    return serializer, array, frames


@pytest.mark.parametrize("case", _CASES, ids=lambda c: c.name)
def test_golden_bytes_come_back(case: Case) -> None:
    serializer, array, frames = columns_of(case)
    encoded = encode_column(serializer, array)
    assert [encoded.value(i) for i in range(len(encoded))] == frames
    plain = pack(_Plain(serializer, arrow_to_plain(array, serializer.logical)))
    assert [plain.value(i) for i in range(len(plain))] == frames
    # A slice is not taken for the whole.
    some = encode_column(serializer, array.slice(1))
    assert [some.value(i) for i in range(len(some))] == frames[1:]
