"""Rows are selected with the same result as Arrow's ``take``, for all types and buffer offsets."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from statetool.columns.take import row_sizes, take_rows

_R = random.Random(7)


def _text() -> str:
    return "äxyz"[: _R.randrange(5)] * _R.randrange(9)


def _list_of(value: Callable[[], object]) -> Callable[[], object]:
    return lambda: [value() for _ in range(_R.choice((0, 0, 1, 2, 7)))]


_STRUCT = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string()), pa.field("c", pa.list_(pa.float64()))])
_VALUES: dict[pa.DataType, Callable[[], object]] = {
    pa.bool_(): lambda: _R.random() < 0.5,
    pa.int8(): lambda: _R.randrange(-128, 128),
    pa.int64(): lambda: _R.randrange(-(1 << 63), 1 << 63),
    pa.float32(): lambda: float(_R.randrange(99)),
    pa.decimal128(20, 3): lambda: Decimal(_R.randrange(10**15)).scaleb(-3),
    pa.date32(): lambda: datetime.date(2000, 1, 1 + _R.randrange(28)),
    pa.timestamp("us", "UTC"): lambda: datetime.datetime.fromtimestamp(_R.randrange(10**9), datetime.timezone.utc),
    pa.binary(3): lambda: _R.randbytes(3),
    pa.null(): lambda: None,
    pa.string(): _text,
    pa.large_string(): _text,
    pa.binary(): lambda: _R.randbytes(_R.randrange(20)),
    pa.large_binary(): lambda: _R.randbytes(_R.randrange(20)),
    pa.dictionary(pa.int8(), pa.string()): lambda: _R.choice(("x", "yy")),
    pa.list_(pa.int16()): _list_of(lambda: _R.randrange(99)),
    pa.list_(pa.bool_()): _list_of(lambda: _R.random() < 0.5),
    pa.large_list(pa.string()): _list_of(_text),
    pa.list_(pa.list_(pa.string())): _list_of(_list_of(_text)),
    pa.list_(pa.int64(), 2): lambda: [1, _R.randrange(99)],
    pa.list_(pa.list_(pa.int64(), 2)): _list_of(lambda: [1, _R.randrange(99)]),
    pa.map_(pa.string(), pa.float64()): lambda: [(_text(), _R.random()) for _ in range(_R.randrange(4))],
    pa.map_(pa.int32(), _STRUCT): lambda: [(1, {"a": 1, "b": _text(), "c": [0.5]}) for _ in range(_R.randrange(3))],
    _STRUCT: lambda: {"a": _R.randrange(99), "b": _text(), "c": [0.5] * _R.randrange(3)},
    pa.struct([]): dict,
}


@pytest.fixture(autouse=True)
def same_values() -> None:
    """Draw the same values whatever other tests run."""
    _R.seed(7)


@pytest.mark.parametrize("nulls", [0, 0.3], ids=["valid", "nulls"])
@pytest.mark.parametrize("kind", _VALUES, ids=str)
def test_rows_are_those_that_arrow_takes(kind: pa.DataType, nulls: float) -> None:
    value = _VALUES[kind]

    def nullable() -> object:
        inner = value()
        if nulls and isinstance(inner, list) and not pa.types.is_map(kind):
            inner = [None if _R.random() < nulls and not isinstance(v, list) else v for v in inner]
        return None if _R.random() < nulls else inner

    whole = pa.array([nullable() for _ in range(300)], kind)
    for array in (whole, whole.slice(17, 200), whole.slice(100, 0)):
        for count in (0, 1, len(array) // 3, len(array)):
            batch = pa.record_batch([array], ["x"])
            rows = np.array(_R.sample(range(len(array)), min(count, len(array))), dtype=np.int32)
            taken = take_rows(batch, rows)
            taken.validate(full=True)
            assert taken.equals(batch.take(pa.array(rows)))


def test_the_fields_of_a_sliced_struct_are_its_own() -> None:
    inner = pa.array([[i] * (i % 4) for i in range(50)], pa.list_(pa.int32()))
    array = pa.StructArray.from_arrays([inner.slice(5, 40)], ["l"]).slice(3, 30)
    rows = np.array([29, 0, 7, 8], dtype=np.int32)
    taken = take_rows(pa.record_batch([array], ["s"]), rows)
    assert taken.column(0).to_pylist() == [array[i].as_py() for i in rows.tolist()]


def test_a_type_that_arrow_cannot_take_is_refused() -> None:
    batch = pa.record_batch([pa.array([["a"]], pa.list_(pa.string_view()))], ["x"])
    with pytest.raises(pa.ArrowNotImplementedError):
        take_rows(batch, np.zeros(1, dtype=np.int32))


def test_the_bytes_of_a_row_are_those_that_it_holds_itself() -> None:
    texts = [["a" * 1000, "b"], [], None, ["c" * 10]]
    array = pa.array(texts * 3, pa.list_(pa.string()))
    held = [4 + sum(4 + len(text) for text in row or ()) for row in texts]
    assert row_sizes(pa.record_batch([array], ["x"])).tolist() == held * 3
    assert row_sizes(pa.record_batch([array.slice(3, 6)], ["x"])).tolist() == (held * 3)[3:9]
    pairs = pa.array([[(1, "x" * 50)], [], [(2, ""), (3, "yy")]], pa.map_(pa.int64(), pa.large_string()))
    nested = pa.StructArray.from_arrays([pairs, pa.array([1, 2, 3], pa.int16())], ["m", "n"])
    assert row_sizes(pa.record_batch([nested, pairs], ["s", "m"])).tolist() == [2 * 70 + 2, 2 * 4 + 2, 2 * 38 + 2]
    assert row_sizes(pa.record_batch([array.slice(0, 0)], ["x"])).tolist() == []


@pytest.mark.parametrize("kind", _VALUES, ids=str)
def test_the_bytes_of_rows_are_about_those_of_a_batch(kind: pa.DataType) -> None:
    batch = pa.record_batch([pa.array([_VALUES[kind]() for _ in range(300)], kind)], ["x"])
    assert batch.nbytes - 16 <= row_sizes(batch).sum() <= 1.5 * batch.nbytes + 300
