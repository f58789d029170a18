"""The newest snapshot below a directory, found by the heads of metadata: the one that the list of all snapshots marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from statetool.cli.main import cli
from statetool.formats.metadata import parse_metadata
from statetool.io import listing
from statetool.io.listing import FoundFile
from statetool.operations.directories import snapshots
from statetool.operations.directories.snapshots import list_snapshots
from statetool.operations.directories.survey import read_snapshot
from statetool.snapshot.parsed import ParsedMetadata, hand_over, handing_over, open_parsed
from tests.support.snapshots.large import FILES_OF_SUBTASK, large_checkpoint
from tests.support.snapshots.trees import random_tree


def newest_snapshot(root: str) -> str | None:
    """Return the directory of the newest snapshot."""
    newest = snapshots.newest_snapshot(root)
    return None if newest is None else newest.directory


@pytest.mark.parametrize("seed", range(40))
def test_newest_is_the_one_of_the_list(tmp_path: Path, seed: int) -> None:
    random_tree(tmp_path, seed)
    rows = [row for row in list_snapshots(str(tmp_path)) if row.newest]
    newest = newest_snapshot(str(tmp_path))
    if not rows:
        assert newest is None
        return
    # Two jobs may have written a snapshot with the same id at the same time.
    (row,) = rows
    (same,) = (r for r in list_snapshots(str(tmp_path)) if r.path == newest)
    assert same.complete
    assert (same.modified_ms, same.checkpoint_id) == (row.modified_ms, row.checkpoint_id)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the metadata files that are read completely."""
    names: list[str] = []

    def recorded(data: bytes, *, file: str) -> Any:
        names.append(file)
        return parse_metadata(data, file=file)

    for module in ("operations.directories.survey", "snapshot.parsed"):
        monkeypatch.setattr(f"statetool.{module}.parse_metadata", recorded)
    return names


def test_only_the_newest_metadata_is_read_completely(tmp_path: Path, parsed: list[str]) -> None:
    for number in range(1, 6):
        large_checkpoint(tmp_path, FILES_OF_SUBTASK, checkpoint_id=number, states=1)
    newest = tmp_path / "chk-5"
    assert newest_snapshot(str(tmp_path)) == str(newest)
    assert parsed == [str(newest / "_metadata")]
    (newest / "_metadata").write_bytes((newest / "_metadata").read_bytes()[:100])
    parsed.clear()
    assert newest_snapshot(str(tmp_path)) == str(tmp_path / "chk-4")
    assert parsed == [str(newest / "_metadata"), str(tmp_path / "chk-4" / "_metadata")]


def test_the_kernels_are_not_loaded_for_one_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest metadata is parsed into objects for its operators, too, and that takes less time than to load the kernels."""

    def refused(files: object) -> None:
        raise AssertionError("an index of all files")

    large_checkpoint(tmp_path, FILES_OF_SUBTASK, states=1)
    monkeypatch.setattr("statetool.operations.directories.survey.columns_pay_off", lambda size_bytes: True)
    monkeypatch.setattr("statetool.operations.directories.file_index.FileIndex", refused)
    assert newest_snapshot(str(tmp_path)) == str(tmp_path / "chk-1")


def test_each_file_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2, 3):
        large_checkpoint(tmp_path, 2 * FILES_OF_SUBTASK, checkpoint_id=number, states=1)
    looked_up: list[str] = []

    def recorded(path: str, name: str = "", folder: int | None = None) -> FoundFile | None:
        looked_up.append(path)
        return local_stat(path, name, folder)

    local_stat = listing._local_stat
    monkeypatch.setattr(listing, "_local_stat", recorded)
    assert newest_snapshot(str(tmp_path)) == str(tmp_path / "chk-3")
    assert len(looked_up) == len(set(looked_up)) == 3 + 2 * FILES_OF_SUBTASK


def test_a_snapshot_that_is_deleted_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        large_checkpoint(tmp_path, FILES_OF_SUBTASK, checkpoint_id=number, states=1)

    def deleted(tree: Any, directory: str, **options: Any) -> Any:
        if directory.endswith("chk-2"):
            (tmp_path / "chk-2" / "_metadata").unlink()
        return read_snapshot(tree, directory, **options)

    monkeypatch.setattr("statetool.operations.directories.snapshots.read_snapshot", deleted)
    assert newest_snapshot(str(tmp_path)) == str(tmp_path / "chk-1")


def test_a_command_parses_the_newest_metadata_once(tmp_path: Path, parsed: list[str]) -> None:
    for number in (1, 2):
        large_checkpoint(tmp_path, FILES_OF_SUBTASK, checkpoint_id=number, states=1)
    uid = ["--name-uid", "op"]
    done = CliRunner().invoke(cli, ["info", str(tmp_path), "--latest", "--json", *uid], catch_exceptions=False)
    assert json.loads(done.stdout)["checkpoint_id"] == 2
    assert parsed == [str(tmp_path / "chk-2" / "_metadata")]


def test_a_snapshot_that_is_deleted_after_it_was_chosen_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        large_checkpoint(tmp_path, FILES_OF_SUBTASK, checkpoint_id=number, states=1)

    def deleted(chosen: ParsedMetadata) -> None:
        hand_over(chosen)
        if chosen.directory.endswith("chk-2"):
            Path(chosen.file).unlink()

    monkeypatch.setattr("statetool.cli.resolve_path.hand_over", deleted)
    done = CliRunner().invoke(cli, ["info", str(tmp_path), "--latest", "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["checkpoint_id"] == 1
    assert "reading the next one" in done.stderr


def test_metadata_is_kept_until_it_is_opened_or_the_command_ends(tmp_path: Path, parsed: list[str]) -> None:
    large_checkpoint(tmp_path, FILES_OF_SUBTASK, states=1)
    path = str(tmp_path / "chk-1")
    with handing_over():
        hand_over(open_parsed(path))
        open_parsed(path)
        assert len(parsed) == 1
        hand_over(open_parsed(path))
        assert len(parsed) == 2
    open_parsed(path)
    assert len(parsed) == 3
