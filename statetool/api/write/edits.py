"""The part of :class:`statetool.SavepointWriter` that an operator uses. The writer imports operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from typing_extensions import Self

from statetool.tables.keys.text import Key
from statetool.types.options import DecimalsMode

if TYPE_CHECKING:
    from statetool.java.declaring.states import StateType

#: A change of state values: SQL expressions by state, or a function from a table to a table.
Transformation: TypeAlias = "Mapping[str, str] | Callable[[Any], Any]"


class Edits(Protocol):
    """The part of :class:`statetool.SavepointWriter` that an operator uses."""

    def erase(
        self, uid: str, keys: Iterable[Key] | None = None, *, where: str | None = None, allow_missing: bool = False
    ) -> Self:
        """Return the edits without the state of some keys."""
        ...

    def keep(
        self,
        uid: str,
        keys: Iterable[Key] | None = None,
        *,
        where: str | None = None,
        allow_missing: bool = False,
        allow_empty: bool = False,
    ) -> Self:
        """Return the edits with the state of some keys only."""
        ...

    def transform(
        self,
        uid: str,
        change: Transformation,
        *,
        states: Sequence[str] | None = None,
        where: str | None = None,
        types: Mapping[str, StateType] | None = None,
        decimals: DecimalsMode = "decimal",
        in_batches: bool = False,
    ) -> Self:
        """Return the edits with a change of state values."""
        ...
