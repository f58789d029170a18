"""Lines written column by column are those that are written row by row."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.tables.export import result_files, text_lines
from tests.support.zoo import ZOO

TEXTS = ["", None, 'a "q"', "a,b", "a\nb", "a\r", "\x00\x1f\x7f", "\\", "Zürich 😀", "\u2028"]
ODD = pa.record_batch(
    {
        "text": pa.array(TEXTS),
        'a "name", odd': pa.array(TEXTS, pa.large_string()),
        "number": pa.array([0, None, -1, 2**63 - 1, -(2**63), 5, 6, 7, 8, 9]),
        "flag": pa.array([True, False, None] * 3 + [True]),
        "float": pa.array([1.0, None, float("nan"), float("inf"), -0.0, 1e16, 1e-7, 0.1, 5e-324, -float("inf")]),
        "whole": pa.array([Decimal(1), None, Decimal(-5)] * 3 + [Decimal(0)], pa.decimal128(38, 0)),
        "money": pa.array([Decimal("1.20"), None, Decimal("-0.05")] * 3 + [Decimal(0)], pa.decimal128(20, 2)),
        "time": pa.array([0, None, 1, 10**15, -(10**17), 10**18, 2, 3, 4, 5], pa.timestamp("us", "UTC")),
        "bytes": pa.array([b"", None, b"\xff"] * 3 + [b"a"]),
        "map": pa.array([[("a", 1)], None, []] * 3 + [[('"', None)]], pa.map_(pa.string(), pa.int64())),
        "row": pa.array(
            [{"x": "a,b", "y": [1, None]}, None] * 5, pa.struct({"x": pa.string(), "y": pa.list_(pa.int32())})
        ),
    }
)
#: Numbers and times around the values from which Python and Arrow write them differently.
FLOATS = [0.0, -0.0, 1.0, 0.1, 1e-3, 9.99e-4, 1e-5, 999999999.5, 1e9, 1e15, 1e16, 1e17, 1 / 3, -2.5, None, float("nan")]
MICROS = [0, 1, -1, 999_999, 1_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999, 10**15, 86_399_999_999, None]
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.timestamp("us"), MICROS),
    (pa.timestamp("us"), [*MICROS, -(10**17)]),  # before the year 1
    (pa.timestamp("us", "UTC"), MICROS),
    (pa.timestamp("us", "Asia/Tokyo"), MICROS),
    (pa.duration("us"), [*MICROS, 2**62]),
    (pa.time64("us"), [0, 1, 1_000_000, 86_399_999_999, None]),
    (pa.date32(), [0, -719_162, 2_932_896, 18_262, None]),
    (pa.date32(), [0, -719_163]),
    (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-5), None]),
    (pa.decimal128(20, 6), [Decimal("0.000001"), Decimal("0"), Decimal("-7.5")]),
    (pa.decimal128(20, 9), [Decimal("0.000000001"), Decimal("12")]),
    (pa.binary(), [b"", b"\x00\xff", None, b"a" * 40]),
    (pa.string(), TEXTS),
    (pa.bool_(), [True, None]),
    (pa.int8(), [-128, None]),
    (pa.null(), [None, None]),
]
BATCHES = {
    "odd": ODD,
    "sliced": ODD.slice(3, 5),
    "no rows": ODD.slice(0, 0),
    "one column": ODD.select(["text"]),
    "no columns": ODD.select([]),
}


_NUMBERED = {pa.timestamp("us").id, pa.duration("us").id, pa.time64("us").id}


def both(batch: pa.RecordBatch, monkeypatch: pytest.MonkeyPatch) -> list[list[list[str]]]:
    writers: list[Any] = [result_files.csv_rows, result_files.json_lines]
    by_column = [list(write([batch])) for write in writers]
    with monkeypatch.context() as patch:
        for name in ("csv_batch", "json_batch"):
            patch.setattr(result_files, name, lambda *_: None)
        return [by_column, [list(write([batch])) for write in writers]]


@pytest.mark.parametrize("name", BATCHES)
def test_lines_are_those_of_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_column, by_row = both(BATCHES[name], monkeypatch)
    assert by_column == by_row


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[f"{i}-{kind}" for i, (kind, _) in enumerate(TYPES)])
def test_values_are_those_of_rows_also_inside_others(
    kind: pa.DataType, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pa.array(values, pa.int64()).view(kind) if kind.id in _NUMBERED else pa.array(values, kind)
    n = len(plain)
    offsets = pa.array([0, *(i if i % 3 else None for i in range(1, n)), n], pa.int32())
    pairs = pa.array([0, *range(1, n), n], pa.int32())
    columns = {
        "plain": plain,
        "list": pa.ListArray.from_arrays(offsets, plain),
        "row": pa.StructArray.from_arrays([plain, plain], ["a", 'b"'], mask=pa.array([i == 1 for i in range(n)])),
        "map": pa.MapArray.from_arrays(pairs, pa.array([f'k"{i}' for i in range(n)]), plain),
        "by number": pa.MapArray.from_arrays(pairs, pa.array(range(n)), plain),
    }
    columns["rows"] = pa.ListArray.from_arrays(offsets, columns["row"])
    batch = pa.record_batch(columns)
    for part in (batch, batch.slice(1), batch.slice(n // 2, 1), *(batch.select([name]) for name in columns)):
        by_column, by_row = both(part, monkeypatch)
        assert by_column == by_row


def test_lines_of_state_are_those_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    savepoint = statetool.load(ZOO)
    for operator in savepoint.operators.values():
        for table in operator.tables:
            for batch in operator.batches(table, on_error="keep_raw"):
                by_column, by_row = both(batch, monkeypatch)
                assert by_column == by_row, (operator.name, table)


def test_odd_values_are_written_by_column() -> None:
    """Only text that is no UTF-8 is left to rows."""
    shown = result_files._json_value
    assert text_lines.csv_batch(ODD, shown, str) is not None
    assert text_lines.json_batch(ODD, shown) is not None
    damaged = pa.StringArray.from_buffers(1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff"))
    assert text_lines.json_batch(pa.RecordBatch.from_arrays([damaged], ["a"]), shown) is None
