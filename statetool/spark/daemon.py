"""Spark's daemon, which forks the Python workers, in the sessions that statetool starts.

Spark puts its zip of PySpark in front of the path of all its Python processes. It has no bytecode, so each daemon compiles PySpark anew for
half a second. Where PySpark was installed by pip, the same modules lie beside that zip, with their bytecode. Elsewhere this
is Spark's own daemon. And each worker imports what its tasks need, for most of a second; here the daemon has done so before it forks. A session
that others start takes it too: ``spark.python.daemon.module=statetool.spark.daemon``, where statetool is installed for the executors' Python.
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
#: The module of workers that run tasks; others look up data sources, and need nothing of ours.
_WORKER: Final = "pyspark.worker"
#: What tasks that read and write state import, with all that these import.
_OF_TASKS: Final = ("pyspark.sql.pandas.serializers", "statetool.tables.read", "statetool.spark.runner")


def without_zip(path: Sequence[str]) -> list[str]:
    """Return a module path without PySpark's zip, unchanged where what follows has no PySpark or another one."""
    zips = [entry for entry in path if Path(entry).name == _ZIP.name]
    left = [entry for entry in path if entry not in zips]
    installed = PathFinder.find_spec("pyspark", left)
    if installed is None or installed.origin is None:
        return list(path)
    same = Path(installed.origin).parent / _ZIP
    return left if all(Path(entry) == same for entry in zips) else list(path)


def import_for_tasks() -> None:
    """Import what tasks need, and numba where there are kept kernels to load; workers that are forked later share it."""
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
