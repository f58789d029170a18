"""Files that only the operator state of the snapshots in a directory names, and that clean-up must therefore keep."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from statetool.connectors.named_files import file_states, named_files
from statetool.errors import NO_FINDING, FormatError, StatetoolError
from statetool.io import files
from statetool.io.listing import FoundFile
from statetool.operations.directories.survey import FoundSnapshot, Survey
from statetool.snapshot.inventory import Inventory


def with_state_files(tree: Survey, rebase: tuple[tuple[str, str], ...]) -> Survey:
    """Return a survey whose snapshots also have the names of the files that only their state names.

    State is only read where the metadata has a state in which a connector names files.
    """
    snapshots = [_with_state_files(snapshot, rebase) for snapshot in tree.snapshots]
    return replace(tree, snapshots=snapshots)


def _with_state_files(snapshot: FoundSnapshot, rebase: tuple[tuple[str, str], ...]) -> FoundSnapshot:
    if snapshot.metadata is None or snapshot.metadata_file is None:
        return snapshot
    try:
        names = _names_in_state(snapshot.metadata_file, snapshot.directory, rebase)
    except NO_FINDING:
        raise
    except StatetoolError as error:
        if not files.is_stored(snapshot.metadata_file.uri):
            return snapshot  # Flink deleted it, so nothing needs its files
        return replace(snapshot, unread_state=str(error))
    return replace(snapshot, other_names=snapshot.other_names | names)


@lru_cache(maxsize=4096)
def _names_in_state(metadata_file: FoundFile, directory: str, rebase: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return the names of the files that only the state of a snapshot names.

    A clean-up reads a directory several times, but the state of a snapshot does not change.

    Raises
    ------
    FormatError
        State that may name files cannot be decoded.
    """
    data = files.read_whole(metadata_file.uri)
    if not any(state.encode() in data for state in file_states()):
        return frozenset()
    named = [named_files(o) for o in Inventory(directory, rebase=rebase).operators.values()]
    for unread in (u for of in named for u in of.unread if u.may_name_state):
        raise FormatError(f"state {unread.state!r}: {unread.reason}")
    return frozenset(_name_of(path) for of in named for f in of.files for path in (f.path, f.committed_path) if path)


def _name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
