"""Declarations of states and timers by users, and their descriptions in headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from statetool.errors import OptionError
from statetool.formats.state_meta import BROADCAST, KEY_VALUE, OPERATOR, PRIORITY_QUEUE, StateMetaInfo
from statetool.java.declaring import flink_types as flink
from statetool.serializers.core.base import Serializer
from statetool.serializers.pyflink.serializer import PYTHON_STATE, declared_in_python
from statetool.types.declared import TypeContext
from statetool.types.python_types import PythonState, PythonType

Kind = Literal["value", "list", "map", "reducing", "aggregating"]
TypeOf: TypeAlias = str | Serializer | PythonType
TIMERS_PREFIX: Final = "_timer_state/"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateType:
    """A declared state. Types that are ``None`` are inferred from the column.

    Attributes
    ----------
    kind
        ``value``, ``list``, ``map``, ``reducing`` or ``aggregating``.
    element
        Type of the value, of a list's elements, of a map's values, or of the accumulator of aggregating state. One of
        :class:`statetool.pyflink.Types` makes a state of a Python operator (process mode).
    user_key
        Type of a map's keys.
    ttl
        Whether the state has a time to live. Its column is then a struct of ``last_access`` (timestamp) and ``value`` (of a list,
        for each element; of a map, for each value), or ``last_access_ms`` sets the same time for all.
    last_access_ms
        Last access of all values, in epoch milliseconds.
    column
        Name of its column, if it differs from the state's name.
    """

    kind: Kind
    element: TypeOf | None = None
    user_key: TypeOf | None = None
    ttl: bool = False
    last_access_ms: int | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        if self.last_access_ms is not None and not self.ttl:
            raise OptionError("last_access_ms= without ttl=True", hint="only states with a time to live keep it")


def value(
    type: TypeOf | None = None,
    *,
    ttl: bool = False,
    last_access_ms: int | None = None,
    column: str | None = None,
) -> StateType:
    """Declare a ``ValueState``. See :class:`StateType` for the arguments."""
    return StateType(kind="value", element=type, ttl=ttl, last_access_ms=last_access_ms, column=column)


def list_of(
    element: TypeOf | None = None,
    *,
    ttl: bool = False,
    last_access_ms: int | None = None,
    column: str | None = None,
) -> StateType:
    """Declare a ``ListState``. Its column is an array."""
    return StateType(kind="list", element=element, ttl=ttl, last_access_ms=last_access_ms, column=column)


def map_of(
    key: TypeOf | None = None,
    value: TypeOf | None = None,
    *,
    ttl: bool = False,
    last_access_ms: int | None = None,
    column: str | None = None,
) -> StateType:
    """Declare a ``MapState``. Its column is a map."""
    if (key is None) != (value is None):
        raise OptionError("a map state needs the types of both keys and values, or neither")
    return StateType(kind="map", user_key=key, element=value, ttl=ttl, last_access_ms=last_access_ms, column=column)


def reducing(
    type: TypeOf | None = None,
    *,
    ttl: bool = False,
    last_access_ms: int | None = None,
    column: str | None = None,
) -> StateType:
    """Declare a ``ReducingState``. Its column holds the reduced values."""
    return StateType(kind="reducing", element=type, ttl=ttl, last_access_ms=last_access_ms, column=column)


def aggregating(
    type: TypeOf | None = None,
    *,
    ttl: bool = False,
    last_access_ms: int | None = None,
    column: str | None = None,
) -> StateType:
    """Declare an ``AggregatingState``. Its column holds the accumulators."""
    return StateType(kind="aggregating", element=type, ttl=ttl, last_access_ms=last_access_ms, column=column)


def python_state(declared: object) -> PythonState | None:
    """Return the types of a declared state of a Python operator, ``None`` for states of Java operators.

    Raises
    ------
    OptionError
        A map has one PyFlink type and one Java type.
    """
    if not isinstance(declared, StateType):
        return None
    types = [t for t in (declared.user_key, declared.element) if t is not None]
    python = [t for t in types if isinstance(t, PythonType)]
    if python and len(python) != len(types):
        raise OptionError("one type of PyFlink and one of Java", hint="give both as statetool.pyflink.Types")
    kind: Literal["value", "list", "map"] = "list" if declared.kind == "list" else "map" if len(types) == 2 else "value"
    return PythonState(kind, tuple(python)) if python else None


def registered_name(name: str, declared: object) -> str:
    """Return the name under which a declared state is registered."""
    return name if python_state(declared) is None or name.startswith(PYTHON_STATE) else PYTHON_STATE + name


def _python_meta(name: str, declared: StateType, state: PythonState, namespace: Serializer) -> StateMetaInfo:
    value = flink.ttl(flink.BYTES) if declared.ttl else flink.BYTES
    stored = flink.map_of(flink.WRAPPED_BYTES, value) if state.kind == "map" else flink.list_of(value)
    name = registered_name(name, declared)
    return StateMetaInfo(
        name=name,
        backend_type=KEY_VALUE,
        options={"KEYED_STATE_TYPE": "MAP" if state.kind == "map" else "LIST"},
        serializers=declared_in_python(
            name, {"VALUE_SERIALIZER": stored, "NAMESPACE_SERIALIZER": namespace}, TypeContext(python=((name, state),))
        ),
    )


def keyed_meta(name: str, declared: StateType, namespace: Serializer) -> StateMetaInfo:
    """Return the description of a declared keyed state whose types are all known."""
    state = python_state(declared)
    if state is not None:
        return _python_meta(name, declared, state, namespace)
    assert declared.element is not None
    assert not isinstance(declared.element, PythonType)
    assert not isinstance(declared.user_key, PythonType)
    element = flink.parse_type(declared.element)
    if declared.ttl:
        element = flink.ttl(element)
    stored = element
    if declared.kind == "list":
        stored = flink.list_of(element)
    elif declared.kind == "map":
        assert declared.user_key is not None
        stored = flink.map_of(declared.user_key, element)
    return StateMetaInfo(
        name=name,
        backend_type=KEY_VALUE,
        options={"KEYED_STATE_TYPE": declared.kind.upper()},
        serializers={"VALUE_SERIALIZER": stored, "NAMESPACE_SERIALIZER": namespace},
    )


def timer_meta(domain: str, service: str, key: Serializer, namespace: Serializer) -> StateMetaInfo:
    """Return the description of the timer queue of a service.

    Raises
    ------
    OptionError
        The domain is neither ``event`` nor ``processing``.
    """
    if domain not in ("event", "processing"):
        raise OptionError(f"timers of domain {domain!r}", hint="the domain of a timer is event or processing")
    return StateMetaInfo(
        name=f"{TIMERS_PREFIX}{domain}_{service}",
        backend_type=PRIORITY_QUEUE,
        options={},
        serializers={"VALUE_SERIALIZER": flink.timer(key, namespace)},
    )


def element_meta(name: str, kind: str, value: Serializer, key: Serializer | None) -> StateMetaInfo:
    """Return the description of an operator state (``list``, ``union`` or ``broadcast``)."""
    mode = {"list": "SPLIT_DISTRIBUTE", "union": "UNION", "broadcast": "BROADCAST"}[kind]
    serializers = {"VALUE_SERIALIZER": value}
    if key is not None:
        serializers = {"KEY_SERIALIZER": key, **serializers}
    return StateMetaInfo(
        name=name,
        backend_type=OPERATOR if key is None else BROADCAST,
        options={"OPERATOR_STATE_DISTRIBUTION_MODE": mode},
        serializers=serializers,
    )
