"""Archives of this repository."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, target: Path, inside: str = "") -> Path:
    """Unpack an archive, or only the members in a folder of it, and return ``target``."""
    with tarfile.open(archive) as tar:
        wanted = [m for m in tar.getmembers() if not inside or m.name == inside or m.name.startswith(f"{inside}/")]
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, wanted, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            tar.extractall(target, wanted)
    return target
