"""Declared column names, and types of rows without stored types, applied to the headers of streams.

``columns`` are pairs of a path and names, or ``ROW<...>``. The path is ``key`` for the operator's key, or the name of a state for its row,
with further steps if the state has several (``state.key``, ``state.value``), or for its namespace (``state.namespace``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from statetool.errors import OptionError
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer
from statetool.serializers.naming import Path, name_fields, rows_of
from statetool.serializers.sql.rowdata import BinaryRowSerializer
from statetool.types.options import Columns, FieldNames

KEY, _NAMESPACE = "key", "namespace"
_VALUE, _USER_KEY, _BROADCAST_KEY = "VALUE_SERIALIZER", "USER_KEY_SERIALIZER", "KEY_SERIALIZER"
_NAMESPACES = "NAMESPACE_SERIALIZER"


def named_header(header: KeyedHeader, columns: Columns) -> KeyedHeader:
    """Return a header with names for fields; paths to states of other headers are ignored."""
    for path, names in columns:
        if path == KEY:
            key = name_fields(header.key, (), names, KEY)
            of_timers = (_with_names(s, _VALUE, (KEY,), names, KEY) if s.kind == "timers" else s for s in header.states)
            header = replace(header, key=key, states=tuple(of_timers))
        else:
            header = replace(header, states=tuple(named_state(s, path, names) for s in header.states))
    return header


def named_state(meta: StateMetaInfo, path: str, names: FieldNames) -> StateMetaInfo:
    """Return a state with names for the fields of one of its rows; unchanged if the path is for another state."""
    steps = _steps(path, meta.name)
    if steps is None:
        return meta
    slot = _VALUE
    for key_slot in (_USER_KEY, _BROADCAST_KEY):
        if steps[:1] == (KEY,) and key_slot in meta.serializers:
            slot, steps = key_slot, steps[1:]
    if steps[:1] == (_NAMESPACE,) and meta.namespace is not None and any(rows_of(meta.namespace)):
        slot, steps = _NAMESPACES, steps[1:]
    return _with_names(meta, slot, steps, names, meta.name)


def _with_names(meta: StateMetaInfo, slot: str, steps: Path, names: FieldNames, what: str) -> StateMetaInfo:
    """Return a state with names for the fields of a row in one of its serializers; ``what`` is the start of the row's path."""
    named = name_fields(meta.serializers[slot], steps, names, what)
    return replace(meta, serializers={**meta.serializers, slot: named})


def check_columns(columns: Columns, states: Mapping[str, StateMetaInfo] | Iterable[str]) -> None:
    """Raise an error for paths to states that the operator does not have.

    Raises
    ------
    OptionError
        With the existing names.
    """
    known = list(states)
    for path, _ in columns:
        if path != KEY and all(_steps(path, name) is None for name in known):
            raise OptionError(
                f"columns= names {path!r}, which is not a state", hint=f"use one of {', '.join((KEY, *known))}"
            )


def types_to_declare(meta: StateMetaInfo, key: Serializer | None) -> str:
    """Return the declaration needed for rows that are otherwise raw bytes, as text; empty if there are none."""
    paths: dict[str, Path] = {
        _VALUE: (meta.name,), _NAMESPACES: (meta.name, _NAMESPACE),
        _USER_KEY: (meta.name, KEY), _BROADCAST_KEY: (meta.name, KEY),
    }  # fmt: skip
    roots: list[tuple[Path, Serializer]] = [] if key is None else [((KEY,), key)]
    roots += [(at, meta.serializers[slot]) for slot, at in paths.items() if slot in meta.serializers]
    rows = [((*at, *path), row) for at, serializer in roots for path, row in rows_of(serializer)]
    if meta.kind == "timers":  # the key type is that of the operator
        rows = [(at, row) for at, row in rows if at != (meta.name, KEY)]
    undeclared = [f'"{".".join(at)}": {row.arity} fields' for at, row in rows if isinstance(row, BinaryRowSerializer)]
    words = "rows are bytes until their types are declared, as columns={PATH: 'ROW<...>'}: "
    return words + ", ".join(undeclared) if undeclared else ""


def _steps(path: str, name: str) -> Path | None:
    if path == name:
        return ()
    return tuple(path[len(name) + 1 :].split(".")) if path.startswith(f"{name}.") else None
