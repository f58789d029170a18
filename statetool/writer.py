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
from statetool.formats.metadata import OperatorState, SnapshotMetadata, write_metadata
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.serializers.base import Serializer
from statetool.write.assemble import operator_of
from statetool.write.declare import StateType
from statetool.write.publish import Publication, StagedFile, Staging
from statetool.write.versions import WIDEST, fitted, parse_release

if TYPE_CHECKING:
    from statetool.arrow.bootstrap import ElementBootstrap, KeyedBootstrap, OperatorPlan

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
        Table of timers as ``op.timers()`` gives it: the key, ``timestamp`` (epoch milliseconds), and where they are there
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
        Column with key groups, for keys whose hash code lies in user code: read them with ``key_group=True``.
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
        last_access_ms=last_access_ms,
    )


def bootstrap_list_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    like: Operator | None = None,
) -> ElementBootstrap:
    """Make a list state of the operator (split among its subtasks) of the column ``value`` of a table."""
    return _elements(name, "list", data, type, None, value, "key", like)


def bootstrap_union_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    like: Operator | None = None,
) -> ElementBootstrap:
    """Make a union list state (every subtask gets all elements) of the column ``value`` of a table."""
    return _elements(name, "union", data, type, None, value, "key", like)


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
    name: str, kind: str, data: Any, type: Any, key_type: Any, value: str, key: str, like: Operator | None
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
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewState:
    """What a writer was told of one operator."""

    bootstraps: tuple[KeyedBootstrap | ElementBootstrap, ...] = ()
    max_parallelism: int | None = None
    parallelism: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWriter:
    """A savepoint to be written; each method returns a new writer, and nothing is read or written before :meth:`write`."""

    base: Savepoint | None = None
    max_parallelism: int | None = None
    operators: Mapping[str, _NewState] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    checkpoint_id: int | None = None

    @classmethod
    def new(cls, *, max_parallelism: int = 128) -> SavepointWriter:
        """Start a new savepoint; ``max_parallelism`` is that of operators that do not say theirs.

        Raises
        ------
        OptionError
            Flink does not accept it.
        """
        return cls(max_parallelism=check_max_parallelism(max_parallelism))

    def with_operator(
        self,
        uid: str,
        *bootstraps: KeyedBootstrap | ElementBootstrap,
        max_parallelism: int | None = None,
        parallelism: int | None = None,
    ) -> SavepointWriter:
        """Add an operator with all of its state.

        Parameters
        ----------
        uid
            As in the job's ``.uid("...")``.
        parallelism
            Number of subtasks that the state is written for; Flink can restore it with any other. By default that of Spark, at most
            the max parallelism.

        Raises
        ------
        OptionError
            The operator is there already, or a number is out of bounds.
        """
        if uid in self.operators:
            raise OptionError(
                f"operator {uid!r} is added twice", hint="name all of its state in one with_operator(...)"
            )
        if max_parallelism is not None:
            check_max_parallelism(max_parallelism, parallelism or 1)
        new = _NewState(bootstraps=bootstraps, max_parallelism=max_parallelism, parallelism=parallelism)
        return replace(self, operators={**self.operators, uid: new})

    def with_checkpoint_id(self, checkpoint_id: int) -> SavepointWriter:
        """Set the checkpoint id (0 in new savepoints, as Flink's own writer sets it)."""
        if checkpoint_id < 0:
            raise OptionError(f"checkpoint id {checkpoint_id} is negative")
        return replace(self, checkpoint_id=checkpoint_id)

    def write(self, target: str, *, flink_version: str | None = None, inline_bytes: int = INLINE_BYTES) -> Savepoint:
        """Write the savepoint and open it.

        Parameters
        ----------
        target
            Directory that is not there yet: a local path or any URI that fsspec can write to.
        flink_version
            Release that is to read it, as in ``"2.3"``. By default what every release from 1.13 reads; such a savepoint does not
            store uids, only their hashes.
        inline_bytes
            Streams with fewer bytes go into ``_metadata``, as Flink's ``execution.checkpointing.data-inline-threshold`` says.

        Raises
        ------
        TargetExistsError
            The target is there.
        OptionError, UnsupportedError
            What was asked for cannot be written; nothing was.
        EncodeError
            A value that its type cannot hold, or a key that comes twice.
        """
        Publication.check(target)
        release = parse_release(flink_version, default=WIDEST)
        runner = _runner(self)
        plans = {uid: self._plan(uid, new, runner, inline_bytes) for uid, new in self.operators.items()}
        with Publication(target) as publication:
            staged: list[StagedFile] = []
            operators = [_write_operator(p, runner, publication.staging, staged) for p in plans.values()]
            metadata = SnapshotMetadata(
                version=release.metadata_version, checkpoint_id=self.checkpoint_id or 0, operators=tuple(operators)
            )
            metadata = fitted(metadata, release, properties=savepoint_properties())
            publication.commit(write_metadata(metadata), staged)
        return load(target, runner.spark, uids=() if release.metadata_version >= 5 else tuple(self.operators))

    def _plan(self, uid: str, new: _NewState, runner: Any, inline_bytes: int) -> OperatorPlan:
        from statetool.arrow.bootstrap import plan_operator

        max_parallelism = new.max_parallelism or self.max_parallelism or 128
        parallelism = new.parallelism or min(max_parallelism, runner.parallelism)
        check_max_parallelism(max_parallelism, parallelism)
        tables = [(b, runner.describe(b)) for b in new.bootstraps]
        return plan_operator(
            uid, tables, parallelism=parallelism, max_parallelism=max_parallelism, inline_bytes=inline_bytes
        )


def _runner(writer: SavepointWriter) -> Any:
    from statetool.arrow.local_write import LocalRunner

    tables = [t for n in writer.operators.values() for b in n.bootstraps for t in (b.data, getattr(b, "timers", None))]
    sessions = [t.sparkSession for t in tables if t is not None and hasattr(t, "sparkSession")]
    if not sessions:
        return LocalRunner()
    from statetool.spark.writer import SparkRunner

    return SparkRunner(sessions[0])


def _write_operator(plan: OperatorPlan, runner: Any, staging: Staging, staged: list[StagedFile]) -> OperatorState:
    from statetool.arrow.gather import write_subtask

    keyed, elements = {}, {}
    if plan.keyed is not None:
        streams = {s.subtask: s for s in runner.keyed(plan, staging)}
        for i in range(plan.parallelism):
            stream = streams.get(i) or write_subtask(plan.keyed, staging, i, ())
            staged += stream.files
            keyed[i] = stream.keyed_handle(plan.keyed)
    if plan.elements is not None:
        streams = {s.subtask: s for s in runner.elements(plan, staging)}
        for i in range(plan.parallelism):
            stream = streams.get(i) or write_subtask(plan.elements, staging, i, ())
            staged += stream.files
            elements[i] = stream.operator_handle(plan.elements)
    return operator_of(
        plan.uid, parallelism=plan.parallelism, max_parallelism=plan.max_parallelism, keyed=keyed, elements=elements
    )
