"""The table of costs at 10 TB (``docs/operations/ten-terabytes.md``) is kept true by runs over smaller checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import statetool
from statetool.errors import SnapshotNotFoundError
from tests.perf.simulated_bench import COMMANDS, FEW_FILES, FILES, load_newest, measure, rows
from tests.support.servers.simulated_store import SimulatedFileSystem, World, simulated_store
from tests.support.snapshots.simulated import (
    ENTRIES_OF_TABLE,
    FILES_OF_SUBTASK,
    KEY,
    OPERATORS,
    STATES,
    TABLE_BYTES,
    add_checkpoint,
)

#: Requests that depend on what the process has read before.
_WARM = 6
#: Requests for tables that a command reads ahead. They are not sent if it has what it needs before their turn: a dry run needs the first entries.
_AHEAD = {"`rescale --dry-run`": 16}
_LATENCY = 0.001


@contextmanager
def checkpoints(files: int) -> Iterator[World]:
    """Make two checkpoints that share their files."""
    with simulated_store(_LATENCY) as world:
        for checkpoint in (1, 2):
            add_checkpoint(world, files, checkpoint_id=checkpoint)
        yield world


@pytest.fixture
def few() -> Iterator[World]:
    with checkpoints(FEW_FILES) as world:
        yield world


def test_the_table_has_every_command() -> None:
    assert rows().keys() == COMMANDS.keys()


def test_one_key_waits_for_six_requests() -> None:
    _, at_many, chain = rows()["one key of one state"]
    assert chain <= 6
    assert at_many <= 20


def test_files_of_one_key_are_found_where_they_were_moved(few: World) -> None:
    expected = load_newest()[OPERATORS[0]].to_arrow("s0", keys=[KEY])
    few.requests.clear()
    load_newest()[OPERATORS[0]].to_arrow("s0", keys=[KEY])
    (moved,) = {path for _, path, _, _ in few.requests if path.endswith("000001.sst")}
    folder, _, name = moved.rpartition("/")
    del few.folders[folder][name]
    few.add(f"bucket/elsewhere/shared/{name}", few.objects.pop(moved))
    few.add("bucket/elsewhere/chk-2/_metadata", few.objects["bucket/job/chk-2/_metadata"])
    opened = statetool.load("sim://bucket/elsewhere/chk-2", uids=list(OPERATORS))
    assert opened[OPERATORS[0]].to_arrow("s0", keys=[KEY]).equals(expected)
    with pytest.raises(SnapshotNotFoundError, match=moved):
        load_newest()[OPERATORS[0]].to_arrow("s0", keys=[KEY])


def test_check_looks_for_three_of_many_files_unless_one_is_missing(few: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.compatibility.steps.files._MOST_REQUESTS", 1)
    path = "sim://bucket/job/chk-2"

    def look(*, all_files: bool = False) -> tuple[str, set[str]]:
        verdict = next(
            s for s in statetool.check(path, flink_version="2.3", all_files=all_files).steps if s.step == "files"
        )
        return verdict.status, {f.rule for f in verdict.findings}

    assert look() == ("assumed", {"M9"})
    asked = {path for _, path, _, _ in few.requests if "/shared/" in path}
    assert len(asked) == 3
    few.requests.clear()
    assert look(all_files=True) == ("proved", {"M6", "M9"})
    everything = len(few.requests)
    # The client keeps the listing, in which the file still is.
    folder, _, last = max(asked).rpartition("/")
    del few.folders[folder][last]
    del few.objects[f"{folder}/{last}"]
    few.requests.clear()
    assert look() == ("not", {"M6", "M9"})
    assert len(few.requests) >= everything


def test_requests_are_those_of_the_table(few: World) -> None:
    for command, (expected, _, chain) in rows().items():
        SimulatedFileSystem.clear_instance_cache()  # a command runs in a new process
        few.together = chain < expected
        cost = measure(command, few)
        assert expected - _WARM - _AHEAD.get(command, 0) <= cost.requests <= expected, command
        assert cost.chain <= chain, command


def test_requests_grow_as_the_table_says() -> None:
    requests = []
    for files in (FEW_FILES, 2 * FEW_FILES):
        with checkpoints(files) as world:
            requests.append({command: measure(command, world).requests for command in COMMANDS})
    for command, (at_few, at_many, _) in rows().items():
        per_file = (at_many - at_few) / (FILES - FEW_FILES)
        added = requests[1][command] - requests[0][command]
        assert added <= per_file * FEW_FILES + _WARM + _AHEAD.get(command, 0), command


def test_an_estimate_counts_the_properties_of_all_files(few: World) -> None:
    estimate = load_newest().estimate_stats()
    tables = FEW_FILES // FILES_OF_SUBTASK * STATES
    assert sum(r.entries for r in estimate.rows("operators")) == tables * ENTRIES_OF_TABLE
    assert all(r.at_least == r.entries == r.at_most for r in estimate.rows("operators"))
    assert sum(r.stored_bytes or 0 for r in estimate.rows("states")) == tables * TABLE_BYTES
    requests = [path for _, path, _, _ in few.requests if path.endswith(".sst")]
    assert len(requests) <= tables + 1
