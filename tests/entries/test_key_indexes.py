"""Look-ups in large canonical key groups: the first one reads all, later ones use an index. Both find what a scan finds."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.entries import key_indexes, stream_reader
from statetool.entries.key_indexes import INDEXES
from statetool.errors import FormatError
from statetool.formats.backends import canonical
from statetool.io.files import BYTES_READ
from tests.support.snapshots.build import LONG, STRING, map_of
from tests.support.snapshots.canonical import (
    VOID,
    Subtask,
    composite_key,
    encoded,
    group_of,
    keyed,
    savepoint,
    serializer,
    timers,
)

KEY: Final = serializer(STRING)
TIMERS: Final = "_timer_state/event_t"
STATES: Final = (keyed("v", "value", LONG), keyed("m", "map", map_of(STRING, LONG)), timers(TIMERS, STRING, VOID))
#: Some keys are the beginning of others.
KEYS: Final = [f"k{i}" for i in range(400)]
_Stored = tuple[dict[str, int], dict[str, dict[str, int]], dict[str, list[int]]]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stream_reader, "_LEAST_SEARCHED", 0)
    monkeypatch.setattr(canonical, "STRIDE", 8)
    monkeypatch.setattr(canonical, "_FIND_BYTES", 256)
    INDEXES.reset()
    yield
    INDEXES.reset()


def write(folder: Path, *, ordered: bool, add: int = 0) -> tuple[statetool.Operator, _Stored]:
    """Write some of the keys to two key groups, in the order of RocksDB or in none, and return what they hold."""
    draw = random.Random(3)
    entries: list[tuple[str, int, bytes, bytes]] = []
    values: dict[str, int] = {}
    maps: dict[str, dict[str, int]] = {}
    times: dict[str, list[int]] = {}
    for i, name in enumerate(KEYS):
        if i % 3 == 0:
            continue
        key, group = encoded(KEY, name), group_of(KEY, name, 2)
        values[name] = i + add
        entries.append(("v", group, composite_key(key), encoded(serializer(LONG), i + add)))
        maps[name] = {f"u{k}": k for k in range(40 if i == 100 else draw.randrange(1, 4))}
        for user_key, value in maps[name].items():
            of_map = composite_key(key, user_key=encoded(KEY, user_key))
            entries.append(("m", group, of_map, b"\0" + encoded(serializer(LONG), value)))
        times[name] = [draw.randrange(1 << 40) for _ in range(i % 2)]
        for time in times[name]:
            stamp = (time ^ -(1 << 63)).to_bytes(8, "big", signed=True)
            entries.append((TIMERS, group, stamp + key + b"\0", b""))
    draw.shuffle(entries)
    if ordered:
        entries.sort(key=lambda entry: entry[2])
    folder.mkdir(exist_ok=True)
    return savepoint(folder, [Subtask(key=STRING, states=STATES, entries=entries)], max_parallelism=2), (
        values,
        maps,
        times,
    )


def check(operator: statetool.Operator, stored: _Stored, name: str) -> None:
    values, maps, times = stored
    content = operator.get(name)
    found: dict[str, Any] = {s.state: s.value for s in content.states}
    assert found.get("v") == values.get(name)
    assert dict(found.get("m", ())) == maps.get(name, {})
    assert [t.timestamp for t in content.timers] == sorted(times.get(name, []))
    assert content.found is (name in values)


@pytest.mark.parametrize("ordered", [True, False])
def test_look_ups_with_and_without_an_index_find_all_entries(tmp_path: Path, ordered: bool) -> None:
    operator, stored = write(tmp_path / "sp", ordered=ordered)
    for name in (*KEYS, "k", "", "k4000", "zz", *KEYS):
        check(operator, stored, name)
    assert len(INDEXES.kept) == 2
    assert {section.ordered for sections in INDEXES.kept.values() for section in sections} >= {ordered}
    assert operator.get("k100", ["m"])["m"] == [(f"u{k}", k) for k in range(40)] or not ordered


def test_a_look_up_with_an_index_reads_little(tmp_path: Path) -> None:
    operator, _ = write(tmp_path / "sp", ordered=True)

    def read() -> int:
        before = BYTES_READ.total
        operator.get("k100", ["v"])
        return BYTES_READ.total - before

    operator.get("k1")
    operator.get("k2")
    (source,) = operator.inventory.keyed.sources(groups=[group_of(KEY, "k100", 2)])
    assert read() < sum(source.group_sizes().values()) / 8
    INDEXES.reset()
    assert read() >= sum(source.group_sizes().values())


def test_indexes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, stored = write(tmp_path / "sp", ordered=True)
    check(operator, stored, "k1")
    monkeypatch.setattr(key_indexes, "_MOST_BYTES", INDEXES.size_bytes * 3 // 2)
    for name in KEYS[:40]:
        check(operator, stored, name)
        assert len(INDEXES.kept) == 1
        assert 0 < INDEXES.size_bytes <= key_indexes._MOST_BYTES
    monkeypatch.setattr(key_indexes, "_MOST_BYTES", 1)
    check(operator, stored, "k1")
    check(operator, stored, "k4")
    assert (len(INDEXES.kept), INDEXES.size_bytes) == (0, 0)


def test_a_file_that_was_replaced_has_another_index(tmp_path: Path) -> None:
    """As a job writes it that uses the same directory again."""
    operator, stored = write(tmp_path / "sp", ordered=True)
    check(operator, stored, "k100")
    other, changed = write(tmp_path / "new", ordered=True, add=1)
    for file in (tmp_path / "new").iterdir():
        os.replace(file, tmp_path / "sp" / file.name)
    check(statetool.load(str(tmp_path / "sp"))[other.name], changed, "k100")


@pytest.mark.parametrize("ordered", [True, False])
def test_damage_anywhere_in_the_key_group_is_an_error(tmp_path: Path, ordered: bool) -> None:
    """A key that was not found could be in the damaged bytes."""
    operator, _ = write(tmp_path / "sp", ordered=ordered)
    (source,) = operator.inventory.keyed.sources(groups=[group_of(KEY, "k3", 2)])
    ((number, size),) = source.group_sizes().items()
    file = tmp_path / "sp" / Path(source.file).name
    raw = file.read_bytes()
    (place,) = source.within([number]).ranges  # type: ignore[union-attr]
    for at in range(place.offset + 2, place.offset + size - 40, size // 9):
        damaged = bytearray(raw)
        damaged[at : at + 40] = b"\xff" * 40
        file.write_bytes(damaged)
        INDEXES.reset()
        with pytest.raises(FormatError):
            statetool.load(str(tmp_path / "sp"))[operator.name].get("k3")
