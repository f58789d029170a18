"""Files through which tasks on one machine pass runs to each other. Then Spark shuffles only where each run is stored.

Spark's shuffle copies each byte about ten times between a Python worker, the JVM, a compressed file, the JVM again and another worker. Files take
one write and one read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from statetool.saving.streams.runs import PackedRun
from statetool.spark.private import session_folder

if TYPE_CHECKING:
    from typing_extensions import Self


@contextmanager
def run_folder(spark: Any) -> Iterator[str | None]:
    """Provide a folder for runs inside the block; ``None`` if tasks may run on several machines.

    Also ``None`` if each task has a worker of its own: each would write a file, and a task that reads runs has the files of all workers open.
    """
    parent = session_folder(spark)
    if parent is None or spark.sparkContext.getConf().get("spark.python.worker.reuse", "true") != "true":
        yield None
        return
    # After an error, other tasks may still be writing. Spark deletes the folder above with the session.
    with tempfile.TemporaryDirectory(prefix="runs-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield folder


class RunFile:
    """File in which the tasks of one worker store runs one after another; a block."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, str(os.getpid()))

    def __enter__(self) -> Self:
        self._file = open(self.path, "ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, run: PackedRun) -> int:
        """Store a run and return its position."""
        at = self._file.tell()
        self._file.write(run.data.data)
        return at
