"""File names of a write in its target, and the writes found in a target (protocol: :mod:`statetool.saving.publish`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.errors import OptionError, TargetExistsError
from statetool.io import files, owner, targets

METADATA_NAME: Final = "_metadata"
MARKER: Final = ".statetool-"
_TOMBSTONE: Final = ".over"
_ELSEWHERE: Final = "choose a directory that does not exist; nothing is overwritten"


@dataclass(frozen=True, slots=True)
class Survey:
    """Other writes of a target: those with a marker, and those that were taken over."""

    writes: tuple[str, ...]
    taken_over: tuple[str, ...]


def survey(target: str) -> Survey:
    """Return the writes of a target.

    Raises
    ------
    TargetExistsError
        The target holds a snapshot, or files that were not left by a write.
    """
    if "\0" in target:
        raise OptionError(f"{target!r} is not a valid name of a directory")
    if files.is_broken_link(target):
        raise TargetExistsError(f"{target} is a symbolic link that leads nowhere", hint=_ELSEWHERE)
    if files.exists(target) and not files.is_dir(target):
        raise TargetExistsError(f"{target} is a file", hint=_ELSEWHERE)
    with targets.writing(target):
        names = targets.list_sizes(target)
    if METADATA_NAME in names:
        raise TargetExistsError(f"{target} already contains a snapshot", hint=_ELSEWHERE)
    marks = [n.removeprefix(MARKER) for n in names if n.startswith(MARKER)]
    taken_over = [m.removesuffix(_TOMBSTONE) for m in marks if m.endswith(_TOMBSTONE)]
    writes = [m for m in marks if not m.endswith(_TOMBSTONE)]
    for name in names:
        # Names that start with two dots are temporary files of the marker.
        own = name.partition("-")[0] in {*writes, *taken_over} or name.startswith((MARKER, f".{MARKER}"))
        if not own or names[name] is None:
            raise TargetExistsError(f"{target} is not empty: {name}", hint=_ELSEWHERE)
    return Survey(tuple(writes), tuple(taken_over))


def marker_of(target: str, write_id: str) -> str:
    """Return the URI of the marker of a write."""
    return files.join(target, MARKER + write_id)


def tombstone_of(target: str, write_id: str) -> str:
    """Return the URI of the tombstone, which records that another write took over."""
    return files.join(target, MARKER + write_id + _TOMBSTONE)


def last_name(uri: str) -> str:
    """Return the last part of a URI."""
    return uri.rpartition("/")[2]


def is_of(name: str, write_id: str) -> bool:
    """Return True if a file was staged by a write, or is a temporary file of its marks."""
    return name.startswith((f"{write_id}-", f".{MARKER}{write_id}-", f".{MARKER}{write_id}{_TOMBSTONE}-"))


def other_write(target: str, marker: bytes) -> TargetExistsError:
    """Return the error for a target that another write is using."""
    by = owner.name_owner(marker)
    return TargetExistsError(
        f"another write to {target} may still be running{f': {by}' if by else ''}",
        hint="wait until it ends or, if it was killed, pass take_over=True (--take-over)",
    )
