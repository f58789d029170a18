"""Schemas in the state of the schema coordinator of CDC pipelines, as the coordinators of releases 3.0.1, 3.1.1, 3.2.1 and 3.5.0 write it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.cli.main import cli
from statetool.connectors.layouts.pipeline_schemas import read_schemas
from statetool.errors import FormatError, StatetoolError
from statetool.io.output import Output
from tests.support.connectors.commands import run
from tests.support.connectors.pipelines import coordinator_states, pipeline

STATES = coordinator_states()
#: Coordinators in versions 0, 1 and 2, each with tables and without.
RELEASES = {"3.0.1": 0, "3.1.1": 1, "3.2.1": 2, "3.5.0": 2}


def identify(state: dict[str, Any]) -> str:
    return f"{state['release']}-{len(state['data'])}"


def test_all_releases_have_bytes() -> None:
    assert {s["release"]: s["version"] for s in STATES} == RELEASES
    assert {s["data"][3] for s in STATES} == {0, 1, 2}


@pytest.mark.parametrize("state", STATES, ids=identify)
def test_schemas_are_those_of_the_coordinator(state: dict[str, Any]) -> None:
    found = read_schemas(state["data"])
    expected = [s for s in state["expected"]["schemas"] if state["version"] > 1 or s["kind"] == "evolved"]
    assert found.behavior == state["expected"]["behavior"]
    read = {
        (s.kind, s.table, s.version): (
            [f"{c.name} {c.type}" for c in s.columns],
            list(s.primary_key),
            list(s.partition_key),
            s.options,
            s.comment,
        )
        for s in found.schemas
    }
    fields = ("columns", "primary_key", "partition_key", "options", "comment")
    assert read == {(s["kind"], s["table"], s["version"]): tuple(s[f] for f in fields) for s in expected}
    assert len(read) == len(found.schemas)


def test_a_column_has_its_comment_default_and_metadata_key() -> None:
    state = next(s for s in STATES if s["release"] == "3.5.0" and len(s["data"]) > 100)
    columns = {c.name: c for s in read_schemas(state["data"]).schemas for c in s.columns}
    assert columns["id"].comment == "the key"
    assert (columns["state"].default, columns["name"].default) == ("new", None)
    assert (columns["op_ts"].metadata_key, columns["op_ts"].comment) == ("op_ts", "from the log")


def test_version_0_has_no_partition_key() -> None:
    out = Output()
    out.i4(1)
    out.i4(1)
    out.utf("orders")
    out.i4(1)
    out.i4(7)
    for _ in range(3):
        out.i4(0)
    out.append(0)
    coordinator = Output()
    coordinator.i4(0)
    coordinator.bytes4(bytes(out))
    (schema,) = read_schemas(bytes(coordinator)).schemas
    assert (schema.table, schema.version, schema.partition_key, schema.comment) == ("orders", 7, (), None)


@pytest.mark.parametrize("state", STATES, ids=identify)
def test_no_truncation_is_read_as_a_whole_state(state: dict[str, Any]) -> None:
    data = state["data"]
    # The topologies differ by the count of derived tables at the end.
    ends = [end for end in range(0, len(data), max(1, len(data) // 150)) if data[end:] != bytes(4)]
    for end in ends:
        with pytest.raises(FormatError):
            read_schemas(data[:end])
    with pytest.raises(FormatError):
        read_schemas(data + b"\0")


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(data: st.DataObject) -> None:
    changed = bytearray(data.draw(st.sampled_from(STATES))["data"])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_schemas(bytes(changed))
    except StatetoolError:
        pass


def refusal(savepoint: statetool.Savepoint, uid: str, code: int) -> str:
    done = CliRunner().invoke(cli, ["sources", "schemas", savepoint.path, "--uid", uid])
    assert done.exit_code == code, done.output
    return done.stderr


def test_the_table_of_schemas(tmp_path: Path) -> None:
    savepoint = pipeline(tmp_path)
    table = savepoint.table_schemas().to_pylist()
    newest = [r for r in table if (r["kind"], r["table"], r["version"]) == ("original", "a.shop.orders", 5)]
    assert [(r["operator"], r["columns"]) for r in newest] == [
        ("schemas", "id BIGINT NOT NULL, name STRING, state STRING")
    ]
    assert {r["behavior"] for r in table} == {"LENIENT"}
    found = run("sources", "schemas", savepoint.path, "--uid", "schemas")
    assert [(r["table"], r["kind"], r["version"]) for r in found] == [
        (r["table"], r["kind"], r["version"]) for r in table
    ]
    assert "no coordinator of schemas" in refusal(savepoint, "others", code=2)


def test_another_version_is_refused_by_name_and_left_out_with_a_warning(tmp_path: Path) -> None:
    savepoint = pipeline(tmp_path, b"\0\0\0\3" + bytes(8))
    assert "version 3 of a coordinator of schemas is not known" in refusal(savepoint, "schemas", code=3)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(cli, ["sources", "schemas", savepoint.path])
    assert done.exit_code == 0, done.output
    assert "run: statetool sources schemas SRC --uid" in done.stderr
    with pytest.warns(UserWarning, match="'schemas' is left out"):
        assert savepoint.table_schemas().num_rows == 0


def test_a_pipeline_is_copied_with_its_schemas(tmp_path: Path) -> None:
    savepoint = pipeline(tmp_path)
    statetool.rescale(savepoint.path, str(tmp_path / "rescaled"), 64, uids=["schemas", "others"])
    copied = statetool.load(str(tmp_path / "rescaled"), uids=["schemas", "others"])
    assert copied.table_schemas() == savepoint.table_schemas()
