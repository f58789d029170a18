"""Processes that write, killed at any call of the file system: a whole savepoint or none, and nothing that blocks the next write."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from tests.support.failures.verbs import VERBS, put_state_into_files, split, write_sources
from tests.support.quick import quick
from tests.support.zoo import ZOO

#: Starts a function: its name, the target, and the number of the call that kills it.
Ask = Callable[[str, Path, int], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, connector_cases: Path) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    write_sources(folder, connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot")
    return folder


@pytest.fixture(scope="module")
def ask(folder: Path) -> Iterator[Ask]:
    command = [sys.executable, "-m", "tests.support.failures.kills", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(name: str, target: Path, fatal: int) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps([name, str(target), fatal]), file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        yield ask
        assert process.stdin is not None
        process.stdin.close()


def is_whole(target: Path) -> bool:
    """Check what a kill left; return True if it is a savepoint."""
    if not (target / "_metadata").exists():
        return False
    verification = st.verify(str(target), deep=True, allow_unread=True)
    assert verification.ok, verification.problems
    return True


@pytest.mark.parametrize("name", quick((*VERBS, "split"), "erase"))
def test_a_kill_leaves_a_whole_savepoint_or_none(
    name: str, ask: Ask, folder: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_state_into_files(monkeypatch)
    calls = int(ask(name, tmp_path / "warm", 0))
    assert calls > 20
    parent = tmp_path / "savepoints"
    st.copy(ZOO, str(parent / "older"))
    kills: int = request.config.getoption("--kills")
    numbers = random.Random(name).sample(range(1, calls + 1), min(kills, calls))
    complete = 0
    for number in numbers:
        target = parent / "new"
        outputs = [target, parent / "new-second"] if name == "split" else [target]
        # Threads make calls in another order, and a little more or fewer of them.
        assert ask(name, target, number) == "killed" or number > calls * 0.9
        whole = [is_whole(output) for output in outputs]
        complete += whole[0]
        if not any(whole):
            shown = CliRunner().invoke(cli, ["info", str(parent), "--latest"])
            assert shown.exit_code == 0, shown.output
            assert f"{parent}/older" in shown.output
        for output, is_there in zip(outputs, whole, strict=True):
            if is_there:
                shutil.rmtree(output)
        # Without taking over: the process is known to have ended.
        (split if name == "split" else VERBS[name])(str(target), folder, False)
        for output in outputs:
            assert is_whole(output)
            names = {p.name for p in output.iterdir()}
            assert not [n for n in names if n.startswith(".")], names
            shutil.rmtree(output)
    print(f"{name}: {len(numbers)} kills over {calls} calls, {complete} complete")
