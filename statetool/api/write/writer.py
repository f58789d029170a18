"""New savepoints from tables, and changed copies of existing savepoints."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.comparison import Comparison
from statetool.api.execution import Execution
from statetool.api.operator import Operator, Transformation
from statetool.api.operator_tables import Access
from statetool.api.savepoint import Savepoint
from statetool.api.write.bootstrap import KeyedState, OperatorState, session_of
from statetool.errors import OptionError, UnknownNameError, several, suggest, warn
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.operator_id import operator_id_for_uid
from statetool.java.declaring.classes import declared_classes
from statetool.java.declaring.states import StateType
from statetool.saving.bootstrap.datasets import TableInBatches
from statetool.saving.compose import check_composition, write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.forms import DEFAULT_FORMAT, parse_form
from statetool.saving.plan_checks import warn_of_assumed_timers
from statetool.saving.publish import INLINE_BYTES
from statetool.saving.streams.filters import FilterChain
from statetool.saving.verbs.key_choice import Allowed, KeyChoice, check_found
from statetool.saving.verbs.tally import tally
from statetool.saving.verbs.transform import bootstrap_changes, states_without_namespace
from statetool.saving.versions import WIDEST, Target, parse_release, warn_if_unreleased
from statetool.snapshot.inventory import Inventory
from statetool.tables.keys.text import Key
from statetool.tables.request import ScanRequest
from statetool.types.declared import TypeContext
from statetool.types.options import DecimalsMode, whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWriter:
    """A savepoint to be written, either new (:meth:`new`) or a changed copy of an existing one (:meth:`from_existing`).

    Each method returns a new object. Only :meth:`erase`, :meth:`keep`, :meth:`transform` by a function or with a condition, :meth:`preview` and :meth:`write`
    read data, and only the last two write. They run on Spark if a DataFrame or a session is involved, otherwise in this process on ``pyarrow.Table`` s and datasets.

    Refer to operators of an existing savepoint by their old uid, operator id, name or id prefix, even after :meth:`change_uid`.
    """

    base: Savepoint | None = None
    max_parallelism: int = 128
    checkpoint_id: int | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)
    spark: SparkSession | None = None

    @classmethod
    def new(
        cls, *, max_parallelism: int = 128, checkpoint_id: int | None = None, spark: SparkSession | None = None
    ) -> SavepointWriter:
        """Start a new savepoint.

        Parameters
        ----------
        max_parallelism
            Max parallelism of operators without an explicit one.
        checkpoint_id
            Checkpoint id of the savepoint, 0 by default. The first checkpoint of the job has the next id. A sink of Iceberg drops
            commits with ids that its table already has. Pass at least the highest of these ids
            (``flink.max-committed-checkpoint-id`` in the table's newest snapshot).
        spark
            Session that writes tables without a session of their own: datasets of Arrow, and large Arrow tables.

        Raises
        ------
        OptionError
            Flink does not accept the max parallelism, or the id is negative.
        """
        new = cls(max_parallelism=check_max_parallelism(max_parallelism), spark=spark)
        return new if checkpoint_id is None else new.with_checkpoint_id(checkpoint_id)

    @classmethod
    def from_existing(cls, savepoint: Savepoint, *, max_parallelism: int = 128) -> SavepointWriter:
        """Start from a copy of an existing snapshot. ``max_parallelism`` applies to added operators.

        Checkpoint id, master and coordinator state, properties and channel state are carried over, and all state that is not replaced keeps
        its bytes.
        """
        return cls(base=savepoint, max_parallelism=check_max_parallelism(max_parallelism))

    def with_operator(
        self,
        uid: str,
        *states: KeyedState | OperatorState | Operator,
        max_parallelism: int | None = None,
        parallelism: int | None = None,
        new: bool | None = None,
    ) -> SavepointWriter:
        """Add an operator, or add state to an existing one and replace its states of the same names.

        To replace an operator as a whole, remove it as well.

        Parameters
        ----------
        uid
            The job's ``.uid("...")``, or the 32 hex digits of the operator id for jobs without uids, such as SQL jobs.
        states
            Results of :func:`statetool.bootstrap_keyed_state` and the other bootstrap functions. Or an operator of another snapshot
            (``other["orders"]``), which is added with its states, timers and operator state. Its bytes stay the same unless
            ``max_parallelism`` moves its keys to other key groups. The new savepoint gets the highest checkpoint id of all snapshots.
        max_parallelism
            Max parallelism of a new operator. Defaults to that of the writer.
        parallelism
            Number of subtasks that a new operator's state is written for. Flink can restore it with any other parallelism. Defaults to
            Spark's parallelism, up to the max parallelism.
        new
            ``True`` if the existing savepoint does not have the operator, ``False`` if it does; :meth:`write` and :meth:`preview` check it.
            By default they accept both, but raise ``UnknownNameError`` if the uid resembles an existing one, or if its state is ``like=``
            an existing operator: a typo in the uid would add a new operator instead of changing the existing one.

        Raises
        ------
        OptionError
            The operator was already given, or a number is out of bounds.
        """
        change = self.changes.get(uid, OperatorChange())
        if change.bootstraps:
            raise OptionError(
                f"operator {uid!r} was already given", hint="pass all of its states to one with_operator(...)"
            )
        if max_parallelism is not None:
            check_max_parallelism(max_parallelism, parallelism or 1)
        bootstraps = tuple(s.bootstrap for s in states if not isinstance(s, Operator))
        grafts = [s.source for s in states if isinstance(s, Operator)]
        if len(grafts) > 1 or (grafts and change.graft is not None):
            raise OptionError(f"operator {uid!r} is taken from two operators", hint="pass one operator")
        return self._with_change(
            uid,
            replace(
                change,
                bootstraps=bootstraps,
                max_parallelism=max_parallelism,
                parallelism=parallelism,
                new=new,
                graft=next(iter(grafts), None),
            ),
        )

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Remove an operator of the existing savepoint with all its state."""
        return replace(self, removed=self.removed | {self._existing(uid)})

    def remove_state(self, uid: str, *names: str) -> SavepointWriter:
        """Remove states of an operator (timers by the name of their queue). All other states keep their bytes."""
        uid = self._existing(uid)
        change = self.changes.get(uid, OperatorChange())
        return self._with_change(uid, replace(change, dropped_states=change.dropped_states | set(names)))

    def rename_state(self, uid: str, old: str, new: str) -> SavepointWriter:
        """Rename a state of an operator. Everything but the name keeps its bytes."""
        uid = self._existing(uid)
        change = self.changes.get(uid, OperatorChange())
        return self._with_change(uid, replace(change, renames={**change.renames, old: new}))

    def change_uid(self, old: str, new: str) -> SavepointWriter:
        """Give an operator another uid (or, by 32 hex digits, another id). All changes apply at once, so swaps and chains work."""
        return replace(self, uids={**self.uids, self._existing(old): new})

    def with_checkpoint_id(self, checkpoint_id: int) -> SavepointWriter:
        """Set the checkpoint id. Defaults to that of the existing savepoint, or 0 for new ones, as in Flink's ``SavepointWriter``.

        A sink of Iceberg drops commits if the id is lower than one it has already committed: see :meth:`new`.

        Raises
        ------
        OptionError
            The id is negative, or does not fit into 64 bits.
        """
        return replace(self, checkpoint_id=whole_number("checkpoint_id", checkpoint_id, least=0))

    def erase(
        self, uid: str, keys: Iterable[Key] | None = None, *, where: str | None = None, allow_missing: bool = False
    ) -> SavepointWriter:
        """Remove all states, timers and windows of some keys of an operator. Everything else keeps its bytes.

        :func:`statetool.erase` does this for all operators, proves that the keys are gone, and lists other copies of the data.

        Parameters
        ----------
        uid
            The operator.
        keys
            Keys as plain values, as for :meth:`Operator.keyed_state`.
        where
            Instead of keys, a SQL condition on the columns of ``keyed_state``, as for :func:`statetool.erase`.
        allow_missing
            Go on without keys that the operator does not have, or if no key fulfills the condition.

        Raises
        ------
        MissingKeyError
            The operator does not have one of the keys, or no key fulfills the condition.
        OptionError, EncodeError
            Neither keys nor a condition were given, or they do not fit the keys or states of the operator.
        UnsupportedError
            The keys of the operator cannot be decoded.
        """
        return self._filtered(uid, KeyChoice.of(keys, where, keep=False), Allowed(missing=allow_missing))

    def keep(
        self,
        uid: str,
        keys: Iterable[Key] | None = None,
        *,
        where: str | None = None,
        allow_missing: bool = False,
        allow_empty: bool = False,
    ) -> SavepointWriter:
        """Remove all states, timers and windows of an operator except those of some keys.

        Parameters
        ----------
        uid
            The operator.
        keys
            Keys as plain values, as for :meth:`Operator.keyed_state`.
        where
            Instead of keys, a SQL condition on the columns of ``keyed_state``, as for :func:`statetool.erase`.
        allow_missing
            Go on without keys that the operator does not have, or if no key fulfills the condition.
        allow_empty
            Leave operators without any key, if they have none of the keys. Otherwise this is an error (:class:`MissingKeyError`).
        """
        allowed = Allowed(missing=allow_missing, empty=allow_empty)
        return self._filtered(uid, KeyChoice.of(keys, where, keep=True), allowed)

    def _filtered(self, uid: str, choice: KeyChoice, allowed: Allowed) -> SavepointWriter:
        uid = self._existing(uid)
        operator = self._require_base()[uid].inventory
        search = choice.search(operator, self._execution().map)
        if search.is_skipped and search.mismatch is not None:
            raise search.mismatch.at(operator=operator.label)
        change = self.changes.get(uid, OperatorChange())
        chain = search.filter if change.filter is None else FilterChain((change.filter, search.filter))
        if choice.keep and change.filter is not None:
            # The keys to keep may be among those that an earlier change removes.
            search = replace(search, removed=tally(operator, chain, self._execution().map))
        check_found(choice, {operator.label: search}, allowed)
        return self._with_change(uid, replace(change, filter=chain))

    def _require_base(self) -> Savepoint:
        if self.base is None:
            raise OptionError(
                "a new savepoint has no values to change", hint="start with SavepointWriter.from_existing(savepoint)"
            )
        return self.base

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
        allow_missing: bool = False,
    ) -> SavepointWriter:
        """Change state values of an existing operator by SQL expressions or by a function. Everything else keeps its bytes.

        Parameters
        ----------
        uid
            The operator, by uid or operator id.
        change
            Either ``{state: expression}`` over the columns of ``op.keyed_state()``, which needs Spark. ``{"state.field": expression}``
            changes one field, which keeps its type. Values with a TTL keep their last access (in lists and maps they are structs, as with ``ttl="raw"``). An expression that sets a timestamp ``t`` with nanoseconds
            needs a second one for these: ``{"t": ..., "t_nanos": "0"}``.
            Or a function from the table ``op.keyed_state(ttl="raw", key_group=True)`` to a table whose columns replace the states of their
            names. New names are new states. Tables are Spark DataFrames, or ``pyarrow.Table`` s if the savepoint was opened without a session.
            A function that drops rows drops keys: keys missing from the result lose these states, but keep their timers. To remove keys
            with all their state, call :meth:`erase`.
        states
            States passed to a function, by default all. States that it does not return stay.
        where
            A SQL condition. Values of other keys are unchanged, so the type of the expression must hold them too.
        types
            Declared types (:func:`statetool.value`, ...) of states. By default a state whose column keeps its type keeps its serializer,
            and any other gets one that follows from the column. The kind of a state never changes.
        decimals
            Form of Java's big numbers, as in a read. ``decimal`` (default): each BigDecimal keeps its scale, stored in ``<name>_scale``,
            which increases if the new value needs more fraction digits. ``string``: text, written with exactly its digits, for numbers of
            more than 38 digits.
        in_batches
            Call the function for one batch of up to 65,536 rows at a time, so that memory does not grow with the state. The rows of a batch
            are complete keys, but the function does not see other keys. It is called with the first batch at once, to learn the columns,
            and with all batches when the savepoint is written, more than once for some. So it must return the same for the same batch.
            Only without a session: a DataFrame is never in memory as a whole.
        allow_missing
            Accept a condition that no key fulfills. Spark does not look for such a key then.

        Raises
        ------
        UnknownNameError
            The operator has no such state without a namespace.
        MissingKeyError
            No key fulfills the condition.
        OptionError
            The result has no key or a type that no state can have, or the change does not set nanoseconds.
        MissingDependencyError
            Expressions were given without a session.

        Warns
        -----
        UserWarning
            A function returned an Arrow table with fewer rows, and the operator has timers, which stay.
        """
        operator = self._require_base()[uid := self._existing(uid)]
        known = states_without_namespace(operator.inventory)
        for name in (*(states or ()), *(types or ())):
            if name not in known:
                raise UnknownNameError(f"operator {operator.name!r} has no state {name!r}", hint=suggest(name, known))
        before, after, data = self._changed_table(
            operator, change, states, where, decimals, in_batches=in_batches, allow_missing=allow_missing
        )
        bootstraps = bootstrap_changes(operator.inventory, before, after, data, types or {})
        old = self.changes.get(uid, OperatorChange())
        return self._with_change(uid, replace(old, bootstraps=(*old.bootstraps, *bootstraps)))

    def _existing(self, name: str) -> str:
        """Return the uid or id of an operator of the existing savepoint by uid, id, name or id prefix; other names stay."""
        return name if self.base is None else self.base.inventory.existing_name(name)

    @staticmethod
    def _changed_table(
        operator: Operator,
        change: Transformation,
        states: Sequence[str] | None,
        where: str | None,
        decimals: DecimalsMode,
        *,
        in_batches: bool,
        allow_missing: bool,
    ) -> tuple[pa.Schema, pa.Schema, Any]:
        """Return the schemas of ``keyed_state`` before and after a change, and the changed table."""

        def request(names: Sequence[str] | None) -> ScanRequest:
            return ScanRequest.of(states=names, ttl="raw", decimals=decimals, key_group=True)

        if callable(change):
            if where is not None:
                raise OptionError(
                    "where= cannot be combined with a function",
                    hint="return all rows from the function: keys that it leaves out lose these states",
                )
            if in_batches:
                return _change_in_batches(operator, request(states), change)
            table = operator.read(request(states))
            data = change(table)
            schemas = operator.execution.schema_of(table), operator.execution.schema_of(data)
            if operator.execution.spark is None:  # the rows of DataFrames are not counted
                _warn_of_timers(operator, table.num_rows - data.num_rows)
            return *schemas, data
        if in_batches:
            raise OptionError(
                "in_batches= cannot be combined with expressions", hint="leave out in_batches=: Spark runs expressions"
            )
        if states is not None:
            raise OptionError(
                "states= cannot be combined with expressions", hint="leave out states=: expressions name their states"
            )
        from statetool.spark.write.transform import change_by_expressions

        return change_by_expressions(
            operator.inventory,
            lambda names: operator.frame(request(names)),
            change,
            where,
            allow_missing=allow_missing,
        )

    def _with_change(self, uid: str, change: OperatorChange) -> SavepointWriter:
        return replace(self, changes={**self.changes, uid: change})

    def write(
        self,
        target: str,
        *,
        flink_version: str | None = None,
        reference_files: bool = False,
        inline_bytes: int = INLINE_BYTES,
        take_over: bool = False,
        format: Literal["same", "canonical", "native"] = DEFAULT_FORMAT,
        backend: Literal["rocksdb", "forst", "heap"] | None = None,
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
        format, backend
            As in :func:`statetool.rescale`. A native savepoint needs ``flink_version``, 1.15 or later, unless that of the existing one has it.

        Raises
        ------
        TargetExistsError
            The target exists, or another write to it may still be running.
        OptionError, UnknownNameError, UnsupportedError
            The edits cannot be written. Nothing was written.
        EncodeError
            A value does not fit its type, or a key occurs twice.

        Warns
        -----
        UserWarning
            An operator of a sink commits by checkpoint id, and the savepoint's id is 0 or lower than the ids in its state.
        """
        form = parse_form(format, backend)
        composition = replace(self._composition(), reference=reference_files, inline_bytes=inline_bytes, form=form)
        warn_of_assumed_timers(composition, stacklevel=2)
        release = self._release(flink_version)
        warn_if_unreleased(flink_version, stacklevel=2)
        write_composition(composition, target, release, self._execution().runner(), take_over=take_over)
        return self._open(target)

    def _release(self, flink_version: str | None) -> Target:
        """Return the release that will read the savepoint; parameter as for :meth:`write`."""
        versions = (c.graft.inventory.metadata.version for c in self.changes.values() if c.graft is not None)
        default = max(versions, default=WIDEST) if self.base is None else self.base.metadata_version
        return parse_release(flink_version, default=default)

    def _composition(self) -> Composition:
        """Return the description of the savepoint to write."""
        self._check_numbers()
        return Composition(
            base=None if self.base is None else self.base.inventory,
            changes=self.changes,
            removed=self.removed,
            uids=self.uids,
            checkpoint_id=self.checkpoint_id,
            max_parallelism=self.max_parallelism,
        )

    def preview(
        self,
        folder: str | None = None,
        *,
        target: str | None = None,
        flink_version: str | None = None,
        take_over: bool = False,
        format: Literal["same", "canonical", "native"] = DEFAULT_FORMAT,
        backend: Literal["rocksdb", "forst", "heap"] | None = None,
    ) -> Comparison:
        """Return the differences, as :meth:`statetool.Savepoint.diff` does, without writing the savepoint.

        Only changed operators are written, into a folder that is removed when the comparison is garbage collected.

        Parameters
        ----------
        folder
            Parent of this folder; on a cluster, one that all machines can access. Defaults to the system's temporary directory.
        target, flink_version, take_over, format, backend
            The arguments of a later :meth:`write`, which are checked as there. Without a target, only the edits are checked.

        Raises
        ------
        TargetExistsError, OptionError, UnknownNameError, UnsupportedError, EncodeError
            :meth:`write` would raise the same error.
        """
        if self.base is None:
            raise OptionError("preview() needs a base savepoint", hint="call write() instead")
        work = tempfile.mkdtemp(prefix="statetool-preview-", dir=folder)
        try:
            runner = self._execution().runner()
            planned_for, release = target or f"{work}/checked", self._release(flink_version)
            planned = replace(self._composition(), form=parse_form(format, backend))
            check_composition(planned, planned_for, release, runner, take_over=take_over)
            changed = replace(self, uids={}).write(f"{work}/savepoint", reference_files=True)
            names = [*self.changes, *self.removed]
            comparison = self.base.diff(changed, operators=names or None)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        weakref.finalize(comparison, shutil.rmtree, work, ignore_errors=True)
        return comparison

    def _check_numbers(self) -> None:
        """Raise an error on a changed parallelism or max parallelism of an operator of the existing savepoint."""
        if self.base is None:
            return
        removed = {self.base[name].operator_id for name in self.removed if name in self.base}
        for uid, change in self.changes.items():
            if change.graft is not None or uid not in self.base or self.base[uid].operator_id in removed:
                continue
            old = self.base[uid]
            for number, wanted, existing in (
                ("max parallelism", change.max_parallelism, old.max_parallelism),
                ("parallelism", change.parallelism, old.parallelism),
            ):
                if wanted is not None and wanted != existing:
                    raise OptionError(
                        f"operator {old.inventory.label.display!r} has {number} {existing}, not {wanted}",
                        hint="omit it, and change it with statetool.rescale(...)",
                    )

    def _execution(self) -> Execution:
        """Return the execution on the session of the DataFrames, or else on that of :meth:`new` or of the existing savepoint."""
        sessions = [session_of(b) for change in self.changes.values() for b in change.bootstraps]
        given = next((s for s in sessions if s is not None), self.spark)
        return Execution(given) if given is not None or self.base is None else self.base.execution

    def _open(self, target: str) -> Savepoint:
        """Open the written savepoint, with names for operators whose uid was given but is not stored."""
        # The new savepoint may be of another Flink release, so its metadata determine the version of Kryo.
        base = None if self.base is None else self.base.inventory
        types = TypeContext(classes=declared_classes()) if base is None else replace(base.types, kryo=None)
        columns_from_plan = None if base is None else base.columns_from_plan
        access = Access(execution=self._execution(), edit=edit_snapshot)
        access.execution.prepare_session(sources=False)
        savepoint = Savepoint(Inventory(target, types=types, columns_from_plan=columns_from_plan), access)
        names = {*self.changes, *self.uids.values(), *(() if self.base is None else self.base)}
        ids = {o.operator_id for o in savepoint.operators.values() if o.uid is None}
        return savepoint.with_uids(sorted(n for n in names if operator_id_for_uid(n) in ids))


def _change_in_batches(
    operator: Operator, request: ScanRequest, change: Callable[[Any], Any]
) -> tuple[pa.Schema, pa.Schema, TableInBatches]:
    """Return the schemas of a table before and after a change by a function, and the changed table, a batch at a time.

    The first batch determines the schema.
    """
    import pyarrow as pa

    if operator.execution.spark is not None:
        raise OptionError(
            "in_batches= applies to Arrow tables, not to DataFrames",
            hint="leave it out: a DataFrame is never in memory as a whole",
        )
    scan = operator.plan(request)

    def changed(batch: pa.RecordBatch) -> pa.Table:
        table = change(pa.Table.from_batches([batch]))
        operator.execution.schema_of(table)
        return table

    first = next(scan.batches(), None)
    schema: pa.Schema = (change(scan.schema.empty_table()) if first is None else changed(first)).schema

    def tables() -> Iterator[pa.Table]:
        dropped = 0
        for batch in scan.batches():
            table = changed(batch)
            if not table.schema.equals(schema):
                raise OptionError(
                    f"the function returns other columns for a later batch: {_columns(table.schema)}; for the first batch: {_columns(schema)}",
                    hint="cast the columns in the function, so that their types do not depend on the values",
                )
            dropped += batch.num_rows - table.num_rows
            yield table
        _warn_of_timers(operator, dropped)

    return scan.schema, schema, TableInBatches(schema, tables)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _warn_of_timers(operator: Operator, dropped: int) -> None:
    """Warn of timers that stay if a function dropped keys."""
    timers = [name for name, (_, meta) in operator.inventory.keyed_states.items() if meta.kind == "timers"]
    if dropped > 0 and timers:
        warn(
            f"the function dropped {several(dropped, 'row')}, so {'this key loses its' if dropped == 1 else 'these keys lose their'} values; "
            f"timers stay in {', '.join(timers)}. To remove keys with their timers, call erase({operator.name!r}, keys)",
            stacklevel=5,
        )


def edit_snapshot(inventory: Inventory, access: Access) -> SavepointWriter:
    """Start edits of an open snapshot."""
    return SavepointWriter.from_existing(Savepoint(inventory, access))
