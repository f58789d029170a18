"""Forms of keyed state in a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from statetool.errors import OptionError

if TYPE_CHECKING:
    from statetool.entries.form import Layout as StoredLayout
    from statetool.snapshot.inventory import Inventory
    from statetool.snapshot.operator import OperatorInventory

#: The canonical form, or the native one of a backend.
KeyedForm: TypeAlias = Literal["canonical", "rocksdb", "forst", "heap"]
#: As :data:`KeyedForm`, or for each operator that of its base.
SnapshotForm: TypeAlias = KeyedForm | Literal["same"]
#: The format of a changed copy if the user does not choose one.
DEFAULT_FORMAT: Final = "same"

_NATIVE: Final[Mapping[str | None, KeyedForm]] = {"rocksdb": "rocksdb", "forst": "forst", "heap": "heap"}


def parse_form(style: str, backend: str | None) -> SnapshotForm:
    """Return the form of keyed state for the format of a savepoint and the backend that restores it.

    Raises
    ------
    OptionError
        There is no such form, or statetool does not write it.
    """
    if style == "canonical" and backend is None:
        return "canonical"
    if style == "same":
        if backend is not None:
            raise OptionError(
                f"backend={backend!r} with the format of the base",
                hint="omit the backend, or choose the native format (--format native, format='native')",
            )
        return "same"
    if style == "native" and backend in _NATIVE:
        return _NATIVE[backend]
    if style == "canonical":
        raise OptionError(
            f"backend={backend!r} with the canonical format",
            hint="omit the backend: a canonical savepoint is for RocksDB and the heap backend",
        )
    if style == "native":
        raise OptionError(
            "the native format needs a backend"
            if backend is None
            else f"statetool does not write native savepoints of {backend!r}",
            hint="choose rocksdb, forst or heap (--backend rocksdb, backend='rocksdb'), or the canonical format",
        )
    raise OptionError(f"format {style!r}", hint="choose same, canonical or native")


def layouts_of(operator: OperatorInventory) -> set[StoredLayout]:
    """Return how the managed keyed state of an operator is stored, the empty set if it has none."""
    return {stored.layout() for stored in operator.keyed.managed} - {"empty"}


def layout_of(operator: OperatorInventory) -> StoredLayout:
    """Return how the keyed state of an operator is stored; canonical for forms that are not written.

    Raw timers alone are those of a job with databases, which have no state of the operator.
    """
    layouts = layouts_of(operator)
    if not layouts and operator.keyed.raw_timer_states:
        return "database"
    return layouts.pop() if layouts in ({"heap"}, {"database"}) else "canonical"


@dataclass(frozen=True)
class BaseForms:
    """How all keyed state of a base is stored. It is found once, for any number of operators that are added."""

    base: Inventory | None

    @cached_property
    def layouts(self) -> frozenset[StoredLayout]:
        """The layouts of the operators that have managed keyed state."""
        return frozenset(layout_of(operator) for operator in self._keyed)

    @cached_property
    def are_databases(self) -> bool:
        """Whether there is managed keyed state, and all of it is in databases. Reads no file."""
        return bool(self._keyed) and all(s.database for o in self._keyed for s in o.keyed.managed)

    @cached_property
    def are_on_heap(self) -> bool:
        """Whether some keyed state is in the layout of the heap backend, and none in databases or canonical."""
        managed = [s for o in self._keyed for s in o.keyed.managed]
        return not any(s.database or s.canonical for s in managed) and "heap" in {s.layout() for s in managed}

    @cached_property
    def are_of_forst(self) -> bool:
        """Whether all keyed state is in databases, and some of it is asynchronous, as only a job on ForSt has it."""
        from statetool.formats.state_meta import KEY_VALUE_V2

        metas = (meta for o in self._keyed for _, meta in o.keyed_states.values())
        return self.are_databases and any(meta.backend_type == KEY_VALUE_V2 for meta in metas)

    @cached_property
    def _keyed(self) -> Sequence[OperatorInventory]:
        return [] if self.base is None else [o for o in self.base.operators.values() if o.keyed.managed]
