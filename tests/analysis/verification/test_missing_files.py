"""A missing directory is reported once, not once per file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli


@pytest.fixture
def checkpoint(corpus: Path, tmp_path: Path) -> Path:
    """Return an incremental checkpoint that was copied with its shared files."""
    case = shutil.copytree(corpus / "v2_3_0-rocksdb-incremental" / "snapshot", tmp_path / "job")
    return max(case.glob("chk-*"))


def shared(checkpoint: Path) -> list[Any]:
    return [r for r in statetool.load(str(checkpoint)).metadata_rows("files") if "/shared/" in r.path]


def test_a_missing_directory_is_one_row(checkpoint: Path) -> None:
    needed = shared(checkpoint)
    files, operators = {Path(r.path).name for r in needed}, {r.operator for r in needed}
    shutil.rmtree(checkpoint.parent / "shared")
    problems = statetool.verify(str(checkpoint)).problems
    (group,) = (p for p in problems if (p.file or "").endswith("/shared"))
    assert group.severity == "error"
    assert group.problem.startswith(
        f"{len(files)} files of this directory do not exist, of {len(operators)} operators: "
    )
    assert {name.strip() for name in group.problem.partition("operators: ")[2].partition(", ...")[0].split(",")} < files
    assert "--rebase OLD=NEW" in group.problem
    assert not [p for p in problems if "/shared/" in (p.file or "")]


def test_output_stays_small(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint.parent / "shared")
    words = CliRunner().invoke(cli, ["verify", str(checkpoint)])
    rows = CliRunner().invoke(cli, ["verify", str(checkpoint), "--json"])
    assert (words.exit_code, rows.exit_code) == (1, 1)
    assert max(len(words.stdout), len(rows.stdout)) < 5_000
    assert "files of this directory do not exist" in words.stdout


def test_a_few_files_are_named_each(checkpoint: Path) -> None:
    gone = sorted({Path(r.path).name for r in shared(checkpoint)})[:3]
    for name in gone:
        (checkpoint.parent / "shared" / name).unlink()
    problems = [p for p in statetool.verify(str(checkpoint)).problems if p.is_missing_file]
    assert {Path(p.file or "").name for p in problems} == set(gone)
    assert all("rebase OLD=NEW" in p.problem for p in problems)
