"""A savepoint with one state table, in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from statetool.api.load import load
from statetool.api.operator import Operator
from statetool.api.savepoint import Savepoint
from statetool.api.write.bootstrap import (
    KeyedState,
    OperatorState,
    bootstrap_broadcast_state,
    bootstrap_keyed_state,
    bootstrap_list_state,
    bootstrap_union_state,
)
from statetool.api.write.writer import SavepointWriter
from statetool.errors import OptionError, suggest
from statetool.java.declaring.states import StateType
from statetool.saving.forms import DEFAULT_FORMAT
from statetool.serializers.core.base import Serializer
from statetool.types.python_types import PythonType

#: The functions that declare lists. Those of broadcast and keyed state have other parameters.
_LISTS: Final = {"list": bootstrap_list_state, "union": bootstrap_union_state}
_KINDS: Final = ("keyed", *_LISTS, "broadcast")


def write(
    data: Any,
    target: str,
    *,
    uid: str,
    kind: Literal["keyed", "list", "union", "broadcast"] = "keyed",
    key: str | Sequence[str] = "key",
    states: Mapping[str, StateType] | Sequence[str] | None = None,
    timers: Any = None,
    like: str | os.PathLike[str] | Savepoint | None = None,
    max_parallelism: int | None = None,
    parallelism: int | None = None,
    flink_version: str | None = None,
    format: Literal["same", "canonical", "native"] = DEFAULT_FORMAT,
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
) -> Savepoint:
    """Write a table as a new savepoint of one operator, and open it.

    It stands for ``df.write.format("flink-state")``, which Spark cannot run: a data source in Python cannot shuffle rows to the tasks of their
    key groups. For several operators or states, and to change an existing savepoint, use :class:`statetool.SavepointWriter`.

    Parameters
    ----------
    data
        Spark DataFrame, ``pyarrow.Table`` or dataset of Arrow, with one row per key, element or entry. A DataFrame is written by Spark.
    target
        A new directory: a local path or any URI that fsspec can write to. It must not exist, as with Spark's mode ``error``.
    uid
        The job's ``.uid("...")``, or the 32 hex digits of the operator id.
    kind
        Keyed state, as in :func:`statetool.bootstrap_keyed_state`, or one operator state: ``list`` and ``union`` with the column ``value``,
        ``broadcast`` with the columns ``key`` and ``value``.
    key
        The key column of keyed state; several columns form a tuple.
    states
        Types by state name; with ``like``, names. By default, each other column is a keyed state. Operator state needs one name:
        ``{"offsets": statetool.list_of("BIGINT")}`` has a row per element, ``{"rules": statetool.map_of("STRING", "BIGINT")}`` a row per
        entry, and ``["offsets"]`` takes the types from ``like`` or the columns.
    timers
        Table of all timers of keyed state, as for :func:`statetool.bootstrap_keyed_state`.
    like
        A savepoint, or its path, whose operator ``uid`` gives types and max parallelism. Nothing else of it is written.
    max_parallelism
        Max parallelism of the job, by default that of ``like``, or 128.
    parallelism
        Number of subtasks that the state is written for. Flink can restore it with any other parallelism.
    flink_version, format, backend
        As in :meth:`statetool.SavepointWriter.write`, with the canonical format by default.

    Raises
    ------
    TargetExistsError
        The target exists, or another write to it may still be running.
    OptionError, UnknownNameError, UnsupportedError
        The states cannot be written. Nothing was written.
    EncodeError
        A value does not fit its type, or a key occurs twice.
    """
    if kind not in _KINDS:
        raise OptionError(f"kind {kind!r}", hint=suggest(kind, _KINDS))
    model = _model(like, uid)
    if kind == "keyed":
        declared: KeyedState | OperatorState = bootstrap_keyed_state(
            data, key=key, states=states, timers=timers, like=model
        )
    else:
        if timers is not None:
            raise OptionError(f"timers with {kind} state", hint="only keyed state has timers")
        declared = _operator_state(kind, data, states, model)
    if max_parallelism is None:
        max_parallelism = 128 if model is None else model.max_parallelism
    writer = SavepointWriter.new(max_parallelism=max_parallelism).with_operator(uid, declared, parallelism=parallelism)
    return writer.write(target, flink_version=flink_version, format=format, backend=backend)


def _model(like: str | os.PathLike[str] | Savepoint | None, uid: str) -> Operator | None:
    """Return the operator of a savepoint whose types are used."""
    if like is None:
        return None
    return (like if isinstance(like, Savepoint) else load(os.fspath(like)))[uid]


def _operator_state(
    kind: Literal["list", "union", "broadcast"],
    data: Any,
    states: Mapping[str, StateType] | Sequence[str] | None,
    model: Operator | None,
) -> OperatorState:
    """Declare the one operator state of a table."""
    if isinstance(states, str) or not states or len(states) != 1:
        raise OptionError(f"{kind} state needs one name", hint='pass it as states=["offsets"], or with its type')
    (name,) = states
    types = _types_of(kind, name, states[name] if isinstance(states, Mapping) else None)
    if kind == "broadcast":
        return bootstrap_broadcast_state(name, data, key_type=types[0], value_type=types[1], like=model)
    return _LISTS[kind](name, data, type=types[1], like=model)


def _types_of(kind: str, name: str, given: StateType | None) -> tuple[str | Serializer | None, str | Serializer | None]:
    """Return the declared types of the keys and the values of an operator state."""
    if given is None:
        return None, None
    wanted = "map" if kind == "broadcast" else "list"
    if isinstance(given, StateType) and given.kind == wanted and not given.ttl and given.column is None:
        key, value = given.user_key, given.element
        if not isinstance(key, PythonType) and not isinstance(value, PythonType):
            return key, value
    raise OptionError(
        f"{given!r} is no type of {kind} state {name!r}",
        hint=f"pass statetool.{wanted}_of(...) with types of Java or SQL, and without ttl= and column=",
    )
