"""Requests to an object store that do not depend on each other are made at the same time, and none is made twice."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import (
    CheckpointDeletedError,
    FormatError,
    MissingDependencyError,
    SnapshotNotFoundError,
    StatetoolError,
)
from statetool.formats import stream as streams
from statetool.formats.rocksdb import files as database_files
from statetool.formats.rocksdb.manifest import Manifest
from statetool.io import requests
from statetool.io.requests import REQUESTS
from statetool.snapshot import locate
from tests.support.servers.simulated_store import World, add_file, simulated_store
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import Subtask, composite_key, encoded, group_of, keyed, serializer
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.native import native_savepoint

_DATABASES: Final = 4
_KIB: Final = 1 << 10


@pytest.fixture
def world() -> Iterator[World]:
    REQUESTS.reset()
    with simulated_store(0) as made:
        yield made
    REQUESTS.reset()


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a native savepoint with four databases of small files."""
    root = tmp_path_factory.mktemp("native") / "savepoint"
    root.mkdir()
    long, states = serializer(LONG), [keyed(name, "value", LONG) for name in "ab"]
    subtasks: list[list[tuple[str, int, bytes, bytes]]] = [[] for _ in range(_DATABASES)]
    for key in range(400):
        group = group_of(long, key, 128)
        of_key = composite_key(encoded(long, key))
        subtasks[group * _DATABASES // 128] += [(s.name, group, of_key, encoded(long, key)) for s in states]
    native_savepoint(root, [Subtask(key=LONG, states=states, entries=entries) for entries in subtasks])
    return root


@pytest.fixture
def incremental(tmp_path: Path) -> Path:
    """Make an incremental checkpoint of one database with four table files."""
    with Job(tmp_path / "checkpoints") as job:
        for key in range(400):
            job.put("a", key, b"%d" % key * 10)
            if key % 100 == 99:
                job.flush()
        job.checkpoint()
    return tmp_path / "checkpoints"


def upload(world: World, folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            add_file(world, f"bucket/{file.relative_to(folder.parent)}", file.read_bytes())


def kinds(world: World) -> Counter[str]:
    return Counter(kind for kind, *_ in world.requests)


def rows_of(savepoint: Any) -> Any:
    return savepoint["op"].to_arrow().sort_by("key")


@pytest.mark.parametrize("name", ["savepoint", "savepoint/_metadata"])
def test_opening_a_snapshot_is_one_request(world: World, native: Path, name: str) -> None:
    upload(world, native)
    opened = statetool.load(f"sim://bucket/{name}", uids=["op"])
    assert [r[:2] for r in world.requests] == [("GET", "bucket/savepoint/_metadata")]
    assert opened.inventory.metadata_file == "sim://bucket/savepoint/_metadata"
    opened.with_uids([])
    assert len(world.requests) == 1


def test_metadata_with_another_name(world: World, native: Path) -> None:
    add_file(world, "bucket/kept/metadata-1", (native / "_metadata").read_bytes())
    opened = statetool.load("sim://bucket/kept/metadata-1")
    assert opened.inventory.metadata_file == "sim://bucket/kept/metadata-1"


def test_no_metadata(world: World, native: Path) -> None:
    upload(world, native)
    with pytest.raises(SnapshotNotFoundError, match="sim://bucket/other does not exist"):
        statetool.load("sim://bucket/other")
    with pytest.raises(SnapshotNotFoundError, match="has no _metadata file") as caught:
        statetool.load("sim://bucket")
    assert "sim://bucket/savepoint" in (caught.value.hint or "")


def test_small_databases_are_requested_whole(world: World, native: Path) -> None:
    upload(world, native)
    expected = rows_of(statetool.load(str(native), uids=["op"]))
    world.together = True
    operator = statetool.load("sim://bucket/savepoint", uids=["op"])
    assert rows_of(operator).equals(expected)
    requests = {path: (start, end) for _, path, start, end in world.requests}
    assert len(requests) == len(world.requests)
    assert kinds(world)["GET"] == len(requests)
    for number in range(_DATABASES):
        of_database = [times for path, times in requests.items() if f"/db-{number}/" in path]
        assert len(of_database) >= 4
        assert max(start for start, _ in of_database) < min(end for _, end in of_database)


def test_sizes_of_files_are_listed_at_the_same_time(world: World, native: Path) -> None:
    upload(world, native)
    world.together = True
    assert statetool.verify("sim://bucket/savepoint", deep=True).ok
    assert kinds(world)["HEAD"] == 0
    listings = [(start, end) for kind, _, start, end in world.requests if kind == "LIST"]
    assert len(listings) == _DATABASES
    assert max(start for start, _ in listings) < min(end for _, end in listings)
    assert max(Counter(path for _, path, _, _ in world.requests).values()) == 1


@pytest.mark.parametrize("work", ["read", "stats", "estimate_stats"])
@pytest.mark.parametrize("few", [64, 2])
def test_files_are_looked_for_at_the_same_time(
    world: World, incremental: Path, monkeypatch: pytest.MonkeyPatch, work: str, few: int
) -> None:
    monkeypatch.setattr(requests, "WHOLE_BYTES", _KIB)
    monkeypatch.setattr(locate, "_FEW", few)
    upload(world, incremental)
    works: dict[str, Callable[[Any], Any]] = {
        "read": rows_of,
        "stats": lambda savepoint: savepoint.stats().rows("sizes"),
        "estimate_stats": lambda savepoint: savepoint.estimate_stats().rows("states"),
    }
    expected = works[work](statetool.load(str(incremental / "chk-1"), uids=["op"]))
    world.together = True
    rebase = {str(incremental): "sim://bucket/checkpoints"}
    assert works[work](statetool.load("sim://bucket/checkpoints/chk-1", uids=["op"], rebase=rebase)) == expected
    assert kinds(world)["LIST"] == (2 if few == 2 else 0)
    # Files that will be opened are looked for by reading their ends.
    by_reading = few == 64 and work != "estimate_stats"
    firsts = {
        path: (start, end) for kind, path, start, end in reversed(world.requests) if (kind == "GET") == by_reading
    }
    looked = [times for path, times in firsts.items() if path.endswith(".sst") or not by_reading]
    assert len(looked) >= 2
    assert max(start for start, _ in looked) < min(end for _, end in looked)


@pytest.mark.parametrize("work", ["one key", "read", "stats", "verify"])
def test_ends_of_large_tables_are_requested_once_and_with_the_manifest(
    world: World, incremental: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setattr(requests, "WHOLE_BYTES", _KIB)
    monkeypatch.setattr(streams, "_TAIL_BYTES", 2 * _KIB)
    upload(world, incremental)
    rebase = {str(incremental): "sim://bucket/checkpoints"}
    path = "sim://bucket/checkpoints/chk-1"
    works: dict[str, Callable[[], Any]] = {
        "one key": lambda: statetool.load(path, rebase=rebase, uids=["op"])["op"].to_arrow(keys=[7]),
        "read": lambda: statetool.load(path, rebase=rebase, uids=["op"])["op"].to_arrow(),
        "stats": lambda: statetool.load(path, rebase=rebase).stats(),
        "verify": lambda: statetool.verify(path, deep=True, rebase=rebase),
    }
    world.together = True
    works[work]()
    tables = {path: sorted(ranges) for path, ranges in world.ranges.items() if path.endswith(".sst")}
    assert len(tables) == 4
    for path, ranges in tables.items():
        size = world.objects[path].size
        assert ranges[-1] == (size - 2 * _KIB, size)
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges)), ranges
        if work != "one key":
            assert ranges[0][0] == 0
    # Metadata, listings of a check, the ends of the tables with CURRENT and the manifest, and blocks. A read may stop after the first ones.
    assert world.chain() <= {"one key": 3, "read": 4, "stats": 3, "verify": 4}[work]
    assert kinds(world)["HEAD"] == 0
    assert kinds(world)["GET"] == 3 + sum(map(len, tables.values()))
    if work == "one key":
        assert max(map(len, tables.values())) == 2


@pytest.mark.parametrize("size_of_first_request", [_KIB, 4 << 20])
def test_a_manifest_is_requested_and_parsed_once(
    world: World, native: Path, monkeypatch: pytest.MonkeyPatch, size_of_first_request: int
) -> None:
    monkeypatch.setattr(requests, "WHOLE_BYTES", size_of_first_request)
    monkeypatch.setattr(database_files, "_FEW_FILES", 0)  # the databases are not small
    parsed: Counter[int] = Counter()
    read = Manifest.read

    def counted(data: bytes) -> Manifest:
        parsed[hash(data)] += 1
        return read(data)

    monkeypatch.setattr(Manifest, "read", staticmethod(counted))
    upload(world, native)
    for work in ("read", "stats"):
        parsed.clear()
        world.requests.clear()
        operator = statetool.load("sim://bucket/savepoint", uids=["op"])["op"]
        if work == "read":
            operator.to_arrow()
        else:
            operator.stats(threads=2)
        assert sum(parsed.values()) == _DATABASES
        requested = Counter(path for kind, path, *_ in world.requests if "/MANIFEST-" in path)
        assert list(requested.values()) == [1] * _DATABASES


@pytest.mark.parametrize("few", [64, 2])
def test_a_missing_file(world: World, incremental: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(locate, "_FEW", few)
    upload(world, incremental)
    gone = min(path for path in world.objects if path.endswith(".sst"))
    del world.objects[gone]
    del world.folders[gone.rpartition("/")[0]][gone.rpartition("/")[2]]
    (incremental.parent / gone.removeprefix("bucket/")).unlink()
    rebase = {str(incremental): "sim://bucket/checkpoints"}
    operator = statetool.load("sim://bucket/checkpoints/chk-1", uids=["op"], rebase=rebase)["op"]
    with pytest.raises(SnapshotNotFoundError, match=r"does not exist; tried sim://") as caught:
        operator.to_arrow()
    assert gone.rpartition("/")[2] in str(caught.value)
    problems = statetool.verify("sim://bucket/checkpoints/chk-1", deep=True, rebase=rebase).problems
    assert any(gone.rpartition("/")[2] in str(problem) for problem in problems)


@pytest.mark.parametrize("damage", ["missing", "cut off", "changed"])
@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_damage_of_a_small_database(world: World, native: Path, tmp_path: Path, name: str, damage: str) -> None:
    copied = shutil.copytree(native, tmp_path / "savepoint")
    file = min((copied / "db-1").glob(name))
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(data[: len(data) // 2] if damage == "cut off" else data[:9] + bytes(len(data) - 9))
    upload(world, copied)
    errors: list[StatetoolError] = []
    for path in (str(copied), "sim://bucket/savepoint"):
        with pytest.raises((FormatError, SnapshotNotFoundError)) as caught:
            statetool.load(path, uids=["op"])["op"].to_arrow()
        errors.append(caught.value)
    here, there = ((type(e), (e.where.file or "").rpartition("savepoint/")[2], e.where.operator) for e in errors)
    assert here == there
    assert damage == "missing" or f"db-1/{file.name}" in str(errors[1])


def test_a_checkpoint_that_is_deleted(world: World, native: Path) -> None:
    upload(world, native)
    operator = statetool.load("sim://bucket/savepoint", uids=["op"])["op"]
    world.objects.clear()
    world.folders.clear()
    with pytest.raises(CheckpointDeletedError):
        operator.to_arrow()


def test_a_store_without_a_package(world: World, incremental: Path) -> None:
    """The error is a problem that verification lists, as for other missing files."""
    add_file(world, "bucket/checkpoints/chk-1/_metadata", (incremental / "chk-1" / "_metadata").read_bytes())
    shutil.rmtree(incremental)
    path, rebase = "sim://bucket/checkpoints/chk-1", {str(incremental): "gone://bucket/checkpoints"}
    assert any("gone://" in str(problem) for problem in statetool.verify(path, rebase=rebase).problems)
    with pytest.raises(MissingDependencyError, match="gone://"):
        statetool.load(path, uids=["op"], rebase=rebase)["op"].to_arrow()
