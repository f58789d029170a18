"""Commands that write a new snapshot from an old one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.cli.options import pairs
from statetool.errors import OptionError
from tests.support.zoo import ZOO


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_rescale_shows_its_plan_and_writes(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    done = run("rescale", ZOO, target, "--max-parallelism", "256", "--uid", "timers=7", "--output", "json")
    assert done.exit_code == 0
    rows = {r["operator"]: r for r in json.loads(done.stdout)}
    assert rows["timers"]["new_max_parallelism"] == 7
    assert rows["with-ttl"]["new_max_parallelism"] == 256
    assert rows["with-ttl"]["keys_move"] == "hash"
    savepoint = statetool.load(target)
    assert (savepoint["timers"].max_parallelism, savepoint["with-ttl"].max_parallelism) == (7, 256)
    assert f"written to {target}" in done.stderr


def test_rescale_ends_with_what_the_job_must_set(tmp_path: Path) -> None:
    def last(*options: str) -> str:
        done = run("rescale", ZOO, str(tmp_path / "new"), *options, "--dry-run")
        assert "formula" not in done.stdout.splitlines()[0]  # no key needed one
        return done.stderr.splitlines()[-1].removeprefix("if the job sets max parallelism, it needs ")

    assert last("--max-parallelism", "256") == "pipeline.max-parallelism: 256"
    only = last("--max-parallelism", "256", "--except", "timers")
    assert only == "pipeline.max-parallelism: 256, setMaxParallelism(128) for timers"
    assert last("--uid", "orders=256") == "setMaxParallelism(256) for orders"


def test_a_dry_run_shows_the_plan_alone(tmp_path: Path) -> None:
    done = run("rescale", ZOO, str(tmp_path / "new"), "--max-parallelism", "64", "--dry-run")
    assert done.exit_code == 0
    assert "divisor" in done.stdout
    assert "nothing was written" in done.stderr
    for command in (["uid", "timers=t"], ["drop", "--uid", "timers"], ["convert"]):
        done = run(command[0], ZOO, str(tmp_path / "new"), *command[1:], "--dry-run")
        assert done.exit_code == 0, done.output
    assert not (tmp_path / "new").exists()


def test_uid_and_drop_write_what_they_say(tmp_path: Path) -> None:
    renamed, dropped = str(tmp_path / "renamed"), str(tmp_path / "dropped")
    assert run("uid", ZOO, renamed, "timers=alarms", "--checkpoint-id", "9").exit_code == 0
    assert "alarms" in statetool.load(renamed)
    assert statetool.load(renamed).checkpoint_id == 9
    states = list(statetool.load(renamed)["alarms"].states)
    assert run("drop", renamed, dropped, "--uid", "alarms", "--state", states[0]).exit_code == 0
    assert list(statetool.load(dropped)["alarms"].states) == states[1:]
    assert run("drop", renamed, str(tmp_path / "none"), "--uid", "alarms").exit_code == 0
    assert "alarms" not in statetool.load(str(tmp_path / "none"))


def test_exit_codes(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    assert run("rescale", ZOO, target).exit_code == 2
    assert run("rescale", ZOO, target, "--uid", "timer=8").exit_code == 2
    assert run("rescale", ZOO, target, "--uid", "timers=many").exit_code == 2
    assert run("rescale", ZOO, target, "--max-parallelism", "99999").exit_code == 2
    assert run("rescale", str(tmp_path / "nowhere"), target, "--max-parallelism", "8").exit_code == 3
    assert run("uid", ZOO, target, "timers").exit_code == 2
    assert run("drop", ZOO, target, "--uid", "timers", "--uid", "with-ttl", "--state", "x").exit_code == 2
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("x")
    assert run("convert", ZOO, str(tmp_path / "there")).exit_code == 2
    assert not (tmp_path / "new").exists()


def test_pairs_end_their_names_at_the_first_equals_sign() -> None:
    """The same rule applies to splits, operators and classes."""
    assert pairs(["shard=timestamp=5", "a=b"], "X=Y") == {"shard": "timestamp=5", "a": "b"}
    for wrong, message in (
        (["a"], "'a' is not X=Y"),
        (["a="], "not X=Y"),
        (["=a"], "not X=Y"),
        (["a=1", "a=2"], "'a' is given twice"),
    ):
        with pytest.raises(OptionError, match=message):
            pairs(wrong, "X=Y")


def test_erase_takes_keys_from_a_file_and_writes_a_report(tmp_path: Path) -> None:
    keys, report = tmp_path / "keys", tmp_path / "report.json"
    keys.write_text('timer-3\n\n"timer-4"\n')
    target = str(tmp_path / "new")
    done = run("erase", ZOO, target, "--keys-from", str(keys), "--report", str(report), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(report.read_text())
    assert found["statetool"] == statetool.__version__
    shown = json.loads(done.stdout)
    assert [key.pop("key") for key in shown["keys"]] == ["timer-3", "timer-4"]
    assert found == shown
    assert found["proof"]["entries_of_keys"] == 0
    assert "proved" in done.stderr
    assert run("erase", ZOO, f"{target}2", "--keys", "timer-3", "--report", str(report)).exit_code == 2
    assert run("erase", ZOO, f"{target}2").exit_code == 2
    assert run("erase", ZOO, f"{target}2", "--keys", "timer-3", "--where", "key = 'x'").exit_code == 2
    assert not Path(f"{target}2").exists()


def test_set_takes_paths_timers_and_keys_of_all_types(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    command = ("set", ZOO, target, "--uid", "by-tuple", "--key", '[{"tuple": ["tk-1", 0]}]')
    done = run(*command, "--set", 'last[{"f0": 0, "f1": "m"}].f1=new', "--add-timer", "event=5", "--json")
    assert done.exit_code == 0, done.output
    assert [row["after"] for row in json.loads(done.stdout)] == ["'new'", "5"]
    for wrong in (("--set", "count"), ("--add-timer", "event"), ("--set", "count=1", "--set", "count=2")):
        assert run(*command[:2], f"{target}2", *command[3:], *wrong).exit_code == 2
    assert run("purge", ZOO, f"{target}2").exit_code == 2
    assert run("purge", ZOO, f"{target}2", "--ttl", "ttl-map=soon").exit_code == 2
    assert run("sample", ZOO, f"{target}2").exit_code == 2


def test_split_merge_graft_and_move_state_write_what_they_say(tmp_path: Path) -> None:
    first, second, merged, grafted, moved = (str(tmp_path / n) for n in ("a", "b", "merged", "grafted", "moved"))
    for dry_run in (["--dry-run"], []):
        done = run("split", ZOO, first, second, "--uid", "timers", "--both", "orders", *dry_run)
        assert done.exit_code == 0, done.output
        assert Path(first).exists() == (not dry_run)
    assert list(statetool.load(second)) == ["timers", "orders"]
    assert run("drop", first, str(tmp_path / "c"), "--uid", "orders").exit_code == 0
    done = run("merge", str(tmp_path / "c"), second, merged, "--output", "json")
    assert done.exit_code == 0, done.output
    assert {r["operator"] for r in json.loads(done.stdout) if r["action"] == "grafted"} == {"timers", "orders"}
    done = run("merge", first, second, str(tmp_path / "none"))
    assert done.exit_code == 3
    assert "both snapshots have state of" in done.stderr
    done = run(
        "graft", first, second, grafted, "--uid", "timers=alarms", "--max-parallelism", "64", "--checkpoint-id", "99"
    )
    assert done.exit_code == 0, done.output
    assert statetool.load(grafted)["alarms"].max_parallelism == 64
    assert statetool.load(grafted).checkpoint_id == 99
    arguments = ["--from", "collections-by-string", "--to", "timers", "--state", "total=sum", "--state", "names"]
    assert run("move-state", ZOO, moved, *arguments).exit_code == 0
    assert {"sum", "names"} <= set(statetool.load(moved)["timers"].states)
    assert run("graft", first, second, str(tmp_path / "none"), "--uid", "timers=a", "--uid", "timers=b").exit_code == 2


def test_rescale_leaves_operators_out_and_warns_of_chains(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    done = run("rescale", ZOO, target, "--max-parallelism", "256", "--except", "timers", "--except", "by-tuple")
    assert done.exit_code == 0, done.output
    assert "warning: operator timers keeps the old max parallelism" in done.stderr
    savepoint = statetool.load(target)
    assert [savepoint[n].max_parallelism for n in ("timers", "by-tuple", "with-ttl")] == [128, 300, 256]
    assert run("rescale", ZOO, str(tmp_path / "x"), "--uid", "timers=7", "--except", "orders").exit_code == 2


def same(tmp_path: Path, *arguments: str) -> str:
    """Run a command that writes a copy with the same state, and return its messages."""
    command, *options = arguments
    done = run(command, ZOO, str(tmp_path / command), *options)
    assert done.exit_code == 0, done.output
    assert "nothing would change" in run(command, ZOO, str(tmp_path / "dry"), *options, "--dry-run").stderr
    return done.stderr


def test_commands_say_that_nothing_changed(tmp_path: Path) -> None:
    words = "nothing changed: the new snapshot has the same state"
    assert words in same(tmp_path, "rescale", "--uid", "timers=128")
    assert words in same(tmp_path, "purge", "--event-timers-before", "-9223372036854775808")
    assert words in same(tmp_path, "keep", "--where", "key IS NOT NULL", "--uid", "timers")
    assert words in same(tmp_path, "erase", "--keys", "nokey", "--uid", "timers", "--allow-missing")
    row = json.loads(run("head", ZOO, "timers", "keyed_state", "-n", "1", "--json").stdout)[0]
    assert words in same(
        tmp_path, "set", "--uid", "timers", "--key", row["key"], "--set", f"registered={row['registered']}"
    )
    changed = run("set", ZOO, str(tmp_path / "other"), "--uid", "timers", "--key", row["key"], "--set", "registered=-5")
    assert "nothing changed" not in changed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["uid", "timers=timers"], 2, "'timers' has the uid or id 'timers' already"),
        (["state", "rename", "--uid", "timers", "--state", "registered", "--to", "registered"], 2, "this name already"),
        (
            ["set", "--uid", "timers", "--key", "nokey", "--set", "registered=1"],
            1,
            "operator 'timers' has no key 'nokey'",
        ),
        (
            ["set", "--uid", "timers", "--key", "nokey", "--remove", "registered"],
            1,
            "operator 'timers' has no key 'nokey'",
        ),
    ],
)
def test_a_change_to_what_is_already_so_or_missing_is_an_error(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    words = 2 if arguments[0] == "state" else 1
    done = run(*arguments[:words], ZOO, str(tmp_path / "new"), *arguments[words:])
    assert done.exit_code == code
    assert message in done.stderr
    assert not (tmp_path / "new").exists()
