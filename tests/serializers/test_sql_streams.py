"""Logical types and their serializers are written byte for byte like Flink's classes write them, in every release."""

from __future__ import annotations

import pytest

from statetool.errors import OptionError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.java.declaring import flink_types as flink
from statetool.serializers.sql.declared import fit_to_release, sql_serializer, sql_snapshot
from statetool.serializers.sql.java_classes import StreamForm
from statetool.serializers.sql.logical_types import parse_logical_type
from statetool.serializers.sql.streams import serializer_object, type_object
from statetool.serializers.sql.type_text import parse_table_type
from statetool.serializers.table import snapshot_reader
from tests.support.flink.logical_types import TYPES, Written, recorded

RECORDED = recorded()


def form_of(release: str) -> StreamForm:
    major, minor = release.split(".")[:2]
    return StreamForm((int(major), int(minor)))


def written(text: str, release: str) -> dict[str, bytes]:
    """Return statetool's output for a release; for a type that state cannot store only the type, as in the recording."""
    sql, form = parse_table_type(text), form_of(release)
    out = Output()
    write_java_stream(out, type_object(sql, form))
    parts = {"type": bytes(out)}
    if sql.root != "NULL":
        out = Output()
        write_java_stream(out, serializer_object(sql, form))
        parts |= {"serializer": bytes(out), "snapshot": sql_snapshot(sql, form)}
    return parts


def recorded_for(release: str) -> Written:
    """Return the recordings valid for a release: those of earlier releases are not repeated if unchanged."""
    recordings: Written = {}
    for name, types in RECORDED.items():
        recordings |= types
        if name == release:
            break
    return recordings


@pytest.mark.parametrize("release", RECORDED)
def test_streams_are_those_of_every_release(release: str) -> None:
    types = recorded_for(release)
    assert len(types) > 150
    wrong = [t for t, parts in types.items() if written(t, release) != parts]
    assert wrong == []


def test_the_newest_release_has_every_type() -> None:
    assert set(TYPES) <= recorded_for(list(RECORDED)[-1]).keys()


@pytest.mark.parametrize("text", recorded_for(list(RECORDED)[-1]))
def test_types_are_read_as_they_are_declared(text: str) -> None:
    raw = recorded_for(list(RECORDED)[-1])[text]["type"]
    sql = parse_logical_type(read_java_stream(Cursor(raw)))
    assert str(sql) == text
    assert str(parse_table_type(text)) == text


def test_declared_snapshots_are_fitted_to_a_release_wherever_they_are() -> None:
    declared = flink.map_of("STRING", sql_serializer(parse_table_type("ARRAY<MAP<STRING, INT>>")))
    old = Output()
    fit_to_release(declared, (1, 13)).write_snapshot(old)
    assert bytes(old).endswith(recorded_for("1.13.6")["ARRAY<MAP<STRING, INT>>"]["snapshot"])
    new = Output()
    fit_to_release(declared, (2, 3)).write_snapshot(new)
    assert bytes(new).endswith(recorded_for("2.3.0")["ARRAY<MAP<STRING, INT>>"]["snapshot"])
    assert bytes(new) != bytes(old)


def test_snapshots_that_were_read_are_not_fitted() -> None:
    old = recorded_for("1.13.6")["ARRAY<MAP<STRING, INT>>"]["snapshot"]
    snapshot = Output()
    fit_to_release(snapshot_reader().snapshot(Cursor(old)), (2, 3)).write_snapshot(snapshot)
    assert bytes(snapshot) == old


def test_without_a_release_all_of_them_read_a_snapshot_or_it_is_refused() -> None:
    text = "ROW<a INT NOT NULL, b ARRAY<ARRAY<BIGINT NOT NULL>>>"
    snapshot = Output()
    fit_to_release(sql_serializer(parse_table_type(text)), None).write_snapshot(snapshot)
    assert bytes(snapshot) == sql_snapshot(parse_table_type(text), StreamForm((1, 13)))
    assert bytes(snapshot) != sql_snapshot(parse_table_type(text), StreamForm((2, 3)))
    with pytest.raises(OptionError, match=r"do not read each other's") as caught:
        fit_to_release(sql_serializer(parse_table_type("ROW<a ARRAY<MAP<STRING, INT>>>")), None)
    assert "flink_version" in caught.value.hint


@pytest.mark.parametrize(("text", "release"), [("ROW<v VARIANT>", (2, 0)), ("ARRAY<BITMAP>", (2, 2))])
def test_types_that_a_release_lacks_are_refused(text: str, release: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedError, match="a type of Flink 2"):
        sql_serializer(parse_table_type(text), StreamForm(release))


def test_raw_types_of_user_serializers_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot be written from nothing"):
        sql_serializer(parse_table_type("ROW<r RAW('com.acme.Thing', 'com.acme.ThingSerializer')>"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("row(a int, date date null, `b c` interval day)", "ROW<a INT, date DATE, `b c` INTERVAL DAY(2)>"),
        ("ROW<INT, STRING NOT NULL>", "ROW<f0 INT, f1 STRING NOT NULL>"),
        ("ROW<INTERVAL YEAR, CHAR(2)>", "ROW<f0 INTERVAL YEAR(2), f1 CHAR(2)>"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIME WITHOUT TIME ZONE", "TIME(0)"),
        ("NUMERIC(4)", "DECIMAL(4, 0)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("VARCHAR", "VARCHAR(1)"),
    ],
)
def test_other_spellings(text: str, same: str) -> None:
    assert str(parse_table_type(text)) == same


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ROW<a INT, a STRING>", "duplicate fields: a"),
        ("ROW<a>", "expected a type, found >"),
        ("ROW<a INT", "expected ',', found the end"),
        ("DECIMAL(39)", "precision of 1 to 38"),
        ("DECIMAL(4, 5)", "scale of 0 to 4"),
        ("TIMESTAMP(10)", "precision of 0 to 9"),
        (f"TIMESTAMP({'9' * 5000})", "precision of 0 to 9"),
        ("TIMESTAMP(6) WITH TIME ZONE", "which are those that state holds"),
        ("INTERVAL WEEK", "expected YEAR, MONTH"),
        ("STRUCTURED<'a.B'>", "expected attributes"),
        ("RAW('a.B')", "expected ','"),
        ("RAW('a.B", "the name of a class"),
        ("INT INT", "expected the end"),
        ("", "expected a type, found the end"),
    ],
)
def test_what_is_no_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_table_type(text)
