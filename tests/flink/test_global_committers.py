"""A job with a global committer, whose state has the layout of Delta's sink: a restored rewritten savepoint commits each file once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import statetool
from tests.support.connectors.commands import run
from tests.support.flink.commit_jobs import global_machine, pending_files, rewrite, run_job, sink_uids
from tests.support.flink.machine import FlinkMachine

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.fixture(scope="module")
def global_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = global_machine(tmp_path_factory.mktemp("global"))
    yield machine
    machine.close()


def committed(table: Path) -> Counter[str]:
    """Return how often each file was committed."""
    return Counter(name for commit in (table / "_commits").iterdir() for name in commit.read_text().split())


def check_numbers(table: Path, names: Iterable[str], of_savepoint: Iterable[str]) -> None:
    """Check that each number up to the savepoint is in files once, and no later number more often. Files of one checkpoint may not all be committed."""
    numbers = numbers_of(table, *names)
    last = max(numbers_of(table, *of_savepoint))
    assert numbers[: last + 1] == [*range(last + 1)]
    assert len(numbers) == len(set(numbers))


def numbers_of(table: Path, *names: str) -> list[int]:
    """Return the numbers in files, some of which may never have become visible under their names."""
    files = [next(table.glob(f"*{name}*")) for name in names]
    return sorted(int(line) for file in files for line in file.read_text().split())


def test_each_file_is_committed_once(global_flink: FlinkMachine, tmp_path: Path) -> None:
    table = tmp_path / "table"
    first = run_job(global_flink, "GlobalJob", table, "a", savepoint=str(tmp_path / "taken"))
    before = committed(table)
    savepoint = rewrite(first["savepoint"], "a", "b", tmp_path)
    _, committer, global_committer = sink_uids("b")
    of_global, of_committer = (pending_files(savepoint, uid) for uid in (global_committer, committer))
    # Two files per checkpoint: of one or two checkpoints, and of that of the savepoint.
    assert len(of_global) in (2, 4)
    assert len(of_committer) == 2
    assert not before.keys() & (of_global | of_committer).keys()
    listed = run("sinks", "list", savepoint.path, "--uid", global_committer)
    assert [(s["connector"], s["role"], s["pending"], s["undecoded"]) for s in listed] == [
        ("delta-sink", "global-committer", len(of_global), 0)
    ]

    path, lost = savepoint.path, []
    for uid, files in ((global_committer, of_global), (committer, of_committer)):
        lost.append(min(files))
        target = str(tmp_path / f"without-{len(lost)}")
        statetool.drop_transactions(path, target, uid, lost[-1:], uids=sink_uids("b"))
        path = target
    kept = [*(of_global | of_committer).keys() - set(lost)]
    run_job(global_flink, "GlobalJob", table, "b", snapshot=path, awaited=kept)
    after = committed(table)
    assert set(after.values()) == {1}
    assert (of_global | of_committer).keys() - after.keys() == set(lost)
    assert after.keys() - before.keys() - (of_global | of_committer).keys()
    # What was forgotten is lost, and nothing else.
    check_numbers(table, [*after, *lost], of_committer)
    assert {name: (table / name).stat().st_size for name in of_global} == of_global


def test_the_savepoint_itself_commits_each_file_once(global_flink: FlinkMachine, tmp_path: Path) -> None:
    table = tmp_path / "table"
    first = run_job(global_flink, "GlobalJob", table, "a", savepoint=str(tmp_path / "taken"))
    savepoint = rewrite(first["savepoint"], "a", "b", tmp_path)
    _, committer, global_committer = sink_uids("b")
    of_global, of_committer = (pending_files(savepoint, uid) for uid in (global_committer, committer))
    awaited = [*(of_global | of_committer)]
    run_job(global_flink, "GlobalJob", table, "b", snapshot=savepoint.path, awaited=awaited)
    after = committed(table)
    assert set(after.values()) == {1}
    check_numbers(table, after, of_committer)
