"""Directories of snapshots for tests, made from the corpus."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
import uuid
from pathlib import Path

from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import file_streams
from statetool.formats.metadata.model import handles_of
from tests.support.snapshots.large import FILES_OF_SUBTASK, large_checkpoint

INCREMENTAL = "v2_3_0-rocksdb-incremental"
JOB = "5ca1ab1e0000b269ffffffffd7c09c20"
JOBS = ("0" * 32, "0123456789ab" + "c" * 20, "d" * 32)


def link(source: Path, target: Path) -> Path:
    """Copy a folder by hard links. A test must replace files that it changes, not write into them."""
    return Path(shutil.copytree(source, target, copy_function=os.link))


def checkpoint_root(corpus: Path, folder: Path) -> Path:
    """Return ``<folder>/checkpoints`` with two checkpoints of one job and a savepoint of it."""
    root = folder / "checkpoints"
    link(corpus / INCREMENTAL / "snapshot", root / JOB)
    link(corpus / "v2_3_0-hashmap-canonical" / "snapshot", root / "savepoint-5ca1ab-0123456789ab")
    return root


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of a file without affecting other links to it."""
    path.unlink()
    path.write_bytes(data)


def metadata_of(snapshot: Path) -> SnapshotMetadata:
    return parse_metadata((snapshot / "_metadata").read_bytes())


def absolute_names(snapshot: Path) -> set[str]:
    """Return the last parts of the paths in a snapshot's metadata."""
    streams = [s for h in handles_of(metadata_of(snapshot)) for s, _ in file_streams(h)]
    return {s.path.rpartition("/")[2] for s in streams}


def last_snapshot(corpus: Path, case: str) -> str:
    """Return the last snapshot of a case."""
    return str(max((corpus / case / "snapshot").rglob("_metadata")).parent)


def random_tree(root: Path, seed: int) -> None:
    """Write snapshots of several jobs, some of them incomplete, in any order of ids and times."""
    draw = random.Random(seed)
    for job in JOBS[: draw.randint(1, len(JOBS))]:
        for number in draw.sample(range(1, 9), draw.randint(0, 5)):
            folder = large_checkpoint(root / job, FILES_OF_SUBTASK, checkpoint_id=number, states=1)
            if draw.random() < 0.2:
                folder = folder.rename(folder.parent / f"savepoint-{job[:6]}-{number:012}")
            metadata = folder / "_metadata"
            match draw.randint(0, 7):
                case 0:
                    metadata.write_bytes(metadata.read_bytes()[: draw.choice([0, 7, 30, 200])])
                case 1:
                    metadata.unlink()
                case 2:
                    metadata.write_bytes(metadata.read_bytes().replace(b"/shared/", b"/s_ared/"))
            if metadata.exists():
                os.utime(metadata, (draw.randint(1, 6),) * 2)
    (root / "empty").mkdir(parents=True)


def age(folder: Path, days: float = 30) -> None:
    """Make all files outside of trash folders some days old."""
    then = time.time() - days * 86_400
    for at, _, names in os.walk(folder):
        for name in names if ".statetool-trash" not in Path(at).parts else ():
            with contextlib.suppress(FileNotFoundError):  # a running job deletes files
                os.utime(Path(at, name), (then, then))


def lose_file(folder: Path) -> Path:
    """Write a file a month old that no checkpoint needs, as a failed attempt leaves it."""
    file = folder / str(uuid.uuid4())
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"lost")
    then = time.time() - 30 * 86_400
    os.utime(file, (then, then))
    return file
