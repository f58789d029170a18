"""Daemon that forks Spark's Python workers, in the sessions that statetool starts.

It differs from Spark's daemon in two ways. It loads PySpark from where pip installed it
(:func:`~statetool.spark.private.without_zip`). And it imports the modules that tasks need before it forks, instead of once per worker, which
takes most of a second. To use it in other sessions, set ``spark.python.daemon.module=statetool.spark.daemon``, with statetool installed for
the executors' Python.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Final

from statetool.spark.private import run_daemon, without_zip

#: Module of workers that run tasks; other workers look up data sources and need none of these imports.
_WORKER: Final = "pyspark.worker"
#: Imports of tasks that read and write state, with all that these import.
_OF_TASKS: Final = ("pyspark.sql.pandas.serializers", "statetool.tables.read", "statetool.spark.write.runner")


def leave_removed_folder() -> None:
    """Go to the root if the folder in which Spark was started was removed since: some modules that numba imports need one."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(os.sep)


def import_for_tasks() -> None:
    """Import the modules that tasks need, and numba if there are cached kernels to load; workers forked later share them."""
    for name in _OF_TASKS:
        importlib.import_module(name)
    from statetool.kernels.core import kept

    if kept.names():
        importlib.import_module("numba")
    gc.freeze()


if __name__ == "__main__":
    sys.path[:] = without_zip(sys.path)
    leave_removed_folder()
    if _WORKER in sys.argv:
        import_for_tasks()
    run_daemon()
