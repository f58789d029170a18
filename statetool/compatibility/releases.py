"""Releases of Flink that may have written a snapshot: by the version of its metadata, its handles, and the headers of its operator state."""

from __future__ import annotations

from typing import Final

from statetool.errors import UNREAD, UnsupportedError
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.saving.versions import RELEASES, WIDEST, convert_metadata, parse_release
from statetool.snapshot.inventory import Inventory

_ORDER: Final = tuple(RELEASES)
#: The releases that write operator state of proxy version 5, and read no newer one.
FIRST_TO_5: Final = _ORDER[: _ORDER.index("1.17") + 1]
_OF_1: Final = _ORDER[: _ORDER.index("1.20") + 1]


def writers_of(snapshot: Inventory) -> tuple[str, ...]:
    """Return the releases that may have written a snapshot, oldest first.

    statetool writes metadata of version 3, from whatever release the snapshot came.
    """
    version = snapshot.metadata.version
    if version <= WIDEST:
        return _OF_1
    written = tuple(r for r, (v, _) in RELEASES.items() if v == version) or _ORDER[-1:]
    written = tuple(r for r in written if _has_handles(snapshot, r)) or written[-1:]
    before = tuple(r for r in written if r in FIRST_TO_5)
    if 0 < len(before) < len(written) and (proxy := _operator_proxy(snapshot)) is not None:
        return before if proxy <= 5 else written[len(before) :]
    return written


def _has_handles(snapshot: Inventory, release: str) -> bool:
    try:
        convert_metadata(snapshot.metadata, parse_release(release), properties=savepoint_properties())
    except UnsupportedError:
        return False
    return True


def _operator_proxy(snapshot: Inventory) -> int | None:
    """Return the version of the operator state of a snapshot; ``None`` if it has none, or none that can be read."""
    for operator in snapshot.operators.values():
        try:
            for _, header in operator.elements.headers():
                return header.version
        except UNREAD:
            continue
    return None


def shown_releases(releases: tuple[str, ...]) -> str:
    """Return the first and the last of some releases as text."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
