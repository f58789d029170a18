"""Key groups larger than memory, and entries that two subtasks must not both have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from statetool.errors import FormatError, StatetoolError
from statetool.formats.compression import read_chunks
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.saving.streams.gather import Gatherer
from statetool.saving.streams.output import KeyedStreamWriter
from statetool.saving.streams.runs import (
    PRESENCE,
    PackedRun,
    Segments,
    Spill,
    cuts,
    deal_run,
    lowest_of,
    order_of_groups,
    pack_run,
)
from tests.support.snapshots.canonical import key_group_bytes
from tests.support.snapshots.entry_batches import Record, batch_of


def gather(
    runs: list[list[Record]],
    groups: range,
    *,
    prefix: int = 1,
    memory: int = 1 << 20,
    compressed: bool = False,
    lists: tuple[int, ...] = (),
    limit: int = 1 << 30,
    with_lowest: bool = False,
) -> tuple[bytes, list[int]]:
    """Return the bytes of the stream written from runs, after a header, and the offsets of its key groups.

    ``with_lowest``: the lowest entry of each segment is known.
    """

    def duplicate(group: int, state: int, key: bytes) -> StatetoolError:
        return FormatError(f"{key!r} is twice in state {state} of key group {group}")

    out = bytearray()
    writer = KeyedStreamWriter(out.extend, b"header", groups, compressed=compressed)
    with Spill() as spill:
        for place, run in enumerate(runs):
            batch = batch_of(run)
            for piece in cuts(batch, order_of_groups(batch.group, batch.state), None, limit):
                packed = pack_run(batch, piece, prefix)
                lowest = lowest_of(batch.take(piece), packed.numbers, lists) if with_lowest else None
                spill.add(packed, place, lowest=lowest)
        gatherer = Gatherer(prefix, lists=lists, duplicate=duplicate, memory_bytes=memory)
        gatherer.write(writer, spill.segments())
    return bytes(out), writer.offsets.tolist()


def random_runs(seed: int, groups: range, n: int, runs: int) -> list[list[Record]]:
    rng = np.random.default_rng(seed)
    values: dict[tuple[int, int, bytes], bytes] = {}
    for _ in range(n):
        key = bytes(rng.integers(0, 4, rng.integers(1, 14), dtype=np.uint8))
        place = (int(rng.choice(groups)), int(rng.integers(0, 3)), key)
        values[place] = bytes(rng.integers(0, 256, rng.integers(0, 50), dtype=np.uint8))
    records = [(*place, value) for place, value in values.items()]
    return [run for i in range(runs) if (run := records[i::runs])]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("max_parallelism", "memory"), [(128, 1 << 20), (128, 2000), (1000, 2000), (1000, 300)])
def parts_of(out: bytes, offsets: list[int], *, compressed: bool) -> list[bytes]:
    """Return the bytes of each key group, empty for an empty one."""
    ends = [*sorted(o for o in offsets if o), len(out)]
    parts = [out[o : ends[ends.index(o) + 1]] if o else b"" for o in offsets]
    return [b"".join(c.data for c in read_chunks(memoryview(f), base=0)) if f and compressed else f for f in parts]


def key_group(number: int, prefix: int, records: list[Record]) -> bytes:
    """Return the sorted canonical key group of records; empty if none belong to it."""
    here = sorted(r[1:] for r in records if r[0] == number)
    states = [(s, [(k, v) for t, k, v in here if t == s]) for s in range(3)]
    return key_group_bytes(number, prefix, states) if here else b""


@pytest.mark.parametrize("with_lowest", [False, True])
@pytest.mark.parametrize("limit", [1 << 30, 150])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("max_parallelism", "memory"), [(128, 1 << 20), (128, 2000), (1000, 2000), (1000, 300)])
def test_runs_are_merged_in_order_within_little_memory(
    compressed: bool,
    max_parallelism: int,
    memory: int,
    limit: int,
    with_lowest: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("statetool.saving.streams.gather._LEAST_WINDOW", 200)
    groups = range(5, 9)
    runs = random_runs(7, range(5, 8), 900, 6)
    prefix = 1 if max_parallelism <= 128 else 2
    out, offsets = gather(
        runs, groups, prefix=prefix, memory=memory, compressed=compressed, limit=limit, with_lowest=with_lowest
    )
    assert out.startswith(b"header")
    parts = parts_of(out, offsets, compressed=compressed)
    assert parts == [key_group(g, prefix, [r for run in runs for r in run]) for g in groups]


@pytest.mark.parametrize("with_lowest", [False, True])
@pytest.mark.parametrize("memory", [1 << 20, 2000, 300])
def test_what_only_shows_a_key_is_not_written(memory: int, with_lowest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.saving.streams.gather._LEAST_WINDOW", 200)
    runs = random_runs(3, range(5, 7), 600, 4)
    shown = [(g, PRESENCE | s, k + b"\xff", b"") for run in runs for g, s, k, _ in run[::3]]
    alone = [(7, PRESENCE | 5, i.to_bytes(4, "big"), b"") for i in range(200)]
    out, offsets = gather([*runs, shown, alone], range(5, 8), memory=memory, with_lowest=with_lowest)
    parts = parts_of(out, offsets, compressed=False)
    assert parts == [key_group(g, 1, [r for run in runs for r in run]) for g in range(5, 8)]
    twice = [(5, PRESENCE | s, k, b"") for g, s, k, _ in runs[0] if g == 5][:1]
    with pytest.raises(FormatError, match="is twice"):
        gather([*runs, twice], range(5, 8), memory=memory, with_lowest=with_lowest)


@pytest.mark.parametrize("with_lowest", [False, True])
@pytest.mark.parametrize("memory", [1 << 20, 2000, 300])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_elements_of_lists_are_put_together_by_their_index(
    memory: int, compressed: bool, in_order: bool, with_lowest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetool.saving.streams.gather._LEAST_WINDOW", 200)
    rng = np.random.default_rng(5)
    lists = {(5 + i % 2, i.to_bytes(2, "big")): [b"%d-%d" % (i, j) for j in range(i % 40)] for i in range(90)}
    others = [(g, s, k, v) for run in random_runs(5, range(5, 7), 200, 1) for g, s, k, v in run if s != 1]
    elements = [(g, 1, k + j.to_bytes(8, "big"), v) for (g, k), values in lists.items() for j, v in enumerate(values)]
    records = [*others, *elements]
    mixed = sorted(records) if in_order else [records[i] for i in rng.permutation(len(records))]
    runs = [mixed[i::7] for i in range(7)]
    out, offsets = gather(
        runs, range(5, 7), memory=memory, compressed=compressed, lists=(1,), limit=100, with_lowest=with_lowest
    )
    expected = [*others, *((g, 1, k, b",".join(values)) for (g, k), values in lists.items() if values)]
    assert parts_of(out, offsets, compressed=compressed) == [key_group(g, 1, expected) for g in range(5, 7)]
    with pytest.raises(FormatError, match="is twice in state 1"):
        gather([*runs, elements[:1]], range(5, 7), memory=memory, lists=(1,), limit=100, with_lowest=with_lowest)


@pytest.mark.parametrize("begins_alike", [False, True])
def test_memory_does_not_grow_with_the_key_group(begins_alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large key group is divided into parts; keys that begin alike cannot be divided, and are merged."""
    loaded: list[int] = []
    merged: list[int] = []

    def load(self: Segments) -> PackedRun:
        loaded.append(self.size_bytes)
        return whole(self)

    def merge(self: Gatherer, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        merged.append(segments.size_bytes)
        return merging(self, segments)

    whole, merging, memory = Segments.load, Gatherer.merged, 8_000
    monkeypatch.setattr(Segments, "load", load)
    monkeypatch.setattr(Gatherer, "merged", merge)
    monkeypatch.setattr("statetool.saving.streams.gather._LEAST_WINDOW", 200)
    rng = np.random.default_rng(1)
    for n in (500, 2_000):
        begin = b"x" * 16 if begins_alike else b""
        records = [
            (5, i % 2, begin + key.to_bytes(8, "big"), b"%d" % i) for i, key in enumerate(rng.permutation(n).tolist())
        ]
        loaded.clear()
        merged.clear()
        out, offsets = gather([sorted(records[i::9]) for i in range(9)], range(5, 6), memory=memory, limit=60)
        assert parts_of(out, offsets, compressed=False) == [key_group(5, 1, records)]
        assert max(loaded) <= memory < sum(loaded)
        assert bool(merged) == begins_alike


@pytest.mark.parametrize(("in_order", "known"), [(True, 9), (False, 9), (True, 4), (True, 0)])
def test_a_large_key_group_in_order_is_read_once(in_order: bool, known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is stored again on local disk. Only a key group whose runs have no order, or no known one, is divided."""
    loaded: list[int] = []
    added: list[int] = []
    divided: list[int] = []

    def load(self: Segments) -> PackedRun:
        loaded.append(self.size_bytes)
        return whole(self)

    def add(self: Spill, run: PackedRun, place: int, *, lowest: Any = None) -> None:
        added.append(len(run.data))
        adding(self, run, place, lowest=lowest if place < known else None)

    def divide(self: Gatherer, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        divided.append(len(loaded))
        return dividing(self, segments)

    whole, adding, dividing, memory = Segments.load, Spill.add, Gatherer.parts, 8_000
    monkeypatch.setattr(Segments, "load", load)
    monkeypatch.setattr(Spill, "add", add)
    monkeypatch.setattr(Gatherer, "parts", divide)
    keys = range(2_000) if in_order else np.random.default_rng(1).permutation(2_000).tolist()
    records = [(5, s, key.to_bytes(8, "big"), b"%d" % key) for s in range(2) for key in keys]
    runs = [records[i::9] for i in range(9)]
    out, offsets = gather(runs, range(5, 6), memory=memory, limit=150, with_lowest=True)
    assert parts_of(out, offsets, compressed=False) == [key_group(5, 1, records)]
    assert max(loaded) <= memory // 2
    stored = sum(len(deal_run(batch_of(run), 1).data) for run in runs)
    once = in_order and known == len(runs)
    assert (sum(loaded) < 1.5 * stored) == (sum(added) < 1.5 * stored) == once, (sum(loaded), sum(added), stored)
    # If too little is known, it is divided before anything is read.
    assert [read > 0 for read in divided[:1]] == ([] if once else [known == len(runs)])


@pytest.mark.parametrize("memory", [1 << 20, 10])
def test_one_key_in_two_runs_is_refused(memory: int) -> None:
    runs = [[(5, 1, b"key", b"1")], [(5, 0, b"key", b"2"), (5, 1, b"key", b"3")]]
    with pytest.raises(FormatError, match="b'key' is twice in state 1 of key group 5"):
        gather(runs, range(5, 6), memory=memory)


def test_key_groups_that_are_sorted_already_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("packed again")

    runs = [sorted(run) for run in random_runs(5, range(5, 8), 300, 1)]
    expected = [key_group(g, 1, [r for run in runs for r in run]) for g in range(5, 9)]
    monkeypatch.setattr(Gatherer, "settled", refuse)
    out, offsets = gather(runs, range(5, 9))
    assert parts_of(out, offsets, compressed=False) == expected


def test_runs_of_a_place_keep_their_order_whichever_files_they_are_in() -> None:
    """Elements of operator state are written in this order; each concurrent thread adds to another file."""
    runs = {
        (place, i): deal_run(batch_of([(7, 1, b"k%d%d" % (place, i), b"v")]), 1) for place in range(3) for i in range(5)
    }

    class Meanwhile:
        """Bytes during whose writing another run is added."""

        def __init__(self, place: int, i: int, others: list[tuple[int, int]]) -> None:
            self.place, self.i, self.others = place, i, others

        def __len__(self) -> int:
            return len(runs[self.place, self.i].data)

        @property
        def data(self) -> memoryview:
            for other in self.others:
                spill.add(runs[other], other[0])
            return runs[self.place, self.i].data.data

    def add(place: int, i: int, *others: tuple[int, int]) -> None:
        spill.add(replace(runs[place, i], data=Meanwhile(place, i, list(others))), place)  # type: ignore[arg-type]

    with Spill() as spill:
        add(1, 0, (0, 0), (2, 0))
        add(0, 1, (1, 1))
        add(2, 1, (0, 2), (0, 3), (1, 2))
        add(1, 3, (2, 2))
        add(0, 4, (1, 4), (2, 3))
        add(2, 4)
        stored = spill.segments()
        assert len(stored.files) == 2
        entries = [segment.load().entries(1) for segment in stored.cut(1)]
        keys = [bytes(e.data[e.key[0] : e.key_end[0]]) for e in entries]
        together = stored.load().entries(1)
    assert keys == [b"k%d%d" % place for place in runs]
    assert sorted(bytes(together.data[s:e]) for s, e in zip(together.key, together.key_end, strict=True)) == keys
