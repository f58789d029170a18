"""Detection of targets inside the snapshot that they are made from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from statetool.errors import OptionError, StatetoolError
from statetool.formats.metadata.handles import FileHandle, SegmentHandle, file_streams
from statetool.formats.metadata.model import handles_of
from statetool.io import files
from statetool.snapshot.locate import METADATA_NAME

if TYPE_CHECKING:
    from statetool.snapshot.inventory import Inventory

_CHECKPOINT: Final = re.compile(r"chk-\d+")
#: Directories next to those of checkpoints, with files that several checkpoints of a job need.
_OF_ALL_CHECKPOINTS: Final = ("shared", "taskowned")
_ALIASES: Final = ("s3a://", "s3n://", "s3p://")


def check_outside(target: str, inventory: Inventory) -> None:
    """Refuse a target that is, or is inside, a directory with files of a snapshot.

    Raises
    ------
    OptionError
        Names the directory.
    """
    for folder in _folders(inventory):
        if _is_inside(target, folder):
            raise OptionError(
                f"the target {target} is inside the source snapshot: {folder}",
                hint="choose a directory outside of it",
            )


def _folders(inventory: Inventory) -> Iterator[str]:
    """Yield the directories that contain files of a snapshot."""
    own, _, name = inventory.metadata_file.rpartition("/")
    if name == METADATA_NAME:
        yield own or "/"
    if _CHECKPOINT.fullmatch(own.rpartition("/")[2]):
        yield from (files.join(files.parent(own), n) for n in _OF_ALL_CHECKPOINTS)
    # One file per directory named by absolute paths is enough to find where the directory is located.
    one_of_each = {
        files.parent(stream.path): stream
        for handle in handles_of(inventory.metadata)
        for stream, _ in file_streams(handle)
        if isinstance(stream, FileHandle | SegmentHandle)
    }
    for stream in one_of_each.values():
        with suppress(StatetoolError):  # missing files are reported by the code that reads them
            place = inventory.resolve(stream)
            if place is not None:
                yield files.parent(place.file)


def _is_inside(target: str, folder: str) -> bool:
    if files.is_local(target) != files.is_local(folder):
        return False
    if not files.is_local(target):
        return f"{_plain(target)}/".startswith(f"{_plain(folder)}/")
    path, real = os.path.realpath(files.canonical(target)), os.path.realpath(files.local_path(folder))
    while True:
        with suppress(OSError):
            if path == real or os.path.samefile(path, real):
                return True
        if path == os.path.dirname(path):
            return False
        path = os.path.dirname(path)


def _plain(uri: str) -> str:
    """Return a URI with its scheme in one spelling."""
    for alias in _ALIASES:
        if uri.startswith(alias):
            uri = f"s3://{uri.removeprefix(alias)}"
    return uri.rstrip("/")


def check_different(first: str, second: str) -> None:
    """Refuse two targets of which one is, or is inside, the other.

    Raises
    ------
    OptionError
    """
    if _is_inside(first, second) or _is_inside(second, first):
        raise OptionError(f"{first} and {second} overlap", hint="choose two separate directories")
