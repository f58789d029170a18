"""Daemon that forks Spark's Python workers, in the sessions that statetool starts.

Spark puts its PySpark zip first on the path of all its Python processes. The zip has no bytecode, so each daemon spends half a second
compiling PySpark. If PySpark was installed by pip, the same modules exist next to that zip, with bytecode. Otherwise this behaves like
Spark's daemon. In addition, each worker imports the modules that its tasks need, which takes most of a second; this daemon imports them
before it forks. To use it in other sessions, set ``spark.python.daemon.module=statetool.spark.daemon``, with statetool installed for the
executors' Python.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

_ZIP: Final = Path("python", "lib", "pyspark.zip")
#: Module of workers that run tasks; other workers look up data sources and need none of these imports.
_WORKER: Final = "pyspark.worker"
#: Imports of tasks that read and write state, with all that these import.
_OF_TASKS: Final = ("pyspark.sql.pandas.serializers", "statetool.tables.read", "statetool.spark.runner")


def without_zip(path: Sequence[str]) -> list[str]:
    """Return a module path without PySpark's zip; unchanged if the rest of the path has no PySpark, or another one."""
    zips = [entry for entry in path if Path(entry).name == _ZIP.name]
    left = [entry for entry in path if entry not in zips]
    installed = PathFinder.find_spec("pyspark", left)
    if installed is None or installed.origin is None:
        return list(path)
    same = Path(installed.origin).parent / _ZIP
    return left if all(Path(entry) == same for entry in zips) else list(path)


def import_for_tasks() -> None:
    """Import the modules that tasks need, and numba if there are cached kernels to load; workers forked later share them."""
    for name in _OF_TASKS:
        importlib.import_module(name)
    from statetool.kernels import kept

    if kept.names():
        importlib.import_module("numba")
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = without_zip(sys.path)
    from pyspark.daemon import manager

    if _WORKER in sys.argv:
        import_for_tasks()
    manager()
