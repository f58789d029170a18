"""Savepoints of two operators. One has state that statetool cannot read."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import statetool
from statetool.formats.metadata import SnapshotMetadata, parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle, RelativeFileHandle
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io.output import Output
from tests.support.snapshots import build, canonical
from tests.support.snapshots.native import native_savepoint

GOOD: Final = "good"
BAD: Final = "bad"
#: A serializer, and the class name that replaces the real one: no release of Flink has such a class.
_CHAR: Final = build.simple("Char")
_KNOWN: Final = b"CharSerializer$CharSerializerSnapshot"
_UNKNOWN: Final = b"OursSerializer$OursSerializerSnapshot"
#: Kinds of unreadable state.
KINDS: Final = (
    "key", "value", "database key", "database value", "database list", "database map", "operator state", "raw timers",
)  # fmt: skip


def savepoint(folder: Path, kind: str, *, value: int = 0) -> statetool.Savepoint:
    """Write a savepoint with the operators ``good`` and ``bad``, each with the keyed state ``count`` of one key, and open it.

    ``kind`` is the unreadable part of the operator ``bad``; ``value`` is the value of both.
    """
    good, bad = folder / GOOD, folder / BAD
    for place in (good, bad):
        place.mkdir(parents=True)
    canonical.savepoint(good, [_subtask("", value)])
    if kind.startswith("database"):
        native_savepoint(bad, [_subtask(kind, value)])
    else:
        elements = {"elements": canonical.ListState(value=_CHAR, elements=[[bytes(2)]])}
        states = elements if kind == "operator state" else None
        canonical.savepoint(bad, [_subtask(kind, value)], operator_states=states)
    for file in bad.iterdir():
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(_KNOWN, _UNKNOWN))
    operators = []
    for name in (GOOD, BAD):
        (operator,) = parse_metadata((folder / name / "_metadata").read_bytes()).operators
        operator = replace(_moved(operator, name), operator_id=operator_id_for_uid(name))
        if name == BAD and kind == "raw timers":
            raw = _raw_timers(_CHAR.replace(_KNOWN, _UNKNOWN))
            operator = replace(operator, subtasks=tuple(replace(s, raw_keyed=raw) for s in operator.subtasks))
        operators.append(operator)
    metadata = SnapshotMetadata(version=3, checkpoint_id=0, operators=tuple(operators))
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return statetool.load(str(folder), uids=[GOOD, BAD])


def _subtask(kind: str, value: int) -> canonical.Subtask:
    key = _CHAR if kind.endswith("key") else build.INT
    raw = (7).to_bytes(2 if key == _CHAR else 4, "big")
    group = 0 if key == _CHAR else canonical.group_of(canonical.serializer(key), 7, 128)
    state, user_key, number = canonical.keyed("count", "value", build.LONG), b"", value.to_bytes(8, "big")
    if kind.endswith("value"):
        state, number = canonical.keyed("count", "value", _CHAR), value.to_bytes(2, "big")
    elif kind.endswith("list"):
        state, number = canonical.keyed("count", "list", build.list_of(_CHAR)), b"\0\1," + value.to_bytes(2, "big")
    elif kind.endswith("map"):
        state = canonical.keyed("count", "map", build.map_of(_CHAR, build.LONG))
        user_key, number = b"\0\1", b"\0" + number
    entry = ("count", group, canonical.composite_key(raw, user_key=user_key), number)
    return canonical.Subtask(key=key, states=[state], entries=[entry])


def _moved(value: Any, folder: str) -> Any:
    """Return part of metadata whose relative files are in a neighboring folder."""
    if isinstance(value, tuple):
        return tuple(_moved(v, folder) for v in value)
    if isinstance(value, RelativeFileHandle):
        return replace(value, path=f"{folder}/{value.path}")
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _moved(getattr(value, f.name), folder) for f in fields(value) if f.init})
    return value


def _raw_timers(key: bytes) -> KeyGroupsHandle:
    """Return an empty timer service in raw keyed state, with a key serializer."""
    out = Output(bytes.fromhex("f1cd859f"))
    out.i4(2)
    out.i4(1)
    out.utf("service")
    out += key
    out += canonical.VOID
    out.i4(0)
    out.i4(0)
    offsets = tuple(0 if number == 0 else -1 for number in range(128))
    return KeyGroupsHandle(tag=3, start=0, offsets=offsets, stream=ByteStreamHandle(name="raw", data=bytes(out)))
