"""State from tables, as ``SavepointWriter.with_operator`` takes it. No data is read here.

Types that are not declared follow from the columns, as the table in ``saving/README.md`` says; ``describe()`` of what these functions
return is the code of the job that will read the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statetool.api.operator import Operator
from statetool.declaring.states import StateType
from statetool.serializers.base import Serializer

if TYPE_CHECKING:
    from statetool.api.bootstrap_state import KeyedState, OperatorState


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
) -> KeyedState:
    """Make keyed state of a table with one row for each key (and namespace).

    Parameters
    ----------
    data
        Spark DataFrame or ``pyarrow.Table``, with companions as tables show them. A null means no such state; lists are arrays.
    key
        The key column; several make up a tuple.
    states
        Types by state name (:func:`statetool.value`, :func:`statetool.list_of`, ...); with ``like``, names. By default all other
        columns: arrays are list states, maps are map states, all else value states, of types that follow from the column.
        A type of :class:`statetool.pyflink.Types` makes a state of a Python operator, registered as ``python-state-`` and its name;
        the keys then become rows of one field, as PyFlink's ``key_by`` makes them.
    timers
        Table of all timers of the operator, as ``op.timers()`` returns it: the key, ``timestamp`` (epoch milliseconds), and optionally
        ``namespace``, ``domain`` (``event`` by default, or ``processing``) and ``service``.
    like
        Operator of a savepoint whose key and state serializers are taken exactly. Columns are as ``op.keyed_state()`` shows them;
        values with a time to live as ``ttl="raw"`` does.
    key_type
        Flink type of the key, if it does not follow from the column.
    namespace, namespace_type
        Column with the namespace of each row, a window for window contents: a struct of ``start`` and ``end`` is a time window.
    key_group
        Column with key groups, for keys that were read with ``key_group=True``. Where their hash code is known, they are checked.
    hashes
        How classes of keys hash whose ``hashCode()`` lies in user code, as in ``{"com.acme.Key": "Objects.hash(a, b)"}``
        (:mod:`statetool.hashing.formulas` lists the words). With ``like`` that operator's keys and their key groups prove it.
    last_access_ms
        With ``like``: last access of all values with a time to live, whose columns then hold values alone.
    """
    from statetool.api.bootstrap_state import KeyedState

    return KeyedState(
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
) -> KeyedState:
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
    from statetool.api.bootstrap_state import KeyedState

    return KeyedState(
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
) -> OperatorState:
    """Make a list state of the operator (split among its subtasks) of the column ``value`` of a table.

    The column ``subtask``, where there is one, says which subtask each element belongs to.
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
    """Make a union list state (every subtask gets all elements) of the column ``value`` of a table.

    The column ``subtask``, where there is one, says which subtask each element belongs to.
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
    """Make a broadcast state of the columns ``key`` and ``value`` of a table."""
    return _elements(name, "broadcast", data, like, value_type=value_type, key_type=key_type, value=value, key=key)


def _elements(name: str, kind: str, data: Any, like: Operator | None, **declared: Any) -> OperatorState:
    from statetool.api.bootstrap_state import OperatorState

    return OperatorState(name=name, kind=kind, data=data, like=None if like is None else like.inventory, **declared)
