"""Checks of the Python of Spark's workers (the same as the driver's, with the same packages), and set-up of their tasks."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from typing import Any, Final

from statetool.errors import MissingDependencyError, warn
from statetool.io.glibc import keep_freed_memory
from statetool.spark.private import worker_python

NEEDED: Final = (
    "pyarrow",
    "pandas",
    "numpy",
    "numba",
    "fsspec",
    "cramjam",
    "typing_extensions",
)
_PROBE: Final = (
    "import sys, importlib.util as u; print(sys.prefix); print(*sys.version_info[:2], sep='.'); "
    f"print(*(m for m in {NEEDED} if u.find_spec(m) is None))"
)


def begin_task() -> None:
    """Prepare a worker for a task.

    Existing objects are excluded from garbage collection: Spark runs it after each task, which takes 50 ms with all modules. Memory of freed
    arrays stays in the process.
    """
    gc.freeze()
    keep_freed_memory()


def warn_of_workers(spark: Any) -> None:
    """Warn if workers on this machine use another Python that cannot read state; small tables need no workers."""
    problem = _problem(spark)
    if problem is not None:
        warn(f"{problem}: only small tables can be read, and nothing written with Spark. {_hint()}", stacklevel=5)


def check_workers(spark: Any) -> None:
    """Raise an error if the workers on this machine use another Python that cannot read state.

    Raises
    ------
    MissingDependencyError
        Names the setting to change.
    """
    problem = _problem(spark)
    if problem is not None:
        raise MissingDependencyError(problem, hint=_hint())


def _problem(spark: Any) -> str | None:
    """Return the problem of the workers' Python, if they run on this machine."""
    python = worker_python(spark)
    return None if python is None else _problem_of(python)


@lru_cache(maxsize=64)
def _problem_of(python: str) -> str | None:
    """Return the problem of a Python, given by its name or path."""
    path = shutil.which(python)
    if path is None:
        return f"Spark's workers run {python}, which does not exist"
    if os.path.abspath(path) == os.path.abspath(sys.executable):
        return None
    process = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, check=False)
    if process.returncode:
        return f"Spark's workers run {path}, which does not start: {process.stderr.strip()[-200:]}"
    prefix, version, missing = process.stdout.split("\n")[:3]
    if prefix == sys.prefix:
        return None
    own_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != own_version:
        return f"Spark's workers run {path}, which is Python {version}, and this is Python {own_version}"
    return f"Spark's workers run {path}, which has no {', '.join(missing.split())}" if missing else None


def _hint() -> str:
    return f"set PYSPARK_PYTHON={sys.executable} before the session is made (or activate its environment)"
