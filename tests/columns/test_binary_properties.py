"""Kernels and the plain decoder give the same columns for binary rows, arrays and maps, including damaged bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from tests.support.checks.both_ways import READ_OPTIONS, same_both_ways
from tests.support.quick import examples
from tests.support.strategies.sql import sql_values

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def _encoded(s: Serializer, values: list[Any]) -> tuple[bytes, list[int]]:
    out, bounds = Output(), [0]
    for value in values:
        s.encode(out, value)
        bounds.append(len(out))
    return bytes(out), bounds


@settings(max_examples=examples(150))
@given(sql_values(), READ_OPTIONS)
def test_made_up_values(made: tuple[Serializer, list[Any]], options: Any) -> None:
    s, values = made
    raw, bounds = _encoded(s, values)
    c = Cursor(raw)
    assert [s.decode(c) for _ in values] == values
    same_both_ways(s, raw, bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=500)
@given(sql_values(), READ_OPTIONS, st.data())
def test_damaged_values(made: tuple[Serializer, list[Any]], options: Any, data: st.DataObject) -> None:
    s, values = made
    raw, bounds = _encoded(s, values)
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from((0, 1, 2, 7, 8, 0x7F, 0x80, 0x87, 0x88, 0xFF)))
    same_both_ways(s, bytes(damaged), bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=200)
@given(sql_values(), READ_OPTIONS, st.data())
def test_cut_off_values(made: tuple[Serializer, list[Any]], options: Any, data: st.DataObject) -> None:
    s, values = made
    raw, _ = _encoded(s, values[:1])
    cut = data.draw(st.integers(0, len(raw)))
    same_both_ways(s, raw[:cut], [0], [cut], options)
