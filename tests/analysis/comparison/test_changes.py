"""Changes between two checkpoints: applied to the old state, they give the new one, and shared files are hardly read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import statetool
from statetool.analysis.comparison import changes as changes_module
from statetool.analysis.comparison import plan
from statetool.analysis.comparison.changes import changes, plan_changes
from statetool.formats.backends import database_changes
from statetool.io.files import BYTES_READ
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan, scan_table
from tests.support.quick import quick
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.trees import JOB, checkpoint_root
from tests.support.values.changes import Row, fold, which
from tests.support.zoo import ZOO

DEMO = Path(ZOO)


def planned(path: Path, operator: str, request: ScanRequest) -> tuple[OperatorInventory, TableScan]:
    inventory = Inventory(str(path), uids=("op",) if operator == "op" else ()).operator(operator)
    return inventory, scan_table(inventory, request)


def changed(old: Path, new: Path, request: ScanRequest, operator: str = "op", *, upserts: bool = False) -> list[Row]:
    units = plan_changes(planned(old, operator, request), planned(new, operator, request), request, upserts=upserts)
    return [row for unit in units for batch in changes(unit) for row in batch.to_pylist()]


def full(path: Path, request: ScanRequest, operator: str = "op") -> list[Row]:
    return [row for batch in planned(path, operator, request)[1].batches() for row in batch.to_pylist()]


def states_of(job: Job, rng: random.Random) -> Iterator[int]:
    """Take checkpoints of a job that writes, deletes, rewrites existing values, and compacts in many ways."""
    for step in range(8):
        for _ in range(rng.choice([0, 5, 200])):
            state, key = rng.choice("ab"), rng.randrange(300)
            if rng.random() < 0.3:
                job.delete(state, key)
            else:
                job.put(state, key, rng.choice([b"", b"same", rng.randbytes(rng.randrange(200))]))
            if rng.random() < 0.01:
                job.flush()
        job.flush()
        if step % 3 == 1:
            job.compact()
        elif step % 3 == 2:
            job.compact(20, 60)
        yield job.checkpoint()


@pytest.mark.parametrize("seed", quick(range(6), 1))
def test_the_fold_of_the_changes_is_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(database_changes, "WINDOW_BYTES", 4 << 10)
    monkeypatch.setattr(plan, "UNIT_BYTES", 20 << 10)
    compared: list[object] = []

    def size_of_compared(sources: object) -> int:
        compared.append(sources)
        return 1

    monkeypatch.setattr(changes_module, "size_of_sources", size_of_compared)
    tables = [ScanRequest.of("a"), ScanRequest.of("keyed_state"), ScanRequest.of("keyed_state", states=["b"])]
    folded: list[dict[str, Row]] = [{} for _ in tables]
    upserted: list[dict[str, Row]] = [{} for _ in tables]
    with Job(tmp_path / "root", "ab") as job:
        for number in states_of(job, random.Random(seed)):
            before, after = (tmp_path / "root" / f"chk-{n}" for n in (number - 1, number))
            for request, state, other in zip(tables, folded, upserted, strict=True):
                if number == 1:
                    state |= {which(r, ("key",)): r for r in full(after, request)}
                    other |= state
                    continue
                compared.clear()
                rows = changed(before, after, request)
                assert not compared
                with monkeypatch.context() as patch:
                    patch.setattr(changes_module, "database_changes", lambda *_, **__: None)
                    assert sorted(map(repr, rows)) == sorted(map(repr, changed(before, after, request)))
                fold(state, rows, ("key",))
                fold(other, changed(before, after, request, upserts=True), ("key",))
                assert other == state
                assert state == {which(r, ("key",)): r for r in full(after, request)}
            assert {r["key"]: r["value"] for r in folded[0].values()} == job.truth["a"]
    assert compared


def read_bytes(job: Job, keys: list[int], *, upserts: bool) -> tuple[float, list[Row]]:
    """Change some keys. Return the bytes read for the changes as a fraction of those read for the full state, and the changes."""
    request = ScanRequest.of("a")
    first = job.checkpoint()
    for key in keys:
        job.put("a", key, random.Random(key).randbytes(len(job.truth["a"][key])))
    second = job.checkpoint()
    before, after = (job.root / f"chk-{n}" for n in (first, second))
    start = BYTES_READ.total
    rows = changed(before, after, request, upserts=upserts)
    of_changes = BYTES_READ.total - start
    full(after, request)
    return of_changes / (BYTES_READ.total - start - of_changes), rows


@pytest.mark.parametrize(("size", "upserts"), [(5000, False), (100, True)])
def test_with_a_tenth_of_the_keys_changed_little_is_read(tmp_path: Path, size: int, upserts: bool) -> None:
    """Only the changed values of a block are looked up. If many of a block changed, upserts look up none."""
    rng, n = random.Random(1), 5_000_000 // size
    with Job(tmp_path / "root") as job:
        for key in range(n):
            job.put("a", key, rng.randbytes(size))
        job.flush()
        job.compact()
        keys = rng.sample(range(n), n // 10)
        part, rows = read_bytes(job, keys, upserts=upserts)
    assert sorted(r["key"] for r in rows) == sorted(keys)
    assert {r["change"] for r in rows} == {"upsert" if upserts else "update"}
    assert part <= 0.4


def ids_of(row: Row, request: ScanRequest) -> str:
    """Identify a row of any table."""
    names = ("key", "namespace", "map_key", "list_index", "timestamp", "service", "domain")
    return which(row, ("key",) if request.table == "keyed_state" else names)


@pytest.mark.parametrize("table", ["keyed_state", "timers", "registered"])
def test_another_max_parallelism_changes_no_row(tmp_path: Path, table: str) -> None:
    statetool.rescale(str(DEMO), str(tmp_path / "rescaled"), max_parallelism={"timers": 512})
    request = ScanRequest.of(table)
    assert changed(DEMO, tmp_path / "rescaled", request, "timers") == []
    fewer = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path / "rescaled")))
    rows = pa.table({"key": ["timer-0"], "registered": pa.array([8], pa.int32())})
    edit = statetool.bootstrap_keyed_state(rows, like=statetool.load(str(DEMO))["timers"])
    fewer.with_operator("timers", edit).write(str(tmp_path / "edited"))
    if table == "timers":
        return
    edits = changed(DEMO, tmp_path / "edited", request, "timers")
    assert [(r["key"], r["change"]) for r in edits if r["change"] != "delete"] == [("timer-0", "update")]


@pytest.mark.full
def test_changes_of_a_real_job(corpus: Path, tmp_path: Path) -> None:
    """With and without shared files: each table of each operator, with the changes applied, equals that of the later checkpoint."""
    job = checkpoint_root(corpus, tmp_path) / JOB
    old, new = job / "chk-3", job / "chk-4"
    seen = 0
    for operator in Inventory(str(new)).operators.values():
        tables = [*operator.keyed_states, *(["keyed_state", "timers"] if operator.keyed_states else [])]
        for table in tables:
            if table in operator.keyed_states and operator.keyed_states[table][1].kind == "timers":
                continue
            request = ScanRequest.of(table, on_error="keep_raw")
            rows = [
                changed(old, new, request, operator.state.operator_id, upserts=upserts) for upserts in (False, True)
            ]
            state = {ids_of(r, request): r for r in full(old, request, operator.state.operator_id)}
            for changed_rows in rows:
                for row in changed_rows:
                    name, change = ids_of(row, request), row.pop("change")
                    if change == "delete":
                        state.pop(name, None)
                    else:
                        state[name] = row
                assert state == {ids_of(r, request): r for r in full(new, request, operator.state.operator_id)}
                seen += len(changed_rows)
    assert seen > 0
