"""A migration that reuses an earlier one writes the same bytes as a migration of everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, UnsupportedError
from statetool.formats.stream import OpenStream, Stream
from statetool.migration.conversion import TypeConversion
from statetool.saving.streams import catch_up
from statetool.snapshot.inventory import Inventory
from tests.support.checks.corpus_check import Case
from tests.support.flink.migrations import MIGRATIONS, Migration, later, with_choices
from tests.support.quick import UNCOMPILED, fewer_uncompiled
from tests.support.snapshots.caught_up import changed, new_job, written
from tests.support.snapshots.stored import stream_bytes


def assert_same(one: Path | str, other: Path | str) -> None:
    """Assert that two snapshots have the same bytes in every stream, and equal metadata apart from names of files."""
    first, second = Inventory(str(one)), Inventory(str(other))
    assert first.metadata.checkpoint_id == second.metadata.checkpoint_id
    assert list(first.operators) == list(second.operators)
    for uid, operator in first.operators.items():
        same = second.operators[uid]
        assert stream_bytes(operator) == stream_bytes(same), uid
        for state in ("parallelism", "max_parallelism", "uid", "name", "coordinator"):
            assert getattr(operator.state, state) == getattr(same.state, state)
    assert not statetool.verify(str(one), deep=True).problems
    assert statetool.load(str(one)).diff(str(other)).equal


@pytest.mark.parametrize("one", MIGRATIONS, ids=lambda one: one.name)
def test_every_migration_is_caught_up_byte_for_byte(tmp_path: Path, one: Migration) -> None:
    a, b, job = (
        statetool.SavepointWriter.new()
        .with_operator(one.name, state.bootstrap(), parallelism=1)
        .with_checkpoint_id(number)
        .write(str(tmp_path / f"savepoint-{number}"))
        for number, state in enumerate((one.old, later(one.old), one.new))
    )
    plan = with_choices(statetool.plan_migration(a, job), one)
    statetool.migrate(a, str(tmp_path / "migrated"), plan=plan)
    statetool.migrate(b, str(tmp_path / "whole"), plan=plan)
    statetool.catch_up(str(tmp_path / "migrated"), a, b, str(tmp_path / "caught-up"), plan=plan)
    assert_same(tmp_path / "caught-up", tmp_path / "whole")


@pytest.mark.parametrize("parallelism", fewer_uncompiled([2, 3], 3))
@pytest.mark.parametrize("memory", [None, 1])
def test_changed_removed_and_added_keys_are_merged_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallelism: int, memory: int | None
) -> None:
    if memory is not None:  # many runs, and edits that are merged on local disk
        for name in ("_RUN_BYTES", "_MEMORY_BYTES", "_PORTION"):
            monkeypatch.setattr(catch_up, name, memory)
    number = (100 if UNCOMPILED else 300) if memory is not None else 300 if UNCOMPILED else 3_000
    numbers = {key: key * 3 for key in range(number)}
    a = written(tmp_path / "a", numbers, 1)
    b = written(tmp_path / "b", changed(numbers), 2, parallelism=parallelism)
    job = new_job(tmp_path / "job")
    statetool.migrate(a, str(tmp_path / "migrated"), to=job)
    statetool.migrate(b, str(tmp_path / "whole"), to=job)
    converted = count_conversions(monkeypatch)
    statetool.catch_up(str(tmp_path / "migrated"), a, b, str(tmp_path / "caught-up"), to=job)
    assert 0 < sum(converted) < number // 2, "far fewer than the entries of the migrated states, three per key"
    assert_same(tmp_path / "caught-up", tmp_path / "whole")
    # The result can be caught up again: here all keys but one are removed, and most key groups become empty.
    c = written(tmp_path / "c", {100_000: 1}, 3)
    statetool.catch_up(str(tmp_path / "caught-up"), b, c, str(tmp_path / "next"), to=job)
    statetool.migrate(c, str(tmp_path / "whole-c"), to=job)
    assert_same(tmp_path / "next", tmp_path / "whole-c")


def count_conversions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every conversion of entries adds their number."""
    counts: list[int] = []
    convert = TypeConversion.entries

    def entries(self: TypeConversion, header: Any, batch: Any) -> Any:
        counts.append(len(batch))
        return convert(self, header, batch)

    monkeypatch.setattr(TypeConversion, "entries", entries)
    return counts


def test_nothing_is_converted_if_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {key: key for key in range(500)}
    a, b = written(tmp_path / "a", numbers, 1), written(tmp_path / "b", numbers, 2)
    job = new_job(tmp_path / "job")
    statetool.migrate(a, str(tmp_path / "migrated"), to=job)
    statetool.migrate(b, str(tmp_path / "whole"), to=job)
    converted = count_conversions(monkeypatch)
    opened: list[str] = []
    open_stream = Stream.open

    def count_opened(self: Stream) -> OpenStream:
        opened.append(self.file)
        return open_stream(self)

    monkeypatch.setattr(Stream, "open", count_opened)
    statetool.catch_up(str(tmp_path / "migrated"), a, b, str(tmp_path / "caught-up"), to=job)
    assert converted == []
    # Each stream is opened once for all of its key groups, and a few times for headers.
    assert 0 < sum("/migrated/" in file for file in opened) < 20
    assert_same(tmp_path / "caught-up", tmp_path / "whole")


@pytest.mark.parametrize(
    "kind", ["hashmap-canonical-compressed", "rocksdb-native", "rocksdb-canonical", "hashmap-checkpoint"]
)
def test_snapshots_of_flink_are_caught_up(corpus: Path, tmp_path: Path, kind: str) -> None:
    a = statetool.load(str(Case(corpus / f"v2_3_0-{kind}").metadata.parent))
    states = {"registered": statetool.value("BIGINT")}
    table = pa.table({"key": pa.array([], pa.string()), "registered": pa.array([], pa.int64())})
    job = (
        statetool.SavepointWriter.new()
        .with_operator("timers", statetool.bootstrap_keyed_state(table, states=states), parallelism=1)
        .write(str(tmp_path / "job"), flink_version="2.3")
    )
    later_id = a.checkpoint_id + 1
    values = {"registered": 77}
    statetool.set_values(a, str(tmp_path / "b"), "timers", "timer-3", values, checkpoint_id=later_id)
    statetool.migrate(a, str(tmp_path / "migrated"), to=job, format="canonical")
    statetool.migrate(str(tmp_path / "b"), str(tmp_path / "whole"), to=job, format="canonical")
    statetool.catch_up(str(tmp_path / "migrated"), a, str(tmp_path / "b"), str(tmp_path / "caught-up"), to=job)
    first, second = (Inventory(str(tmp_path / name)).operators["timers"] for name in ("caught-up", "whole"))
    assert stream_bytes(first) == stream_bytes(second)
    assert statetool.load(str(tmp_path / "caught-up")).diff(str(tmp_path / "whole"), operators=["timers"]).equal


class _Snapshots:
    """Two savepoints, the new job, and the migrated first one."""

    def __init__(self, folder: Path) -> None:
        numbers = {key: key for key in range(400 if UNCOMPILED else 1_000)}
        self.a = written(folder / "a", numbers, 1)
        self.b = written(folder / "b", changed(numbers), 2)
        self.job = new_job(folder / "job")
        self.migrated = str(folder / "migrated")
        statetool.migrate(self.a, self.migrated, to=self.job)
        self.target = folder / "caught-up"

    def catch_up(self, **instead: Any) -> None:
        given: dict[str, Any] = {"migrated": self.migrated, "before": self.a, "after": self.b, "to": self.job} | instead
        statetool.catch_up(**given, dst=str(self.target))


@pytest.fixture
def snapshots(tmp_path: Path) -> _Snapshots:
    return _Snapshots(tmp_path)


def refused(snapshots: _Snapshots, kind: type[Exception], words: str, **instead: Any) -> None:
    with pytest.raises(kind, match=words):
        snapshots.catch_up(**instead)
    assert not snapshots.target.exists()


def test_what_was_not_made_from_a_with_this_plan_is_refused(snapshots: _Snapshots, tmp_path: Path) -> None:
    wrong = "MIGRATED was not made from A with this plan.*operator op"
    other = written(tmp_path / "other", {1: 1}, 1)
    statetool.migrate(other, str(tmp_path / "other-migrated"), to=snapshots.job)
    refused(snapshots, UnsupportedError, wrong, migrated=str(tmp_path / "other-migrated"))
    plan = statetool.plan_migration(snapshots.b, snapshots.job)
    filled = plan.with_choices("op.s", fills={"value.extra": 9})
    refused(snapshots, UnsupportedError, wrong, to=None, plan=filled)
    unknown = "it is unknown what MIGRATED was made from"
    statetool.copy(snapshots.migrated, str(tmp_path / "copied"))
    refused(snapshots, UnsupportedError, unknown, migrated=str(tmp_path / "copied"))
    refused(snapshots, UnsupportedError, unknown, migrated=snapshots.a)


def test_snapshots_that_do_not_follow_each_other_are_refused(snapshots: _Snapshots, tmp_path: Path) -> None:
    numbers = {1: 1}
    older = "A is not older than B: checkpoint 2 and checkpoint 1"
    refused(snapshots, OptionError, older, before=snapshots.b, after=snapshots.a)
    refused(snapshots, OptionError, "checkpoint 1 and checkpoint 1", after=snapshots.a)
    coarse = written(tmp_path / "coarse", numbers, 3, max_parallelism=64)
    refused(snapshots, UnsupportedError, "max parallelism is 128 in A and 64 in B", after=coarse)
    statetool.drop(snapshots.b, str(tmp_path / "dropped"), ["source"])
    refused(snapshots, UnsupportedError, "only one of A and B has: source", after=str(tmp_path / "dropped"))
    statetool.drop(snapshots.b, str(tmp_path / "fewer"), states={"op": ["other"]})
    refused(snapshots, UnsupportedError, "state 'other' was removed between A and B", after=str(tmp_path / "fewer"))
    statetool.change_uids(snapshots.b, str(tmp_path / "renamed"), {"source": "sauce"})
    refused(snapshots, UnsupportedError, "only one of A and B has: sauce, source", after=str(tmp_path / "renamed"))
    statetool.migrate(snapshots.b, str(tmp_path / "retyped"), to=snapshots.job)
    serializers = "the serializers of state '[ms]' changed between A and B"
    plan = statetool.plan_migration(snapshots.b, snapshots.job)
    refused(snapshots, UnsupportedError, serializers, after=str(tmp_path / "retyped"), to=None, plan=plan)


def test_a_migrated_snapshot_without_the_changed_entries_is_damaged(
    snapshots: _Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of its files say that it is right, but its entries are those of another snapshot."""
    other = written(tmp_path / "other", {1: 1}, 1)
    statetool.migrate(other, str(tmp_path / "other-migrated"), to=snapshots.job)
    monkeypatch.setattr("statetool.saving.catch_up._check_origin", lambda *_: None)
    refused(
        snapshots,
        FormatError,
        "changed since the migration, of which the migrated snapshot has",
        migrated=str(tmp_path / "other-migrated"),
    )


def test_a_dry_run_writes_nothing_and_checks_everything(snapshots: _Snapshots, tmp_path: Path) -> None:
    plan = statetool.catch_up(
        snapshots.migrated, snapshots.a, snapshots.b, str(snapshots.target), to=snapshots.job, dry_run=True
    )
    assert {row.needs for row in plan.rows} == {"nothing"}
    assert not snapshots.target.exists()


def test_the_command_writes_and_checks(snapshots: _Snapshots, tmp_path: Path) -> None:
    paths = [snapshots.migrated, snapshots.a.path, snapshots.b.path, str(snapshots.target)]
    done = CliRunner().invoke(cli, ["catch-up", *paths, "--to", snapshots.job.path])
    assert (done.exit_code, "op.s.value.n" in done.output) == (0, True), done.output
    statetool.migrate(snapshots.b, str(tmp_path / "whole"), to=snapshots.job)
    assert_same(snapshots.target, tmp_path / "whole")


def test_merging_edits_equals_a_dictionary() -> None:
    """The kernel keeps the order of keys, also of those that are prefixes of others."""
    from statetool.kernels.entries.order import merge_edits

    rng = np.random.default_rng(5)
    for _ in range(200):
        words = sorted({bytes(rng.integers(0, 3, rng.integers(0, 20), dtype=np.uint8)) for _ in range(30)})
        stored = [w for w in words if rng.random() < 0.6]
        edits = {w: bool(rng.random() < 0.4) for w in words if rng.random() < 0.5}
        edits = {w: gone and w in stored for w, gone in edits.items()}
        keys = [*stored, *edits]
        ends = np.cumsum([len(w) for w in keys], dtype=np.int64)
        starts = ends - np.array([len(w) for w in keys], dtype=np.int64)
        removed = np.array([False] * len(stored) + list(edits.values()), dtype=np.bool_)
        out = np.empty(len(keys), dtype=np.int64)
        data = np.frombuffer(b"".join(keys), dtype=np.uint8).copy()
        state = np.zeros(len(keys), dtype=np.int64)
        count, found = merge_edits(data, state, starts, ends, len(stored), removed, out)
        result = [(keys[i], i >= len(stored)) for i in out[:count].tolist()]
        expected = dict.fromkeys(stored, False) | {w: True for w, gone in edits.items() if not gone}
        gone = {w for w, is_gone in edits.items() if is_gone}
        assert result == sorted((w, edited) for w, edited in expected.items() if w not in gone)
        assert found == len(edits.keys() & set(stored))
