"""Keys with more entries than a window: each window is split and copied once."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.entries.form import EntryRequest, KeyGroupReader
from statetool.entries.keys import SplitKeys
from statetool.entries.selection import StateSelection
from statetool.formats.keyed import entries
from statetool.formats.keyed.entries import EntryBatch, concat, drain
from tests.support.snapshots import canonical
from tests.support.snapshots.build import LONG, STRING, map_of

#: Entries of each key. All are in one key group.
ENTRIES = {1: 3, 2: 12_000, 3: 1, 4: 8_000, 5: 2}
MEMORY_BYTES = 1 << 18


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> KeyGroupReader:
    path = tmp_path_factory.mktemp("large")
    key = canonical.serializer(LONG)
    stored = [
        (
            "m",
            0,
            canonical.composite_key(canonical.encoded(key, k), user_key=i.to_bytes(8, "big")),
            b"\0\5" + b"%04d" % (i % 9999),
        )
        for k, n in ENTRIES.items()
        for i in range(n)
    ]
    states = [canonical.keyed("m", "map", map_of(LONG, STRING))]
    canonical.savepoint(path, [canonical.Subtask(key=LONG, states=states, entries=stored)], max_parallelism=1)
    (operator,) = statetool.load(str(path)).operators.values()
    (found,) = operator._operator.keyed.sources()
    return found


def contents(batches: list[EntryBatch]) -> list[tuple[bytes, bytes]]:
    return [
        (bytes(b.data[b.key[i] : b.key_end[i]]), bytes(b.data[b.value[i] : b.value_end[i]]))
        for b in batches
        for i in range(len(b))
    ]


def test_each_window_is_split_once(source: KeyGroupReader, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = contents(list(source.batches()))
    assert len(expected) == sum(ENTRIES.values())
    split_entries = 0

    def counted(self: StateSelection, batch: EntryBatch, state: int) -> tuple[EntryBatch, SplitKeys]:
        nonlocal split_entries
        split_entries += len(batch)
        return split(self, batch, state)

    split = StateSelection.split
    monkeypatch.setattr(StateSelection, "split", counted)
    batches = list(source.batches(EntryRequest(whole_keys=True, memory_bytes=MEMORY_BYTES)))
    assert contents(batches) == expected
    assert split_entries == len(expected)
    keys = [{entry[:8] for entry, _ in contents([batch])} for batch in batches]
    assert sum(map(len, keys)) == len(set[bytes]().union(*keys)) == len(ENTRIES)
    assert len(batches) > 2


@pytest.mark.parametrize("ordered", [True, False])
def test_batches_do_not_grow_with_the_key_group(tmp_path: Path, ordered: bool) -> None:
    """All entries of a key come together, from merged states or through local disk, in batches within the memory of a request."""
    key = canonical.serializer(LONG)
    memory_bytes = 1 << 15
    for keys in (2_000, 8_000):
        order = sorted(range(keys), key=lambda k: k if ordered else k * 7919 % keys)
        states = [canonical.keyed(name, "value", LONG) for name in ("a", "b")]
        stored = [(m, 0, canonical.composite_key(canonical.encoded(key, k)), b"\0" * 8) for m in "ab" for k in order]
        path = tmp_path / f"{keys}"
        path.mkdir()
        canonical.savepoint(path, [canonical.Subtask(key=LONG, states=states, entries=stored)], max_parallelism=1)
        (operator,) = statetool.load(str(path)).operators.values()
        (source,) = operator._operator.keyed.sources()
        batches = list(source.batches(EntryRequest(whole_keys=True, memory_bytes=memory_bytes)))
        assert sum(map(len, batches)) == 2 * keys
        assert len({entry[:8] for b in batches for entry, _ in contents([b])}) == keys
        assert max(len(b.data) for b in batches) <= memory_bytes < 32 * keys


def test_batches_are_freed_while_they_are_copied(source: KeyGroupReader, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = list(source.batches(EntryRequest(batch_bytes=1 << 16)))
    assert len(windows) > 5
    expected = contents(windows)
    assert contents([concat(windows)]) == expected
    buffers = [weakref.ref(window.data) for window in windows]
    left: list[int] = []

    def returned(*_: Any) -> None:
        left.append(sum(buffer() is not None for buffer in buffers))

    monkeypatch.setattr(entries, "_RETURNED_BYTES", 0)
    monkeypatch.setattr(entries, "return_freed_memory", returned)
    assert contents([drain(windows)]) == expected
    assert not windows
    assert left == list(range(len(buffers) - 1, 0, -1))


def test_positions_of_concatenated_batches(source: KeyGroupReader) -> None:
    """Each region has the place of its bytes in the file."""
    windows = list(source.batches(EntryRequest(batch_bytes=1 << 16)))
    together = concat(windows)
    raw = Path(windows[0].file).read_bytes()
    assert [r.key_group for r in together.regions] == [0] * len(windows)
    for region, following in zip(together.regions, [*together.regions[1:], None], strict=True):
        end = len(together.data) if following is None else following.start
        assert raw[region.offset : region.offset + end - region.start] == bytes(together.data[region.start : end])
