"""The snapshots that are served: one, or those below a directory. Few stay open, so that the next page needs no headers again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import statetool
from statetool.cli.assistants.bounds import OutsideError, Root
from statetool.cli.explorer.latest import Latest
from statetool.errors import SnapshotNotFoundError
from statetool.operations.cluster.overview import read_overview
from statetool.operations.cluster.paths import is_job
from statetool.operations.directories.snapshots import SnapshotRow

_MOST_OPEN: Final = 8
#: The name of the only snapshot.
ONLY: Final = "."


class Snapshots:
    """Snapshots by name.

    Parameters
    ----------
    load
        Opens a snapshot.
    is_root
        Whether the path is a directory of snapshots. Then no file outside of it is read.

    Attributes
    ----------
    listing
        The snapshots of the directory; ``None`` if one snapshot is served.
    overview
        What the JobManager says about the job; ``None`` if the path is not the URL of one.
    """

    def __init__(self, path: str, load: Callable[[str], statetool.Savepoint], *, is_root: bool) -> None:
        self.path = path
        self._load = load
        self._root = Root(path, load) if is_root else None
        self._open: OrderedDict[str, statetool.Savepoint] = OrderedDict()
        self._lock = threading.Lock()
        self.listing = None if self._root is None else Latest(self._root.rows)
        self.overview = Latest(lambda: read_overview(path)) if is_root and is_job(path) else None

    @property
    def is_root(self) -> bool:
        """Whether a directory of snapshots is served."""
        return self._root is not None

    def rows(self) -> list[tuple[str, SnapshotRow]]:
        """Return the snapshots of a directory with their names, by job and id."""
        return [] if self.listing is None else self.listing.get()

    def newest(self) -> str:
        """Return the name of the newest complete snapshot.

        Raises
        ------
        SnapshotNotFoundError
            There is none.
        """
        if self._root is None:
            return ONLY
        for name, row in self.rows():
            if row.newest:
                return name
        raise SnapshotNotFoundError(f"no complete snapshot below {self.path}")

    def forget(self, name: str) -> None:
        """Forget a snapshot that was deleted, and the listing with it."""
        with self._lock:
            self._open.pop(name, None)
        if self.listing is not None:
            self.listing.forget()

    def open(self, name: str) -> statetool.Savepoint:
        """Open a snapshot.

        Raises
        ------
        OutsideError
            It, or a file that it names, is outside of what is served.
        StatetoolError
            There is no snapshot, or it cannot be read.
        """
        with self._lock:
            if (found := self._open.get(name)) is not None:
                self._open.move_to_end(name)
                return found
        if self._root is not None:
            opened = self._root.open(name)
        elif name == ONLY:
            opened = self._load(self.path)
        else:
            raise OutsideError(f"{name!r} is not served")
        with self._lock:
            self._open[name] = opened
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return opened
