"""Columns encoded as bytes: values decoded from Flink's bytes are encoded to the same bytes, by kernels and value by value."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from statetool.columns.decode import as_data, decode_column
from statetool.columns.encode import _Plain, encode_column, first_failing
from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.pieces import pack
from statetool.columns.to_plain import arrow_to_plain
from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.declaring import flink_types as flink
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.options import ReadOptions
from tests.support.checks.serializer_check import Case
from tests.support.corpora.golden import generated
from tests.support.strategies.serializers import typed_values

EXACT = ReadOptions(ttl="raw", nanos="companion", decimals="string")


def serializer_of(case: Case) -> Serializer:
    assert case.snapshot is not None
    c = Cursor(case.snapshot)
    proxied = case.snapshot[:4] in (b"\0\0\0\1", b"\0\0\0\2")
    return snapshot_reader().proxied(c) if proxied else snapshot_reader().snapshot(c)


def cases() -> tuple[list[Case], int]:
    """Return the golden cases with values that can be separated in sequence, and the number of other cases.

    The others have no bytes, or have values of undeclared classes, whose ends only a frame determines.
    """
    golden = [case for family in generated().values() for case in family if case.data and case.snapshot]
    told = [case for case in golden if not (s := serializer_of(case)).needs_frame and s.length != 0]
    return told, len(golden) - len(told)


CASES, LEFT_OUT = cases()
#: The case with a null map key, which Arrow and Spark maps cannot hold.
NULL_KEY = "null-aware-map-1.15.4"


def frames_of(serializer: Serializer, data: bytes) -> list[bytes]:
    """Split a file of values into values."""
    c = Cursor(data)
    frames = []
    while c.left:
        start = c.pos
        serializer.skip(c)
        frames.append(data[start : c.pos])
    return frames


def columns_of(case: Case) -> tuple[Serializer, pa.Array, list[bytes]]:
    """Decode a case into a column."""
    assert case.data is not None
    serializer = serializer_of(case)
    frames = frames_of(serializer, case.data)
    sizes = np.array([len(f) for f in frames], dtype=np.int64)
    ends = np.cumsum(sizes)
    data = as_data(case.data)
    array, _ = decode_column(serializer.program(), serializer.logical, data, ends - sizes, ends, EXACT)
    return serializer, array, frames


def test_few_cases_are_left_out() -> None:
    assert (len(CASES), LEFT_OUT) == (158, 106)


@pytest.mark.parametrize("case", [c for c in CASES if c.name != NULL_KEY], ids=lambda c: c.name)
def test_golden_bytes_come_back(case: Case) -> None:
    serializer, array, frames = columns_of(case)
    encoded = encode_column(serializer, array)
    assert [encoded.value(i) for i in range(len(encoded))] == frames
    plain = pack(_Plain(serializer, arrow_to_plain(array, serializer.logical)))
    assert [plain.value(i) for i in range(len(plain))] == frames
    # A slice is not confused with its parent array.
    sliced = encode_column(serializer, array.slice(1))
    assert [sliced.value(i) for i in range(len(sliced))] == frames[1:]


def test_a_null_key_of_a_map_is_refused() -> None:
    (case,) = (c for c in CASES if c.name == NULL_KEY)
    with pytest.raises(StatetoolError, match="a map with a null key"):
        columns_of(case)


@settings(max_examples=80)
@given(typed_values())
def test_kernels_write_what_the_serializer_writes(made: tuple[bytes, list[Any]]) -> None:
    snapshot, values = made
    serializer = snapshot_reader().snapshot(Cursor(snapshot))
    out, ends = Output(), [0]
    for value in values:
        serializer.encode(out, value)
        ends.append(len(out))
    frames = [bytes(out[a:b]) for a, b in pairwise(ends)]
    try:
        array = plain_to_arrow([serializer.decode(Cursor(f)) for f in frames], serializer.logical, EXACT)
    except StatetoolError:
        return  # lone surrogates, null map keys: Arrow cannot hold them
    encoded = encode_column(serializer, array)
    assert [encoded.value(i) for i in range(len(encoded))] == frames
    plain = pack(_Plain(serializer, arrow_to_plain(array, serializer.logical)))
    assert [plain.value(i) for i in range(len(plain))] == frames


@pytest.mark.parametrize("bad", [0, 1, 63, 64, 99])
def test_the_first_value_that_fails_is_found(bad: int) -> None:
    values = [i if i < bad else None for i in range(100)]
    column = pa.array(values, type=pa.int64())
    with pytest.raises(EncodeError, match="a null instead of"):
        encode_column(flink.LONG, column)
    assert first_failing(partial(encode_column, flink.LONG), column) == bad


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int32()),
        pa.array([1, 2], pa.uint64()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([1, 2])),
    ],
)
def test_integers_of_any_size_become_longs(column: pa.Array) -> None:
    assert encode_column(flink.LONG, column).data.tobytes() == bytes([*[0] * 7, 1, *[0] * 7, 2])


def test_times_keep_every_nanosecond() -> None:
    stamps = pa.array([1_700_000_000_123_456_789, -1, None], pa.timestamp("ns", tz="UTC"))
    encoded = encode_column(flink.INSTANT, stamps)
    assert encoded.value(0) == (1_700_000_000).to_bytes(8, "big") + (123_456_789).to_bytes(4, "big")
    assert encoded.value(1) == (-1).to_bytes(8, "big", signed=True) + (999_999_999).to_bytes(4, "big")
    assert encoded.value(2) == b"\x80" + bytes(7) + b"\x80" + bytes(3)
    with pytest.raises(EncodeError, match="digits below the ms"):
        encode_column(flink.DATE, stamps)


def test_times_far_away_keep_their_nanoseconds() -> None:
    """The "end of time" that jobs often use does not fit 64 bits of nanoseconds."""
    micros = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999
    parts = [pa.array([micros, 0], pa.timestamp("us", tz="UTC")), pa.array([123, 1], pa.int32())]
    far = pa.StructArray.from_arrays(parts, names=["timestamp", "nanos"])
    encoded = encode_column(flink.INSTANT, far)
    assert encoded.value(0) == (253_402_300_799).to_bytes(8, "big") + (999_999_123).to_bytes(4, "big")
    assert encoded.value(1) == bytes(8) + (1).to_bytes(4, "big")
    edge = pa.StructArray.from_arrays(
        [pa.array([(1 << 63) // 1000], pa.timestamp("us", tz="UTC")), pa.array([999], pa.int32())],
        names=["timestamp", "nanos"],
    )
    total = (1 << 63) // 1000 * 1000 + 999
    seconds, nanos = divmod(total, 1_000_000_000)
    assert encode_column(flink.INSTANT, edge).value(0) == seconds.to_bytes(8, "big") + nanos.to_bytes(4, "big")
