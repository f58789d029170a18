"""A checkpoint that is deleted at any time of a read: before each access to its files, in each order in which Flink deletes them."""

from __future__ import annotations

import builtins
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import statetool
from statetool.cli.main import cli
from statetool.errors import CheckpointDeletedError
from statetool.io import deletion
from statetool.reporting.openmetrics.exporter import Exporter
from statetool.reporting.openmetrics.targets import targets_of
from statetool.snapshot.inventory import Inventory
from tests.support.servers.flink_rest import RECORDED, RELEASES, flink_rest
from tests.support.snapshots.incremental import Job

FIRST, NEXT = {1: b"a", 2: b"b"}, {1: b"a", 2: b"c", 3: b"d"}
#: Not the order of their names.
FIRST_ID, NEXT_ID = 9, 10
#: Keys of MemoryFileSystem's methods that a client of an object store sends as requests.
REQUESTS: Final = ("info", "ls", "find", "cat_file", "open", "isdir", "exists", "size")

Step = Callable[[Path], None]


def complete_next(job: Path) -> None:
    (job / f"chk-{NEXT_ID}" / ".in-progress").rename(job / f"chk-{NEXT_ID}" / "_metadata")


def delete_metadata(job: Path) -> None:
    (job / f"chk-{FIRST_ID}" / "_metadata").unlink()


def delete_private_files(job: Path) -> None:
    for file in (job / f"chk-{FIRST_ID}").glob("[A-Z]*"):
        file.unlink()


def delete_folder(job: Path) -> None:
    (job / f"chk-{FIRST_ID}").rmdir()


def delete_shared_files(job: Path) -> None:
    for file in (job / "shared").iterdir():
        if file.name in (job / "of-first").read_text().split():
            file.unlink()


METADATA_FIRST: Final = (complete_next, delete_metadata, delete_private_files, delete_folder, delete_shared_files)
SHARED_FIRST: Final = (complete_next, delete_shared_files, delete_metadata, delete_private_files, delete_folder)


def at_once(*steps: Step) -> tuple[Step, ...]:
    def all_steps(job: Path) -> None:
        for step in steps:
            step(job)

    return (all_steps,)


#: Steps before one access and each of those after it.
ORDERS: Final = {
    "metadata first": METADATA_FIRST,
    "shared files first": SHARED_FIRST,
    "at once": at_once(*METADATA_FIRST),
    "metadata at once": (at_once(complete_next, delete_metadata)[0], *METADATA_FIRST[2:]),
}


@dataclass(slots=True)
class Deletion:
    """Counts accesses to files of a job, and makes a step before each one from ``start`` on."""

    job: Path
    steps: tuple[Step, ...]
    start: int
    number: int = 0
    inside: bool = False
    left: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = list(self.steps)

    def note(self, path: object) -> None:
        if self.inside or not isinstance(path, str | os.PathLike) or not str(path).startswith(str(self.job)):
            return
        self.inside = True
        try:
            if self.number >= self.start and self.left:
                self.left.pop(0)(self.job)
            self.number += 1
        finally:
            self.inside = False


@dataclass(slots=True)
class Store:
    """The folder of a job, restored before each read; ``uri`` is its path for readers."""

    job: Path
    template: Path
    uri: str
    deletion: Deletion | None = None

    def restore(self, steps: tuple[Step, ...], start: int) -> Deletion:
        self.deletion = None
        shutil.rmtree(self.job, ignore_errors=True)
        shutil.copytree(self.template, self.job, copy_function=os.link)
        deletion._staying.cache_clear()
        self.deletion = Deletion(self.job, steps, start)
        return self.deletion


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folder that a job's metadata names, which does not exist, and a copy of it."""
    root = tmp_path_factory.mktemp("job")
    folder = root / json.loads((RECORDED / f"{RELEASES[-1]}.json").read_text())["jobs"]["orders"]
    with Job(folder) as job:
        job.number = FIRST_ID - 1
        for key, value in FIRST.items():
            job.put("a", key, value)
        job.checkpoint()
        first = {file.name for file in (folder / "shared").iterdir()}
        for key, value in NEXT.items():
            job.put("a", key, value)
        job.flush()
        job.compact()
        job.checkpoint()
    tables = {file.name for file in (folder / "shared").iterdir()}
    assert first
    assert first < tables
    (folder / "of-first").write_text("\n".join(first))
    (folder / f"chk-{NEXT_ID}" / "_metadata").rename(folder / f"chk-{NEXT_ID}" / ".in-progress")
    return folder, folder.rename(root / "template")


@contextmanager
def local_store(job: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(job, template, str(job))

    def hooked(call: Callable[..., Any]) -> Callable[..., Any]:
        def hook(path: Any = ".", *arguments: Any, **more: Any) -> Any:
            if store.deletion is not None:
                store.deletion.note(path)
            return call(path, *arguments, **more)

        return hook

    with monkeypatch.context() as patch:
        for module, name in ((os, "stat"), (os, "scandir"), (os, "open"), (builtins, "open")):
            patch.setattr(module, name, hooked(getattr(module, name)))
        for name in ("exists", "isdir"):
            patch.setattr(os.path, name, hooked(getattr(os.path, name)))
        yield store


@contextmanager
def object_store(job: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An object store whose objects are the files of a folder."""
    store = Store(job, template, f"s3://bucket{job}")

    class Objects(MemoryFileSystem):
        protocol = "s3"
        cachable = False
        pseudo_dirs: list[str] = []  # noqa: RUF012
        busy = False

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name not in REQUESTS or Objects.busy:
                return found

            def request(*arguments: Any, **more: Any) -> Any:
                if store.deletion is not None:
                    store.deletion.note(store.job)
                Objects.busy = True
                try:
                    return found(*arguments, **more)
                finally:
                    Objects.busy = False

            return request

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return f"/{path.removeprefix('s3://').strip('/')}"

        @property
        def store(self) -> dict[str, Any]:
            from fsspec.implementations.memory import MemoryFile

            files = [file for file in store.job.rglob("*") if file.is_file()]
            return {f"/bucket{file}": MemoryFile(self, f"/bucket{file}", file.read_bytes()) for file in files}

    with monkeypatch.context() as patch:
        patch.setitem(_registry, "s3", Objects)
        yield store


PLACES: Final = {"directory": local_store, "object store": object_store}


def rows_of(path: str) -> dict[int, bytes]:
    table = statetool.load(path, uids=["op"])["op"].to_arrow("a")
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def load_newest(store: Store, _: str) -> dict[int, bytes]:
    (newest,) = [row.path for row in statetool.list_snapshots(store.uri) if row.newest]
    return rows_of(newest)


def load_from_catalog(store: Store, _: str) -> dict[int, bytes]:
    catalog = statetool.catalog(None, store.uri, uids=["op"])
    table: Any = catalog[catalog.databases[-1]]["op_a"]
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def head(path: str, *options: str) -> dict[int, bytes]:
    done = CliRunner().invoke(cli, ["head", path, "op", "a", "--name-uid", "op", "-o", "json", *options])
    assert done.exit_code == 0, done.output
    rows = (
        [json.loads(line) for line in done.stdout.splitlines()]
        if done.stdout.startswith("{")
        else json.loads(done.stdout)
    )
    return {row["key"]: bytes.fromhex(row["value"].removeprefix("0x")) for row in rows}


def measure(path: str) -> dict[int, bytes]:
    exporter = Exporter(targets_of(path), lambda found: Inventory(found, uids=("op",)))
    assert exporter.refresh() == []
    return FIRST


def follow(store: Store, _: str) -> dict[int, bytes]:
    streaming = pytest.importorskip("statetool.spark.source.streaming")
    options = {"path": store.uri, "operatorUid": "op", "table": "a", "mode": "full", "failOnDataLoss": "false"}
    table = streaming.CheckpointTable.of(options)
    schema = table.schema
    rows: dict[int, bytes] = {}
    for partition in table.partitions([head.checkpoint_id for head in table.completed()][-1:], schema):
        for batch in streaming._read(partition):
            rows |= {row["key"]: row["value"] for row in batch.to_pylist()}
    return rows or FIRST  # the checkpoint was left out with a warning


READS: Final[dict[str, Callable[[Store, str], dict[int, bytes]]]] = {
    "path": lambda store, _: rows_of(f"{store.uri}/chk-{FIRST_ID}"),
    "metadata file": lambda store, _: rows_of(f"{store.uri}/chk-{FIRST_ID}/_metadata"),
    "newest": load_newest,
    "catalog": load_from_catalog,
    "head --latest": lambda store, _: head(store.uri, "--latest"),
    "URL": lambda _, url: rows_of(url),
    "head URL": lambda _, url: head(url),
    "metrics of a directory": lambda store, _: measure(store.uri),
    "metrics of a job": lambda _, url: measure(url),
    "stream": follow,
}


@pytest.mark.filterwarnings("ignore:.*was deleted")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("read", READS)
def test_a_read_succeeds_or_tells_of_the_deletion(
    template: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, read: str
) -> None:
    with flink_rest(RELEASES[-1], tmp_path) as rest, PLACES[place](*template, monkeypatch) as store:
        tree = rest.history("orders")
        newest = tree["latest"]["completed"]
        newest["external_path"] = f"{store.uri}/chk-{FIRST_ID}"
        tree["history"] = [newest]
        rest.answers[f"GET /jobs/{rest.jobs['orders']}/checkpoints"] = [[200, tree]]
        for steps in ORDERS.values():
            start, done = 0, False
            while not done:
                accesses = store.restore(steps, start)
                with suppress(CheckpointDeletedError):
                    assert READS[read](store, f"flink://{rest.host}/orders") in (FIRST, NEXT)
                done = accesses.number <= start
                start += 1
