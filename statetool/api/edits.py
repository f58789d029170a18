"""Edits of a savepoint, or a new one: collected step by step, previewed, written.

They run on Spark where a DataFrame or a session is involved, else in this process on ``pyarrow.Table`` s.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from statetool.errors import OptionError
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.operator_id import operator_id_for_uid
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.publish import INLINE_BYTES
from statetool.saving.versions import WIDEST, parse_release
from statetool.snapshot.inventory import Inventory

if TYPE_CHECKING:
    from typing_extensions import Self

    from statetool.api.inspect import Comparison
    from statetool.api.savepoint import Savepoint
    from statetool.api.transform import Transformation, TransformOptions
    from statetool.saving.bootstrap import ElementBootstrap, KeyedBootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """A savepoint to be written; each method returns a new one, and nothing is read or written before :meth:`write` or :meth:`preview`.

    Operators of an existing savepoint are named as there (by uid or operator id), also where :meth:`change_uid` gives them
    another name.
    """

    base: Savepoint | None = None
    max_parallelism: int = 128
    checkpoint_id: int | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)

    def with_operator(
        self,
        uid: str,
        *bootstraps: KeyedBootstrap | ElementBootstrap,
        max_parallelism: int | None = None,
        parallelism: int | None = None,
        new: bool = False,
    ) -> Self:
        """Add an operator, or add state to one of the existing savepoint, whose states of the same names it replaces.

        To replace an operator as a whole, remove it as well. A slip in the uid would add an operator and leave the real one as it
        is; therefore :meth:`write` refuses a new uid that is near one of the existing savepoint, or whose state is ``like=`` an
        operator of it, unless ``new`` is set.

        Parameters
        ----------
        uid
            As in the job's ``.uid("...")``; or the 32 hex digits of the operator's id, for jobs that give none, as SQL jobs.
        parallelism
            Number of subtasks that a new operator's state is written for; Flink can restore it with any other. By default that
            of Spark, at most the max parallelism.
        new
            The operator is not in the existing savepoint.

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
            uid,
            replace(change, bootstraps=bootstraps, max_parallelism=max_parallelism, parallelism=parallelism, new=new),
        )

    def remove_operator(self, uid: str) -> Self:
        """Leave out an operator of the existing savepoint, with all of its state."""
        return replace(self, removed=self.removed | {uid})

    def remove_state(self, uid: str, *names: str) -> Self:
        """Leave out states (timers by the name of their queue) of an operator; the bytes of the others stay."""
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, without=change.without | set(names)))

    def rename_state(self, uid: str, old: str, new: str) -> Self:
        """Give a state of an operator another name; all bytes but those of its name stay."""
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, renames={**change.renames, old: new}))

    def change_uid(self, old: str, new: str) -> Self:
        """Give an operator another uid (or, by 32 hex digits, another id); swaps and chains come out as they are written."""
        return replace(self, uids={**self.uids, old: new})

    def with_checkpoint_id(self, checkpoint_id: int) -> Self:
        """Set the checkpoint id; by default that of the existing savepoint, 0 in new ones, as Flink's own writer sets it.

        An id below those that a sink of Iceberg or Paimon has committed makes it drop commits: see :meth:`statetool.SavepointWriter.new`.
        """
        if checkpoint_id < 0:
            raise OptionError(f"checkpoint id {checkpoint_id} is negative")
        return replace(self, checkpoint_id=checkpoint_id)

    def transform(self, uid: str, change: Transformation, **options: Unpack[TransformOptions]) -> Self:
        """Change values of states of an operator of the existing savepoint, by SQL expressions or by a function; the rest stays byte for byte.

        Parameters
        ----------
        change
            ``{state: expression}`` over the columns of ``op.keyed_state()``; the last access of values with a time to live stays (in lists
            and maps those are structs, as ``ttl="raw"`` shows them). Or a function of the table ``op.keyed_state(ttl="raw", key_group=True)``
            to one whose columns replace the states of their names (new names are new states; keys that it leaves out lose them): a Spark
            DataFrame, of a savepoint that was opened without a session a ``pyarrow.Table``. Expressions need Spark. One that sets a
            timestamp ``t`` with nanoseconds needs another that sets these: ``{"t": ..., "t_nanos": "0"}``.
        states
            States that a function is given, by default all; what it does not return stays.
        where
            A SQL condition: values of other keys stay as they are, so that the type of the expression has to hold them too.
        types
            Declared types (:func:`statetool.value`, ...) of states; by default a state whose column keeps its type keeps its serializer,
            and any other gets one that follows from the column. Its kind stays.
        decimals
            How Java's big numbers are given, as in a read. ``decimal`` (default): each BigDecimal keeps its scale, which ``<name>_scale`` has,
            and gets more digits behind the point where its new value needs them. ``string``: as text, which is written with exactly its
            digits, for numbers of more than 38 digits.

        Raises
        ------
        UnknownNameError
            The operator has no such state without a namespace.
        OptionError
            The result has no key, or a type that no state can have; nothing says what becomes of nanoseconds.
        MissingDependencyError
            Expressions without a session.
        """
        from statetool.api.transform import transformed

        if self.base is None:
            raise OptionError("there is no savepoint whose values could be changed", hint="from_existing(savepoint)")
        bootstraps = transformed(self.base[uid], self.base.spark, change, **options)
        old = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(old, bootstraps=(*old.bootstraps, *bootstraps)))

    def _changed(self, uid: str, change: OperatorChange) -> Self:
        return replace(self, changes={**self.changes, uid: change})

    def write(
        self,
        target: str,
        *,
        flink_version: str | None = None,
        reference_files: bool = False,
        inline_bytes: int = INLINE_BYTES,
        take_over: bool = False,
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
        take_over
            Take the target over from another write that may still run, as in :func:`statetool.rescale`.

        Raises
        ------
        TargetExistsError
            The target exists, or another write to it may be going on.
        OptionError, UnknownNameError, UnsupportedError
            What was asked for cannot be written; nothing was written.
        EncodeError
            A value that its type cannot hold, or a key that comes twice.

        Warns
        -----
        UserWarning
            An operator of a sink commits by checkpoint id, and the savepoint's id is below those that its state knows, or is 0.
        """
        from statetool.api.execution import runner_of
        from statetool.saving.compose import write_composition

        default = WIDEST if self.base is None else self.base.metadata_version
        release = parse_release(flink_version, default=default)
        self._check_numbers()
        spark = self._spark()
        composition = self._composition(reference_files, inline_bytes)
        write_composition(composition, target, release, runner_of(spark), take_over=take_over)
        return self._opened(target, spark)

    def preview(self, folder: str | None = None) -> Comparison:
        """Show what differs, as :meth:`statetool.Savepoint.diff` does, without writing the savepoint.

        Only operators that change are written, into a folder that is removed when the comparison is forgotten.

        Parameters
        ----------
        folder
            Where to put it, on a cluster one that all of its machines see; by default the system's own for temporary files.

        Raises
        ------
        OptionError, UnknownNameError, UnsupportedError, EncodeError
            As :meth:`write`.
        """
        if self.base is None:
            raise OptionError("a new savepoint differs from nothing", hint="write it")
        work = tempfile.mkdtemp(prefix="statetool-preview-", dir=folder)
        try:
            changed = replace(self, uids={}).write(f"{work}/savepoint", reference_files=True)
            names = [*self.changes, *self.removed]
            comparison = self.base.diff(changed, operators=names or None)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        weakref.finalize(comparison, shutil.rmtree, work, ignore_errors=True)
        return comparison

    def _composition(self, reference: bool, inline_bytes: int) -> Composition:
        return Composition(
            base=None if self.base is None else self.base.inventory,
            changes=self.changes,
            removed=self.removed,
            uids=self.uids,
            checkpoint_id=self.checkpoint_id,
            max_parallelism=self.max_parallelism,
            reference=reference,
            inline_bytes=inline_bytes,
        )

    def _check_numbers(self) -> None:
        """Refuse another parallelism or max parallelism for operators of the existing savepoint."""
        if self.base is None:
            return
        removed = {self.base[name].operator_id for name in self.removed if name in self.base}
        for uid, change in self.changes.items():
            if uid not in self.base or self.base[uid].operator_id in removed:
                continue
            old = self.base[uid]
            for number, wanted, existing in (
                ("max parallelism", change.max_parallelism, old.max_parallelism),
                ("parallelism", change.parallelism, old.parallelism),
            ):
                if wanted is not None and wanted != existing:
                    raise OptionError(
                        f"operator {old.inventory.label!r} has {number} {existing}, not {wanted}",
                        hint="statetool.rescale changes it; leave it out here",
                    )

    def _spark(self) -> Any:
        """Return the session of the DataFrames, or else that of the existing savepoint, if there is one."""
        tables = [t for c in self.changes.values() for b in c.bootstraps for t in (b.data, getattr(b, "timers", None))]
        sessions = [t.sparkSession for t in tables if t is not None and hasattr(t, "sparkSession")]
        return next(iter(sessions), None if self.base is None else self.base.spark)

    def _opened(self, target: str, spark: Any) -> Savepoint:
        """Open what was written, with names for operators whose uid was given but is not stored."""
        savepoint = self._load(target, spark)
        names = {*self.changes, *self.uids.values(), *(() if self.base is None else self.base)}
        ids = {o.operator_id for o in savepoint.operators.values() if o.uid is None}
        return savepoint.with_uids(sorted(n for n in names if operator_id_for_uid(n) in ids))

    def _load(self, target: str, spark: Any) -> Savepoint:
        """Open what was written, with the type declarations of the base."""
        assert self.base is not None
        return type(self.base)(Inventory(target, types=replace(self.base.inventory.types, kryo=None)), spark)
