"""The state backend of the new job: as the user says, as its configuration says, or as its snapshot shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from statetool.compatibility.releases import may_be_of_2
from statetool.compatibility.states import BACKENDS, Backend
from statetool.entries.form import Layout, StoredState
from statetool.errors import UNREAD
from statetool.formats.metadata.handles import IncrementalHandle
from statetool.formats.rocksdb.options import newest_options, read_options
from statetool.formats.state_meta import KEY_VALUE_V2
from statetool.operations.advice.configuration import Configuration
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory

_CONFIGURED: Final[dict[str, Backend]] = {"hashmap": "heap", "rocksdb": "rocksdb", "forst": "forst"}
_WRITERS: Final[dict[Layout, Backend]] = {"database": "rocksdb", "full": "rocksdb", "heap": "heap"}
_KEY: Final = "state.backend.type"


def backend_of(
    new: Inventory | None, given: str | None, config: Configuration | None, releases: tuple[str, ...]
) -> tuple[Backend, bool]:
    """Return the backend of the new job, and whether it may be ForSt although that says RocksDB.

    It is unknown if the configuration and the snapshot of the new job contradict each other: code can set another one.
    """
    if (named := next((b for b in BACKENDS if b == given), None)) is not None:
        return named, False
    configured = None if config is None else _CONFIGURED.get((config.text(_KEY) or "").lower())
    shown, may_be_forst = _shown_backend(new, releases)
    if configured is None:
        return shown, may_be_forst
    agrees = shown in ("unknown", configured) or (may_be_forst and configured == "forst")
    return (configured if agrees else "unknown"), False


def _shown_backend(new: Inventory | None, releases: tuple[str, ...]) -> tuple[Backend, bool]:
    shown: Backend = "unknown"
    for operator in () if new is None else new.operators.values():
        with suppress(*UNREAD):
            if any(m.backend_type == KEY_VALUE_V2 for _, m in operator.listed_keyed.values()):
                return "forst", False
            if shown == "unknown":
                shown = next((b for s in stored_forms(operator) if (b := _WRITERS.get(s.layout())) is not None), shown)
    return shown, shown == "rocksdb" and may_be_of_2(releases)


def stored_forms(operator: OperatorInventory) -> Iterator[StoredState]:
    """Yield what a backend opens to restore the keyed state of an operator. Changelogs without materialized state have nothing."""
    for stored in operator.keyed.managed:
        yield from stored.below()


def database_options(operators: Iterable[OperatorInventory]) -> dict[str, set[str]]:
    """Return the values of RocksDB's options in the first database of some operators, by name; none without such a file.

    Databases that statetool writes have none.
    """
    for operator in operators:
        for stored in stored_forms(operator):
            handle = stored.place.handle
            if not isinstance(handle, IncrementalHandle):
                continue
            # The sizes of the other files, which an open database knows, would take a listing.
            file = newest_options((*handle.private, *handle.shared))
            found: dict[str, set[str]] = {}
            if file is not None:
                for section in read_options(stored.read_context.stream(file)).values():
                    for name, value in section.items():
                        found.setdefault(name, set()).add(value)
            return found
    return {}
