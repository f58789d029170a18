"""Write savepoints: new ones from DataFrames, changed ones from existing ones.

Runs on Spark where a DataFrame or a session is involved, else in this process on ``pyarrow.Table`` s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from statetool.api import Operator, Savepoint, load
from statetool.errors import OptionError
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.operator_id import operator_id_for_uid
from statetool.serializers.base import Serializer
from statetool.write.declare import OperatorChange, StateType
from statetool.write.versions import WIDEST, parse_release

if TYPE_CHECKING:
    from statetool.arrow.bootstrap import ElementBootstrap, KeyedBootstrap

INLINE_BYTES = 20 * 1024


def bootstrap_keyed_state(
    data: Any,
    *,
    key: str | Sequence[str] = "key",
    states: Mapping[str, StateType] | Sequence[str] | None = None,
    timers: Any = None,
    like: Operator | None = None,
    key_type: str | Serializer | None = None,
    namespace: str | None = None,
    namespace_type: str | Serializer | None = None,
    key_group: str | None = None,
    hashes: Mapping[str, str] | None = None,
    last_access_ms: int | None = None,
) -> KeyedBootstrap:
    """Make keyed state of a table with one row a key (and namespace).

    Parameters
    ----------
    data
        Spark DataFrame or ``pyarrow.Table``. A null means that the key has no such state; list states are arrays, map states
        maps.
    key
        The key column; several make up a tuple.
    states
        Types by state name (:func:`statetool.value`, :func:`statetool.list_of`, ...); with ``like``, names. By default all other
        columns: arrays are list states, maps are map states, all else value states, of types that follow from the column.
    timers
        Table of all timers of the operator, as ``op.timers()`` gives it: the key, ``timestamp`` (epoch milliseconds), and where they are there
        ``namespace``, ``domain`` (``event`` by default, or ``processing``) and ``service``.
    like
        Operator of a savepoint whose key and state serializers are taken exactly. Columns are as ``op.keyed_state()`` shows
        them; values with a time to live as ``ttl="raw"`` does.
    key_type
        Flink type of the key, if it does not follow from the column.
    namespace, namespace_type
        Column with the namespace of each row, a window for window contents: a struct of ``start`` and ``end`` is a
        time window.
    key_group
        Column with key groups, for keys that were read with ``key_group=True``: their hash code is not needed then.
    hashes
        How classes of keys hash whose ``hashCode()`` lies in user code (POJOs, case classes, enums), as in
        ``{"com.acme.Key": "Objects.hash(a, b)"}`` (:mod:`statetool.ops.formulas` lists the words). With ``like`` it is found
        among the known conventions by testing them against the key groups in which that operator's keys lie.
    last_access_ms
        With ``like``: last access of all values with a time to live, whose columns then hold values alone.
    """
    from statetool.arrow.bootstrap import KeyedBootstrap

    return KeyedBootstrap(
        data=data,
        key=(key,) if isinstance(key, str) else tuple(key),
        key_type=key_type,
        states=states,
        namespace=namespace,
        namespace_type=namespace_type,
        timers=timers,
        like=None if like is None else like.inventory,
        key_group=key_group,
        hashes=hashes or {},
        last_access_ms=last_access_ms,
    )


def bootstrap_state(
    name: str,
    data: Any,
    *,
    type: StateType | None = None,
    like: Operator | None = None,
    key: str | Sequence[str] = "key",
    key_type: str | Serializer | None = None,
    namespace: str | None = None,
    namespace_type: str | Serializer | None = None,
    key_group: str | None = None,
    hashes: Mapping[str, str] | None = None,
    last_access_ms: int | None = None,
) -> KeyedBootstrap:
    """Make one keyed state of a table in the long form that ``op.state(name)`` and ``op.windows(name)`` have.

    Columns are the key, the namespace where there is one, ``value``, and for maps ``map_key``, for lists ``list_index``: each row is
    one value, one entry of a map or one element of a list, so that neither has to fit into a row.

    Parameters
    ----------
    type
        What :func:`statetool.value`, :func:`statetool.list_of` ... declare; by default it follows from the columns.
    like
        Operator of a savepoint whose serializers of this state are taken exactly.
    namespace
        Column with the namespace.

    Others as for :func:`bootstrap_keyed_state`.
    """
    from statetool.arrow.bootstrap import KeyedBootstrap

    return KeyedBootstrap(
        data=data,
        key=(key,) if isinstance(key, str) else tuple(key),
        key_type=key_type,
        states={name: type},
        namespace=namespace,
        namespace_type=namespace_type,
        like=None if like is None else like.inventory,
        key_group=key_group,
        hashes=hashes or {},
        last_access_ms=last_access_ms,
        long=True,
    )


def bootstrap_list_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    subtask: str | None = None,
    like: Operator | None = None,
) -> ElementBootstrap:
    """Make a list state of the operator (split among its subtasks) of the column ``value`` of a table.

    The column ``subtask``, where there is one, says which subtask each element belongs to.
    """
    return _elements(name, "list", data, type, None, value, "key", like, subtask)


def bootstrap_union_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    subtask: str | None = None,
    like: Operator | None = None,
) -> ElementBootstrap:
    """Make a union list state (every subtask gets all elements) of the column ``value`` of a table.

    The column ``subtask``, where there is one, says which subtask each element belongs to.
    """
    return _elements(name, "union", data, type, None, value, "key", like, subtask)


def bootstrap_broadcast_state(
    name: str,
    data: Any,
    *,
    key_type: str | Serializer | None = None,
    value_type: str | Serializer | None = None,
    key: str = "key",
    value: str = "value",
    like: Operator | None = None,
) -> ElementBootstrap:
    """Make a broadcast state of the columns ``key`` and ``value`` of a table."""
    return _elements(name, "broadcast", data, value_type, key_type, value, key, like)


def _elements(
    name: str,
    kind: str,
    data: Any,
    type: Any,
    key_type: Any,
    value: str,
    key: str,
    like: Operator | None,
    subtask: str | None = None,
) -> ElementBootstrap:
    from statetool.arrow.bootstrap import ElementBootstrap

    return ElementBootstrap(
        name=name,
        kind=kind,
        data=data,
        value_type=type,
        key_type=key_type,
        like=None if like is None else like.inventory,
        value=value,
        key=key,
        subtask=subtask,
    )


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
