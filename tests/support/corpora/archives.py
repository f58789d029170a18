"""The corpora that are packed in ``tests/corpus``."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parents[2]


def unpack(archive: Path, target: Path) -> Path:
    """Unpack an archive of this repository."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            tar.extractall(target)
    return target
