"""Checkpoints in the high-availability metadata of a job, which outlives its JobManagers.

An entry ``checkpointID-N`` of the job's config map is, in base64, a Java object with the path of a file in ``high-availability.storageDir``.
That file is a ``CompletedCheckpoint`` as a Java object, with the path of the checkpoint. Follows ``KubernetesStateHandleStore``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import FormatError, SnapshotNotFoundError
from statetool.io import files
from statetool.operations.cluster.snapshots import check_named_path
from statetool.serializers.typeutils.java_values import read_java
from statetool.snapshot.locate import rebase_path

_ENTRY: Final = "checkpointID-"
_MARKED: Final = "org.apache.flink.kubernetes.highavailability.KubernetesStateHandleStore$StateHandleWithDeleteMarker"
_RETRIEVABLE: Final = "org.apache.flink.runtime.state.RetrievableStreamStateHandle"
_FILE: Final = "org.apache.flink.runtime.state.filesystem.FileStateHandle"
_PATH: Final = "org.apache.flink.core.fs.Path"
_URI: Final = "java.net.URI"
_COMPLETED: Final = "org.apache.flink.runtime.checkpoint.CompletedCheckpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A completed checkpoint. ``file`` is the URI of the file that describes it."""

    checkpoint_id: int
    file: str


def stored_checkpoints(entries: Mapping[str, str], config_map: str) -> list[StoredCheckpoint]:
    """Return the checkpoints of a config map by id, without those that are being deleted.

    Raises
    ------
    FormatError
        An entry is not one of Flink's.
    """
    found = []
    for name, text in entries.items():
        if not name.startswith(_ENTRY):
            continue
        where = f"{config_map}, entry {name}"
        digits = name.removeprefix(_ENTRY)
        if not digits.isdecimal():
            raise FormatError(f"{where}: not the id of a checkpoint")
        try:
            tree = read_java(base64.b64decode(text, validate=True))
        except (binascii.Error, FormatError) as error:
            raise FormatError(f"{where}: not a Java object in base64: {error}") from error
        if _class_of(tree) == _MARKED:
            if _field(tree, _MARKED, "markedForDeletion", where):
                continue
            tree = _field(tree, _MARKED, "inner", where)
        # Before Flink 1.15, entries had no marker.
        handle = _field(tree, _RETRIEVABLE, "wrappedStreamStateHandle", where)
        uri = _field(_field(handle, _FILE, "filePath", where), _PATH, "uri", where)
        found.append(StoredCheckpoint(checkpoint_id=int(digits), file=str(_field(uri, _URI, "string", where))))
    return sorted(found, key=lambda c: c.checkpoint_id)


def checkpoint_path(stored: StoredCheckpoint, rebase: Sequence[tuple[str, str]]) -> str:
    """Return the path of a checkpoint as Flink names it.

    Raises
    ------
    SnapshotNotFoundError
        The file that describes it does not exist here.
    FormatError
        The file does not describe this checkpoint.
    """
    check_named_path(stored.file, rebase, "the high-availability metadata")
    candidates = [*rebase_path(stored.file, rebase), stored.file]
    file = next((candidate for candidate in candidates if files.exists(candidate)), None)
    if file is None:
        raise SnapshotNotFoundError(
            f"{stored.file}, which the high-availability metadata names, does not exist here",
            hint="mount high-availability.storageDir and pass --rebase OLD=NEW, rebase={old: new}",
        )
    tree = read_java(files.read_whole(file))
    number = _field(tree, _COMPLETED, "checkpointID", file)
    if number != stored.checkpoint_id:
        raise FormatError(f"{file} describes checkpoint {number}, not {stored.checkpoint_id}")
    path = _field(tree, _COMPLETED, "externalPointer", file)
    if not isinstance(path, str):
        raise SnapshotNotFoundError(f"{file}: checkpoint {number} has no path")
    return path


def _class_of(tree: Any) -> str | None:
    return tree.get("$class") if isinstance(tree, dict) else None


def _field(tree: Any, cls: str, name: str, where: str) -> Any:
    """Return a field of an object, which must be of exactly this class."""
    if _class_of(tree) != cls or name not in tree["fields"]:
        raise FormatError(f"{where}: expected {cls} with {name}, found {_class_of(tree) or type(tree).__name__}")
    return tree["fields"][name]
