"""What a new snapshot is made of, and who does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from statetool.arrow.bootstrap import ElementBootstrap, KeyedBootstrap, StreamJob, Table
from statetool.arrow.gather import SubtaskStream
from statetool.formats.stream import Stream
from statetool.plan.inventory import Inventory
from statetool.write.declare import OperatorChange
from statetool.write.publish import INLINE_BYTES, StagedFile, Staging


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A new snapshot.

    Attributes
    ----------
    base
        The snapshot that it is made from, if any.
    changes
        By uid (or operator id) in the base; others are new operators.
    removed
        Operators of the base that go.
    uids
        New uids by old ones, for what is left of the base.
    reference
        Whether files of the base are named where they are instead of copied.
    """

    base: Inventory | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)
    checkpoint_id: int | None = None
    max_parallelism: int = 128
    reference: bool = False
    inline_bytes: int = INLINE_BYTES


class Runner(Protocol):
    """Runs the work: in this process or on Spark."""

    @property
    def parallelism(self) -> int:
        """Parallelism of operators that do not say theirs."""
        ...

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like."""
        ...

    def streams(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[SubtaskStream]]:
        """Make the streams of each job; subtasks without records may be missing."""
        ...

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        ...
