from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.errors import DecodeError
from statetool.spark.guard import checked

NUMBERS = pa.map_(pa.string(), pa.int32())


def refused(array: pa.Array) -> bool:
    batch = pa.record_batch({"m": array})
    try:
        assert list(checked(iter([batch]))) == [batch]
    except DecodeError:
        return True
    return False


@pytest.mark.parametrize("wrap", ["map", "list", "struct", "value of a map"])
def test_a_key_twice_is_found_wherever_the_map_is(wrap: str) -> None:
    def array(*maps: Any) -> pa.Array:
        if wrap == "list":
            return pa.array([[m, []] for m in maps], type=pa.list_(NUMBERS))
        if wrap == "struct":
            return pa.array([{"x": m} for m in maps], type=pa.struct([("x", NUMBERS)]))
        if wrap == "value of a map":
            return pa.array([[("k", m)] for m in maps], type=pa.map_(pa.string(), NUMBERS))
        return pa.array(maps, type=NUMBERS)

    assert not refused(array([("a", 1)], None, [], [("a", 2), ("b", 3)]))
    assert refused(array([("a", 1)], None, [("c", 1), ("b", 2), ("c", 1)]))


@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=4)), max_size=9
    ),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_slices_of_a_batch_are_judged_by_their_own_maps(maps: list[Any], start: int, length: int) -> None:
    sliced = maps[start : start + length]
    twice = any(m is not None and len({k for k, _ in m}) < len(m) for m in sliced)
    assert refused(pa.array(maps, type=NUMBERS).slice(start, length)) == twice


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), 1, 2),
        (pa.bool_(), True, False),
        (pa.decimal128(38, 18), Decimal("1.5"), Decimal("1.25")),
        (pa.timestamp("us", tz="UTC"), 1, 2),
        (pa.binary(), b"", b"\0"),
        (pa.struct([("f0", pa.string()), ("f1", pa.int32())]), {"f0": "a", "f1": 1}, {"f0": "a", "f1": None}),
        (pa.list_(pa.int32()), [1], [1, 1]),
    ],
)
def test_keys_of_any_type_are_compared(kind: pa.DataType, one: Any, other: Any) -> None:
    def maps(*keys: Any) -> pa.Array:
        return pa.array([[(k, 0) for k in keys], [(keys[0], 0)]], type=pa.map_(kind, pa.int8()))

    assert not refused(maps(one, other))
    assert refused(maps(one, other, one))


def test_the_error_says_where_and_what_to_do() -> None:
    batch = pa.record_batch({"balances": pa.array([[("a", 1), ("a", 2)]], type=NUMBERS)})
    with pytest.raises(DecodeError, match=r"same key twice.*file x, operator accounts, state balances.*long form"):
        list(checked(iter([batch]), file="x", operator="accounts"))
