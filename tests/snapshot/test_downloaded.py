"""Downloaded checkpoints whose metadata names a store that cannot be opened: files are looked for next to the metadata first."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

import statetool
from statetool.cli.main import cli
from statetool.errors import StorageError
from statetool.formats.metadata.handles import FileHandle, SegmentHandle, StreamHandle
from statetool.formats.metadata.model import replace_streams
from statetool.formats.metadata.writer import write_metadata
from statetool.snapshot.locate import Locator
from tests.support.snapshots.trees import link, metadata_of, replace_file

#: A store without credentials, and one whose package is not installed.
STORES = ("oss://prod/checkpoints", "abfs://prod/checkpoints")
CASES = (
    ("v2_3_0-rocksdb-incremental", STORES[0]),
    ("v2_3_0-file-merging-rocksdb", STORES[1]),
    ("v1_13_6-rocksdb-incremental", STORES[0]),
)

_IN_JOB = re.compile("(shared|taskowned|chk-[0-9]+)/.*")


class Denied(MemoryFileSystem):
    """A store that denies each request to the bucket ``prod``, and counts them."""

    protocol = "oss"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    requests: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("oss://", "memory://")))

    def _refuse(self, path: str) -> None:
        if self._strip_protocol(path).startswith("/prod"):
            self.requests.append(path)
            raise PermissionError("AccessDenied")

    def info(self, path: str, **more: Any) -> Any:
        self._refuse(path)
        return super().info(path, **more)

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        self._refuse(path)
        return super().ls(path, detail, **more)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> Any:
        self._refuse(path)
        return super().cat_file(path, start, end, **more)


@pytest.fixture(autouse=True)
def _denied() -> None:
    fsspec.register_implementation("oss", Denied, clobber=True)
    Denied.requests.clear()


def downloaded(corpus: Path, case: str, folder: Path, store: str) -> Path:
    """Return a checkpoint of the corpus as it is after a download from a store."""
    link(corpus / case / "snapshot", folder)
    snapshot = max(folder.rglob("_metadata")).parent

    def name(stream: StreamHandle) -> StreamHandle:
        if isinstance(stream, FileHandle | SegmentHandle):
            return replace(stream, path=f"{store}/job/{_IN_JOB.search(stream.path)[0]}")  # type: ignore[index]
        return stream

    metadata = metadata_of(snapshot)
    changed = replace(metadata, operators=tuple(replace_streams(o, name) for o in metadata.operators))
    replace_file(snapshot / "_metadata", write_metadata(changed))
    return snapshot


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize(("case", "store"), CASES)
def test_all_commands_read_the_files_next_to_the_metadata(case: str, store: str, corpus: Path, tmp_path: Path) -> None:
    snapshot = downloaded(corpus, case, tmp_path / "job", store)
    for words in (("verify", snapshot), ("stats", snapshot), ("count", snapshot), ("copy", snapshot, tmp_path / "new")):
        code, text = run(*words)
        assert code == 0, text
    code, text = run("check", snapshot, "--flink", "2.3.0")
    assert code in (0, 1)
    assert "cannot access" not in text
    assert "is installed" not in text
    code, text = run("ls", tmp_path / "job", "--json")
    assert code == 0
    assert {row["complete"] for row in json.loads(text) if row["path"] == str(snapshot)} == {True}
    assert Denied.requests == []


@pytest.mark.parametrize("store", STORES)
def test_the_error_names_the_option_for_files_that_are_not_there(store: str, corpus: Path, tmp_path: Path) -> None:
    snapshot = downloaded(corpus, "v2_3_0-rocksdb-incremental", tmp_path / "job", store)
    shutil.move(tmp_path / "job" / "shared", tmp_path / "elsewhere")
    needed: dict[str, tuple[str | Path, ...]] = {"copy": (tmp_path / "new",)}
    for command in ("verify", "stats", "count", "copy"):
        more = needed.get(command, ())
        code, text = run(command, snapshot, *more)
        assert code == 3, text
        assert f"--rebase {store}/job/shared=" in text
        assert "next to" in text
        assert text.index("--rebase") < (text.find("credentials that") if "credentials that" in text else len(text))
        assert ("pip install" in text) == store.startswith("abfs")
    options = ("--rebase", f"{store}/job/shared={tmp_path / 'elsewhere'}")
    code, text = run("verify", snapshot, *options)
    assert code == 0, text
    code, text = run("check", snapshot, "--flink", "2.3.0", *options)
    assert code in (0, 1)
    assert "cannot access" not in text
    # Flink reads the files in the store. Without access to it, that they exist there is assumed.
    files = next(s for s in statetool.check(str(snapshot), flink_version="2.3.0").steps if s.step == "files")
    assert any(a.rule == "M8" and f"{store}/job/shared" in a.text for a in files.assumptions)


def test_files_that_are_still_in_the_store_are_read_there(corpus: Path, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "shared"), "/kept/job/shared", recursive=True)
    try:
        snapshot = downloaded(corpus, "v2_3_0-rocksdb-incremental", tmp_path / "job", "memory://kept")
        shutil.rmtree(tmp_path / "job" / "shared")
        rebase = ("--rebase", "memory://kept=memory://kept")
        code, text = run("verify", snapshot, *rebase)
        assert code == 0, text
    finally:
        memory.rm("/kept", recursive=True)


def test_a_store_of_metadata_in_a_store_is_asked_first(tmp_path: Path) -> None:
    """Only there do two stores differ without a download: change logs may have a store of their own."""
    memory = fsspec.filesystem("memory")
    memory.pipe("/backup/job/chk-1/_metadata", b"x")
    memory.pipe("/backup/job/shared/file", b"x")
    try:
        locator = Locator("memory://backup/job/chk-1/_metadata")
        assert locator.file_of(FileHandle(size_bytes=1, path="oss://prod/job/shared/file")) == (
            "memory://backup/job/shared/file"
        )
        assert Denied.requests
        with pytest.raises(StorageError, match=r"--rebase oss://prod/job/shared=.* credentials"):
            Locator("memory://backup/job/chk-1/_metadata").file_of(
                FileHandle(size_bytes=1, path="oss://prod/job/shared/gone")
            )
    finally:
        memory.rm("/backup", recursive=True)


def test_a_copy_in_another_bucket_of_the_store(corpus: Path, tmp_path: Path) -> None:
    downloaded(corpus, "v2_3_0-rocksdb-incremental", tmp_path / "job", STORES[0])
    store = fsspec.filesystem("oss")
    store.put(str(tmp_path / "job"), "/backup/job", recursive=True)
    try:
        for words in (("count",), ("verify",), ("check", "--flink", "2.3.0")):
            code, text = run(words[0], "oss://backup/job/chk-4", *words[1:])
            assert code == (1 if words[0] == "check" else 0), text
            assert "cannot access" not in text
        store.rm("/backup/job/shared", recursive=True)
        for words in (("count",), ("verify",), ("check", "--flink", "2.3.0")):
            code, text = run(words[0], "oss://backup/job/chk-4", *words[1:])
            assert code == 3, text
            assert "--rebase oss://prod/checkpoints/job/shared=" in text
    finally:
        store.rm("/backup", recursive=True)
