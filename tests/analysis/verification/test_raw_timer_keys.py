"""Raw timers whose keys are only readable with outside information, here the version of Kryo."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

import statetool
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from tests.support.snapshots import build
from tests.support.snapshots.canonical import VOID, Subtask, composite_key, group_of, keyed, savepoint

MAX_PARALLELISM = 128
KEY = snapshot_reader(TypeContext(kryo=2)).snapshot(Cursor(build.kryo("java.util.UUID")))
KEYS = [str(uuid.UUID(int=i << 70 | i)) for i in range(1, 9)]


def key_bytes(key: str) -> bytes:
    out = Output()
    KEY.encode(out, key)
    return bytes(out)


def raw_group(keys: list[str]) -> bytes:
    """Return a key group with an event-time timer per key."""
    out = Output(bytes.fromhex("f1cd859f"))
    out.i4(2)
    out.i4(1)
    out.utf("service")
    KEY.write_snapshot(out)
    out += VOID
    out.i4(len(keys))
    for key in keys:
        out += key_bytes(key)
        out.u1(0)
        out.i8(1000 + KEYS.index(key))
    out.i4(0)
    return bytes(out)


def raw_state() -> KeyGroupsHandle:
    data, offsets = b"", []
    for number in range(MAX_PARALLELISM):
        keys = [k for k in KEYS if group_of(KEY, k, MAX_PARALLELISM) == number]
        offsets.append(len(data) if keys else -1)
        data += raw_group(keys) if keys else b""
    return KeyGroupsHandle(tag=3, start=0, offsets=tuple(offsets), stream=ByteStreamHandle(name="raw", data=data))


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    folder = tmp_path / "old"
    folder.mkdir()
    entries = [("v", group_of(KEY, k, MAX_PARALLELISM), composite_key(key_bytes(k)), bytes(8)) for k in KEYS]
    savepoint(folder, [Subtask(key=KEY, states=[keyed("v", "VALUE", build.LONG)], entries=entries)])
    metadata = parse_metadata((folder / "_metadata").read_bytes())
    (operator,) = metadata.operators
    subtasks = tuple(replace(s, raw_keyed=raw_state()) for s in operator.subtasks)
    metadata = replace(metadata, operators=(replace(operator, subtasks=subtasks),))
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return str(folder)


def timers(path: str) -> list[tuple[str, int]]:
    rows = statetool.load(path, uids=["op"])["op"].to_arrow("timers").to_pylist()
    return sorted((row["key"], row["timestamp"]) for row in rows)


def test_timers_are_checked(snapshot: str) -> None:
    assert timers(snapshot) == sorted((k, 1000 + i) for i, k in enumerate(KEYS))
    verification = statetool.verify(snapshot, deep=True)
    assert [p for p in verification.problems if p.severity != "note"] == []
    assert verification.entries == 2 * len(KEYS)


def test_timers_move_with_their_keys(snapshot: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    statetool.rescale(snapshot, target, 64)
    assert timers(target) == timers(snapshot)
    assert statetool.verify(target).ok
