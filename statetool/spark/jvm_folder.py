"""Working directory of the JVM that started a Python process of Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: A worker is a child of a daemon, which is a child of the JVM, perhaps through a wrapper.
_MOST_PARENTS: Final = 4


def jvm_folder() -> str | None:
    """Return the working directory of the JVM, ``None`` if the system does not tell (only Linux does) or there is none."""
    process = os.getppid()
    for _ in range(_MOST_PARENTS):
        files = Path("/proc") / str(process)
        try:
            if (files / "comm").read_text().strip() == "java":
                return os.readlink(files / "cwd")
            process = int((files / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None
