"""Trials of suggested commands: ``check`` runs them on small snapshots, and marks the others as proposals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli import remedy_trial
from statetool.cli.main import cli
from tests.support.checks.restore_steps import snapshot_of


def savepoint(folder: Path, kind: str, values: pa.Array, *, uids: tuple[str, ...] = ("a",)) -> str:
    table = pa.table({"id": [1, 2], "s": values})
    state = st.bootstrap_keyed_state(table, key="id", states={"s": st.value(kind)})
    writer = st.SavepointWriter.new()
    for uid in uids:
        writer = writer.with_operator(uid, state, parallelism=1, max_parallelism=128)
    return writer.write(str(folder), flink_version="2.3").path


def checked(*words: str) -> str:
    done = CliRunner().invoke(cli, ["check", *words])
    assert isinstance(done.exception, SystemExit), done.exception
    return " ".join(done.stdout.split())


@pytest.fixture
def numbers(tmp_path: Path) -> tuple[str, str]:
    old = savepoint(tmp_path / "old", "INT", pa.array([1, 2], pa.int32()))
    return old, savepoint(tmp_path / "new", "BIGINT", pa.array([1, 2]))


def test_commands_are_tried_and_nothing_stays(numbers: tuple[str, str], tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    shown = checked(*numbers)
    assert "* tried: the job restores what the suggested command writes" in shown
    assert "A proposal" not in shown
    assert sorted(tmp_path.rglob("*")) == before


def test_commands_on_large_snapshots_are_proposals(numbers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy_trial, "_MOST_BYTES", 10)
    shown = checked(*numbers)
    assert "A proposal: it was not tried, because it would copy" in shown
    assert "tried:" not in shown


def test_a_command_that_fails_is_a_proposal(numbers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "migrate", _fails)
    assert "A proposal: its trial failed. No space left." in checked(*numbers)


def _fails(*_: object, **__: object) -> None:
    raise OSError("no space left")


def test_a_command_that_does_not_help_is_a_proposal(numbers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    migrate = st.migrate

    def copies(src: st.Savepoint, dst: str, **options: Any) -> object:
        st.copy(src.path, dst)
        return migrate(src, f"{dst}-not-written", dry_run=True, to=options["to"])

    monkeypatch.setattr(st, "migrate", copies)
    assert "A proposal: in a trial, the job still does not restore this." in checked(*numbers)


def test_a_command_that_needs_a_choice_is_a_proposal(tmp_path: Path) -> None:
    values = pa.array([1, 2], pa.int32())
    old = savepoint(tmp_path / "old", "INT", values)
    shown = checked(old, savepoint(tmp_path / "new", "INT", values, uids=("b", "c")))
    assert "A proposal: it needs your choice, so it was not tried." in shown


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
def test_a_suggested_conversion_does_not_take_the_backend_of_the_check(corpus: Path, backend: str) -> None:
    """The option of the same name belongs to native savepoints there: as printed, the command has to run."""
    native = snapshot_of(corpus / ("v2_3_0-hashmap-native" if backend == "rocksdb" else "v2_3_0-forst-native"))
    shown = checked(str(native), "--flink", "2.3", "--backend", backend)
    assert "statetool convert " in shown
    assert "its trial failed" not in shown
    assert f"NEW --backend {backend}" not in shown


def test_a_suggested_migration_does_not_take_the_backend_of_the_check(numbers: tuple[str, str]) -> None:
    shown = checked(*numbers, "--backend", "heap")
    assert "* tried: the job restores what the suggested command writes" in shown
    assert "--backend" not in shown


def test_a_suggested_rescale_does_not_take_the_parallelism_of_the_new_job(numbers: tuple[str, str]) -> None:
    """The options of the same names of ``rescale`` are about all operators: as printed, it would refuse the number of one."""
    shown = checked(numbers[0], "--flink", "2.3", "--max-parallelism", "64", "--parallelism", "2")
    assert f"statetool rescale {numbers[0]} NEW --uid a=64 The job" in shown
    assert "* tried: the job restores what the suggested command writes" in shown
