"""Snapshots in an object store, over its real protocol: a server of S3's API on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import SnapshotNotFoundError, TargetExistsError
from statetool.io import files
from statetool.io.files import BYTES_READ
from statetool.write.publish import Publication, StagedFile

BUCKET = "states"
CASE = "v2_3_0-rocksdb-canonical-compressed"


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """An S3 server with an empty bucket; found through the environment, as in a user's job."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        fs = s3fs.S3FileSystem()
        fs.mkdir(BUCKET)
        yield fs
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(scope="module")
def savepoint(store: Any, corpus: Path) -> str:
    store.put(str(corpus / CASE / "snapshot"), f"{BUCKET}/savepoint-1", recursive=True)
    return f"s3://{BUCKET}/savepoint-1"


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
    header = min(o for p in op._operator.keyed_parts for o in p.offsets if o > 0)
    assert BYTES_READ.total - before < header + whole / 4


def test_what_is_not_there_is_named(store: Any) -> None:
    with pytest.raises(SnapshotNotFoundError, match="s3://states/nothing"):
        statetool.load("s3://states/nothing")


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
    with pytest.raises(TargetExistsError, match="holds a snapshot already"), Publication(target):
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
