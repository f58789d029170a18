"""Write savepoints: new ones from DataFrames, changed ones from existing ones.

Runs on Spark where a DataFrame or a session is involved, else in this process on ``pyarrow.Table`` s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from statetool.api import Savepoint, load
from statetool.errors import OptionError
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.operator_id import operator_id_for_uid
from statetool.write.declare import OperatorChange
from statetool.write.publish import INLINE_BYTES
from statetool.write.versions import WIDEST, parse_release

if TYPE_CHECKING:
    from statetool.arrow.bootstrap import ElementBootstrap, KeyedBootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWriter:
    """A savepoint to be written; each method returns a new writer, and nothing is read or written before :meth:`write`.

    Operators of an existing savepoint are named as there (by uid or operator id), also where :meth:`change_uid` gives them
    another name.
    """

    base: Savepoint | None = None
    max_parallelism: int = 128
    checkpoint_id: int | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)

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

    def with_operator(
        self,
        uid: str,
        *bootstraps: KeyedBootstrap | ElementBootstrap,
        max_parallelism: int | None = None,
        parallelism: int | None = None,
    ) -> SavepointWriter:
        """Add an operator, or add state to one of the existing savepoint, whose states of the same names it replaces.

        To replace an operator as a whole, remove it as well.

        Parameters
        ----------
        uid
            As in the job's ``.uid("...")``; or the 32 hex digits of the operator's id, for jobs that give none, as SQL jobs.
        parallelism
            Number of subtasks that a new operator's state is written for; Flink can restore it with any other. By default that
            of Spark, at most the max parallelism.

        Raises
        ------
        OptionError
            The operator was named before, or a number is out of bounds.
        """
        change = self.changes.get(uid, OperatorChange())
        if change.bootstraps:
            raise OptionError(
                f"operator {uid!r} is named twice", hint="give all of its state in one with_operator(...)"
            )
        if max_parallelism is not None:
            check_max_parallelism(max_parallelism, parallelism or 1)
        return self._changed(
            uid, replace(change, bootstraps=bootstraps, max_parallelism=max_parallelism, parallelism=parallelism)
        )

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave out an operator of the existing savepoint, with all of its state."""
        return replace(self, removed=self.removed | {uid})

    def remove_state(self, uid: str, *names: str) -> SavepointWriter:
        """Leave out states (timers by the name of their queue) of an operator; the bytes of the others stay."""
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, without=change.without | set(names)))

    def rename_state(self, uid: str, old: str, new: str) -> SavepointWriter:
        """Give a state of an operator another name; all bytes but those of its name stay."""
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, renames={**change.renames, old: new}))

    def change_uid(self, old: str, new: str) -> SavepointWriter:
        """Give an operator another uid (or, by 32 hex digits, another id); swaps and chains come out as they are written."""
        return replace(self, uids={**self.uids, old: new})

    def with_checkpoint_id(self, checkpoint_id: int) -> SavepointWriter:
        """Set the checkpoint id; by default that of the existing savepoint, 0 in new ones, as Flink's own writer sets it."""
        if checkpoint_id < 0:
            raise OptionError(f"checkpoint id {checkpoint_id} is negative")
        return replace(self, checkpoint_id=checkpoint_id)

    def _changed(self, uid: str, change: OperatorChange) -> SavepointWriter:
        return replace(self, changes={**self.changes, uid: change})

    def write(
        self,
        target: str,
        *,
        flink_version: str | None = None,
        reference_files: bool = False,
        inline_bytes: int = INLINE_BYTES,
    ) -> Savepoint:
        """Write the savepoint and open it.

        Parameters
        ----------
        target
            Directory that is not there yet: a local path or any URI that fsspec can write to.
        flink_version
            Release that is to read it, as in ``"2.3"``. By default a new savepoint is what every release from 1.13 reads (it does
            not store uids, only their hashes), and a changed one has the metadata version of the existing one.
        reference_files
            Name files of unchanged operators where they are instead of copying them; the existing savepoint must then stay.
        inline_bytes
            Streams with fewer bytes go into ``_metadata``, as Flink's ``execution.checkpointing.data-inline-threshold`` says.

        Raises
        ------
        TargetExistsError
            The target is there.
        OptionError, UnknownNameError, UnsupportedError
            What was asked for cannot be written; nothing was.
        EncodeError
            A value that its type cannot hold, or a key that comes twice.
        """
        from statetool.ops.compose import write_composition
        from statetool.ops.composition import Composition

        default = WIDEST if self.base is None else self.base.metadata_version
        release = parse_release(flink_version, default=default)
        runner = self._runner()
        wanted = Composition(
            base=None if self.base is None else self.base.inventory,
            changes=self.changes,
            removed=self.removed,
            uids=self.uids,
            checkpoint_id=self.checkpoint_id,
            max_parallelism=self.max_parallelism,
            reference=reference_files,
            inline_bytes=inline_bytes,
        )
        write_composition(wanted, target, release, runner)
        return self._opened(target, runner.spark)

    def _runner(self) -> Any:
        """Return what does the work: Spark where a DataFrame or the session of the existing savepoint is there."""
        from statetool.ops.kept import kept_records

        tables = [t for c in self.changes.values() for b in c.bootstraps for t in (b.data, getattr(b, "timers", None))]
        sessions = [t.sparkSession for t in tables if t is not None and hasattr(t, "sparkSession")]
        if self.base is not None and self.base.spark is not None:
            sessions.append(self.base.spark)
        if sessions:
            from statetool.spark.writer import SparkRunner

            return SparkRunner(sessions[0], kept_records)
        from statetool.arrow.local_write import LocalRunner

        return LocalRunner(kept_records)

    def _opened(self, target: str, spark: Any) -> Savepoint:
        """Open what was written, with names for operators whose uid was given but is not stored."""
        names = {*self.changes, *self.uids.values(), *(() if self.base is None else self.base)}
        savepoint = load(target, spark)
        ids = {o.operator_id for o in savepoint.operators.values() if o.uid is None}
        return savepoint.with_uids(sorted(n for n in names if operator_id_for_uid(n) in ids))
