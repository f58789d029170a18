"""The corpora: packed in ``tests/corpus``, or beside the project in ``../shared/corpus`` (Flink's own test data)."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
SHARED: Final = HERE.parents[1] / "shared" / "corpus"


def unpack(archive: Path, target: Path) -> Path:
    """Unpack an archive of our own."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            tar.extractall(target)
    return target


def shared(name: str) -> Path:
    """Return an archive of Flink's own test data, which is not ours to copy; skips where it is not laid out."""
    archive = SHARED / name
    if not SHARED.exists():
        pytest.skip(f"{name} is not part of the project and ../shared/corpus is not here")
    return archive
