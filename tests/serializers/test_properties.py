"""Round trips of generated types and values, and damage: only a ``StatetoolError`` may escape."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.table import snapshot_reader
from tests.support.checks.serializer_check import Case
from tests.support.corpora.golden import generated
from tests.support.strategies.serializers import typed_values

# Generated strategies have long names.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
_CASES = [case for cases in generated().values() for case in cases]


@settings(max_examples=150)
@given(typed_values())
def test_what_is_encoded_is_decoded_and_skipped(typed: tuple[bytes, list[Any]]) -> None:
    snapshot, values = typed
    s = snapshot_reader().snapshot(Cursor(snapshot))
    out = Output()
    starts = []
    for value in values:
        starts.append(len(out))
        s.encode(out, value)
    assert len(out) - starts[-1] == s.length or s.length <= 0
    c = Cursor(out)
    assert [s.decode(c) for _ in values] == values
    assert c.left == 0
    for start, end in zip(starts, [*starts[1:], len(out)], strict=True):
        skipped = Cursor(out, start)
        s.skip(skipped)
        assert skipped.pos == end
    program = compile_skip(s.program())
    if program is not None:
        after = np.empty(len(starts), np.int64)
        data = np.frombuffer(bytes(out), np.uint8)
        skip_many(data, program, np.array(starts, np.int64), np.full(len(starts), len(out), np.int64), after)
        assert after.tolist() == [*starts[1:], len(out)]


def _damaged(raw: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, drop, insert in edits:
        at %= len(raw) + 1
        raw = raw[:at] + insert + raw[at + drop :]
    return raw


_EDITS = st.lists(
    st.tuples(
        st.integers(0, 1 << 16),
        st.integers(0, 5),
        st.binary(max_size=4) | st.sampled_from((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0")),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=400)
@given(st.sampled_from(_CASES), _EDITS)
def test_damaged_snapshot_raises_only_our_errors(case: Case, edits: list[tuple[int, int, bytes]]) -> None:
    try:
        s = snapshot_reader().snapshot(Cursor(_damaged(case.snapshot or b"", edits)))
        assert s.type_name is not None
        assert s.logical is not None
        assert s.program() is not None
        s.decode(Cursor(case.data or b""))
    except StatetoolError:
        pass


@settings(max_examples=400)
@given(st.sampled_from(_CASES), _EDITS)
def test_damaged_value_raises_only_our_errors(case: Case, edits: list[tuple[int, int, bytes]]) -> None:
    s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
    c = Cursor(_damaged(case.data or b"", edits))
    try:
        while c.left:
            start = c.pos
            s.decode(c)
            if c.pos == start:
                break
    except StatetoolError as e:
        assert str(e)
