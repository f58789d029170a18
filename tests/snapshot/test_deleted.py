"""A snapshot that is deleted while it is read is never reported as damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import CheckpointDeletedError, FormatError, SnapshotNotFoundError
from statetool.io.listing import list_files
from statetool.operations.directories import survey

CASE = "v2_3_0-rocksdb-incremental"

Delete = Callable[[Path], None]


def whole(job: Path) -> None:
    shutil.rmtree(job)


def metadata_and_private_files(job: Path) -> None:
    """Flink deletes the metadata first."""
    (checkpoint,) = job.glob("chk-*")
    for file in checkpoint.iterdir():
        file.unlink()


def metadata_and_shared_files(job: Path) -> None:
    next(job.glob("chk-*/_metadata")).unlink()
    shutil.rmtree(job / "shared")


WAYS: list[Delete] = [whole, metadata_and_private_files, metadata_and_shared_files]
READS: dict[str, Callable[[statetool.Savepoint, Path], object]] = {
    "states": lambda s, _: s.metadata_rows("states"),
    "rows": lambda s, _: [s[n].to_arrow(t) for n in s for t in s[n].tables],
    "verify": lambda s, _: statetool.verify(s),
    "verify --deep": lambda s, _: statetool.verify(s, deep=True),
    "stats": lambda s, _: s.stats(),
    "report": lambda s, work: s.report(str(work / "report.html")),
    "check": lambda s, _: statetool.check(s, flink_version="2.3"),
}


@pytest.fixture
def job(corpus: Path, tmp_path: Path) -> Path:
    """Return the folder of a job with one checkpoint."""
    origin = corpus / CASE / "snapshot"
    folder = tmp_path / "job"
    shutil.copytree(origin, folder)
    for older in sorted(folder.glob("chk-*"), key=lambda p: int(p.name[4:]))[:-1]:
        shutil.rmtree(older)
    return folder


def checkpoint_of(job: Path) -> str:
    (checkpoint,) = job.glob("chk-*")
    return str(checkpoint)


@pytest.mark.parametrize("delete", WAYS)
@pytest.mark.parametrize("read", READS)
def test_it_is_an_error_of_its_own(job: Path, tmp_path: Path, delete: Delete, read: str) -> None:
    path = checkpoint_of(job)
    savepoint = statetool.load(path)
    delete(job)
    if delete is metadata_and_shared_files and read == "states":
        READS[read](savepoint, tmp_path)  # the headers are in files exclusive to the checkpoint
        return
    with pytest.raises(CheckpointDeletedError, match="Flink deleted this checkpoint while it was read") as error:
        READS[read](savepoint, tmp_path)
    assert path in str(error.value)
    assert "state.checkpoints.num-retained" in error.value.hint


def test_the_error_names_the_number_of_checkpoints_to_retain(job: Path) -> None:
    first = Path(checkpoint_of(job))
    savepoint = statetool.load(str(first))
    metadata_and_private_files(job)
    for later, has_metadata in ((2, True), (3, True), (4, False)):
        folder = first.with_name(f"chk-{int(first.name[4:]) + later}")
        folder.mkdir()
        if has_metadata:  # the last one is in progress
            (folder / "_metadata").touch()
    with pytest.raises(CheckpointDeletedError) as error:
        savepoint.metadata_rows("states")
    assert "let Flink keep more than 3: execution.checkpointing.num-retained" in error.value.hint


@pytest.mark.parametrize("delete", WAYS)
def test_tasks_that_were_planned_before(job: Path, delete: Delete) -> None:
    savepoint = statetool.load(checkpoint_of(job))
    scans = [savepoint[n].scan("keyed_state") for n in savepoint if "keyed_state" in savepoint[n].tables]
    delete(job)
    for scan in scans:
        with pytest.raises(CheckpointDeletedError):
            list(scan.batches())


def test_a_missing_file_beside_metadata_is_damage(job: Path) -> None:
    shutil.rmtree(job / "shared")
    path = checkpoint_of(job)
    assert not statetool.verify(path).ok
    with pytest.raises(SnapshotNotFoundError) as error:
        statetool.copy(path, str(job.parent / "copy"))
    assert not isinstance(error.value, CheckpointDeletedError)


def test_a_short_file_beside_metadata_is_damage(job: Path) -> None:
    for file in (job / "shared").iterdir():
        file.write_bytes(b"")
    with pytest.raises(FormatError):
        statetool.copy(checkpoint_of(job), str(job.parent / "copy"))


@pytest.mark.parametrize("command", [["states"], ["verify"], ["stats"], ["copy"]])
def test_latest_takes_the_next(job: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]) -> None:
    """The newest is deleted when it was chosen and opened; Flink has completed another one then."""
    first = Path(checkpoint_of(job))
    following = first.with_name(f"chk-{int(first.name[4:]) + 1}")
    load, copy = statetool.load, statetool.copy

    def replaced(path: str = "", *args: object, **options: object) -> object:
        opened = load(path) if command != ["copy"] else None
        path = path or str(options["source"])
        if Path(path) == first and first.exists():
            shutil.copytree(first, tmp_path / "next")
            metadata_and_private_files(job)
            (tmp_path / "next").rename(following)
        return opened or copy(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(statetool, "load" if command != ["copy"] else "copy", replaced)
    result = CliRunner().invoke(
        cli, [*command, "--latest", str(job), *([str(tmp_path / "new")] if command == ["copy"] else [])]
    )
    assert result.exit_code == 0, result.output
    assert "reading the next one" in result.stderr
    assert result.stderr.count("set execution.checkpointing.num-retained to more than 1") == 1


def test_a_listing_leaves_out_what_was_deleted_meanwhile(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Path(checkpoint_of(job))
    listings = 0

    def listed(root: str) -> object:
        nonlocal listings
        listings += 1
        yield from list(list_files(root))
        if listings == 1:
            shutil.copytree(first, first.with_name("chk-1000"))
            metadata_and_private_files_of(first)

    monkeypatch.setattr(survey, "list_files", listed)
    (row,) = [r for r in statetool.list_snapshots(str(job)) if r.metadata_version is not None]
    assert row.path.endswith("chk-1000")
    assert row.complete
    assert row.newest


def metadata_and_private_files_of(checkpoint: Path) -> None:
    for file in checkpoint.iterdir():
        file.unlink()
