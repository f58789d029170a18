"""Snapshots in an object store over its real protocol: an S3 server on this machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import statetool
from statetool.errors import MissingDependencyError, SnapshotNotFoundError, TargetExistsError
from statetool.formats.rocksdb.table_properties import TAIL_BYTES
from statetool.io import files, owner
from statetool.io import requests as remote_requests
from statetool.io.files import BYTES_READ
from statetool.io.listing import FileStats
from statetool.io.requests import new_opening
from statetool.operations.directories.following import completed_checkpoints
from statetool.saving.publish import Publication, StagedFile
from statetool.spark.write.export import export_table
from statetool.tables.export import directories as export_directories
from statetool.tables.request import ScanRequest
from tests.support.checks.restore_steps import rules_of
from tests.support.servers.object_store import Store, object_store
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.stored import streams

BUCKET = "states"
CASE = "v2_3_0-rocksdb-canonical-compressed"
CHECKPOINT = "v2_3_0-rocksdb-incremental"
#: Requests of a copy for its metadata and directories, however many files it has.
_OF_SNAPSHOT = 30
#: Keys of a table file with values of 1 kB, which is longer than what is fetched whole.
_KEYS_OF_FILE = 5_000


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with object_store(BUCKET) as store:
        yield store


@pytest.fixture
def requests(server: Store) -> Iterator[Store]:
    """Count requests from here on, without a cache of the store."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    server.requests.clear()
    yield server
    server.refuse_each = 0


@pytest.fixture(scope="module")
def store(server: Store) -> Any:
    return server.fs


@pytest.fixture(scope="module")
def savepoint(store: Any, corpus: Path) -> str:
    store.put(str(corpus / CASE / "snapshot"), f"{BUCKET}/savepoint-1", recursive=True)
    return f"s3://{BUCKET}/savepoint-1"


def newest(corpus: Path) -> Path:
    return max((corpus / CHECKPOINT / "snapshot").glob("chk-*"))


@pytest.fixture(scope="module")
def checkpoint(store: Any, corpus: Path) -> str:
    store.put(str(corpus / CHECKPOINT / "snapshot"), f"{BUCKET}/job", recursive=True)
    return f"s3://{BUCKET}/job/{newest(corpus).name}"


def read_all(path: str) -> dict[tuple[str, str], Any]:
    opened = statetool.load(path)
    return {(n, t): opened[n].to_arrow(t) for n in opened for t in opened[n].tables}


def test_each_file_is_one_request(checkpoint: str, requests: Store) -> None:
    """One more request for the metadata, and one per directory; a moved snapshot costs no more."""
    rows = read_all(checkpoint)
    assert sum(t.num_rows for t in rows.values()) > 500
    read = requests.objects_read()
    assert set(read.values()) == {1}
    assert len(read) > 200
    assert len(requests.requests) <= 1.05 * len(read)


def test_check_names_the_place_that_a_new_cluster_needs(checkpoint: str, savepoint: str, corpus: Path) -> None:
    """M9."""
    for path in (checkpoint, savepoint):
        rules = rules_of(statetool.check(path, flink_version="2.3"))
        assert f"access to s3://{BUCKET}," in rules["M9"]
        assert "flink-s3-fs-hadoop or flink-s3-fs-presto" in rules["M9"]
    assert "M9" not in rules_of(statetool.check(str(newest(corpus)), flink_version="2.3"))


def test_one_key_needs_few_requests(checkpoint: str, requests: Store) -> None:
    op = statetool.load(checkpoint)["timers"]
    table = op.to_arrow(keys=["timer-3"])
    assert table["key"].to_pylist() == ["timer-3"]
    read = requests.objects_read()
    assert set(read.values()) == {1}
    # Besides the files of the database with the key: one header per subtask, and the requests to find the database's files.
    assert len(requests.requests) <= 3 * len({path for path, _ in read})


def test_a_client_has_a_connection_for_each_request_in_flight(requests: Store) -> None:
    fs, _ = files.file_system(f"s3://{BUCKET}/x")
    assert fs.connect()._client_config.max_pool_connections == 64


def test_an_estimate_is_one_small_request_per_file(checkpoint: str, requests: Store, corpus: Path) -> None:
    savepoint = statetool.load(checkpoint)
    names = [name for name, operator in savepoint.operators.items() if operator.inventory.keyed_states]
    requests.requests.clear()
    estimate = savepoint.estimate_stats(operators=names)
    probe = f"bytes=0-{remote_requests.WHOLE_BYTES - 1}"  # of one file per directory, to see whether it was moved
    read = [(path, span) for path, span in requests.objects_read().elements() if span != probe]
    assert len(read) == len({path for path, _ in read})
    assert len(requests.requests) <= 1.05 * len(read)
    databases = [s.owned_database() for n in names for s in savepoint[n].inventory.keyed.managed]
    streams = [stream for d in databases if d is not None for _, stream in d.files.files]
    sizes = {s.file.removeprefix("s3:/"): s.size_bytes for s in streams}
    assert {path for path, _ in read} <= sizes.keys()
    for path, span in read:
        start, end = map(int, span[6:].split("-"))
        assert end - start + 1 <= max(TAIL_BYTES, sizes[path])
    local = statetool.load(str(newest(corpus)))
    assert estimate.rows("states") == [row for name in names for row in local[name].estimate_stats().rows("states")]


def test_what_was_opened_anew_is_fetched_anew(savepoint: str, requests: Store) -> None:
    first = statetool.load(savepoint)["timers"].to_arrow()
    before = len(requests.objects_read())
    assert statetool.load(savepoint)["timers"].to_arrow().equals(first)
    assert set(requests.objects_read().values()) == {2}
    assert len(requests.objects_read()) == before


@pytest.mark.full
def test_a_busy_store_is_asked_again(checkpoint: str, requests: Store, corpus: Path) -> None:
    expected = read_all(str(newest(corpus)))
    requests.refuse_each = 20
    assert read_all(checkpoint) == expected
    assert len(requests.requests) > 20


def test_files_longer_than_what_is_fetched_whole(
    savepoint: str, requests: Store, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = statetool.load(str(corpus / CASE / "snapshot"))
    monkeypatch.setattr(remote_requests, "WHOLE_BYTES", 1)
    remote = statetool.load(savepoint)
    for name in ("with-ttl", "timers"):
        assert remote[name].to_arrow().equals(local[name].to_arrow())
    assert not any(method == "HEAD" for method, path, *_ in requests.requests if not path.endswith("_metadata"))


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3p"])
def test_every_table_is_that_of_the_local_copy(savepoint: str, corpus: Path, scheme: str) -> None:
    remote = statetool.load(savepoint.replace("s3:", f"{scheme}:"))
    local = statetool.load(str(corpus / CASE / "snapshot"))
    assert list(remote.operators) == list(local.operators)
    for name in ("with-ttl", "timers", "list-union"):
        if name in local:
            for table in local[name].tables:
                assert remote[name].to_arrow(table).equals(local[name].to_arrow(table))


def test_a_key_filter_fetches_its_key_group_only(savepoint: str) -> None:
    op = statetool.load(savepoint)["timers"]
    op.states  # noqa: B018 - headers are read and cached
    before = BYTES_READ.total
    everything = op.to_arrow()
    whole, before = BYTES_READ.total - before, BYTES_READ.total
    assert op.to_arrow(keys=["timer-3"]).to_pylist() == [r for r in everything.to_pylist() if r["key"] == "timer-3"]
    header = min(s.header_size for s in streams(op._operator))
    assert BYTES_READ.total - before < header + whole / 4


def test_what_is_not_there_is_named(store: Any) -> None:
    with pytest.raises(SnapshotNotFoundError, match="s3://states/nothing"):
        statetool.load("s3://states/nothing")


def test_small_files_of_several_stores_are_fetched_together(store: Any) -> None:
    import fsspec

    store.pipe(f"{BUCKET}/here", b"of s3")
    fsspec.filesystem("memory").pipe("/states/here", b"of memory")
    uris = [f"s3://{BUCKET}/here", "memory://states/here", f"s3://{BUCKET}/nowhere", "no-such-store://states/here"]
    opening = new_opening()
    remote_requests.prefetch({remote_requests.whole_file(uri, opening): 10 for uri in uris})
    assert [remote_requests.read_start(uri, opening) for uri in uris[:2]] == [b"of s3", b"of memory"]
    for _ in range(2):  # a failure is not cached, and nothing waits for it
        for uri in uris[2:]:
            with pytest.raises((SnapshotNotFoundError, MissingDependencyError)):
                remote_requests.read_start(uri, opening)


def test_an_export_that_was_killed_on_another_machine_is_removed_in_time(
    store: Any, savepoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = statetool.load(savepoint)["timers"]
    target = f"s3://{BUCKET}/killed"
    marker = {**json.loads(owner.describe_owner(beat_s=60)), "host": "another"}
    store.pipe(f"{BUCKET}/killed/_temporary/owner-{'a' * 32}", json.dumps(marker).encode())
    store.pipe(f"{BUCKET}/killed/_temporary/part-{'1' * 32}.csv", b"half")
    with pytest.raises(TargetExistsError, match=r"process [0-9]+ on .* runs, or was killed") as error:
        operator.export(target, style="csv")
    assert "try again in 15 minutes" in error.value.hint
    monkeypatch.setattr(export_directories, "_DEAD_S", -1)
    assert operator.export(target, style="csv") == 14
    store.invalidate_cache()
    assert not [name for name in store.find(f"{BUCKET}/killed") if "_temporary" in name]


def test_sizes_of_files_are_found_that_are_newer_than_the_listing_a_client_keeps(store: Any, requests: Store) -> None:
    folder = f"{BUCKET}/growing"
    for number in range(2):
        store.pipe(f"{folder}/{number}", b"x" * number)
    root = f"s3://{folder}"
    assert len(files.list_dir(root)) == 2, "the client keeps this listing"
    other = type(store)(**store.storage_options, skip_instance_cache=True)
    for number in range(2, 5):
        other.pipe(f"{folder}/{number}", b"x" * number)
    stats = FileStats()
    found = [stats(f"{root}/{number}") for number in (3, 0, 4, 2, 1, 5)]
    assert [f and f.size_bytes for f in found] == [3, 0, 4, 2, 1, None]
    other.rm(f"{folder}/2")
    assert FileStats()(f"{root}/2") is not None, "the client has listed it"
    assert FileStats(forgets=True)(f"{root}/2") is None


def test_a_snapshot_appears_whole_or_not_at_all(store: Any, savepoint: str) -> None:
    target = f"s3://{BUCKET}/written"
    with Publication(target) as publication:
        with publication.staging.create() as f:
            f.write(b"x" * (6 << 20))
            f.write(b"y" * (6 << 20))
        assert not files.exists(f"{target}/_metadata")
        staged = f.staged
        publication.commit(b"metadata", [staged])
    assert files.read_whole(f"{target}/{staged.name}") == b"x" * (6 << 20) + b"y" * (6 << 20)
    assert sorted(p.rpartition("/")[2] for p in store.ls(f"{BUCKET}/written")) == sorted(["_metadata", staged.name])
    with pytest.raises(TargetExistsError, match="already contains a snapshot"), Publication(target):
        pass


def test_a_failed_write_leaves_nothing(store: Any) -> None:
    def fail() -> None:
        with Publication(f"s3://{BUCKET}/aborted") as publication:
            with publication.staging.create() as f:
                f.write(b"z")
            assert isinstance(f.staged, StagedFile)
            assert store.exists(f"{BUCKET}/aborted/{f.staged.name}")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    store.invalidate_cache()
    assert not store.exists(f"{BUCKET}/aborted")


@pytest.mark.parametrize("style", ["parquet", "avro"])
def test_exports_need_no_package_of_hadoops(store: Any, savepoint: str, spark: Any, style: str) -> None:
    operator = statetool.load(savepoint, spark=spark)["timers"]
    target = f"s3://{BUCKET}/rows-{style}"
    assert export_table(operator, ScanRequest(), target, style=style) == 14
    names = sorted(name.rpartition("/")[2] for name in store.find(f"{BUCKET}/rows-{style}"))
    assert names[0] == "_SUCCESS"
    assert {name.rpartition(".")[2] for name in names[1:]} == {style}
    if style == "parquet":
        exported = pq.read_table(f"{BUCKET}/rows-{style}", filesystem=store).to_pylist()
        assert sorted(map(repr, exported)) == sorted(map(repr, operator.to_arrow().to_pylist()))
    with pytest.raises(TargetExistsError):
        export_table(operator, ScanRequest(), target, style=style)


def test_large_table_files_are_read_in_few_ranges(store: Any, requests: Store, tmp_path: Path) -> None:
    """Six files of 5 MB: each is the tail with its index, a first range, and the rest in two."""
    root = tmp_path / "checkpoints"
    draw = random.Random(1)
    with Job(root) as job:
        for key in range(6 * _KEYS_OF_FILE):
            job.put("a", key, draw.randbytes(1000))
            if key % _KEYS_OF_FILE == _KEYS_OF_FILE - 1:
                job.flush()
        job.checkpoint()
        expected = job.truth["a"]
    store.put(str(root), f"{BUCKET}/large", recursive=True)
    remote = statetool.load(f"s3://{BUCKET}/large/chk-1", rebase={str(root): f"s3://{BUCKET}/large"}, uids=["op"])
    requests.requests.clear()
    table = remote["op"].to_arrow("a", split_bytes=1 << 30)
    assert dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)) == expected
    probe = f"bytes=0-{remote_requests.WHOLE_BYTES - 1}"  # of one file of the directory, to see whether it was moved
    ranges = [(path, span) for path, span in requests.objects_read() if path.endswith(".sst") and span != probe]
    assert len(ranges) <= 4 * 6
    assert set(requests.objects_read().values()) == {1}
    sizes = [end - start + 1 for _, span in ranges for start, end in [map(int, span[6:].split("-"))]]
    assert sum(sizes) < 1.05 * sum(f.stat().st_size for f in (root / "shared").iterdir())
    # The store's clients fetch a key, or a first page, without reading ahead.
    requests.requests.clear()
    first = next(remote["op"].keyed_state_batches(keys=[7]))
    assert first.num_rows >= 1
    spans = [span[6:].split("-") for path, span in requests.objects_read() if path.endswith(".sst")]
    assert all(int(end) - int(start) < 300_000 for start, end in spans)


def test_a_trigger_with_nothing_new_lists_the_checkpoints_only(store: Any, requests: Store, corpus: Path) -> None:
    store.put(str(corpus / CHECKPOINT / "snapshot"), f"{BUCKET}/followed", recursive=True)
    for n in range(20):
        store.pipe_file(f"{BUCKET}/followed/shared/{n}", b"")
    known: dict[str, Any] = {}
    requests.requests.clear()
    first = completed_checkpoints(f"s3://{BUCKET}/followed", known)
    assert len(first) > 1
    assert len(requests.requests) <= 2 + 2 * len(first)
    requests.requests.clear()
    assert completed_checkpoints(f"s3://{BUCKET}/followed", known) == first
    assert len(requests.requests) <= 2
    store.rm(first[0].path.removeprefix("s3://"), recursive=True)
    assert completed_checkpoints(f"s3://{BUCKET}/followed", known) == first[1:]


def test_a_copy_within_a_store_moves_no_bytes(store: Any, requests: Store, corpus: Path) -> None:
    store.put(str(corpus / CHECKPOINT / "snapshot"), f"{BUCKET}/inside", recursive=True)
    source = max(store.glob(f"{BUCKET}/inside/chk-*"))
    requests.requests.clear()
    copied = statetool.copy(f"s3://{source}", f"s3://{BUCKET}/inside-copy")
    assert len(copied.files) > 10
    assert len(requests.requests) <= 3 * len(copied.files) + _OF_SNAPSHOT
    sources = {file.source.removeprefix("s3:/") for file in copied.files}
    probed = [path for path, _ in requests.objects_read() if path in sources]
    # One file of a directory shows that the others are there, and operator state is read, which may name other files.
    assert len(probed) <= 3
    assert sum(method == "PUT" and "-copy-" in path for method, path, *_ in requests.requests) == len(copied.files)
    store.invalidate_cache()
    assert len(store.ls(f"{BUCKET}/inside-copy")) == len(copied.files) + 1
    assert statetool.verify(f"s3://{BUCKET}/inside-copy", deep=True).ok


def test_carried_table_files_are_copied_by_the_store(store: Any, requests: Store, tmp_path: Path) -> None:
    """Of a state that stays, only the ends of files are read, to check them, and none is written."""
    root = tmp_path / "checkpoints"
    draw = random.Random(1)
    with Job(root, states=("a", "b")) as job:
        for key in range(2 * _KEYS_OF_FILE):
            job.put("a", key, draw.randbytes(1000))
            if key % _KEYS_OF_FILE == _KEYS_OF_FILE - 1:
                job.put("b", key, b"small")
                job.flush()
        job.checkpoint()
    store.put(str(root), f"{BUCKET}/kept", recursive=True)
    large = {path for path in store.find(f"{BUCKET}/kept") if store.size(path) > remote_requests.WHOLE_BYTES}
    assert len(large) == 2
    rebase = {str(root): f"s3://{BUCKET}/kept"}
    remote = statetool.load(f"s3://{BUCKET}/kept/chk-1", rebase=rebase, uids=["op"])
    requests.requests.clear()
    remote["op"].transform(lambda table: table, states=["b"]).write(f"s3://{BUCKET}/kept-copy")
    spans = [span for path, span in requests.objects_read() if path.strip("/") in large]
    assert len(spans) == 2
    assert all(int(end) - int(start) < 1 << 20 for start, end in (span[6:].split("-") for span in spans))
    copies = [path for method, path, *_ in requests.requests if method == "PUT" and "-copy-" in path]
    assert len(copies) == len(large)
    assert len(requests.requests) <= 8 * len(large) + _OF_SNAPSHOT
    store.invalidate_cache()
    assert statetool.verify(f"s3://{BUCKET}/kept-copy", deep=True).ok
    assert statetool.load(f"s3://{BUCKET}/kept-copy", uids=["op"]).diff(remote).equal
