"""What a new snapshot is made of, and who does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from statetool.saving.publish import INLINE_BYTES, StagedFile, Staging

if TYPE_CHECKING:
    from statetool.columns.pieces import Bytes, Encoded
    from statetool.formats.keyed.entries import EntryBatch, Int64s
    from statetool.formats.keyed.header import KeyedHeader
    from statetool.formats.state_meta import StateMeta
    from statetool.formats.stream import Stream
    from statetool.hashing.formulas import HashFormula
    from statetool.saving.bootstrap import ElementBootstrap, ElementRecipe, KeyedBootstrap, KeyedRecipe, Table
    from statetool.saving.streams.elements import ElementStreams
    from statetool.saving.streams.keyed import KeptEntries, KeyedStreams
    from statetool.saving.streams.output import NewStream
    from statetool.snapshot.inventory import Inventory
    from statetool.types.declared import TypeContext

    Streams: TypeAlias = KeyedStreams | ElementStreams


class StateConversion(Protocol):
    """Gives the values of a kept state another type; picklable."""

    @property
    def meta(self) -> StateMeta:
        """The state as it is described from then on, under its old name."""
        ...

    @property
    def types(self) -> TypeContext:
        """What is known of the new types beside their snapshots."""
        ...

    def entries(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Convert entries of this state alone, of a source with this header; key, namespace and key group stay."""
        ...

    def elements(self, data: Bytes, starts: Int64s, ends: Int64s) -> Encoded:
        """Convert elements of operator state (the one element of broadcast state)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """What becomes of one operator, or what a new one is made of.

    Attributes
    ----------
    bootstraps
        New state (:mod:`statetool.saving.bootstrap`); states of an operator of the base that have the same names are replaced.
    max_parallelism, parallelism
        ``None``: as in the base. Where they are others, keys move to other key groups, and key groups to other subtasks.
    new
        Whether it is known that the base has no such operator.
    formula
        How keys hash that move, where their own serializer does not know.
    without, renames
        States of an operator of the base that go, and new names by old ones.
    canonical
        Whether keyed state is written anew though nothing of it changes.
    elements
        List and union states of the base whose elements are others, as the bytes that they have, by subtask.
    coordinator
        The coordinator's state, if it is another one; empty: it has none any more.
    conversions
        States of the base whose values get another type, by their names in it.
    """

    bootstraps: tuple[Any, ...] = ()
    max_parallelism: int | None = None
    parallelism: int | None = None
    new: bool = False
    formula: HashFormula | None = None
    without: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    canonical: bool = False
    elements: Mapping[str, Mapping[int, tuple[bytes, ...]]] = field(default_factory=dict)
    coordinator: bytes | None = None
    conversions: Mapping[str, StateConversion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A new snapshot.

    Attributes
    ----------
    base
        The snapshot that it is made from, if any; what is not named below is carried over byte for byte.
    changes
        By uid (or operator id) in the base; others are new operators.
    removed
        Operators of the base that go.
    uids
        New uids by old ones, for what is left of the base.
    checkpoint_id
        ``None``: that of the base, or 0.
    max_parallelism
        Of new operators that do not say theirs.
    reference
        Whether files of the base are named where they are instead of copied.
    inline_bytes
        Streams with fewer bytes go into the metadata.
    """

    base: Inventory | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)
    checkpoint_id: int | None = None
    max_parallelism: int = 128
    reference: bool = False
    inline_bytes: int = INLINE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJob:
    """The keyed state, or the operator state, of one operator: its new streams, and the entries that are dealt to them.

    Attributes
    ----------
    tables
        What the user gave, with the recipe by which its rows become entries.
    kept
        Entries of the base.
    """

    streams: Streams
    tables: tuple[tuple[Any, KeyedRecipe | ElementRecipe], ...] = ()
    kept: tuple[KeptEntries, ...] = ()


class Runner(Protocol):
    """Does the work: in this process or on Spark."""

    @property
    def parallelism(self) -> int:
        """Parallelism of operators that do not say theirs."""
        ...

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like."""
        ...

    def run(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of each job."""
        ...

    def copy_all(self, streams: Sequence[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        ...
