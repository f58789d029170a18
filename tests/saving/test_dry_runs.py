"""Dry runs of every command: what makes the run refuse makes the dry run refuse with the same message, and nothing is written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool as st
from statetool.cli.main import cli
from statetool.errors import EncodeError, OptionError, TargetExistsError
from statetool.saving.composition import Composition
from tests.support.cli_output import command_of, commands
from tests.support.quick import quick
from tests.support.zoo import ZOO

DEMO = Path(ZOO).parent
#: Commands by name: their arguments. Words in capitals are snapshots, DST and DST2 the targets.
COMMANDS: dict[str, tuple[str, ...]] = {
    "copy": ("copy", "SRC", "DST"),
    "rescale": ("rescale", "SRC", "DST", "--max-parallelism", "60"),
    "convert": ("convert", "SRC", "DST"),
    "uid": ("uid", "SRC", "DST", "op=renamed"),
    "drop": ("drop", "SRC", "DST", "--uid", "op", "--state", "v"),
    "state rename": ("state", "rename", "SRC", "DST", "--uid", "op", "--state", "v", "--to", "renamed"),
    "graft": ("graft", "SRC", "OTHER", "DST", "--uid", "added"),
    "merge": ("merge", "SRC", "OTHER", "DST"),
    "split": ("split", "SRC", "DST2", "DST", "--uid", "second"),
    "move-state": ("move-state", "SRC", "DST", "--from", "op", "--to", "second", "--state", "v"),
    "erase": ("erase", "SRC", "DST", "--keys", "[1]"),
    "keep": ("keep", "SRC", "DST", "--keys", "[1]"),
    "sample": ("sample", "SRC", "DST", "--keys", "2"),
    "set": ("set", "SRC", "DST", "--uid", "op", "--key", "1", "--set", "v=5"),
    "set-elements": (
        "set-elements",
        "DEMO",
        "DST",
        "--uid",
        "op-lists",
        "--state",
        "offsets",
        "--where",
        "true",
        "--remove",
    ),
    "purge": ("purge", "SRC", "DST", "--event-timers-before", "3"),
    "transform": ("transform", "SRC", "DST", "--uid", "op", "--set", "v=v + 1"),
    "migrate": ("migrate", "SRC", "DST", "--to", "JOB", "--accept", "op.v.value"),
    "catch-up": ("catch-up", "MIGRATED", "SRC", "LATER", "DST", "--to", "JOB", "--accept", "op.v.value"),
    "upgrade": ("upgrade", "SRC", "DST", "--flink", "2.3"),
    "sources set": ("sources", "set", "KAFKA", "DST", "--uid", "orders", "orders:0=7"),
    "sources remove": ("sources", "remove", "KAFKA", "DST", "--uid", "orders", "orders:0"),
    "sources add": ("sources", "add", "KAFKA", "DST", "--uid", "orders", "orders:17=0"),
    "sources convert": ("sources", "convert", "CONSUMER", "DST", "--uid", "kafka"),
    "sinks forget": ("sinks", "forget", "SINK", "DST", "--uid", "514dc312", "--lose", "orders-out-0-1"),
}
#: They only send a request to a cluster, which refuses it or not.
REQUESTS = {"savepoint", "checkpoint"}
#: Their dry runs report in the plan what the run refuses, and end with 1.
PLANNED = {"rescale", "migrate", "catch-up", "upgrade"}
#: Other arguments that make a command refuse, by its name.
REFUSED: dict[str, tuple[tuple[str, ...], ...]] = {
    "rescale": (("rescale", "SRC", "DST", "--max-parallelism", "99999"), ("rescale", "SRC", "DST", "--uid", "no=8")),
    "uid": (("uid", "SRC", "DST", "op=second"), ("uid", "SRC", "DST", "no=x")),
    "drop": (("drop", "SRC", "DST", "--uid", "no"), ("drop", "SRC", "DST", "--uid", "op", "--state", "no")),
    "state rename": (("state", "rename", "SRC", "DST", "--uid", "op", "--state", "v", "--to", "w"),),
    "graft": (
        ("graft", "SRC", "OTHER", "DST", "--uid", "added=op"),
        ("graft", "SRC", "OTHER", "DST", "--uid", "no"),
        ("graft", "SRC", "OTHER", "DST", "--uid", "added", "--max-parallelism", "99999"),
        ("graft", "SRC", "INCREMENTAL", "DST", "--uid", "timers", "--checkpoint-id", "0"),
        ("graft", "SRC", "UNALIGNED", "DST", "--uid", "timers"),
        ("graft", "OLDER", "DEMO", "DST", "--uid", "orders"),
        ("graft", "SRC", "DST", "DST", "--uid", "added"),
    ),
    "merge": (
        ("merge", "SRC", "SRC", "DST"),
        ("merge", "SRC", "TYPES", "DST"),
        ("merge", "SRC", "KEYS", "DST"),
        ("merge", "SRC", "OTHER", "DST", "--max-parallelism", "99999"),
    ),
    "split": (
        ("split", "SRC", "DST", "DST2", "--uid", "no"),
        ("split", "SRC", "DST", "DST", "--uid", "second"),
        ("split", "SRC", "DST2", "SRC", "--uid", "second"),
    ),
    "move-state": (
        ("move-state", "SRC", "DST", "--from", "op", "--to", "text", "--state", "v"),
        ("move-state", "SRC", "DST", "--from", "op", "--to", "second", "--state", "w=x"),
        ("move-state", "SRC", "DST", "--from", "no", "--to", "second", "--state", "v"),
    ),
    "erase": (("erase", "SRC", "DST", "--keys", "[1]", "--uid", "text"), ("erase", "SRC", "DST", "--keys", "[1.5]")),
    "sample": (("sample", "SRC", "DST", "--keys", "0%"), ("sample", "SRC", "DST", "--key-groups", "500")),
    "set": (
        ("set", "SRC", "DST", "--uid", "op", "--key", "1", "--set", "v=word"),
        ("set", "SRC", "DST", "--uid", "op", "--key", "1", "--set", "v=99999999999999999999"),
        ("set", "SRC", "DST", "--uid", "op", "--key", "777", "--set", "v=1"),
    ),
    "set-elements": (("set-elements", "DEMO", "DST", "--uid", "op-lists", "--state", "no", "--remove-copies"),),
    "purge": (("purge", "SRC", "DST", "--ttl", "v=7d"),),
    "transform": (
        ("transform", "SRC", "DST", "--uid", "op", "--set", "v=CAST(v AS STRING)", "--checkpoint-id", "-1"),
        ("transform", "SRC", "DST", "--uid", "no", "--set", "v=1"),
        ("transform", "SRC", "DST", "--uid", "op", "--set", "no=1"),
    ),
    "migrate": (
        ("migrate", "SRC", "DST", "--to", "JOB"),
        ("migrate", "SRC", "DST", "--to", "NARROW", "--accept", "op.v.value"),
        ("migrate", "SRC", "DST", "--to", "JOB", "--accept", "op.v.value", "--flink", "0.9"),
    ),
    "catch-up": (("catch-up", "MIGRATED", "LATER", "SRC", "DST", "--to", "JOB", "--accept", "op.v.value"),),
    "upgrade": (("upgrade", "SRC", "DST", "--to", "NARROW", "--accept", "op.v.value"),),
    "sources set": (("sources", "set", "KAFKA", "DST", "--uid", "orders", "no:0=7"),),
    "sources convert": (("sources", "convert", "KAFKA", "DST", "--uid", "orders"),),
    "sinks forget": (("sinks", "forget", "SINK", "DST", "--uid", "514dc312", "--lose", "no"),),
}  # fmt: skip


def keyed(values: dict[str, Any], kinds: dict[str, str], *, timers: bool = False) -> Any:
    table = pa.table(values)
    due = {"key": [1, 2], "timestamp": [2, 9], "service": ["t", "t"], "domain": ["event", "event"]}
    states = {name: st.value(kind) for name, kind in kinds.items()}
    return st.bootstrap_keyed_state(table, key="id", states=states, timers=pa.table(due) if timers else None)


#: More values than a trial of a migration reads, of which the last key's does not fit into an INT.
ROWS = 20


def written(path: Path, kind: str, *, checkpoint_id: int = 1, add: int = 0) -> str:
    ids = list(range(ROWS))
    op = keyed(
        {"id": ids, "v": [i + add for i in ids[:-1]] + [1 << 40], "w": ids},
        {"v": kind, "w": "BIGINT"},
        timers=True,
    )
    writer = st.SavepointWriter.new(checkpoint_id=checkpoint_id).with_operator("op", op, parallelism=2)
    second = keyed({"id": ids, "x": ids}, {"x": "BIGINT"})
    text = keyed({"id": [f"k{i}" for i in ids], "y": ids}, {"y": "BIGINT"})
    writer = writer.with_operator("second", second, parallelism=2).with_operator("text", text, parallelism=1)
    writer.write(str(path), inline_bytes=0, flink_version="2.3")
    return str(path)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory, connector_cases: Path, corpus: Path) -> dict[str, str]:
    """Sources of all commands by their word."""
    folder = tmp_path_factory.mktemp("snapshots")
    found = {"SRC": written(folder / "src", "BIGINT"), "DEMO": ZOO, "KAFKA": str(DEMO / "kafka-source")}
    found["SINK"] = str(DEMO / "kafka-sink")
    found["LATER"] = written(folder / "later", "BIGINT", checkpoint_id=2, add=1)
    one = {"id": [1], "v": [1.0], "w": [1]}
    for name, states in {
        "JOB": {"op": keyed(one, {"v": "DOUBLE", "w": "BIGINT"}, timers=True)},
        "TYPES": {"op": keyed({"id": [900], "v": ["text"]}, {"v": "STRING"})},
        "KEYS": {"op": keyed({"id": ["text"], "v": [1]}, {"v": "BIGINT"})},
        "OTHER": {"added": keyed({"id": [1, 2], "z": [1, 2]}, {"z": "BIGINT"})},
    }.items():
        writer = st.SavepointWriter.new(checkpoint_id=1)
        for uid, state in states.items():
            writer = writer.with_operator(uid, state, parallelism=1, max_parallelism=90 if name == "OTHER" else None)
        if name == "JOB":
            writer = writer.with_operator("second", keyed({"id": [1], "x": [1]}, {"x": "BIGINT"}))
            writer = writer.with_operator("text", keyed({"id": ["a"], "y": [1]}, {"y": "BIGINT"}))
        writer.write(str(folder / name), inline_bytes=0, flink_version="2.3")
        found[name] = str(folder / name)
    narrow = keyed({"id": [1], "v": [1], "w": [1]}, {"v": "INT", "w": "BIGINT"}, timers=True)
    writer = st.SavepointWriter.from_existing(st.load(found["JOB"])).remove_operator("op")
    writer.with_operator("op", narrow).write(str(folder / "narrow"))
    found["NARROW"] = str(folder / "narrow")
    st.migrate(found["SRC"], str(folder / "migrated"), to=found["JOB"], accept=["op.v.value"])
    found["MIGRATED"] = str(folder / "migrated")
    legacy = connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot"
    rows = st.load(str(legacy)).connector_rows("sources")
    (label,) = (r.operator for r in rows if r.connector == "flink-kafka-consumer")
    st.change_uids(str(legacy), str(folder / "consumer"), {label: "kafka"})
    found["CONSUMER"] = str(folder / "consumer")
    found["INCREMENTAL"] = newest(corpus / "v2_3_0-rocksdb-incremental")
    found["UNALIGNED"] = newest(next(p for p in sorted(corpus.iterdir(), reverse=True) if "unaligned" in p.name))
    st.drop(newest(corpus / "v1_20_5-hashmap-canonical"), str(folder / "older"), ["orders"])
    found["OLDER"] = str(folder / "older")
    return found


@pytest.mark.parametrize("command", [("migrate", "SRC"), ("catch-up", "MIGRATED", "SRC", "LATER")])
def test_a_dry_run_says_that_an_operator_is_not_restored(
    command: tuple[str, ...], snapshots: dict[str, str], tmp_path: Path
) -> None:
    """The new job lacks an operator, so the run writes a result that Flink restores only without its state, and ends with 1."""
    job, target = str(tmp_path / "job"), tmp_path / "new"
    st.drop(snapshots["JOB"], job, ["text"])
    words = [snapshots.get(word, word) for word in command]
    more = ["--to", job, "--accept", "op.v.value"]
    (*_, last) = json.loads(CliRunner().invoke(cli, [*words, str(target), *more, "--dry-run", "--json"]).stdout)
    assert (last["step"], last["change"], last["needs"]) == ("check", "not", "correction")
    asked = [*words, str(target), *more]
    dry = CliRunner().invoke(cli, [*asked, "--dry-run"])
    assert not target.exists()
    run = CliRunner().invoke(cli, asked)
    assert (run.exit_code, dry.exit_code) == (1, 1), (run.output, dry.output)
    assert target.exists()
    for done in (run, dry):
        assert "The new job has no operator with this uid" in done.stderr


def newest(case: Path) -> str:
    return str(max((case / "snapshot").rglob("_metadata")).parent)


@dataclass
class Invocation:
    """One command with its arguments, in a folder of its own."""

    folder: Path
    words: dict[str, str]

    def run(self, command: tuple[str, ...], *more: str) -> Result:
        return CliRunner().invoke(cli, [*(self.words.get(word, word) for word in command), *more])

    def compare(self, name: str, command: tuple[str, ...], *more: str) -> bool:
        """Check that a dry run ends like the run that follows it; return True if both refuse."""
        before = names_below(self.folder)
        dry = self.run(command, *more, "--dry-run")
        assert names_below(self.folder) == before, "the dry run has written"
        run = self.run(command, *more)
        shown = f"{command} {more}: {run.output} | {dry.output} {dry.exception!r}"
        assert run.exception is None or isinstance(run.exception, SystemExit), shown
        assert (dry.exit_code == 0) == (run.exit_code == 0), shown
        if run.exit_code:
            assert names_below(self.folder) == before, shown
            assert refusal(run), shown
            if name in PLANNED and dry.exit_code == 1:
                assert dry.output.strip(), shown
            else:
                assert (refusal(dry), dry.exit_code) == (refusal(run), run.exit_code), shown
        return bool(run.exit_code)


def refusal(done: Result) -> str:
    return "\n".join(line for line in done.output.splitlines() if line.lower().startswith(("error:", "usage:")))


def names_below(folder: Path) -> set[str]:
    return {os.path.relpath(path, folder) for path in folder.rglob("*")}


@pytest.fixture(autouse=True)
def state_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = Composition.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "inline_bytes", 0)


@pytest.fixture
def invocation(tmp_path: Path, snapshots: dict[str, str]) -> Invocation:
    targets = {"DST": str(tmp_path / "all" / "new"), "DST2": str(tmp_path / "all" / "other")}
    (tmp_path / "all").mkdir()
    return Invocation(tmp_path / "all", snapshots | targets)


def occupied(folder: Path) -> Iterator[Path]:
    """Yield targets that no command may write to."""
    (folder / "with-file").mkdir()
    (folder / "with-file" / "file").write_text("x")
    yield folder / "with-file"
    shutil.copytree(ZOO, folder / "snapshot")
    yield folder / "snapshot"
    yield folder / "with-file" / "file"
    (folder / "running").mkdir()
    (folder / "running" / ".statetool-0123456789abcdef").write_text('{"host": "elsewhere", "pid": 1}')
    yield folder / "running"
    os.symlink(folder / "nowhere", folder / "link")
    yield folder / "link"


def needs_spark(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.full) if name == "transform" else name


def test_all_commands_with_dry_runs_are_tried() -> None:
    found = {" ".join(n) for n in commands() if any(p.name == "dry_run" for p in command_of(n).params)}
    assert found - REQUESTS == set(COMMANDS)
    assert set(REFUSED) <= set(COMMANDS)


@pytest.mark.parametrize("name", [needs_spark(name) for name in COMMANDS])
def test_a_dry_run_ends_like_the_run(name: str, invocation: Invocation, snapshots: dict[str, str]) -> None:
    command = COMMANDS[name]
    for target in occupied(invocation.folder):
        invocation.words["DST"] = str(target)
        assert invocation.compare(name, command), target
    source = next(word for word in command if word in snapshots)
    invocation.words["DST"] = str(invocation.folder / "new")
    assert invocation.compare(name, tuple("MISSING" if word == source else word for word in command))
    if name != "copy":
        assert invocation.compare(name, command, "--checkpoint-id", "-1")
    invocation.words["DST"] = f"{snapshots[source]}/below"
    assert invocation.compare(name, command)
    invocation.words["DST"] = str(invocation.folder / "new")
    assert not invocation.compare(name, command)
    assert st.verify(str(invocation.folder / "new"), allow_unread=True).ok


@pytest.mark.parametrize("name", [needs_spark(name) for name in REFUSED])
def test_a_dry_run_refuses_what_the_run_refuses(name: str, invocation: Invocation) -> None:
    for command in REFUSED[name]:
        assert invocation.compare(name, command), command


@pytest.mark.parametrize(
    "name", [needs_spark(name) for name in quick(tuple(COMMANDS), "graft", "move-state", "split", "rescale", "migrate")]
)
def test_a_dry_run_misses_files_like_the_run(
    name: str, invocation: Invocation, snapshots: dict[str, str], tmp_path: Path
) -> None:
    """Of each command's sources, one file at a time is missing or too short."""
    refused = files = 0
    for word in dict.fromkeys(w for w in COMMANDS[name] if w in snapshots):
        for number, file in enumerate(sorted(p for p in Path(snapshots[word]).iterdir() if p.name != "_metadata")):
            files += 1
            damaged = tmp_path / f"{word}-{number}"
            shutil.copytree(snapshots[word], damaged)
            if number % 2:
                (damaged / file.name).unlink()
            else:
                os.truncate(damaged / file.name, 3)
            invocation.words = {**invocation.words, word: str(damaged)}
            if invocation.compare(name, COMMANDS[name]):
                refused += 1
            else:
                for target in ("new", "other"):
                    shutil.rmtree(invocation.folder / target, ignore_errors=True)
            invocation.words[word] = snapshots[word]
    assert refused or not files or name.startswith(("sources", "sinks"))


def test_a_value_beyond_those_that_are_tried_is_found(snapshots: dict[str, str], tmp_path: Path) -> None:
    for dry_run in (True, False):
        with pytest.raises(EncodeError, match="does not fit"):
            st.migrate(
                snapshots["SRC"], str(tmp_path / "new"), to=snapshots["NARROW"], accept=["op.v.value"], dry_run=dry_run
            )


def test_a_preview_refuses_what_the_write_refuses(snapshots: dict[str, str], tmp_path: Path) -> None:
    savepoint = st.load(snapshots["SRC"])
    occupied_target = tmp_path / "occupied"
    shutil.copytree(ZOO, occupied_target)
    clash = savepoint.edit().change_uid("op", "second") if hasattr(savepoint, "edit") else None
    writer = st.SavepointWriter.from_existing(savepoint)
    unknown = writer.drop_state("op", "no") if hasattr(writer, "drop_state") else None
    for edits in filter(None, (clash, writer.change_uid("op", "second"), unknown)):
        with pytest.raises((OptionError, st.errors.UnknownNameError)) as written_error:
            edits.write(str(tmp_path / "new"))
        with pytest.raises(type(written_error.value)) as previewed:
            edits.preview()
        assert str(previewed.value) == str(written_error.value)
    fine = writer.transform("op", lambda table: table)
    assert fine.preview().equal
    for target in (str(occupied_target), f"{snapshots['SRC']}/below"):
        with pytest.raises((TargetExistsError, OptionError)) as written_error:
            fine.write(target)
        with pytest.raises(type(written_error.value)) as previewed:
            fine.preview(target=target)
        assert str(previewed.value) == str(written_error.value)
