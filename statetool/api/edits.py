"""Edits of an existing or new savepoint: collect them step by step, preview them, and write the result.

They run on Spark if a DataFrame or a session is involved, otherwise in this process on ``pyarrow.Table`` s.
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
    """A savepoint to be written. Each method returns a new object, and only :meth:`write` and :meth:`preview` read or write data.

    Refer to operators of an existing savepoint by their old uid, operator id, name or id prefix, even after :meth:`change_uid`.
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
        """Add an operator, or add state to an existing one and replace its states of the same names.

        To replace an operator as a whole, remove it as well. A typo in the uid would add a new operator instead of changing the existing
        one. Therefore :meth:`write` refuses a new uid that resembles an existing one, or whose state is ``like=`` an existing operator,
        unless ``new`` is set.

        Parameters
        ----------
        uid
            The job's ``.uid("...")``, or the 32 hex digits of the operator id for jobs without uids, such as SQL jobs.
        parallelism
            Number of subtasks that a new operator's state is written for. Flink can restore it with any other parallelism. Defaults to
            Spark's parallelism, up to the max parallelism.
        new
            The operator is not in the existing savepoint.

        Raises
        ------
        OptionError
            The operator was already given, or a number is out of bounds.
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
        """Remove an operator of the existing savepoint with all its state."""
        return replace(self, removed=self.removed | {self._existing(uid)})

    def remove_state(self, uid: str, *names: str) -> Self:
        """Remove states of an operator (timers by the name of their queue). All other states keep their bytes."""
        uid = self._existing(uid)
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, without=change.without | set(names)))

    def rename_state(self, uid: str, old: str, new: str) -> Self:
        """Rename a state of an operator. Everything but the name keeps its bytes."""
        uid = self._existing(uid)
        change = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(change, renames={**change.renames, old: new}))

    def change_uid(self, old: str, new: str) -> Self:
        """Give an operator another uid (or, by 32 hex digits, another id). All changes apply at once, so swaps and chains work."""
        return replace(self, uids={**self.uids, self._existing(old): new})

    def with_checkpoint_id(self, checkpoint_id: int) -> Self:
        """Set the checkpoint id. Defaults to that of the existing savepoint, or 0 for new ones, as in Flink's ``SavepointWriter``.

        A sink of Iceberg or Paimon drops commits if the id is lower than one it has already committed:
        see :meth:`statetool.SavepointWriter.new`.
        """
        if checkpoint_id < 0:
            raise OptionError(f"checkpoint id {checkpoint_id} is negative")
        return replace(self, checkpoint_id=checkpoint_id)

    def transform(self, uid: str, change: Transformation, **options: Unpack[TransformOptions]) -> Self:
        """Change state values of an existing operator by SQL expressions or by a function. Everything else keeps its bytes.

        Parameters
        ----------
        change
            Either ``{state: expression}`` over the columns of ``op.keyed_state()``, which needs Spark. Values with a TTL keep their last
            access (in lists and maps they are structs, as with ``ttl="raw"``). An expression that sets a timestamp ``t`` with nanoseconds
            needs a second one for these: ``{"t": ..., "t_nanos": "0"}``.
            Or a function from the table ``op.keyed_state(ttl="raw", key_group=True)`` to a table whose columns replace the states of their
            names. New names are new states. Keys missing from the result lose these states. Tables are Spark DataFrames, or
            ``pyarrow.Table`` s if the savepoint was opened without a session.
        states
            States passed to a function, by default all. States that it does not return stay.
        where
            A SQL condition. Values of other keys are unchanged, so the type of the expression must hold them too.
        types
            Declared types (:func:`statetool.value`, ...) of states. By default a state whose column keeps its type keeps its serializer,
            and any other gets one that follows from the column. The kind of a state never changes.
        decimals
            Form of Java's big numbers, as in a read. ``decimal`` (default): each BigDecimal keeps its scale, stored in ``<name>_scale``,
            which increases if the new value needs more fraction digits. ``string``: text, written with exactly its digits, for numbers
            of more than 38 digits.

        Raises
        ------
        UnknownNameError
            The operator has no such state without a namespace.
        OptionError
            The result has no key or a type that no state can have, or the change does not set nanoseconds.
        MissingDependencyError
            Expressions were given without a session.
        """
        from statetool.api.transform import transformed

        if self.base is None:
            raise OptionError("there is no savepoint whose values could be changed", hint="from_existing(savepoint)")
        uid = self._existing(uid)
        bootstraps = transformed(self.base[uid], self.base.spark, change, **options)
        old = self.changes.get(uid, OperatorChange())
        return self._changed(uid, replace(old, bootstraps=(*old.bootstraps, *bootstraps)))

    def _existing(self, name: str) -> str:
        """Return the uid or id of an operator of the existing savepoint by uid, id, name or id prefix; other names stay."""
        return name if self.base is None else self.base.inventory.existing_name(name)

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
            A new directory: a local path or any URI that fsspec can write to.
        flink_version
            Flink release that will read it, such as ``"2.3"``. By default every release from 1.13 reads a new savepoint (which stores
            only hashes of uids), and a changed one has the metadata version of the existing one.
        reference_files
            Reference files of unchanged operators instead of copying them. The existing savepoint must then be retained.
        inline_bytes
            Streams with fewer bytes are stored in ``_metadata``, as with Flink's ``execution.checkpointing.data-inline-threshold``.
        take_over
            Take the target over from another write that may still run, as in :func:`statetool.rescale`.

        Raises
        ------
        TargetExistsError
            The target exists, or another write to it may be going on.
        OptionError, UnknownNameError, UnsupportedError
            The edits cannot be written. Nothing was written.
        EncodeError
            A value does not fit its type, or a key occurs twice.

        Warns
        -----
        UserWarning
            An operator of a sink commits by checkpoint id, and the savepoint's id is 0 or lower than the ids in its state.
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
        """Return the differences, as :meth:`statetool.Savepoint.diff` does, without writing the savepoint.

        Only changed operators are written, into a folder that is removed when the comparison is garbage collected.

        Parameters
        ----------
        folder
            Parent of this folder; on a cluster, one that all machines can access. Defaults to the system's temporary directory.

        Raises
        ------
        OptionError, UnknownNameError, UnsupportedError, EncodeError
            As for :meth:`write`.
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
        """Raise an error on a changed parallelism or max parallelism of an operator of the existing savepoint."""
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
                        f"operator {old.inventory.label.display!r} has {number} {existing}, not {wanted}",
                        hint="statetool.rescale changes it; leave it out here",
                    )

    def _spark(self) -> Any:
        """Return the session of the DataFrames, or else that of the existing savepoint, or ``None``."""
        tables = [t for c in self.changes.values() for b in c.bootstraps for t in (b.data, getattr(b, "timers", None))]
        sessions = [t.sparkSession for t in tables if t is not None and hasattr(t, "sparkSession")]
        return next(iter(sessions), None if self.base is None else self.base.spark)

    def _opened(self, target: str, spark: Any) -> Savepoint:
        """Open the written savepoint, with names for operators whose uid was given but is not stored."""
        savepoint = self._load(target, spark)
        names = {*self.changes, *self.uids.values(), *(() if self.base is None else self.base)}
        ids = {o.operator_id for o in savepoint.operators.values() if o.uid is None}
        return savepoint.with_uids(sorted(n for n in names if operator_id_for_uid(n) in ids))

    def _load(self, target: str, spark: Any) -> Savepoint:
        """Open the written savepoint, with the type declarations of the base."""
        assert self.base is not None
        base = self.base.inventory
        types = replace(base.types, kryo=None)
        return type(self.base)(Inventory(target, types=types, columns_from_plan=base.columns_from_plan), spark)
