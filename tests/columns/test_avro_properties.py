"""Kernels and the plain decoder give the same columns for Avro values, including damaged bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import PerRecord
from statetool.serializers.avro.serializer import AvroSerializer
from tests.support.checks.both_ways import READ_OPTIONS, same_both_ways
from tests.support.quick import examples
from tests.support.strategies.avro import avro_values

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def _encoded(made: tuple[Any, list[Any]]) -> tuple[AvroSerializer, bytes, list[int]]:
    schema, values = made
    s = AvroSerializer("AvroSerializerSnapshot", 3, "x.Y", json.dumps(schema))
    out, bounds = Output(), [0]
    for value in values:
        s.encode(out, value)
        bounds.append(len(out))
    c = Cursor(bytes(out))
    assert [s.decode(c) for _ in values] == values
    return s, bytes(out), bounds


@settings(max_examples=examples(150))
@given(avro_values(), READ_OPTIONS)
def test_made_up_values(made: tuple[Any, list[Any]], options: Any) -> None:
    s, raw, bounds = _encoded(made)
    assert not isinstance(s.program(), PerRecord)
    same_both_ways(s, raw, bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=500)
@given(avro_values(), READ_OPTIONS, st.data())
def test_damaged_values(made: tuple[Any, list[Any]], options: Any, data: st.DataObject) -> None:
    s, raw, bounds = _encoded(made)
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            at = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    same_both_ways(s, bytes(damaged), bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=200)
@given(avro_values(), READ_OPTIONS, st.data())
def test_cut_off_values(made: tuple[Any, list[Any]], options: Any, data: st.DataObject) -> None:
    s, raw, bounds = _encoded(made)
    cut = data.draw(st.integers(bounds[-2], bounds[-1]))
    same_both_ways(s, raw[:cut], bounds[:-1], [*bounds[1:-1], cut], options)
