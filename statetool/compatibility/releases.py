"""Releases of Flink that may have written a snapshot: by its metadata, its handles, and the headers of its state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from statetool.errors import UNREAD, UnsupportedError
from statetool.formats.metadata.model import NEWEST_RELEASED
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.saving.available import check_available
from statetool.saving.versions import READS, RELEASES, WIDEST, convert_metadata, parse_release
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory

_ORDER: Final = tuple(READS)
#: The releases that write operator state of proxy version 5, and read no newer one.
FIRST_TO_5: Final = _ORDER[: _ORDER.index("1.17") + 1]
#: The first releases of backends that migrate values whose time to live is switched on or off. In 2.0, Flink refuses none and reads others.
_TTL_SWITCHES: Final = {"rocksdb": (2, 1), "heap": (2, 2)}


def writers_of(snapshot: Inventory) -> tuple[str, ...]:
    """Return the releases that a job may have whose snapshot this is, oldest first.

    New savepoints by statetool have metadata of version 3 and operator state of version 5, which all releases read.
    """
    version = snapshot.metadata.version
    known = READS if version > NEWEST_RELEASED else RELEASES
    written = tuple(r for r, (v, _) in known.items() if version in (v, WIDEST)) or tuple(known)[-1:]
    written = tuple(r for r in written if _has_handles(snapshot, r)) or written[-1:]
    before = tuple(r for r in written if r in FIRST_TO_5)
    if version > WIDEST and 0 < len(before) < len(written) and (proxy := _operator_proxy(snapshot)) is not None:
        written = before if proxy <= 5 else written[len(before) :]
    for operator in snapshot.operators.values():
        if len(written) > 1:
            written = tuple(r for r in written if _has_classes(operator, r)) or written
    return written


def _has_classes(operator: OperatorInventory, release: str) -> bool:
    metas = (*(m for _, m in operator.listed_keyed.values()), *operator.listed_elements.values())
    try:
        check_available(None, metas, parse_release(release), kryo=False)
    except UnsupportedError:
        return False
    return True


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


def kryo_of(releases: tuple[str, ...]) -> Literal[2, 5] | None:
    """Return the Kryo of some releases; ``None`` if they have different ones, or none is known."""
    found: set[Literal[2, 5]] = {2 if r.startswith("1.") else 5 for r in releases}
    return found.pop() if len(found) == 1 else None


def ttl_may_switch(releases: tuple[str, ...], backends: Iterable[str]) -> bool | None:
    """Return True if some releases migrate values whose time to live is switched on or off, in some backends.

    ``None`` if only some of them do, no release is known, or it was not tried.
    """
    found: set[bool | None] = set()
    for backend in backends:
        for release in releases:
            known = tuple(map(int, release.split(".")[:2]))
            first = _TTL_SWITCHES.get(backend)  # ForSt was not tried
            found.add(known >= first if first is not None else None if known >= (2, 0) else False)
    return found.pop() if len(found) == 1 else None


def may_be_of_2(releases: tuple[str, ...]) -> bool:
    """Return True if Flink 2.x is one of the releases, or none is known."""
    return not releases or releases[-1].startswith("2.")


def may_not_claim(releases: tuple[str, ...]) -> bool:
    """Return True if one of the releases has claim modes, of which NO_CLAIM is the default, or none is known. Flink 1.15 brought them."""
    return not releases or tuple(map(int, releases[-1].split("."))) >= (1, 15)


def shown_releases(releases: tuple[str, ...]) -> str:
    """Return the first and the last of some releases as text."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
