"""Write savepoints: new ones from DataFrames, changed ones from existing ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statetool.api import Savepoint, load
from statetool.edits import Edits
from statetool.formats.key_groups import check_max_parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWriter(Edits):
    """A savepoint to be written, see :class:`statetool.edits.Edits`; it begins with nothing, or with all that an existing one has."""

    @classmethod
    def new(cls, *, max_parallelism: int = 128) -> SavepointWriter:
        """Start a new savepoint; ``max_parallelism`` is that of operators that do not say theirs.

        Raises
        ------
        OptionError
            Flink does not accept it.
        """
        return cls(max_parallelism=check_max_parallelism(max_parallelism))

    @classmethod
    def from_existing(cls, savepoint: Savepoint, *, max_parallelism: int = 128) -> SavepointWriter:
        """Start with all that an existing snapshot has; ``max_parallelism`` is that of operators that are added.

        Checkpoint id, master and coordinator state, properties and channel state are carried over; so are the bytes of all
        state that is not replaced.
        """
        return cls(base=savepoint, max_parallelism=check_max_parallelism(max_parallelism))

    def _load(self, target: str, spark: Any) -> Savepoint:
        savepoint = load(target)
        return savepoint if spark is None else savepoint.with_session(spark)
