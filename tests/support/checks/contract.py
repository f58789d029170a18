"""Contract that every serializer must meet; a test class of a family only names its cases."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest

from statetool.columns.decode import as_data, decode_column
from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.types import arrow_type
from statetool.errors import EncodeError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import kernel_only
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.options import ReadOptions
from tests.support.checks.serializer_check import Case, check
from tests.support.corpora.golden import generated
from tests.support.expected.values import to_json
from tests.support.snapshots import build
from tests.support.values.arrow_columns import rows_of

_BASE = 1000
_OPTIONS = ReadOptions(ttl="raw", nanos="companion", decimals="string")


class SerializerContract:
    """Tests that run for each golden case of ``names``."""

    #: Names of cases of the corpus.
    names: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            cases = [case for name in self.names for case in generated()[name]]
            metafunc.parametrize("case", cases, ids=[case.name for case in cases])

    def test_agrees_with_flink(self, case: Case) -> None:
        """Snapshot, values, offsets, bytes, length, hash codes and key groups equal Flink's."""
        result = check(case)
        assert result.failures == []
        assert result.unsupported == []

    def test_skip_kernel_finds_the_same_ends(self, case: Case) -> None:
        s, frames, _ = _load(case)
        program = compile_skip(s.program())
        assert (program is None) == (not kernel_only(s.program()))
        if program is None:
            return
        data = np.frombuffer(case.data or b"", np.uint8)
        starts = np.array([a for a, _ in frames], np.int64)
        ends = np.array([b for _, b in frames], np.int64)
        after = np.empty_like(starts)
        skip_many(data, program, starts, np.full_like(ends, len(data)), after)
        assert after.tolist() == ends.tolist()

    def test_column_kernel_gives_the_same_values(self, case: Case) -> None:
        s, frames, values = _load(case)
        data = as_data(case.data or b"")
        starts = np.array([a for a, _ in frames], np.int64)
        ends = np.array([b for _, b in frames], np.int64)
        try:
            plain = plain_to_arrow(values, s.logical, _OPTIONS)
        except StatetoolError as e:
            # Arrow maps have no null keys, in both ways.
            with pytest.raises(StatetoolError, match=re.escape(e.message)):
                decode_column(s.program(), s.logical, data, starts, ends, _OPTIONS)
            return
        column, after = decode_column(s.program(), s.logical, data, starts, ends, _OPTIONS)
        assert column.type == plain.type == arrow_type(s.logical, _OPTIONS)
        # NaN is not equal to itself, its text is.
        assert rows_of(column) == rows_of(plain)
        assert after.tolist() == ends.tolist()

    def test_truncation_is_an_error_inside_of_what_is_there(self, case: Case) -> None:
        s, frames, _ = _load(case)
        for start, end in frames:
            for cut in range(start, end, max(1, (end - start) // 64)):
                c = Cursor((case.data or b"")[start:cut], base=_BASE)
                with pytest.raises(StatetoolError) as caught:
                    s.decode(c)
                assert caught.value.where.offset is not None
                assert _BASE <= caught.value.where.offset <= _BASE + cut - start

    def test_inside_of_others(self, case: Case) -> None:
        """Elements of lists, keys and values of maps, fields of tuples, nullable values."""
        s, _, values = _load(case)
        first = build.INT
        for snapshot, value in (
            (build.list_of(s), values),
            (build.map_of(first, s), list(enumerate(values))),
            (build.map_of(s, first), [(v, i) for i, v in enumerate(values)]),
            (build.tuple_of(first, s, first), (1, values[0], 2)),
            (build.nullable(s), values[0]),
        ):
            outer = snapshot_reader().snapshot(Cursor(snapshot))
            out = Output()
            outer.encode(out, value)
            c = Cursor(out)
            decoded = outer.decode(c)
            assert c.left == 0
            assert _json(outer, decoded) == _json(outer, value)

    def test_what_it_cannot_hold_is_refused(self, case: Case) -> None:
        s, _, _ = _load(case)
        for value in (object(), (object(),) * 7, *(() if s.nullable else (None,))):
            with pytest.raises(EncodeError):
                s.encode(Output(), value)


class FramedContract(SerializerContract):
    """Contract of types whose values end only at the end of their frame."""

    def test_agrees_with_flink(self, case: Case) -> None:
        """The check declares the class, but the other tests do not."""
        result = check(case)
        assert result.failures == []
        assert result.unsupported == []

    def test_skip_kernel_finds_the_same_ends(self, case: Case) -> None:
        s, _, _ = _load(case)
        assert s.needs_frame

    def test_truncation_is_an_error_inside_of_what_is_there(self, case: Case) -> None:
        s, frames, _ = _load(case)
        start, end = frames[0]
        assert s.decode(Cursor((case.data or b"")[start : end - 1])) == (case.data or b"")[start : end - 1]

    def test_inside_of_others(self, case: Case) -> None:
        """Only the last value of a frame can be separated from the following bytes."""
        s, _, values = _load(case)
        for snapshot, value in (
            (build.list_of(s), [values[0], values[0]]),
            (build.map_of(build.INT, s), [(1, values[0]), (2, values[0])]),
            (build.map_of(s, build.INT), [(values[0], 1)]),
            (build.tuple_of(s, build.INT), (values[0], 1)),
        ):
            outer = snapshot_reader().snapshot(Cursor(snapshot))
            assert outer.needs_frame
            out = Output()
            outer.encode(out, value)
            with pytest.raises(UnknownSerializerError):
                outer.decode(Cursor(out))
        last = snapshot_reader().snapshot(Cursor(build.tuple_of(build.INT, s)))
        out = Output()
        last.encode(out, (1, values[0]))
        assert last.decode(Cursor(out)) == (1, values[0])


def _load(case: Case) -> tuple[Serializer, list[tuple[int, int]], list[Any]]:
    """Return the serializer, the range of each value, and the values."""
    assert case.snapshot is not None
    assert case.data is not None
    assert case.offsets is not None
    s = snapshot_reader().snapshot(Cursor(case.snapshot))
    frames = list(zip(case.offsets, [*case.offsets[1:], len(case.data)], strict=True))
    return s, frames, [s.decode(Cursor(case.data, start, end)) for start, end in frames]


def _json(s: Serializer, value: Any) -> str:
    # NaN is not equal to itself, but its text is.
    return repr(to_json(value, s.logical, s, style="serializer"))
