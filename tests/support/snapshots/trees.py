"""Directories of snapshots for tests, made from the corpus."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import file_streams
from statetool.formats.metadata.model import handles_of

INCREMENTAL = "v2_3_0-rocksdb-incremental"
JOB = "5ca1ab1e0000b269ffffffffd7c09c20"


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
