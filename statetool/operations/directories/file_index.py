"""Index of listed files that finds many references of metadata at once, with the same result as one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from statetool.io import files
from statetool.kernels.metadata.paths import NOT_FOUND, fill_table, find_texts, number_directories
from statetool.kernels.metadata.references import LOG, RELATIVE

if TYPE_CHECKING:
    from statetool.formats.metadata.columns import ReferenceColumns
    from statetool.formats.metadata.handles import FileHandle, RelativeFileHandle, SegmentHandle
    from statetool.io.listing import FoundFile
    from statetool.snapshot.locate import Locator

#: Most directories of a snapshot's files that are told apart.
_MOST_DIRECTORIES: Final = 64


class References(Protocol):
    """Collection of the references of one snapshot."""

    locator: Locator

    def is_listed(self, uri: str) -> bool:
        """Return True if a canonical URI is below the listed directories."""

    def add(self, stream: FileHandle | RelativeFileHandle | SegmentHandle, is_log: bool) -> None:
        """Find the file of a stream and add its range."""

    def add_found(self, file: FoundFile, start: int, end: int) -> None:
        """Add a range of a file."""

    def add_new(self, ends: dict[str, int]) -> bool:
        """Add ranges from the start of files; return False, and add none, if a range of one of the files exists."""


class FileIndex:
    """Files by URI, as a hash table over bytes."""

    def __init__(self, listed: Sequence[FoundFile]) -> None:
        self._files = listed
        self._uris = [file.uri for file in listed]
        self._sizes = [file.size_bytes for file in listed]
        self._size_column = np.array(self._sizes, np.int64)
        self._names, self._name = _texts(self._uris)
        self._table = np.full(1 << (2 * len(listed)).bit_length(), -1, np.int64)
        fill_table(self._names, self._name, self._table)

    def add_references(self, columns: ReferenceColumns, needs: References) -> None:
        """Add references to those of a snapshot, with the result of :meth:`References.add` for each in order.

        Where a path is not listed, :meth:`References.add` looks for the file. If that shows that files were moved, the following paths are
        looked up in the new directory first.
        """
        start, end = 0, len(columns.rows)
        while start < end and not needs.locator.rebase and len(needs.locator.moved) < 2:
            start = self._add_until_moved(columns, start, needs)
        for i in range(start, end):
            needs.add(*columns.reference(i))

    def _add_until_moved(self, columns: ReferenceColumns, start: int, needs: References) -> int:
        """Add references from ``start`` on, until one shows that files were moved. Return the number of the next reference."""
        found = self._find(columns, start, needs)
        moved = len(needs.locator.moved)
        stop = len(columns.rows)
        for i in (np.flatnonzero(found == NOT_FOUND) + start).tolist():
            needs.add(*columns.reference(i))
            if len(needs.locator.moved) != moved:
                stop = i + 1
                break
        rows = columns.rows[start:stop]
        is_found = found[: stop - start] != NOT_FOUND
        self._add_found(rows[is_found], found[: stop - start][is_found], needs)
        return stop

    def _find(self, columns: ReferenceColumns, start: int, needs: References) -> npt.NDArray[np.int64]:
        """Return the index of the file of each reference from ``start`` on."""
        rows = columns.rows[start:]
        first = np.empty(_MOST_DIRECTORIES, np.int64)
        directory = np.empty(len(rows), np.int64)
        count = number_directories(columns.data, rows, first, directory)
        places = [
            list(self._places(columns.text(*rows[i, 1:3].tolist()), bool(rows[i, 0] & ~LOG == RELATIVE), needs))
            for i in first[:count].tolist()
        ]
        found = np.full(len(rows), NOT_FOUND, np.int64)
        for k in range(max(map(len, places), default=0)):
            texts = _texts([p[k] if k < len(p) else "" for p in places])
            find_texts(columns.data, rows, directory, *texts, self._names, self._name, self._table, found)
        return found

    def _places(self, directory: str, is_relative: bool, needs: References) -> Iterator[str]:
        """Yield the starts of URIs in which the files of a directory are looked for, best first; none if that takes more than this index.

        They are those of :meth:`Locator.file_of` for each file of the directory.
        """
        if is_relative:
            if ".." not in directory.split("/"):
                yield _before_name(f"{files.parent(needs.locator.metadata_file)}/{directory}")
        elif directory:
            moved = [
                new + directory.removeprefix(old)
                for old, new in needs.locator.moved.items()
                if directory.startswith(old)
            ]
            places = [_before_name(place) for place in (*moved, directory)]
            # The listing does not tell whether a file outside of it exists.
            if all(needs.is_listed(place) for place in places[:-1]):
                yield from places

    def _add_found(self, rows: npt.NDArray[np.int64], found: npt.NDArray[np.int64], needs: References) -> None:
        """Add rows whose files have the indexes ``found``."""
        start, sizes = rows[:, 4], self._size_column[found]
        end = np.where(rows[:, 0] & LOG, sizes, rows[:, 5]) + start
        numbers = found.tolist()
        if len(set(numbers)) == len(numbers) and not start.any() and (end <= sizes).all():
            # The sizes of files are one number for all snapshots.
            ends = [self._sizes[i] for i in numbers] if (end == sizes).all() else end.tolist()
            if needs.add_new(dict(zip([self._uris[i] for i in numbers], ends, strict=True))):
                return
        for i, s, e in zip(numbers, start.tolist(), end.tolist(), strict=True):
            needs.add_found(self._files[i], s, e)


def _before_name(place: str) -> str:
    """Return the start of the canonical URIs of the files in a directory that ends with a slash, or is the working directory."""
    return place if not files.is_local(place) else files.canonical(place).rstrip("/") + "/"


def _texts(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return texts back to back, and the position of each and of the end."""
    joined = "".join(texts)
    position = np.zeros(len(texts) + 1, np.int64)
    sizes = map(len, texts) if joined.isascii() else (len(_encode(text)) for text in texts)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=position[1:])
    return np.frombuffer(_encode(joined), np.uint8), position


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
