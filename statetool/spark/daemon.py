"""Spark's daemon, which forks the Python workers, in the sessions that statetool starts.

Spark puts its zip of PySpark in front of the path of all its Python processes. It has no bytecode, so each daemon compiles PySpark anew for
half a second. Where PySpark was installed by pip, the same modules lie beside that zip, with their bytecode. Elsewhere this
is Spark's own daemon. A session that others start takes it too: ``spark.python.daemon.module=statetool.spark.daemon``, where statetool is installed
for the executors' Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

_ZIP: Final = Path("python", "lib", "pyspark.zip")


def without_zip(path: Sequence[str]) -> list[str]:
    """Return a module path without PySpark's zip, unchanged where what follows has no PySpark or another one."""
    zips = [entry for entry in path if Path(entry).name == _ZIP.name]
    left = [entry for entry in path if entry not in zips]
    installed = PathFinder.find_spec("pyspark", left)
    if installed is None or installed.origin is None:
        return list(path)
    same = Path(installed.origin).parent / _ZIP
    return left if all(Path(entry) == same for entry in zips) else list(path)


if __name__ == "__main__":
    sys.path[:] = without_zip(sys.path)
    from pyspark.daemon import manager

    manager()
