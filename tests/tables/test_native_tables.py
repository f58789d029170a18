"""The same entries in a canonical stream and in databases give the same rows."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.formats.backends import native
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.rocksdb.slices import Slice
from statetool.tables import read, scan, splits
from statetool.tables.splits import Split
from tests.support.quick import fewer_uncompiled
from tests.support.snapshots.build import INT, LONG, STRING, composite
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
from tests.support.snapshots.native import Entry, native_savepoint

KEY = serializer(STRING)
LIST = composite("org.apache.flink.api.common.typeutils.base.ListSerializerSnapshot", 1, b"", INT)
MAP = composite("org.apache.flink.api.common.typeutils.base.MapSerializerSnapshot", 1, b"", STRING, LONG)
TIMERS = "_timer_state/event_user-timers"


def entries_of(number: int, group: int) -> list[Entry]:
    """Return entries of one key: all kinds of state, one with a namespace that makes keys ambiguous, and timers."""
    key = encoded(KEY, f"key {number}" * (1 + number % 40))
    number_bytes = encoded(serializer(INT), number)
    void = composite_key(key)
    entries = [("value", group, void, number_bytes)]
    if number % 2:
        entries.append(("list", group, void, b",".join([number_bytes] * (number % 5 + 1))))
    for i in range(number % 4):
        user_key = encoded(KEY, f"m{i}")
        entries.append(("map", group, composite_key(key, user_key=user_key), b"\0" + bytes(8) if i else b"\1"))
    for i in range(number % 3):
        namespace = encoded(KEY, f"namespace {i}" * 20 * i)
        entries.append(("spaces", group, composite_key(key, namespace, ambiguous=True), number_bytes))
    if number % 7 == 0:
        timestamp = (number ^ -(1 << 63)).to_bytes(8, "big", signed=True)
        entries.append((TIMERS, group, timestamp + key + b"\0", b""))
    return entries


@pytest.fixture(params=fewer_uncompiled([7, 128, 300], 7, 300))  # key groups take one byte, or two
def both(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[statetool.Operator, statetool.Operator]:
    max_parallelism: int = request.param
    states = [
        keyed("value", "value", INT),
        keyed("list", "list", LIST),
        keyed("map", "map", MAP),
        keyed("spaces", "value", INT, namespace=STRING),
        timers(TIMERS, STRING, VOID),
    ]
    by_subtask: list[list[Entry]] = [[], []]
    for number in range(150):
        group = group_of(KEY, f"key {number}" * (1 + number % 40), max_parallelism)
        by_subtask[group > (max_parallelism - 1) // 2].extend(entries_of(number, group))
    subtasks = [Subtask(key=STRING, states=states, entries=e) for e in by_subtask]
    (tmp_path / "canonical").mkdir()
    (tmp_path / "native").mkdir()
    # Remains from before a rescale: older values of keys that belong to the other subtask.
    outside = [e for entries in by_subtask for e in entries if e[0] != "map"]
    outside = [(s, g, k, encoded(serializer(INT), -1) if v else b"") for s, g, k, v in outside]
    canonical = savepoint(tmp_path / "canonical", subtasks, max_parallelism=max_parallelism)
    return canonical, native_savepoint(tmp_path / "native", subtasks, max_parallelism=max_parallelism, outside=outside)


def rows(op: statetool.Operator, table: str, **arguments: Any) -> list[str]:
    return sorted(map(repr, op.to_arrow(table, **arguments).to_pylist()))


@pytest.mark.parametrize("table", ["keyed_state", "value", "list", "map", "spaces", "timers"])
def test_rows_are_the_same(both: tuple[statetool.Operator, statetool.Operator], table: str) -> None:
    canonical, database = both
    assert canonical.tables == database.tables
    wanted = rows(canonical, table, key_group=True)
    assert wanted
    assert rows(database, table, key_group=True) == wanted
    assert rows(database, table, key_group=True, split_bytes=1000) == wanted
    keys = ["key 3" * 4, "key 14" * 15, "none"]
    assert rows(database, table, keys=keys) == rows(canonical, table, keys=keys)


def test_nothing_keeps_a_batch_of_entries_while_the_next_one_is_read(
    both: tuple[statetool.Operator, statetool.Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_of_slices = native.batch_of_slices
    kept: list[int] = []
    batches: list[weakref.ref[Any]] = []

    def combine(slices: Sequence[tuple[int, Slice]], prefix: int, name: str) -> EntryBatch:
        kept.append(sum(state() is not None for state in batches))
        batch = batch_of_slices(slices, prefix, name)
        batches.append(weakref.ref(batch.state))
        return batch

    monkeypatch.setattr(native, "batch_of_slices", combine)
    monkeypatch.setattr(native, "_LEAST_SLICE", 100)
    monkeypatch.setattr(splits, "_BATCH_BYTES", 1)
    (split, *_) = both[1].scan().splits
    assert sum(batch.num_rows for batch in read.read_split(split)) > 10
    assert len(kept) > 2
    assert not any(kept)


def test_a_large_table_is_read_on_several_threads_in_the_same_order(
    both: tuple[statetool.Operator, statetool.Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, numbers = threading.Barrier(2), count()

    def read_split(split: Split, *, reads_on: bool) -> Iterator[pa.RecordBatch]:
        assert reads_on
        if next(numbers) < 2:  # raises an error if no other thread comes
            meeting.wait(60)
        return read.read_split(split, reads_on=reads_on)

    for operator in both:
        expected = operator.to_arrow(split_bytes=1000)
        with monkeypatch.context() as patch:
            patch.setattr(scan, "read_split", read_split)
            patch.setattr(scan, "_THREADED_BYTES", 1)
            patch.setattr("os.cpu_count", lambda: 3)
            assert operator.to_arrow(split_bytes=1000).equals(expected)
    assert next(numbers) > 4
