"""SQL rows need a mapping if their fields changed; the command reports the verdict of ``check`` on the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool import flink
from statetool.cli.main import cli
from statetool.errors import UnsupportedError
from statetool.serializers.sql.rowdata import RowDataSerializer
from tests.support.snapshots.migrations import KEYS, NEW, NO_ORDERS, OLD, ORDERS, steps, written


def test_fields_of_sql_aggregates_are_never_mapped_by_position(tmp_path: Path) -> None:
    """COUNT and SUM swapped places: the plan narrowed one into the other if that was accepted."""
    old, new = "ROW<c BIGINT, s DOUBLE>", "ROW<s DOUBLE, c BIGINT>"
    count, total = ("c", pa.int64()), ("s", pa.float64())
    buffers = pa.array([{"c": 3, "s": 4.0}, {"c": 5, "s": 0.5}, None], pa.struct([count, total]))
    empty = pa.array([{"s": 1.0, "c": 2}, None, None], pa.struct([total, count]))
    src, job = written(tmp_path / "old", old, buffers), written(tmp_path / "new-job", new, empty)
    plan = statetool.plan_migration(src, job)
    unmapped = [("op.s.value.f0", "impossible", "correction"), ("op.s.value.f1", "impossible", "correction")]
    assert [(r.step, r.change, r.needs) for r in plan.rows] == unmapped
    assert "(f0 BIGINT, f1 DOUBLE)" in plan.rows[0].text
    with pytest.raises(UnsupportedError, match=r"cannot be done: op\.s\.value\.f0.*--rename"):
        statetool.migrate(src, str(tmp_path / "new"), to=job)
    one = plan.renaming({"op.s.value.f0": "f1"})
    assert [(r.step, r.change, r.needs) for r in one.rows] == unmapped[1:]
    # The mapping is part of the plan.
    both = one.renaming({"op.s.value.f1": "f0"})
    statetool.write_plan(both, str(tmp_path / "plan.json"))
    statetool.migrate(src, str(tmp_path / "new"), plan=str(tmp_path / "plan.json"))
    rows = statetool.load(str(tmp_path / "new"))["op"].to_arrow("s").sort_by("key").to_pylist()
    assert [(r["value"]["f0"], r["value"]["f1"]) for r in rows] == [(4.0, 3), (0.5, 5)]


def test_which_sql_rows_need_a_mapping() -> None:
    def changes(old: str, new: str, **choices: Any) -> list[tuple[str, str, bool]]:
        return steps(flink.sql(old), flink.sql(new), **choices)

    pair = "ROW<a BIGINT, b INT>"
    for new in ("ROW<a BIGINT, b INT, c INT>", "ROW<a BIGINT>", "ROW<a BIGINT, b BIGINT>", "ROW<a INT, b INT>"):
        fields = [f"value.f{i}" for i in range(new.count(",") + 1)]
        assert changes(pair, new) == [(f, "impossible", False) for f in fields]
    # A change of nullability moves no field.
    assert changes(pair, "ROW<a BIGINT NOT NULL, b INT>") == []
    given = {"sources": {"value.f0": "f0"}, "fills": {"value.f1": 7}}
    assert changes(pair, "ROW<a BIGINT, b STRING>", **given) == [("value.f1", "add", False), ("value.f1", "drop", True)]
    named, other = flink.sql(pair), flink.sql("ROW<b INT, a BIGINT>")
    assert isinstance(named, RowDataSerializer)
    assert isinstance(other, RowDataSerializer)
    # Names identify fields only if both sides have them.
    assert steps(named.with_names(["a", "b"]), other.with_names(["b", "a"])) == []
    assert steps(named.with_names(["a", "b"]), named) == [(f"value.f{i}", "impossible", False) for i in range(2)]


def test_the_command_ends_with_what_check_says_of_the_result(tmp_path: Path) -> None:
    """A migration that changed nothing printed "written" and looked like a success."""
    old, job, other = (str(tmp_path / n) for n in ("old", "new-job", "other-job"))
    written(tmp_path / "old", OLD, ORDERS)
    written(tmp_path / "new-job", NEW, NO_ORDERS)
    values = statetool.bootstrap_keyed_state(pa.table({"key": KEYS, "s": [1, 2, 3]}))
    statetool.SavepointWriter.new().with_operator("renamed", values).write(other, flink_version="2.3")
    run = CliRunner().invoke
    nothing = run(cli, ["migrate", old, str(tmp_path / "a"), "--to", other])
    assert nothing.exit_code == 1
    assert "no state changes its type" in nothing.stderr
    assert (
        f"Checked against {other}: the new job does not restore the result: op: The new job has no operator with this uid"
        in nothing.stderr
    )
    assert "warning: op: loses" in nothing.stderr
    done = run(cli, ["migrate", old, str(tmp_path / "b"), "--to", other, "--json"])
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)
    assert (row["step"], row["change"], row["needs"]) == ("check", "not", "correction")
    options = ["--rename", "op.s.value.city=town", "--accept", "op.s.value.gone"]
    done = run(cli, ["migrate", old, str(tmp_path / "c"), "--to", job, *options, "--json"])
    assert done.exit_code == 0
    assert f"Checked against {job}: the new job restores the result, if 3 assumptions hold." in done.stderr
    assert done.stderr.count("\nnot verified: ") == 3
    assert json.loads(done.stdout)[-1] == {"step": "check", "change": "fully", "text": "", "needs": "nothing"}
    # A dry run writes and checks nothing. It shows steps even if they are refused.
    dry = run(cli, ["migrate", old, str(tmp_path / "d"), "--to", job, *options, "--json", "--dry-run"])
    assert "check" not in {r["step"] for r in json.loads(dry.stdout)}
    refused = run(cli, ["migrate", old, str(tmp_path / "d"), "--to", job, "--json"])
    assert (refused.exit_code, not json.loads(refused.stdout)) == (3, False)
    assert run(cli, ["check", old, job, "--write-plan", str(tmp_path / "plan.json")]).exit_code == 1
    by_plan = run(cli, ["migrate", old, str(tmp_path / "e"), "--plan", str(tmp_path / "plan.json"), *options])
    assert by_plan.exit_code == 0
    assert f"not checked (run: statetool check {tmp_path / 'e'} B" in by_plan.stderr
