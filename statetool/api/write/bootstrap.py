"""Declarations of state from tables, for ``SavepointWriter.with_operator``. No data is read here.

Undeclared types follow from the columns, by the table in ``docs/reference/types.md``. Call ``describe()`` on a result to print the code of the
job that will read the state.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetool.api.execution import Execution
from statetool.api.operator import Operator
from statetool.java.declaring.job_code import java_of_elements, java_of_keyed, python_of_keyed
from statetool.java.declaring.states import StateType
from statetool.saving.bootstrap import ElementBootstrap, KeyedBootstrap, TableSchema
from statetool.saving.bootstrap.states import key_type as key_serializer
from statetool.saving.bootstrap.states import plan_table, python_states
from statetool.saving.bootstrap.tables import element_metas
from statetool.serializers.core.base import Serializer
from statetool.serializers.pyflink.serializer import PYTHON_STATE
from statetool.types.options import name_list


@dataclass(frozen=True, slots=True)
class KeyedState:
    """Keyed state from a table; see :func:`statetool.bootstrap_keyed_state` and :func:`statetool.bootstrap_state`."""

    bootstrap: KeyedBootstrap

    def describe(self) -> str:
        """Return the code by which a job declares this state: Java, or Python if types of PyFlink were given.

        Undeclared types follow from the columns or, with ``like=``, from the serializers. Only the table's schema and, for timers,
        the names of their services are read.

        Raises
        ------
        OptionError, UnknownNameError
            The types are incompatible or columns are missing. Writing raises the same errors.
        """
        table = _describe_table(self.bootstrap)
        key = key_serializer(self.bootstrap, table)
        planned = plan_table(self.bootstrap, table, key)
        python = python_states(self.bootstrap)
        if python:
            return python_of_keyed((name.removeprefix(PYTHON_STATE), state) for name, state in python)
        return java_of_keyed(key, planned.all_metas)


@dataclass(frozen=True, slots=True)
class OperatorState:
    """A list, union or broadcast state from a table; see :func:`statetool.bootstrap_list_state` and its siblings."""

    bootstrap: ElementBootstrap

    def describe(self) -> str:
        """Return the Java code by which a job declares this state.

        Raises
        ------
        OptionError, UnknownNameError
            The types are incompatible or columns are missing. Writing raises the same errors.
        """
        (meta,) = element_metas([(self.bootstrap, _describe_table(self.bootstrap))])
        return java_of_elements(meta)


def _describe_table(bootstrap: KeyedBootstrap | ElementBootstrap) -> TableSchema:
    return Execution(session_of(bootstrap)).runner().describe(bootstrap)


def session_of(bootstrap: KeyedBootstrap | ElementBootstrap) -> Any:
    """Return the Spark session of a bootstrap's DataFrames, ``None`` if it has only Arrow tables."""
    tables: tuple[Any, ...] = (bootstrap.data, getattr(bootstrap, "timers", None))
    return next((t.sparkSession for t in tables if hasattr(t, "sparkSession")), None)


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
    jars: Iterable[str | os.PathLike[str]] = (),
    last_access_ms: int | None = None,
) -> KeyedState:
    """Declare keyed state from a table with one row per key (and namespace).

    Parameters
    ----------
    data
        Spark DataFrame, ``pyarrow.Table``, or a dataset of Arrow, such as ``pyarrow.dataset.dataset("s3://bucket/accounts/")``, with companion
        columns as in tables that are read. Tasks of Spark read the files of a dataset themselves; without Spark, one batch at a time is in
        memory. A null means no state; lists are arrays.
    key
        The key column; several columns form a tuple.
    states
        Types by state name (:func:`statetool.value`, :func:`statetool.list_of`, ...); with ``like``, names. By default all other
        columns: arrays become list states, maps become map states, and all others value states. Their types follow from the column.
        A type of :class:`statetool.pyflink.Types` declares a state of a Python operator, registered as ``python-state-`` and its name.
        The keys are then rows of one field, as PyFlink's ``key_by`` produces them.
    timers
        Table of all timers of the operator, in the form of ``op.timers()``: the key, ``timestamp`` (epoch milliseconds), and optionally
        ``namespace``, ``domain`` (``event`` by default, or ``processing``) and ``service``.
    like
        Operator of a savepoint whose key and state serializers are used unchanged. Columns have the form of ``op.keyed_state()``;
        values with a TTL have the form of ``ttl="raw"``.
    key_type
        Flink type of the key, if the column does not determine it.
    namespace, namespace_type
        Column with the namespace of each row: for window contents, the window. A struct of ``start`` and ``end`` is a time window.
    key_group
        Column with key groups, for keys that were read with ``key_group=True``. They are checked if the hash code of the keys is known.
    hashes
        Hash formulas of key classes whose ``hashCode()`` is user code, as in ``{"com.acme.Key": "Objects.hash(a, b)"}``
        (:mod:`statetool.types.conventions` lists the words). With ``like``, that operator's keys and their key groups prove the formula.
    jars
        The job's jars. They give the hash formulas of key classes, without ``hashes``.
    last_access_ms
        With ``like``: last access of all values with a TTL. Their columns then hold only values.
    """
    bootstrap = KeyedBootstrap(
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
        jars=name_list("jars", jars),
        last_access_ms=last_access_ms,
    )
    return KeyedState(bootstrap)


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
    jars: Iterable[str | os.PathLike[str]] = (),
    last_access_ms: int | None = None,
) -> KeyedState:
    """Declare one keyed state from a table in the long form of ``op.state(name)`` and ``op.windows(name)``.

    Columns are the key, the namespace if any, ``value``, ``map_key`` for maps, and ``list_index`` for lists. Each row is one value, one
    map entry or one list element, so a map or list need not fit into a row.

    Parameters
    ----------
    type
        A declaration by :func:`statetool.value`, :func:`statetool.list_of` ...; by default it follows from the columns.
    like
        Operator of a savepoint whose serializers of this state are used unchanged.
    namespace
        Column with the namespace.

    Others as for :func:`bootstrap_keyed_state`.
    """
    bootstrap = KeyedBootstrap(
        data=data,
        key=(key,) if isinstance(key, str) else tuple(key),
        key_type=key_type,
        states={name: type},
        namespace=namespace,
        namespace_type=namespace_type,
        like=None if like is None else like.inventory,
        key_group=key_group,
        hashes=hashes or {},
        jars=name_list("jars", jars),
        last_access_ms=last_access_ms,
        long=True,
    )
    return KeyedState(bootstrap)


def bootstrap_list_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    subtask: str | None = None,
    like: Operator | None = None,
) -> OperatorState:
    """Declare a list state (split among the operator's subtasks) from the column ``value`` of a table.

    The optional column ``subtask`` assigns each element to a subtask.
    """
    return _elements(name, "list", data, like, value_type=type, value=value, subtask=subtask)


def bootstrap_union_state(
    name: str,
    data: Any,
    *,
    type: str | Serializer | None = None,
    value: str = "value",
    subtask: str | None = None,
    like: Operator | None = None,
) -> OperatorState:
    """Declare a union list state (every subtask gets all elements) from the column ``value`` of a table.

    The optional column ``subtask`` assigns each element to a subtask.
    """
    return _elements(name, "union", data, like, value_type=type, value=value, subtask=subtask)


def bootstrap_broadcast_state(
    name: str,
    data: Any,
    *,
    key_type: str | Serializer | None = None,
    value_type: str | Serializer | None = None,
    key: str = "key",
    value: str = "value",
    like: Operator | None = None,
) -> OperatorState:
    """Declare a broadcast state from the columns ``key`` and ``value`` of a table."""
    return _elements(name, "broadcast", data, like, value_type=value_type, key_type=key_type, value=value, key=key)


def _elements(name: str, kind: str, data: Any, like: Operator | None, **declared: Any) -> OperatorState:
    like_inventory = None if like is None else like.inventory
    return OperatorState(ElementBootstrap(name=name, kind=kind, data=data, like=like_inventory, **declared))
