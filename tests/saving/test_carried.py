"""The task or thread that writes a subtask merges its entries of the base with new ones while it reads them, in any memory."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition
from statetool.saving.local import LocalRunner
from statetool.saving.streams import carried, keyed
from statetool.saving.streams.runs import PackedRun, Spill, deal_run
from statetool.saving.versions import parse_release
from statetool.snapshot.inventory import Inventory
from tests.support.checks.corpus_check import Case
from tests.support.snapshots.stored import stream_bytes
from tests.support.spark.in_process import Frame, Tasks

runner = pytest.importorskip("statetool.spark.write.runner")
N = 400
WHOLE = 64 << 20


class InTasks(runner.SparkRunner):  # type: ignore[name-defined]
    """A runner whose session copies no files."""

    def copy_all(self, streams: Any, staging: Any) -> Any:
        return LocalRunner().copy_all(streams, staging)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the bytes of each run that goes to local disk."""
    sizes: list[int] = []
    add = Spill.add

    def recorded(self: Spill, run: PackedRun, *others: Any, **named: Any) -> None:
        sizes.append(len(run.data))
        add(self, run, *others, **named)

    monkeypatch.setattr(Spill, "add", recorded)
    return sizes


def base_of(tmp_path: Path, keys: range, size: int = 1000, max_parallelism: int = 128) -> statetool.Savepoint:
    numbers = pa.array(list(keys), pa.int64())
    table = pa.table({"key": numbers, "n": numbers, "text": pa.array(["x" * size] * len(keys), pa.string())})
    writer = statetool.SavepointWriter.new(max_parallelism=max_parallelism)
    return writer.with_operator("o", statetool.bootstrap_keyed_state(table), parallelism=min(3, max_parallelism)).write(
        str(tmp_path / "base")
    )


def written(base: statetool.Savepoint, target: Path, run: Any, name: str, state: Any, **changes: Any) -> Any:
    edited = statetool.SavepointWriter.from_existing(base).with_operator(name, state, **changes)
    wanted = Composition(base=base._inventory, changes=edited.changes)
    write_composition(wanted, str(target), parse_release("2.3", default=3), run)
    return {label: stream_bytes(operator) for label, operator in Inventory(str(target)).operators.items()}


@pytest.mark.parametrize(("parallelism", "memory"), [(2, WHOLE), (5, 100_000), (3, 3_000), (2, 100)])
def test_only_key_groups_larger_than_memory_go_through_local_disk(
    parallelism: int, memory: int, tmp_path: Path, stored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = base_of(tmp_path, range(N))
    rows = pa.table({"key": list(range(N)), "n": [i + 1 for i in range(N)]})
    like = base["o"]
    stored.clear()
    expected = written(
        base, tmp_path / "here", LocalRunner(), "o", statetool.bootstrap_keyed_state(rows, like=like),
        parallelism=parallelism,
    )  # fmt: skip
    # An entry of the base has more than 1,000 bytes, a new one less than 100.
    assert 0 < sum(stored) < 100 * N
    stored.clear()
    monkeypatch.setattr(runner, "_MEMORY_BYTES", memory)
    state = statetool.bootstrap_keyed_state(Frame(rows.to_batches(max_chunksize=100)), like=like)
    tasks = InTasks(Tasks())
    assert written(base, tmp_path / "tasks", tasks, "o", state, parallelism=parallelism) == expected
    # With little memory, key groups are divided, too.
    assert (sum(stored) < 100 * N) == (memory == WHOLE), sum(stored)


def test_a_large_key_group_leaves_memory_as_it_goes_to_local_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = base_of(tmp_path, range(N), max_parallelism=1)
    monkeypatch.setattr(runner, "_MEMORY_BYTES", 100_000)
    monkeypatch.setattr(keyed, "_BATCH_BYTES", 10_000)
    in_memory: list[int] = []

    def recorded(batch: EntryBatch, prefix: int) -> PackedRun:
        in_memory.append(sum(isinstance(thing, EntryBatch) for thing in gc.get_objects()))
        return deal_run(batch, prefix)

    monkeypatch.setattr(carried, "deal_run", recorded)
    rows = pa.table({"key": list(range(N)), "n": [i + 1 for i in range(N)]})
    state = statetool.bootstrap_keyed_state(Frame(rows.to_batches()), like=base["o"])
    written(base, tmp_path / "tasks", InTasks(Tasks()), "o", state)
    assert in_memory[0] >= 10
    assert len(in_memory) >= 30
    assert max(in_memory[-10:]) <= 5, in_memory


@pytest.mark.parametrize("memory", [WHOLE, 300])
@pytest.mark.parametrize("old", [range(20), range(0, N, 40), range(N - 5, N), range(0)])
def test_new_entries_may_have_key_groups_that_the_base_lacks(
    old: range, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = base_of(tmp_path, old, size=90)
    rows = pa.table({"key": list(range(N)), "more": [i + 1 for i in range(N)]})
    states = {"more": statetool.value("BIGINT")}
    found = []
    monkeypatch.setattr(runner, "_MEMORY_BYTES", memory)
    for name, run, data in (
        ("here", LocalRunner(), rows),
        ("tasks", InTasks(Tasks()), Frame(rows.to_batches(max_chunksize=100))),
    ):
        state = statetool.bootstrap_keyed_state(data, key="key", states=states)
        found.append(written(base, tmp_path / name, run, "o", state))
    assert found[0] == found[1]


def test_damage_in_the_base_is_raised_and_nothing_is_left(tmp_path: Path) -> None:
    base = base_of(tmp_path, range(N))
    file = max((tmp_path / "base").iterdir(), key=lambda path: path.stat().st_size)
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 0x15  # the end of the last key group
    file.write_bytes(raw)
    rows = pa.table({"key": list(range(N)), "n": list(range(N))})
    state = statetool.bootstrap_keyed_state(Frame(rows.to_batches()), like=base["o"])
    with pytest.raises(StatetoolError, match=r"operator o"):
        written(base, tmp_path / "tasks", InTasks(Tasks()), "o", state)
    assert not (tmp_path / "tasks").exists()


@pytest.mark.full
@pytest.mark.parametrize("memory", [WHOLE, 2_000])
@pytest.mark.parametrize(
    "kind",
    ["rocksdb-canonical", "hashmap-canonical-compressed", "hashmap-native", "rocksdb-native", "hashmap-canonical"],
)
def test_all_forms_of_a_base(
    kind: str, memory: int, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_MEMORY_BYTES", memory)
    base = statetool.load(str(Case(corpus / f"v2_3_0-{kind}").metadata.parent))
    changed = 0
    for name in ("timers", "collections-by-string"):
        operator = base[name]
        rows = operator.to_arrow("keyed_state")
        kept = [n for n in rows.column_names if n != "key"][:1]
        rows = rows.select(["key", *kept])
        found = []
        for folder, run, data in (
            (f"{name}-here", LocalRunner(), rows),
            (f"{name}-tasks", InTasks(Tasks()), Frame(rows.to_batches(max_chunksize=5))),
        ):
            state = statetool.bootstrap_keyed_state(data, like=operator)
            found.append(written(base, tmp_path / folder, run, name, state))
        assert found[0] == found[1]
        changed += rows.num_rows
    assert changed > 20
