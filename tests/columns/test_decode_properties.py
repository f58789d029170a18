"""Kernels and the plain decoder give the same columns: same rows, same ends, errors for the same values."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.errors import StatetoolError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.options import ReadOptions
from tests.support.checks.both_ways import READ_OPTIONS, same_both_ways
from tests.support.checks.serializer_check import Case
from tests.support.corpora.golden import generated
from tests.support.quick import examples
from tests.support.strategies.serializers import typed_values
from tests.support.values.arrow_columns import by_kernels

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
_CASES = [case for cases in generated().values() for case in cases if case.data]


def _encoded(made: tuple[bytes, list[Any]]) -> tuple[Serializer, bytes, list[int]]:
    snapshot, values = made
    s = snapshot_reader().snapshot(Cursor(snapshot))
    out, starts = Output(), []
    for value in values:
        starts.append(len(out))
        s.encode(out, value)
    return s, bytes(out), [*starts, len(out)]


@settings(max_examples=examples(300))
@given(typed_values(), READ_OPTIONS)
def test_made_up_values(made: tuple[bytes, list[Any]], options: ReadOptions) -> None:
    s, raw, bounds = _encoded(made)
    same_both_ways(s, raw, bounds[:-1], bounds[1:], options)


@pytest.mark.full
@settings(max_examples=300)
@given(typed_values(), READ_OPTIONS, st.data())
def test_damaged_values(made: tuple[bytes, list[Any]], options: ReadOptions, data: st.DataObject) -> None:
    s, raw, bounds = _encoded(made)
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            at = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at] = data.draw(st.integers(0, 255) | st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    same_both_ways(s, bytes(damaged), bounds[:-1], bounds[1:], options)


@settings(max_examples=300)
@given(st.sampled_from(_CASES), READ_OPTIONS, st.data())
def test_damaged_golden_values(case: Case, options: ReadOptions, data: st.DataObject) -> None:
    s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
    raw = bytearray(case.data or b"")
    starts = list(case.offsets or ())
    ends = [*starts[1:], len(raw)]
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    same_both_ways(s, bytes(raw), starts, ends, options)


@settings(max_examples=200)
@given(typed_values(), st.data())
def test_cut_values(made: tuple[bytes, list[Any]], data: st.DataObject) -> None:
    """The frame of the last value ends too early."""
    s, raw, bounds = _encoded(made)
    if bounds[-1] == bounds[-2]:
        return
    end = data.draw(st.integers(bounds[-2], bounds[-1] - 1))
    options = ReadOptions(nanos="companion", decimals="string")
    with pytest.raises(StatetoolError) as caught:
        by_kernels(s, raw, bounds[:-1], [*bounds[1:-1], end], options)
    if not isinstance(caught.value, UnsupportedError):
        offset = caught.value.where.offset
        assert offset is not None
        assert 0 <= offset <= end
