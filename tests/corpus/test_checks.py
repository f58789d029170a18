"""The checks themselves are strict: they find the errors that they must find."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool import flink
from statetool.columns.from_plain import plain_to_arrow
from statetool.errors import UnknownSerializerError
from tests.support.checks import corpus_check, roundtrip_check
from tests.support.checks.roundtrip_check import check_roundtrip
from tests.support.checks.serializer_check import Case, check
from tests.support.snapshots import build, canonical


def test_values_that_stay_bytes_are_failures_unless_it_is_known() -> None:
    unknown = build.INT.replace(b"IntSerializer$", b"OurSerializer$")
    result = check(Case(name="flink-core/our-serializer", snapshot=unknown, data=bytes(4)))
    assert len(result.failures) == 1
    assert "is not known" in result.failures[0]
    known = check(Case(name="any/flink-1.3.2-scala-types-serializer-data", snapshot=None, data=b""))
    assert (known.failures, len(known.unsupported)) == ([], 1)
    other = check(Case(name="any/other-data", snapshot=None, data=b""))
    assert (len(other.failures), other.unsupported) == (1, [])


def test_a_kernel_that_gives_something_else_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(name="int", snapshot=build.INT, data=bytes(range(8)), offsets=[0, 4], values=[0x10203, 0x4050607])
    assert check(case).failures == []
    monkeypatch.setattr(
        "tests.support.checks.serializer_check.plain_to_arrow",
        lambda values, *rest: plain_to_arrow([v + 1 for v in values], *rest),
    )
    (failure,) = check(case).failures
    assert failure.startswith("the column is [66051, 67438087], decoded one by one")


@pytest.mark.parametrize("error", [UnknownSerializerError("a class"), KeyError("a key"), RecursionError("too deep")])
def test_whatever_a_case_raises_is_its_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    (tmp_path / "case.json").write_text('{"kind": "canonical", "metadata": "_metadata"}')
    (tmp_path / "expected.json").write_text('{"operator": {}}')

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(corpus_check, "Checker", fail)
    (case,) = corpus_check.find_cases(tmp_path, None)
    passed, line = corpus_check.check_case(case, [("arrow", None)])
    assert not passed
    assert str(error.args[0]) in line


def beyond(folder: Path) -> Path:
    """Write a case with dates that Python's types cannot hold."""
    keys = pa.array([1, 2], pa.int32())
    at = [datetime_of(20000), datetime_of(-4000)]
    table = pa.table(
        {
            "key": keys,
            "at": pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "days": pa.array([[v // 86_400_000_000] for v in at], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
        }
    )
    types = {
        "at": statetool.value(flink.basic("Date")),
        "days": statetool.value(flink.list_of(flink.basic("LocalDate"))),
    }
    operator = statetool.bootstrap_keyed_state(table, key_type=flink.basic("Int"), states=types)
    writer = statetool.SavepointWriter.new().with_operator("op", operator, parallelism=1, max_parallelism=128)
    writer.write(str(folder / "snapshot"), flink_version="2.3")
    (op,) = statetool.load(str(folder / "snapshot")).operators.values()
    values: dict[str, list[Any]] = {
        "at": ["+20000-01-01T00:00:00Z", "-4000-01-01T00:00:00Z"],
        "days": [["+20000-01-01"], ["-4000-01-01"]],
    }
    states = {
        name: {"kind": "value", "rows": [{"key": k, "value": v} for k, v in zip((1, 2), rows, strict=True)]}
        for name, rows in values.items()
    }
    keyed = {"states": states, "event_time_timers": [], "processing_time_timers": []}
    described = {
        "operator_id": op.operator_id,
        "max_parallelism": 128,
        "parallelism": 1,
        "keyed_state": keyed,
    }
    (folder / "case.json").write_text('{"kind": "canonical", "metadata": "_metadata"}')
    (folder / "expected.json").write_text(json.dumps({"operators": {"op": described}}))
    return folder


def datetime_of(year: int) -> int:
    """Return the first moment of a year, in microseconds since 1970."""
    # 400 years of the calendar have 146097 days.
    within = datetime(1600 + year % 400, 1, 1, tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (within.days + (year - 1600) // 400 * 146097) * 86_400_000_000


def test_dates_that_python_does_not_have_are_compared(tmp_path: Path) -> None:
    (case,) = corpus_check.find_cases(beyond(tmp_path), None)
    passed, line = corpus_check.check_case(case, [("arrow", None)])
    assert passed, line
    assert "rows=8" in line
    assert check_roundtrip(case, None) == ([], 16)
    case.expected["operators"]["op"]["keyed_state"]["states"]["days"]["rows"][0]["value"] = ["+20000-01-02"]
    assert not corpus_check.check_case(case, [("arrow", None)])[0]
    for millis in (10**15, -(10**15)):
        data = (millis).to_bytes(8, "big", signed=True)
        assert (
            check(Case(name="date", snapshot=build.simple("Date"), data=data, values=[{"$millis": millis}])).failures
            == []
        )


def test_round_trips_take_declarations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A subclass that the snapshot does not describe is read and written once it is declared."""
    (tmp_path / "snapshot").mkdir()
    value = b"\4\0\4Bike\2\0\0\0\0\7\0\0\0\0\2"
    vehicle = build.pojo("Vehicle", {"wheels": build.INT})
    group = canonical.group_of(canonical.serializer(build.STRING), "a", 128)
    states = [canonical.keyed("v", "value", vehicle)]
    subtask = canonical.Subtask(key=build.STRING, states=states, entries=[("v", group, b"\2a\0", value)])
    op = canonical.savepoint(tmp_path / "snapshot", [subtask])
    row = {"key": "a", "value": {"$class": "Bike", "gear": 7, "wheels": 2}}
    keyed = {"states": {"v": {"kind": "value", "rows": [row]}}, "event_time_timers": [], "processing_time_timers": []}
    described = {"operator_id": op.operator_id, "max_parallelism": 128, "parallelism": 1, "keyed_state": keyed}
    (tmp_path / "case.json").write_text('{"kind": "canonical", "metadata": "_metadata"}')
    (tmp_path / "expected.json").write_text(json.dumps({"operators": {"op": described}}))
    schema = {
        "type": "record",
        "name": "Bike",
        "java-extends": ["Vehicle"],
        "fields": [{"name": n, "type": "int"} for n in ("gear", "wheels")],
    }
    (tmp_path / "bike.avsc").write_text(json.dumps(schema))
    declared = [str(tmp_path), "--via", "arrow", "--declare", str(tmp_path / "bike.avsc")]
    assert roundtrip_check.main(declared) == corpus_check.main(declared) == 0
    assert "PASS" in capsys.readouterr().out
    # Without a declaration, the round trip leaves the state out, and only the bytes of the value are available.
    assert "raw=1" in str(corpus_check.check_case(corpus_check.find_cases(tmp_path, None)[0], [("arrow", None)]))
