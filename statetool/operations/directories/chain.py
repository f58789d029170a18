"""Files shared by retained checkpoints: first and last reference of each file, and the added and total bytes of each checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from statetool.errors import several
from statetool.html.fragment import fragment
from statetool.html.markup import element
from statetool.html.records import record_table
from statetool.operations.directories.survey import FoundSnapshot, Ranges, Survey, bytes_of_ranges, join_ranges, survey


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCheckpoint:
    """A retained snapshot. All sizes include ``_metadata`` with its inline state.

    Earlier retained snapshots also need the ``reused_bytes``, but not the ``new_bytes``. ``reuse`` is the share of ``reused_bytes`` in
    ``total_bytes``. Deleting the snapshot would free ``freed_bytes``: its ``_metadata`` and the ``freed_files`` files (at their full size)
    that no other retained snapshot needs.
    """

    path: str
    job: str
    checkpoint_id: int
    modified_ms: int | None
    files: int
    total_bytes: int
    new_bytes: int
    reused_bytes: int
    reuse: float
    freed_files: int
    freed_bytes: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFile:
    """A file that retained snapshots need.

    ``needed_bytes`` is the part of the file that they need together. It is less than ``size_bytes`` if segments of merged files are no
    longer needed. ``references`` is the number of snapshots that need the file, and ``first_checkpoint`` and ``last_checkpoint`` are the
    ids of the first and the last of them. ``size_bytes`` is ``None`` if the file is missing.
    """

    path: str
    size_bytes: int | None
    needed_bytes: int
    first_checkpoint: int
    last_checkpoint: int
    references: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Snapshots in the order in which they were taken, and the files that they need.

    ``unreadable`` lists the directories with unreadable metadata, with the reason. The files needed by those snapshots are not known. A
    file may therefore be needed longer, and deleting a snapshot may free less, than the rows say.
    """

    checkpoints: tuple[ChainCheckpoint, ...]
    files: tuple[ChainFile, ...]
    unreadable: tuple[tuple[str, str], ...]

    def _repr_html_(self) -> str:
        unread = (element("p", f"{path}: {reason}", class_="warn") for path, reason in self.unreadable)
        files = element("details", element("summary", several(len(self.files), "file")), record_table(self.files))
        return fragment(record_table(self.checkpoints), *unread, files)


def chain(root: str, *, rebase: Mapping[str, str] | None = None) -> Chain:
    """Return the retained snapshots below a directory and the files that they share.

    Snapshots are ordered by checkpoint id, which continues to increase when a job is restored.

    Parameters
    ----------
    root
        A directory: a local path or any URI that fsspec can list. Or the URL of a job, for the
        directory of its checkpoints.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or cannot be listed.
    """
    tree = survey([root], rebase=tuple((rebase or {}).items()))
    retained = sorted((s for s in tree.snapshots if s.metadata is not None), key=_order)
    references = Counter[str]()
    last: dict[str, int] = {}
    for i, snapshot in enumerate(retained):
        references.update(snapshot.needed.keys())
        last.update(dict.fromkeys(snapshot.needed, i))
    needed_ranges: dict[str, Ranges] = {}
    rows, first = [], dict[str, int]()
    for i, snapshot in enumerate(retained):
        first.update(dict.fromkeys(snapshot.needed.keys() - needed_ranges.keys(), i))
        rows.append(_checkpoint(snapshot, needed_ranges, references, tree))
    names = sorted(references, key=lambda name: (first[name], last[name], name))
    return Chain(
        checkpoints=tuple(rows),
        files=tuple(
            _file(name, (rows[first[name]], rows[last[name]]), references[name], needed_ranges[name], tree)
            for name in names
        ),
        unreadable=tuple((s.directory, s.problem) for s in tree.snapshots if s.metadata is None),
    )


def _order(snapshot: FoundSnapshot) -> tuple[int, int, str]:
    assert snapshot.metadata is not None
    assert snapshot.metadata_file is not None
    return snapshot.metadata.checkpoint_id, snapshot.metadata_file.modified_ms or 0, snapshot.directory


def _checkpoint(
    snapshot: FoundSnapshot, needed_ranges: dict[str, Ranges], references: Mapping[str, int], tree: Survey
) -> ChainCheckpoint:
    """Return the row of a snapshot, and add its needed ranges to ``needed_ranges``."""
    metadata, file = snapshot.metadata, snapshot.metadata_file
    assert metadata is not None
    assert file is not None
    total = new = file.size_bytes
    for name, ranges in snapshot.needed.items():
        before = needed_ranges.get(name)
        size = ranges if isinstance(ranges, int) else bytes_of_ranges(ranges)
        total += size
        if before is None:
            needed_ranges[name] = ranges
            new += size
        elif ranges != before:
            joined = needed_ranges[name] = join_ranges(before, ranges)
            new += bytes_of_ranges(joined) - bytes_of_ranges(before)
    sizes = [f.size_bytes for name in snapshot.needed if references[name] == 1 and (f := tree.find(name)) is not None]
    return ChainCheckpoint(
        path=snapshot.directory,
        job=snapshot.job,
        checkpoint_id=metadata.checkpoint_id,
        modified_ms=file.modified_ms,
        files=len(snapshot.needed),
        total_bytes=total,
        new_bytes=new,
        reused_bytes=total - new,
        reuse=round((total - new) / total, 4),
        freed_files=len(sizes),
        freed_bytes=file.size_bytes + sum(sizes),
        complete=not snapshot.problem,
    )


def _file(
    name: str, users: tuple[ChainCheckpoint, ChainCheckpoint], references: int, ranges: Ranges, tree: Survey
) -> ChainFile:
    """Return the row of a file. ``users`` are the first and the last snapshot that need it."""
    file = tree.find(name)
    return ChainFile(
        path=name,
        size_bytes=file.size_bytes if file is not None else None,
        needed_bytes=bytes_of_ranges(ranges),
        first_checkpoint=users[0].checkpoint_id,
        last_checkpoint=users[1].checkpoint_id,
        references=references,
    )
