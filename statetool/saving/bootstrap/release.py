"""Declared types with the serializer snapshots of the target Flink release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from statetool.errors import StatetoolError
from statetool.java.declaring import flink_types as flink
from statetool.java.declaring.states import StateType, python_state
from statetool.saving.bootstrap.model import ElementBootstrap, KeyedBootstrap
from statetool.saving.versions import Target
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.declared import fit_to_release
from statetool.types.python_types import PythonType

B = TypeVar("B", KeyedBootstrap, ElementBootstrap)


def for_release(bootstrap: B, target: Target) -> B:
    """Return a bootstrap whose declared types have the serializer snapshots of a release.

    Raises
    ------
    OptionError
        A declaration is not a type, or releases write the type differently and no release is chosen.
    UnsupportedError
        The release does not support a declared type.
    """
    release = _numbers(target)
    if isinstance(bootstrap, ElementBootstrap):
        return replace(
            bootstrap, value_type=_type(bootstrap.value_type, release), key_type=_type(bootstrap.key_type, release)
        )
    states = bootstrap.states
    if isinstance(states, Mapping):
        states = {name: _state(name, state, release) for name, state in states.items()}
    return replace(
        bootstrap,
        key_type=_type(bootstrap.key_type, release),
        namespace_type=_type(bootstrap.namespace_type, release),
        states=states,
    )


def _numbers(target: Target) -> tuple[int, int] | None:
    if target.release is None:
        return None
    major, minor = target.release.split(".")
    return int(major), int(minor)


def _state(name: str, state: StateType | None, release: tuple[int, int] | None) -> StateType | None:
    # Invalid declarations are refused when the table is planned.
    if not isinstance(state, StateType):
        return state
    try:
        if python_state(state) is not None:
            return state  # byte arrays in every release
        assert not isinstance(state.element, PythonType)
        assert not isinstance(state.user_key, PythonType)
        return replace(state, element=_type(state.element, release), user_key=_type(state.user_key, release))
    except StatetoolError as error:
        raise error.at(state=name) from error.__cause__


def _type(declared: str | Serializer | None, release: tuple[int, int] | None) -> Serializer | None:
    return None if declared is None else fit_to_release(flink.parse_type(declared), release)
