"""Write new savepoints from DataFrames, or changed copies of existing savepoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statetool.api.edits import Edits
from statetool.api.savepoint import Savepoint, load
from statetool.formats.key_groups import check_max_parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWriter(Edits):
    """A savepoint to be written, either new or based on an existing one; see :class:`statetool.api.edits.Edits`."""

    @classmethod
    def new(cls, *, max_parallelism: int = 128, checkpoint_id: int | None = None) -> SavepointWriter:
        """Start a new savepoint.

        Parameters
        ----------
        max_parallelism
            Max parallelism of operators without an explicit one.
        checkpoint_id
            Checkpoint id of the savepoint, 0 by default. The first checkpoint of the job has the next id. A sink of Iceberg or Paimon
            drops commits with ids that its table already has. Pass at least the highest of these ids (Iceberg:
            ``flink.max-committed-checkpoint-id`` in the table's newest snapshot; Paimon: ``commit_identifier`` in its system table
            ``$snapshots``).

        Raises
        ------
        OptionError
            Flink does not accept the max parallelism, or the id is negative.
        """
        new = cls(max_parallelism=check_max_parallelism(max_parallelism))
        return new if checkpoint_id is None else new.with_checkpoint_id(checkpoint_id)

    @classmethod
    def from_existing(cls, savepoint: Savepoint, *, max_parallelism: int = 128) -> SavepointWriter:
        """Start from a copy of an existing snapshot. ``max_parallelism`` applies to added operators.

        Checkpoint id, master and coordinator state, properties and channel state are carried over, and all state that is not replaced keeps
        its bytes.
        """
        return cls(base=savepoint, max_parallelism=check_max_parallelism(max_parallelism))

    def _load(self, target: str, spark: Any) -> Savepoint:
        savepoint = load(target)
        return savepoint if spark is None else savepoint.with_session(spark)
