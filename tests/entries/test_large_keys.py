"""Key groups and keys with more entries than a window: of each window only one key is split, and entries are not copied."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.entries import whole_keys
from statetool.entries.form import EntryRequest, KeyGroupReader
from statetool.entries.keys import SplitKeys, split_keys
from statetool.formats.keyed import entries
from statetool.formats.keyed.entries import EntryBatch, concat, drain
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer
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


def test_one_key_of_each_window_is_split(source: KeyGroupReader, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = contents(list(source.batches()))
    assert len(expected) == sum(ENTRIES.values())
    split_entries: list[int] = []

    def counted(batch: EntryBatch, key: Serializer, meta: StateMetaInfo) -> SplitKeys:
        split_entries.append(len(batch))
        return split_keys(batch, key, meta)

    monkeypatch.setattr(whole_keys, "split_keys", counted)
    batches = list(source.batches(EntryRequest(whole_keys=True, memory_bytes=MEMORY_BYTES)))
    assert contents(batches) == expected
    assert set(split_entries) == {1}
    assert len(split_entries) <= 2 * len(batches)
    keys = [{entry[:8] for entry, _ in contents([batch])} for batch in batches]
    assert sum(map(len, keys)) == len(set[bytes]().union(*keys)) == len(ENTRIES)
    assert len(batches) > 2


@pytest.mark.parametrize("large", [2, -1])
def test_a_large_key_of_several_states_is_whole(tmp_path: Path, large: int) -> None:
    """The bytes of -1 are all FF, so that no key follows it."""
    key = canonical.serializer(LONG)
    composite = {k: canonical.composite_key(canonical.encoded(key, k)) for k in (1, 2, 3, -1)}
    of_map = [(k, i) for k in (1, 2, 3, -1) for i in range(5_000 if k == large else 2)]
    stored = [("a", 0, composite[k], b"\0" * 8) for k in (1, 2, -1)]
    stored += [("m", 0, composite[k] + i.to_bytes(8, "big"), b"\0\5" + b"%04d" % i) for k, i in of_map]
    stored += [("z", 0, composite[k], b"\0" * 8) for k in (2, 3, -1)]
    states = [
        canonical.keyed("a", "value", LONG),
        canonical.keyed("m", "map", map_of(LONG, STRING)),
        canonical.keyed("z", "value", LONG),
    ]
    canonical.savepoint(tmp_path, [canonical.Subtask(key=LONG, states=states, entries=stored)], max_parallelism=1)
    (operator,) = statetool.load(str(tmp_path)).operators.values()
    (source,) = operator._operator.keyed.sources()
    batches = list(source.batches(EntryRequest(whole_keys=True, memory_bytes=1 << 12)))
    assert sorted(contents(batches)) == sorted((c, v) for _, _, c, v in stored)
    keys = [{entry[:8] for entry, _ in contents([batch])} for batch in batches]
    assert sum(map(len, keys)) == 4
    (own,) = [batch for batch, found in zip(batches, keys, strict=True) if composite[large][:8] in found]
    assert len(own.data) < 5_100 * 40


@pytest.mark.parametrize("memory_bytes", [64, 4096])
@pytest.mark.parametrize("case", ["v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-canonical-compressed"])
def test_states_of_all_kinds_are_merged(corpus: Path, case: str, memory_bytes: int) -> None:
    """Also timers, which do not begin with their keys."""
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    kinds = set()
    for operator in savepoint.operators.values():
        for source in operator._operator.keyed.sources():
            header = source.header()
            kinds |= {meta.kind for meta in header.states}
            request = EntryRequest(whole_keys=True, memory_bytes=memory_bytes)
            batches = list(source.batches(request))
            assert sorted(contents(batches)) == sorted(contents(list(source.batches())))
            keys: list[set[tuple[int, bytes]]] = []
            for batch in batches:
                found = set()
                for state, meta in enumerate(header.states):
                    if meta.kind != "timers":
                        of_state = batch.of_state(state)
                        split = split_keys(of_state, header.key, meta)
                        bounds = zip(of_state.group.tolist(), split.key.tolist(), split.key_end.tolist(), strict=True)
                        found |= {(group, bytes(of_state.data[low:high])) for group, low, high in bounds}
                keys.append(found)
            assert sum(map(len, keys)) == len(set[tuple[int, bytes]]().union(*keys))
    assert {"value", "list", "map", "timers"} <= kinds


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
