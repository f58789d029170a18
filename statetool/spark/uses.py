"""What the queries on one DataFrame have asked for: Spark reads all of them with the partitions that it planned last.

Spark (4.3) keeps what a Python source planned with the filters of one query at the relation, and reads other queries on the same DataFrame
with it as well: those without filters do not ask the source again, and of a join or union of two filtered frames only the filters that
were pushed last count. So frames of this package always have a filter (``key IS NOT NULL``, which is true for each key of Flink's),
and the source prunes by the keys that all queries on the frame so far have asked for: more rows than a query needs do no harm, Spark
evaluates its filters again. They are kept in a file on the driver's machine, where each query is planned in a process of its own.
"""

from __future__ import annotations

import ast
import atexit
import shutil
import tempfile
import uuid
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="statetool-frames-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def new_frame() -> str:
    """Return the file that remembers the queries on a new frame."""
    return str(_folder() / uuid.uuid4().hex)


def widened(file: str, keys: list[Any] | None) -> list[Any] | None:
    """Remember the keys of a query, and return those of all queries on its frame so far.

    Parameters
    ----------
    keys
        ``None`` for a query that may need every key.

    Returns
    -------
    list or None
        ``None`` where some query may need every key, and where this process does not share the file with the others.
    """
    try:
        with Path(file).open("a", encoding="ascii") as out:
            out.write(ascii(keys) + "\n")
        asked = [ast.literal_eval(line) for line in Path(file).read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    if None in asked:
        return None
    return list(dict.fromkeys(key for some in asked for key in some))
