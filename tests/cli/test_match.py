"""The command ``match``, and the renaming of operators by what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from tests.support.zoo import ZOO


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def renamed(tmp_path: Path) -> str:
    """The savepoint of a job in which two operators have other uids."""
    path = str(tmp_path / "new-job")
    statetool.change_uids(ZOO, path, {"timers": "alarms", "with-ttl": "expiring"})
    return path


def test_pairs_are_shown_with_evidence_and_rename_the_operators(renamed: str, tmp_path: Path) -> None:
    pairs, copy = str(tmp_path / "pairs.json"), str(tmp_path / "copy")
    shown = run("match", ZOO, renamed, "--write", pairs).stdout
    assert "matched" in shown
    assert "timers" in shown.partition("alarms")[0]
    assert "with the same types" in shown

    rows = json.loads(run("match", ZOO, renamed, "--json").stdout)
    assert rows == json.loads(Path(pairs).read_text())
    changed = {(r["old_uid"], r["new_uid"]) for r in rows if r["verdict"] == "matched"}
    assert changed == {("timers", "alarms"), ("with-ttl", "expiring")}

    run("uid", ZOO, copy, "--match", pairs)
    assert statetool.load(copy).operators.keys() == statetool.load(renamed).operators.keys()
    assert "already exists" in run("match", ZOO, renamed, "--write", pairs, code=2).stderr


def test_an_operator_without_a_partner_is_no_success(renamed: str, tmp_path: Path) -> None:
    smaller = str(tmp_path / "smaller")
    statetool.drop(renamed, smaller, ["alarms"])
    (gone,) = (m for m in statetool.match(ZOO, smaller).rows if m.verdict == "only in A")
    assert gone.old_uid == "timers"
    assert "only in A" in run("match", ZOO, smaller, code=1).stdout
    # A decided operator can still be renamed.
    pairs = str(tmp_path / "pairs.json")
    run("match", ZOO, smaller, "--write", pairs, code=1)
    run("uid", ZOO, str(tmp_path / "copy"), "--match", pairs)
    assert {"timers", "expiring"} <= statetool.load(str(tmp_path / "copy")).operators.keys()


def test_given_pairs_count_and_contradictions_are_errors(renamed: str) -> None:
    matching = statetool.match(ZOO, renamed, given={"timers": "alarms"})
    assert {m.old_uid for m in matching.rows if m.verdict == "given"} == {"timers"}
    assert matching.ok
    error = run("match", ZOO, renamed, "--match", "timers=expiring", code=2).stderr
    assert all(word in error for word in ("timers", "expiring", "state"))
    assert "--match OLD=NEW" in run("match", ZOO, renamed, "--match", "timers", code=2).stderr


def test_uid_takes_either_changes_or_a_file_of_match(renamed: str, tmp_path: Path) -> None:
    pairs, target = tmp_path / "pairs.json", str(tmp_path / "copy")
    assert "OLD=NEW or --match FILE" in run("uid", ZOO, target, code=2).stderr
    run("match", ZOO, renamed, "--write", str(pairs))
    assert "OLD=NEW or --match FILE" in run("uid", ZOO, target, "timers=t", "--match", str(pairs), code=2).stderr

    run("match", ZOO, ZOO, "--write", str(tmp_path / "same.json"))
    assert (
        "no operator with another id" in run("uid", ZOO, target, "--match", str(tmp_path / "same.json"), code=2).stderr
    )
    for text, error, code in (
        ("{}", "not the rows of a match", 2),
        ('[{"old_id": 1}]', "not the rows of a match", 2),
        ("{", "not valid JSON", 3),
    ):
        pairs.write_text(text)
        assert error in run("uid", ZOO, target, "--match", str(pairs), code=code).stderr
    assert not Path(target).exists()


def test_only_one_plan_of_a_side_is_given(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"nodes": [], "edges": []}')
    error = run("match", ZOO, str(plan), "--columns-from-plan-b", str(plan), code=2).stderr
    assert f"{plan} is no snapshot" in error
