"""Key groups that are larger than memory, and entries that no two subtasks may both hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from statetool.errors import FormatError
from statetool.formats.compression import read_chunks
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.writer import KeyedStreamWriter
from statetool.ops.gather import gather_runs
from statetool.ops.runs import StoredRun, packed, store_runs
from statetool.write.order import order_of_groups
from tests.canonical import key_group_bytes

Record = tuple[int, int, bytes, bytes]
STATES = ("a", "b", "c")


def batch_of(records: list[Record]) -> EntryBatch:
    """Return an entry batch of ``(key group, state, key, value)``."""
    data, rows = bytearray(), []
    for group, state, key, value in records:
        at = len(data)
        data += key + value
        rows.append((state, group, at, at + len(key), at + len(key), len(data)))
    state, group, key, key_end, value, value_end = np.array(rows, dtype=np.int64).T
    return EntryBatch(
        data=np.frombuffer(bytes(data), dtype=np.uint8), state=state, group=group, key=key, key_end=key_end,
        value=value, value_end=value_end, regions=(), file="",
    )  # fmt: skip


def stored(folder: Path, runs: list[list[Record]], prefix: int) -> list[StoredRun]:
    path = folder / "runs"
    with path.open("wb") as f:
        batches = [batch_of(r) for r in runs]
        return list(
            store_runs(
                (packed(b, order_of_groups(b.group, b.state), b.group, b.state, prefix) for b in batches),
                f.write,
                str(path),
            )
        )


def random_runs(seed: int, groups: range, n: int, runs: int) -> list[list[Record]]:
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, int, bytes], bytes] = {}
    for _ in range(n):
        key = bytes(rng.integers(0, 4, rng.integers(1, 14), dtype=np.uint8))
        place = (int(rng.choice(groups)), int(rng.integers(0, 3)), key)
        found[place] = bytes(rng.integers(0, 256, rng.integers(0, 50), dtype=np.uint8))
    records = [(*place, value) for place, value in found.items()]
    return [some for i in range(runs) if (some := records[i::runs])]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("max_parallelism", "memory"), [(128, 1 << 20), (128, 2000), (1000, 2000), (1000, 300)])
def test_runs_are_merged_in_order_within_little_memory(
    tmp_path: Path, compressed: bool, max_parallelism: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetool.ops.gather._LEAST_WINDOW", 200)
    groups = range(5, 9)
    runs = random_runs(7, range(5, 8), 900, 6)
    prefix = 1 if max_parallelism <= 128 else 2
    out = bytearray()
    writer = KeyedStreamWriter(out.extend, b"header", groups, compressed=compressed)
    gather_runs(
        writer,
        stored(tmp_path, runs, prefix),
        groups,
        states=STATES,
        max_parallelism=max_parallelism,
        memory_bytes=memory,
    )
    assert writer.size_bytes == len(out)
    ends = [*sorted(o for o in writer.offsets.tolist() if o), len(out)]
    for number, offset in zip(groups, writer.offsets.tolist(), strict=True):
        here = sorted(r[1:] for run in runs for r in run if r[0] == number)
        assert bool(here) == bool(offset)
        if not here:
            continue
        raw = bytes(out[offset : ends[ends.index(offset) + 1]])
        if compressed:
            raw = b"".join(c.data for c in read_chunks(memoryview(raw), base=0))
        states = [(s, [(k, v) for t, k, v in here if t == s]) for s in range(3)]
        assert raw == key_group_bytes(number, prefix, states)


def test_one_key_in_two_runs_is_refused(tmp_path: Path) -> None:
    runs = [[(5, 1, b"key", b"1")], [(5, 0, b"key", b"2"), (5, 1, b"key", b"3")]]
    writer = KeyedStreamWriter(bytearray().extend, b"", range(5, 6), compressed=False)
    with pytest.raises(FormatError, match=r"two entries with the key 6b6579 .*state b, key group 5"):
        gather_runs(writer, stored(tmp_path, runs, 1), range(5, 6), states=STATES, max_parallelism=128)
