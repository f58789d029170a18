"""Stored corpus: inputs of each target that found a bug, or reach code that others do not. A test runs it.

``python -m tests.fuzz.kept DIR`` adds the results of a fuzzer run in DIR/TARGET: every ``crash-...`` (with its fix), and the shortest of
the others, as far as there is room.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(__file__).with_name("kept.tar.xz")
_FOUND: Final = ("crash-", "timeout-", "oom-", "slow-unit-")
_MOST_OF_A_TARGET: Final = 120
_MOST_BYTES: Final = 8 << 10


def kept() -> Iterator[tuple[str, str, bytes]]:
    """Yield target, name and bytes of each input."""
    with tarfile.open(ARCHIVE) as tar:
        for member in tar:
            if (f := tar.extractfile(member)) is not None:
                target, _, name = member.name.partition("/")
                yield target, name, f.read()


def take(folder: Path) -> None:
    """Add the results of a run."""
    inputs = {(t, n): data for t, n, data in kept()} if ARCHIVE.exists() else {}
    for target in sorted(p for p in folder.iterdir() if p.is_dir()):
        files = sorted((p for p in target.iterdir() if p.is_file()), key=lambda p: (p.stat().st_size, p.name))
        found = [p for p in files if p.name.startswith(_FOUND)]
        small = [p for p in files if p not in found and p.stat().st_size <= _MOST_BYTES]
        step = max(1, len(small) // _MOST_OF_A_TARGET)
        for path in [*found, *small[::step][:_MOST_OF_A_TARGET]]:
            data = path.read_bytes()
            kind = "found-" if path in found else ""
            inputs[target.name, kind + hashlib.sha256(data).hexdigest()[:16]] = data
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for (name, of), data in sorted(inputs.items()):
            member = tarfile.TarInfo(f"{name}/{of}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    take(Path(sys.argv[1]))
