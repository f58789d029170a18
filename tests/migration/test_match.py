"""Verbs carry state to the operators of a new job that have other ids, as a match says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.matching import Matching
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs
from tests.support.snapshots.caught_up import changed, new_job, written
from tests.support.snapshots.stored import stream_bytes
from tests.support.zoo import ZOO

NUMBERS = {key: key for key in range(200)}


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The savepoint of a job in which two operators have other uids."""
    path = str(tmp_path / "new-job")
    statetool.change_uids(ZOO, path, {"timers": "alarms", "with-ttl": "expiring"})
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("pairs"))


def test_a_check_is_about_the_renamed_copy_and_says_how_to_write_it(other: str, tmp_path: Path) -> None:
    assert statetool.check(ZOO, other).verdict == "not"
    checked = statetool.check(ZOO, other, match="auto")
    itself = statetool.check(ZOO, ZOO)
    assert (checked.verdict, checked.reason) == (itself.verdict, itself.reason) != ("not", "")
    assert {(c.old_uid, c.new_uid) for c in checked.renamed} == {("timers", "alarms"), ("with-ttl", "expiring")}
    shown = run("check", ZOO, other, "--match", "auto", code=1).stdout
    text = " ".join(shown.split())
    assert "the job restores the renamed copy" in text
    assert "does not find the state in A itself" in text
    assert all(f"in A: {uid}" in text for uid in ("timers", "with-ttl"))

    # The command that it prints writes the copy.
    command = shown.partition("    statetool ")[2].partition("\n")[0].split()
    assert command[:3] == ["uid", ZOO, "RENAMED"]
    copy = str(tmp_path / "copy")
    run(*(copy if word == "RENAMED" else word for word in command))
    assert statetool.check(copy, other).verdict == itself.verdict
    assert not statetool.check(copy, other, match="auto").renamed
    record = json.loads(run("check", ZOO, other, "--match", "auto", "--json", code=1).stdout)
    assert {c["old_uid"] for c in record["renamed"]} == {"timers", "with-ttl"}


def test_states_are_compared_with_those_of_the_partner(other: str) -> None:
    assert not statetool.load(ZOO).diff(other).equal
    assert statetool.load(ZOO).diff(other, match="auto").equal
    statetool.set_values(other, f"{other}-changed", "alarms", "timer-3", {"registered": 77})
    for uid in ("alarms", "timers"):
        shown = run("diff", ZOO, f"{other}-changed", "--match", "auto", "--uid", uid, code=1).stdout
        assert "operator" in shown
        assert "alarms" in shown
        assert "in A: timers" in shown
        assert "1 value changed" in shown or "changed" in shown


@pytest.mark.parametrize("match", ["auto", "mapping", "file"])
def test_a_file_a_mapping_and_auto_give_the_same_copy(other: str, tmp_path: Path, match: str) -> None:
    matching = statetool.match(ZOO, other)
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps(matching.record()))
    choices: dict[str, str | dict[str, str]] = {"auto": "auto", "mapping": matching.changes, "file": str(file)}
    given = choices[match]
    copy = str(tmp_path / "copy")
    statetool.migrate(ZOO, copy, to=other, match=given)
    assert Inventory(copy).operators.keys() == Inventory(other).operators.keys()


def test_an_upgrade_renames_too(pairs: Path, tmp_path: Path) -> None:
    old, new = (str(pairs / side / "GeneratedParallelism" / "1.20") for side in ("old", "new"))
    shown = run("upgrade", old, str(tmp_path / "upgraded"), "--to", new, "--match", "auto").output
    assert "other id: 5a7629" in shown
    assert "(in A: 213caac3)" in shown
    assert statetool.check(str(tmp_path / "upgraded"), new).verdict == "fully"


def _as_other_job(path: str, target: Path) -> str:
    statetool.change_uids(path, str(target), {"op": "renamed"})
    return str(target)


def test_a_migration_converts_and_renames_at_once(tmp_path: Path) -> None:
    """The types differ, so only the user can say that the operators are the same."""
    a = written(tmp_path / "a", NUMBERS, 1).path
    job = _as_other_job(new_job(tmp_path / "job").path, tmp_path / "other-job")
    assert [m.verdict for m in statetool.match(a, job).rows if m.old_uid == "op"] == ["only in A"]
    file = str(tmp_path / "pairs.json")
    run("match", a, job, "--match", "op=renamed", "--write", file)
    shown = run("migrate", a, str(tmp_path / "migrated"), "--to", job, "--match", file).output
    assert "other id: renamed (in A: op)" in shown
    assert "restores" in shown
    statetool.migrate(a, str(tmp_path / "plain"), to=new_job(tmp_path / "same-job"))
    plain = _as_other_job(str(tmp_path / "plain"), tmp_path / "expected")
    first, second = (Inventory(path).operators["renamed"] for path in (str(tmp_path / "migrated"), plain))
    assert stream_bytes(first) == stream_bytes(second)

    b = written(tmp_path / "b", changed(NUMBERS), 2).path
    statetool.migrate(b, str(tmp_path / "whole"), to=job, match=file)
    run("catch-up", str(tmp_path / "migrated"), a, b, str(tmp_path / "caught-up"), "--to", job, "--match", file)
    first, second = (Inventory(str(tmp_path / name)).operators["renamed"] for name in ("whole", "caught-up"))
    assert stream_bytes(first) == stream_bytes(second)


def test_names_of_the_first_job_find_operators_too(pairs: Path) -> None:
    old, new = (str(pairs / side / "GeneratedParallelism" / "1.20") for side in ("old", "new"))
    (row,) = (m for m in statetool.match(old, new).rows if m.verdict == "matched")
    for name in (row.old_id, row.new_id):
        (note,) = statetool.load(old).diff(new, match="auto", operators=[name]).structure
        assert note.what == "parallelism"


def test_equal_operators_are_asked_for_and_the_answer_decides(pairs: Path, tmp_path: Path) -> None:
    old = str(pairs / "old" / "GeneratedSame" / "2.3")
    sums = [o for o in Inventory(old).operators.values() if "sum" in o.keyed_states]
    uids = ["first", "second"]
    new = str(tmp_path / "new")
    statetool.change_uids(old, new, {o.label: uid for o, uid in zip(sums, uids, strict=True)})
    for words in (
        ("check", old, new),
        ("diff", old, new),
        ("migrate", old, str(tmp_path / "x"), "--to", new),
        ("upgrade", old, str(tmp_path / "x"), "--to", new),
    ):
        asked = run(*words, "--match", "auto", code=2).stderr
        assert "not each operator has one partner" in asked
        assert all(o.label in asked for o in sums)
        assert "--match OLD=NEW --write FILE" in asked
    file = str(tmp_path / "pairs.json")
    run("match", old, new, "--match", f"{sums[0].label}=first", "--write", file)
    assert statetool.load(old).diff(new, match=file).equal


def test_a_match_of_other_jobs_is_refused(other: str, tmp_path: Path) -> None:
    matching = statetool.match(ZOO, other)
    file, fewer = tmp_path / "pairs.json", tmp_path / "fewer.json"
    file.write_text(json.dumps(matching.record()))
    statetool.drop(ZOO, str(tmp_path / "smaller"), ["timers"])
    with pytest.raises(OptionError, match=r"A has no operator .*timers"):
        statetool.check(str(tmp_path / "smaller"), other, match=str(file))
    with pytest.raises(OptionError, match=r"B has no operator .*(alarms|expiring)"):
        statetool.check(ZOO, ZOO, match=str(file))
    fewer.write_text(json.dumps(Matching(tuple(m for m in matching.rows if m.old_uid != "timers")).record()))
    with pytest.raises(OptionError, match=r"it has no operator .*timers"):
        statetool.check(ZOO, other, match=str(fewer))
    with pytest.raises(OptionError, match="--match auto needs a snapshot of the new job"):
        statetool.check(ZOO, flink_version="2.3", match="auto")
    with pytest.raises(OptionError, match="both a match and a map of uids"):
        statetool.check(ZOO, other, match="auto", map_uids={"timers": "alarms"})


def test_uids_that_the_snapshot_does_not_store_are_renamed_too(pairs: Path, tmp_path: Path) -> None:
    """Releases before 2.0 store ids only."""
    old = str(pairs / "old" / "UidRenamed" / "1.20")
    new = str(pairs / "new" / "UidRenamed" / "1.20")
    (row,) = (m for m in statetool.match(old, new).rows if m.verdict == "matched")
    copy = str(tmp_path / "copy")
    statetool.migrate(statetool.load(old, uids=["sums"]), copy, to=new, match={"sums": "totals"})
    assert operator_id_for_uid("totals") in {o.state.operator_id for o in Inventory(copy).operators.values()}
    assert row.old_id == operator_id_for_uid("sums")
