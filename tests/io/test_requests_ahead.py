"""Requests to an object store are in flight before their bytes are needed, whatever the number of cores, and within a budget."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import statetool
from statetool.entries import ahead
from statetool.errors import CheckpointDeletedError, FormatError, SnapshotNotFoundError
from statetool.formats import stream as streams
from statetool.formats.stream import ReadAhead, Stream
from statetool.io import requests
from statetool.io.files import IN_FLIGHT
from statetool.io.requests import AHEAD_BYTES, REQUESTS, new_opening
from tests.support.servers.simulated_store import World, add_file, simulated_store
from tests.support.snapshots.incremental import Job

_LATENCY: Final = 0.01
#: Files of the savepoint with small files.
SUBTASKS: Final = 100
_KIB: Final = 1 << 10


@pytest.fixture
def world() -> Iterator[World]:
    REQUESTS.reset()
    with simulated_store(_LATENCY) as made:
        yield made
    REQUESTS.reset()


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a canonical savepoint."""
    return bootstrapped(tmp_path_factory.mktemp("small"), 200_000, SUBTASKS)


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a canonical savepoint with one file."""
    return bootstrapped(tmp_path_factory.mktemp("large"), 20_000, 1)


@pytest.fixture
def requests_of_4_kib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files longer than 4 KiB are large, and a request reads 4 KiB ahead, or at the end of a table file."""
    monkeypatch.setattr(requests, "WHOLE_BYTES", 4 * _KIB)
    monkeypatch.setattr(streams, "_REQUEST_BYTES", 4 * _KIB)
    monkeypatch.setattr(streams, "_TAIL_BYTES", 4 * _KIB)


def bootstrapped(folder: Path, keys: int, parallelism: int) -> Path:
    rows = pa.table({"id": range(keys), "n": range(keys)})
    state = statetool.bootstrap_keyed_state(rows, key="id")
    path = folder / "savepoint"
    statetool.SavepointWriter.new().with_operator("op", state, parallelism=parallelism).write(str(path))
    return path


def upload(world: World, folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            add_file(world, f"bucket/{file.relative_to(folder.parent)}", file.read_bytes())


def remote(world: World, path: Path) -> Any:
    """Open a savepoint in the store, and count requests from there on."""
    upload(world, path)
    world.together = True
    opened = statetool.load(f"sim://bucket/{path.name}", uids=["op"])
    world.requests.clear()
    return opened["op"]


def test_small_files_are_requested_together(world: World, savepoint: Path) -> None:
    expected = statetool.load(str(savepoint), uids=["op"])["op"].to_arrow()
    assert remote(world, savepoint).to_arrow().equals(expected)
    assert len(world.requests) <= SUBTASKS + 3
    assert 16 <= world.in_flight() <= IN_FLIGHT
    assert world.chain() <= 8


def test_statistics_and_verification_wait_for_few_requests(world: World, savepoint: Path) -> None:
    upload(world, savepoint)
    world.together = True
    path = f"sim://bucket/{savepoint.name}"
    statetool.load(path, uids=["op"]).stats()
    assert world.in_flight() >= 16
    assert world.chain() <= 12
    # Each file is read once.
    assert len([path for kind, path, _, _ in world.requests if kind == "GET"]) == SUBTASKS + 1
    world.requests.clear()
    assert statetool.verify(path, deep=True).ok
    assert world.in_flight() >= 16
    assert world.chain() <= 12


def test_statistics_request_each_small_file_once(
    world: World, savepoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers of all files are not read before the entries, when too many bytes would have to be kept in between."""
    largest = max(file.stat().st_size for file in savepoint.iterdir())
    monkeypatch.setattr(requests, "_KEPT_BYTES", SUBTASKS // 2 * largest)
    monkeypatch.setattr(ahead, "_MOST_BYTES", SUBTASKS // 4 * largest)
    upload(world, savepoint)
    statetool.load(f"sim://bucket/{savepoint.name}", uids=["op"]).stats(threads=1)
    gets = Counter(path for kind, path, *_ in world.requests if kind == "GET")
    assert list(gets.values()) == [1] * (SUBTASKS + 1)


def test_what_was_requested_ahead_outlives_what_was_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_KEPT_BYTES", 4 * _KIB)
    names = [f"bucket/{i}" for i in range(8)]
    for name in names:
        add_file(world, name, bytes(_KIB))
    opening = new_opening()
    first, *others = [requests.whole_file(f"sim://{name}", opening) for name in names]
    while not requests.begin([first]):
        time.sleep(0.001)
    for other in others:
        requests.read_kept(other)
    requests.read_kept(first)
    assert Counter(path for _, path, *_ in world.requests) == Counter(names)
    requests.read_kept(others[0])
    assert len(world.requests) == len(names) + 1


def test_opened_snapshot_reads_no_older_response_and_drops_none(world: World) -> None:
    add_file(world, "bucket/file", b"first")
    earlier, later = new_opening(), new_opening()
    assert requests.read_start("sim://bucket/file", earlier) == b"first"
    add_file(world, "bucket/file", b"second")
    requests.begin([requests.whole_file("sim://bucket/another", later)])
    assert requests.read_start("sim://bucket/file", earlier) == b"first"
    assert requests.read_start("sim://bucket/file", later) == b"second"
    assert requests.read_start("sim://bucket/file", earlier) == b"second"
    assert Counter(path for _, path, *_ in world.requests)["bucket/file"] == 2


def test_reads_are_not_repeated_when_another_thread_opens_a_snapshot(world: World, savepoint: Path) -> None:
    operator = remote(world, savepoint)
    scan = operator.to_arrow()
    world.requests.clear()
    statetool.load(f"sim://bucket/{savepoint.name}", uids=["op"])
    world.requests.clear()
    assert operator.to_arrow().equals(scan)
    assert not [path for kind, path, *_ in world.requests if kind == "GET"]


@pytest.mark.parametrize("case", ["v2_3_0-hashmap-native", "v2_3_0-hashmap-canonical", "v2_3_0-rocksdb-native"])
def test_statistics_request_each_byte_of_a_large_file_once(
    world: World, corpus: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(requests, "WHOLE_BYTES", _KIB)
    monkeypatch.setattr(streams, "_REQUEST_BYTES", 2 * _KIB)
    monkeypatch.setattr("statetool.entries.streams._SAMPLE_BYTES", _KIB)
    folder = corpus / case / "snapshot"
    upload(world, folder)
    opened = statetool.load(f"sim://bucket/{folder.name}")
    keyed = {row.path for row in opened.metadata_rows("files") if row.slot == "managed keyed" and not row.inline}
    world.ranges.clear()
    assert opened.stats(now_ms=0).rows("sizes") == statetool.load(str(folder)).stats(now_ms=0).rows("sizes")
    large = [path for path in world.ranges if f"sim://{path}" in keyed and world.objects[path].size > _KIB]
    assert len(large) > 1
    for path in large:
        ranges = sorted(world.ranges[path])
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges)), (path, ranges)


@pytest.mark.usefixtures("requests_of_4_kib")
def test_ranges_of_a_large_file_are_requested_together(world: World, one_file: Path) -> None:
    expected = statetool.load(str(one_file), uids=["op"])["op"].to_arrow(split_bytes=1 << 30)
    operator = remote(world, one_file)
    rows = operator.to_arrow(split_bytes=1 << 30)
    assert rows.equals(expected)
    many = operator.to_arrow(split_bytes=64 * _KIB)
    assert many.equals(expected)
    assert 16 <= world.in_flight() <= IN_FLIGHT
    assert REQUESTS.ahead_bytes == AHEAD_BYTES


@pytest.mark.usefixtures("requests_of_4_kib")
def test_table_files_are_requested_together(world: World, tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    draw = random.Random(1)
    with Job(root, ("a", "b")) as job:
        for part in range(8):
            for key in range(part, 400, 8):
                for state in "ab":
                    job.put(state, key, draw.randbytes(1000))
            job.flush()
        job.checkpoint()
        expected = job.truth
    upload(world, root)
    world.together = True
    rebase = {str(root): "sim://bucket/checkpoints"}
    operator = statetool.load("sim://bucket/checkpoints/chk-1", rebase=rebase, uids=["op"])["op"]
    for state in "ab":
        world.requests.clear()
        rows = operator.to_arrow(state)
        assert dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)) == expected[state]
        assert 8 <= world.in_flight() <= IN_FLIGHT
    rows = operator.to_arrow()
    assert {row["key"]: row["b"] for row in rows.to_pylist()} == expected["b"]
    assert REQUESTS.ahead_bytes == AHEAD_BYTES


@pytest.mark.usefixtures("requests_of_4_kib")
def test_a_reader_of_a_sample_requests_no_more(world: World, one_file: Path) -> None:
    operator = remote(world, one_file)
    batches = operator.batches()
    next(batches)
    batches.close()
    assert len(world.requests) <= 2
    assert REQUESTS.ahead_bytes == AHEAD_BYTES


@pytest.mark.usefixtures("requests_of_4_kib")
@pytest.mark.parametrize("reads_on", [False, True])
def test_any_ascending_reads_return_the_bytes_of_the_file(world: World, reads_on: bool) -> None:
    draw = random.Random(2)
    data = draw.randbytes(300 * _KIB)
    add_file(world, "bucket/file", data)
    stream = Stream(file="sim://bucket/file", start=7, size_bytes=len(data) - 7)
    for _ in range(10):
        edges = sorted(draw.sample(range(stream.size_bytes), 20))
        ranges = [(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        with stream.open(ReadAhead(stream, ranges, 64 * _KIB, reads_on=reads_on)) as f:
            at = draw.choice([0, edges[0]])
            while at < edges[-1]:
                length = min(draw.choice([1, 100, 5 * _KIB, 50 * _KIB]), stream.size_bytes - at)
                assert f.read_at(at, length) == data[7 + at : 7 + at + length]
                assert REQUESTS.ahead_bytes >= AHEAD_BYTES - 64 * _KIB
                at += draw.choice([length, max(0, length - 10), length + 3 * _KIB]) or 1
        assert REQUESTS.ahead_bytes == AHEAD_BYTES


@pytest.mark.usefixtures("requests_of_4_kib")
def test_the_budget_of_a_process_bounds_all_readers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REQUESTS, "ahead_bytes", 40 * _KIB)
    data = random.Random(3).randbytes(200 * _KIB)
    for name in "abc":
        add_file(world, f"bucket/{name}", data)
    with contextlib.ExitStack() as stack:
        opened = []
        for name in "abc":
            stream = Stream(file=f"sim://bucket/{name}", start=0, size_bytes=len(data))
            ahead = ReadAhead(stream, [(0, len(data))], AHEAD_BYTES, reads_on=True)
            opened.append(stack.enter_context(stream.open(ahead)))
        assert REQUESTS.ahead_bytes == 0
        for at in range(0, len(data), 8 * _KIB):
            for f in opened:
                assert f.read_at(at, 8 * _KIB) == data[at : at + 8 * _KIB]
            # Ten requests within the budget, and those of the last reads.
            assert world.in_flight() <= 10 + 2 * 3
    assert REQUESTS.ahead_bytes == 40 * _KIB


@pytest.mark.usefixtures("requests_of_4_kib")
@pytest.mark.parametrize("published", [True, False])
def test_a_file_deleted_while_it_is_read(world: World, published: bool) -> None:
    add_file(world, "bucket/chk-1/file", bytes(100 * _KIB))
    if published:
        add_file(world, "bucket/chk-1/_metadata", b"m")
    metadata_file = "sim://bucket/chk-1/_metadata"
    stream = Stream(file="sim://bucket/chk-1/file", start=0, size_bytes=100 * _KIB, metadata_file=metadata_file)
    with stream.open(ReadAhead(stream, [(0, 100 * _KIB)], 8 * _KIB)) as f:
        f.read_at(0, 4 * _KIB)
        del world.objects["bucket/chk-1/file"]
        with pytest.raises((SnapshotNotFoundError, CheckpointDeletedError), match=r"chk-1") as caught:
            f.read_at(4 * _KIB, 90 * _KIB)
    assert isinstance(caught.value, CheckpointDeletedError) is not published
    assert REQUESTS.ahead_bytes == AHEAD_BYTES


@pytest.mark.usefixtures("requests_of_4_kib")
def test_a_file_that_is_shorter_than_the_metadata_says(world: World) -> None:
    add_file(world, "bucket/short", bytes(50 * _KIB))
    stream = Stream(file="sim://bucket/short", start=0, size_bytes=60 * _KIB)
    with stream.open(ReadAhead(stream, [(0, 60 * _KIB)], AHEAD_BYTES, reads_on=True)) as f:
        f.read_at(0, 48 * _KIB)
        with pytest.raises(FormatError, match="expected 8192 bytes, found 2048") as caught:
            f.read_at(48 * _KIB, 8 * _KIB)
    assert caught.value.where.file == "sim://bucket/short"
    assert caught.value.where.offset == 48 * _KIB
