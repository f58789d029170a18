"""Timers that a header has twice, after a switch of the timer service of the RocksDB backend."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.entries.doubled_timers import join_doubled
from statetool.entries.form import EntryRequest
from statetool.errors import FormatError
from statetool.formats.keyed.entries import EntryBatch
from tests.support.snapshots import canonical
from tests.support.snapshots.build import LONG

NAME: Final = "_timer_state/event_user-timers"
EDITS: Final[dict[str, Callable[[str, str], object]]] = {
    "rescaled": lambda src, dst: statetool.rescale(src, dst, 256),
    "edited": lambda src, dst: (
        statetool.load(src)["acc"].transform(add_one, states=["sum"], in_batches=True).write(dst)
    ),
    "erased": lambda src, dst: statetool.erase(src, dst, [7]),
    "converted": lambda src, dst: statetool.convert(src, dst),
    "copied": lambda src, dst: statetool.copy(src, dst),
}
#: Times of the timers under the first and under the second id. Both have 3.
FIRST, SECOND = (1, 2, 3), (0, 3, 4, 5)
TIMER_BYTES: Final = 17


def add_one(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index("sum"), "sum", pc.add(rows["sum"], 1))


def timers(path: object) -> list[dict[str, Any]]:
    rows = statetool.load(str(path))["acc"].to_arrow("timers", states=[NAME]).to_pylist()
    return sorted(rows, key=lambda row: (row["key"], row["timestamp"]))


def test_timers_of_both_ids_are_read(restores: Path) -> None:
    before = timers(restores / "rocksdb-timers-native")
    assert len(before) == 200
    assert timers(restores / "timers-twice-in-header") == before


@pytest.mark.parametrize("edit", EDITS)
def test_edits_keep_timers_of_both_ids(restores: Path, tmp_path: Path, edit: str) -> None:
    before, after = restores / "timers-twice-in-header", tmp_path / "after"
    EDITS[edit](str(before), str(after))
    expected = [row for row in timers(before) if edit != "erased" or row["key"] != 7]
    assert len(expected) == (200 if edit != "erased" else 196)
    assert timers(after) == expected
    assert not statetool.verify(str(after), deep=True).problems


def test_diff_reads_timers_of_both_ids(restores: Path) -> None:
    before, after = (statetool.load(str(restores / n)) for n in ("rocksdb-timers-native", "timers-twice-in-header"))
    assert before.diff(after).equal


def savepoint(folder: Path, first: str, second: str, *, as_second: str) -> statetool.Operator:
    """Write a savepoint with timers ``first``, a state, and timers ``second``, which the header then calls ``as_second``."""
    key = canonical.serializer(LONG)
    states = [canonical.timers(first, LONG), canonical.keyed("v", "value", LONG), canonical.timers(second, LONG)]

    def timer(time: int) -> bytes:
        return (time ^ 1 << 63).to_bytes(8, "big") + canonical.encoded(key, time % 2) + b"\0"

    entries = [(first, 0, timer(time), b"") for time in FIRST]
    entries += [("v", 0, canonical.composite_key(canonical.encoded(key, n)), bytes(8)) for n in range(2)]
    entries += [(second, 0, timer(time), b"") for time in SECOND]
    return canonical.savepoint(
        folder,
        [canonical.Subtask(key=LONG, states=states, entries=entries)],
        max_parallelism=1,
        damage=lambda _, raw: raw.replace(second.encode(), as_second.encode()),
    )


@pytest.mark.parametrize("memory_bytes", [1 << 20, 2 * TIMER_BYTES])
@pytest.mark.parametrize("whole_keys", [False, True])
def test_a_timer_of_both_ids_is_one(tmp_path: Path, memory_bytes: int, whole_keys: bool) -> None:
    operator = savepoint(tmp_path, NAME, NAME[:-1] + "t", as_second=NAME)
    (source,) = operator._operator.keyed.sources()
    request = EntryRequest(memory_bytes=memory_bytes, batch_bytes=memory_bytes, whole_keys=whole_keys)
    found = [
        int.from_bytes(batch.data[start : start + 8].tobytes(), "big") ^ 1 << 63
        for batch in source.batches(request)
        for start in batch.of_state(0).key.tolist()
    ]
    assert sorted(found) == sorted({*FIRST, *SECOND})
    assert sum(len(batch.of_state(1)) for batch in source.batches(request)) == 2
    assert not any(len(batch.of_state(2)) for batch in source.batches(request))


def batch_of(timers: list[tuple[int, int, bytes]]) -> EntryBatch:
    """Return a batch of timers without values: stored id, key group and key."""
    states, groups, keys = zip(*timers, strict=True)
    ends = np.cumsum([len(key) for key in keys])
    starts = ends - np.array([len(key) for key in keys])
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    columns = {"key": starts, "key_end": ends, "value": ends, "value_end": ends}
    return EntryBatch(data=data, state=np.array(states), group=np.array(groups), **columns, regions=(), file="memory")


def test_random_timers_are_those_of_a_set() -> None:
    chance, stored_ids = random.Random(3), [0, 1, 2, 0, 2]
    for _ in range(100):
        timers = [
            (chance.randrange(5), chance.randrange(4), bytes(chance.choices(range(3), k=chance.randrange(1, 12))))
            for _ in range(chance.randrange(1, 200))
        ]
        timers.sort(key=lambda timer: timer[1])
        cuts = sorted(chance.sample(range(1, len(timers)), min(4, len(timers) - 1)))
        parts = [timers[a:b] for a, b in pairwise([0, *cuts, len(timers)])]
        expected: list[tuple[int, int, bytes]] = []
        for timer in ((stored_ids[state], group, key) for state, group, key in timers):
            if timer[0] == 1 or timer not in expected:
                expected.append(timer)
        found = [
            (int(b.state[i]), int(b.group[i]), b.data[b.key[i] : b.key_end[i]].tobytes())
            for b in join_doubled(map(batch_of, parts), stored_ids)
            for i in range(len(b))
        ]
        assert found == expected


def test_other_states_of_one_name_are_refused(tmp_path: Path) -> None:
    operator = savepoint(tmp_path, NAME, "w", as_second="v")
    with pytest.raises(FormatError, match="two different states with the name 'v'"):
        operator.to_arrow()
