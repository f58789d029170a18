"""A look-up reads one key group: files, bytes and requests that depend on each other, in a simulated object store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.entries import stream_reader
from statetool.entries.streams import StreamSource
from statetool.formats import stream as streams
from statetool.formats.key_groups import range_for
from statetool.formats.rocksdb import files as database_files
from statetool.io import requests
from statetool.io.requests import REQUESTS
from tests.support.servers.simulated_store import World, add_file, simulated_store
from tests.support.snapshots.build import LONG, STRING
from tests.support.snapshots.canonical import (
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
    timers,
)
from tests.support.snapshots.native import native_savepoint

_SUBTASKS: Final = 4
_KIB: Final = 1 << 10
_KEY: Final = 77
#: Metadata, headers, and then what databases need one after another: manifest and ends of tables, indexes, blocks.
_MOST_IN_A_ROW: Final = 6
_KEYS: Final = 4000
#: Two rows of a state are more than a block.
_VALUE_BYTES: Final = 2 << 10


@pytest.fixture
def world() -> Iterator[World]:
    REQUESTS.reset()
    with simulated_store(0) as made:
        yield made
    REQUESTS.reset()


def subtasks() -> list[Subtask]:
    long = serializer(LONG)
    draw = random.Random(1)
    states = [keyed("a", "value", LONG), keyed("b", "value", STRING), timers("_timer_state/event_t", LONG)]
    entries: list[list[tuple[str, int, bytes, bytes]]] = [[] for _ in range(_SUBTASKS)]
    for key in range(_KEYS):
        group, raw = group_of(long, key, 128), encoded(long, key)
        of_subtask = entries[group * _SUBTASKS // 128]
        text = encoded(serializer(STRING), draw.randbytes(_VALUE_BYTES // 2).hex())
        of_subtask += [("a", group, composite_key(raw), raw), ("b", group, composite_key(raw), text)]
        stamp = (key ^ -(1 << 63)).to_bytes(8, "big", signed=True)
        of_subtask.append(("_timer_state/event_t", group, stamp + raw + b"\0", b""))
    return [Subtask(key=LONG, states=states, entries=of_subtask) for of_subtask in entries]


def upload(world: World, folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            add_file(world, f"bucket/{file.relative_to(folder.parent)}", file.read_bytes())


def look_up(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, set[str]]:
    """Look up a key in a new process that knows nothing, and return its content and the files of state that were read."""
    monkeypatch.setattr(requests, "WHOLE_BYTES", _KIB)
    monkeypatch.setattr(streams, "_TAIL_BYTES", 8 * _KIB)
    monkeypatch.setattr(database_files, "_FEW_FILES", 0)
    world.together = True
    content = statetool.load("sim://bucket/sp", uids=["op"])["op"].get(_KEY)
    read = {path.removeprefix("bucket/sp/") for kind, path, *_ in world.requests if kind == "GET"}
    assert content["a"] == _KEY
    assert len(content["b"]) == _VALUE_BYTES
    assert [t.timestamp for t in content.timers] == [_KEY]
    assert world.chain() <= _MOST_IN_A_ROW
    return content, read - {"_metadata"}


@pytest.mark.parametrize("searched", [False, True])
def test_a_canonical_savepoint(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searched: bool) -> None:
    if searched:
        monkeypatch.setattr(stream_reader, "_LEAST_SEARCHED", 0)
    (tmp_path / "sp").mkdir()
    operator = savepoint(tmp_path / "sp", subtasks())
    upload(world, tmp_path / "sp")
    content, _ = look_up(world, monkeypatch)
    (source,) = operator.inventory.keyed.sources(groups=[content.key_group])
    assert isinstance(source, StreamSource)
    (group,) = source.ranges
    (own,) = (i for i in range(_SUBTASKS) if content.key_group in range_for(i, _SUBTASKS, 128))
    # The header of each subtask, because their states may differ, and the bytes of one key group.
    read = {path.rpartition("/")[2]: ranges for path, ranges in world.ranges.items() if "keyed-" in path}
    header = (0, source.header_size)
    expected = {f"keyed-{i}": [header] for i in range(_SUBTASKS)}
    expected[f"keyed-{own}"] = [header, (group.offset, group.offset + group.size_bytes)]
    assert read == expected


def test_a_database(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sp").mkdir()
    native_savepoint(tmp_path / "sp", subtasks())
    upload(world, tmp_path / "sp")
    content, read = look_up(world, monkeypatch)
    (own,) = (i for i in range(_SUBTASKS) if content.key_group in range_for(i, _SUBTASKS, 128))
    assert {path.partition("/")[0] for path in read} == {f"db-{own}"}
    # Of each state a block, and of the timers those of the key group.
    tables = {path: ranges for path, ranges in world.ranges.items() if path.endswith(".sst")}
    assert max(map(len, tables.values())) <= 2
    sizes = {path: world.objects[path].size for path in tables}
    blocks = [end - start for path, ranges in tables.items() for start, end in ranges if end < sizes[path]]
    assert 0 < max(blocks) < 8 * _KIB
    assert sum(blocks) < sum(sizes.values()) / 50


def test_looking_up_again_reads_no_metadata(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sp").mkdir()
    savepoint(tmp_path / "sp", subtasks())
    upload(world, tmp_path / "sp")
    monkeypatch.setattr(requests, "WHOLE_BYTES", _KIB)
    operator = statetool.load("sim://bucket/sp", uids=["op"])["op"]
    operator.get(_KEY)
    world.requests.clear()
    assert operator.get(_KEY + 1)["a"] == _KEY + 1
    assert len(world.requests) <= 2
    assert not any(path.endswith("_metadata") for _, path, *_ in world.requests)
