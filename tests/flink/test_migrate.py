"""Migrated states restore in real jobs with the new classes, with the expected values."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.types.declared import class_of_fields, enum_of
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.expected.kryo import without_kryo
from tests.support.flink import judge, pairs
from tests.support.flink.avro_migrations import AVRO_MIGRATIONS
from tests.support.flink.corpus_cases import case_folder, expected_of, metadata_of
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.migrations import MIGRATIONS, Migration, later, with_choices
from tests.support.flink.pair_states import Pair, State, Type
from tests.support.flink.pair_suites import Suite

pytestmark = pytest.mark.full


def written(
    folder: Path,
    release: str | None,
    *,
    new: bool,
    migrations: Sequence[Migration] = MIGRATIONS,
    checkpoint_id: int = 0,
) -> statetool.Savepoint:
    """Write the states of migrations, one per operator, in the form of old jobs or of new ones."""
    writer = statetool.SavepointWriter.new().with_checkpoint_id(checkpoint_id)
    for one in migrations:
        state = one.new if new else one.old
        writer = writer.with_operator(one.name, state.bootstrap(), parallelism=1)
    return writer.write(str(folder), flink_version=release)


def found(answer: dict[str, Any]) -> dict[str, list[str]]:
    """Return the rows that Flink restored, by operator."""
    by_name = {}
    for subtask in answer["opened"]:
        rows = {**subtask.get("states", {}), **subtask["operator_states"]}
        by_name[subtask["operator"]] = sorted(
            json.dumps(judge.normal(row), sort_keys=True) for some in rows.values() for row in some
        )
    return by_name


def snapshot_of_new_job(flink: FlinkMachine, work: Path, requests: list[dict[str, Any]]) -> str:
    """Let Flink take a savepoint of a job with the new types and empty state."""
    seed = State(element=MIGRATIONS[0].new.element)
    nothing = statetool.SavepointWriter.new().with_operator("seed", seed.bootstrap(), parallelism=1)
    nothing.write(str(work / "seed"))
    answer = judge.restore(
        flink, work / "seed", requests, backend="rocksdb", parallelism=1, savepoint=work / "of-the-new-job"
    )
    return str(answer["savepoint"])


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_every_migration_restores_with_its_values(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    migrate_and_restore(flink, tmp_path, backend, MIGRATIONS)


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_every_migration_of_avro_restores_with_its_values(
    library_flink: FlinkMachine, tmp_path: Path, backend: str
) -> None:
    migrate_and_restore(library_flink, tmp_path, backend, AVRO_MIGRATIONS)


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_every_migration_that_is_caught_up_restores_with_its_values(
    flink: FlinkMachine, tmp_path: Path, backend: str
) -> None:
    """Of three keys, one changes between the two savepoints, and one is replaced by another."""
    a = written(tmp_path / "a", None, new=False, checkpoint_id=1)
    later_migrations = [replace(one, old=later(one.old), new=later(one.new)) for one in MIGRATIONS]
    b = written(tmp_path / "b", None, new=False, migrations=later_migrations, checkpoint_id=2)
    requests = [one.new.request(one.name) for one in MIGRATIONS]
    new_job = statetool.load(snapshot_of_new_job(flink, tmp_path, requests), uids=[m.name for m in MIGRATIONS])
    plan = statetool.plan_migration(b, new_job)
    for one in MIGRATIONS:
        plan = with_choices(plan, one)
    statetool.migrate(a, str(tmp_path / "migrated"), plan=plan)
    statetool.catch_up(str(tmp_path / "migrated"), a, b, str(tmp_path / "caught-up"), plan=plan)
    # The later contents of a value that is a map are not those of a map state. Their bytes are compared in tests/migration/test_catch_up.py.
    alike = [one for one in later_migrations if (one.old.kind == "map") is (one.new.kind == "map")]
    assert len(alike) > len(MIGRATIONS) - 3
    assert_restores_as(flink, tmp_path, backend, tmp_path / "caught-up", alike)


def migrate_and_restore(flink: FlinkMachine, work: Path, backend: str, migrations: Sequence[Migration]) -> None:
    """Migrate the states of old jobs. A new job must find the same in them as in states written in its own form."""
    old = written(work / "old", None, new=False, migrations=migrations)
    requests = [one.new.request(one.name) for one in migrations]
    new_job = statetool.load(snapshot_of_new_job(flink, work, requests), uids=[m.name for m in migrations])
    plan = statetool.plan_migration(old, new_job)
    assert {s.uid for s in plan.states} == {m.name for m in migrations}
    for one in migrations:
        plan = with_choices(plan, one)
    statetool.migrate(old, str(work / "migrated"), plan=plan)
    assert statetool.check(str(work / "migrated"), new_job, flink_version=flink.version).verdict == "fully"
    assert_restores_as(flink, work, backend, work / "migrated", migrations)


def assert_restores_as(
    flink: FlinkMachine, work: Path, backend: str, path: Path, migrations: Sequence[Migration]
) -> None:
    """Assert that a new job finds in a snapshot what it finds in states that were written in its own form."""
    requests = [one.new.request(one.name) for one in migrations]
    wanted = written(work / "wanted", flink.version, new=True, migrations=migrations)
    restored = [
        found(judge.restore(flink, Path(folder), requests, backend=backend, parallelism=1))
        for folder in (path, wanted.path)
    ]
    for one in migrations:
        assert restored[0][one.name] == restored[1][one.name], one.name
        assert restored[0][one.name], one.name


def test_flink_refuses_what_is_not_migrated(flink: FlinkMachine, tmp_path: Path) -> None:
    written(tmp_path / "old", None, new=False)
    refused = ("tuple-add-widen", "rowdata-add-widen-drop", "tuple-to-pojo", "narrow", "string-to-enum")
    for one in MIGRATIONS:
        if one.name in refused:
            with pytest.raises(FlinkRefusedError):
                judge.restore(flink, tmp_path / "old", [one.new.request(one.name)], backend="rocksdb", parallelism=1)


@pytest.mark.since(2, 0)
@pytest.mark.parametrize(
    ("backend", "written", "states"),
    [
        ("rocksdb", "rocksdb-canonical", {"composites-by-int.uuid", "composites-by-int.money", "orders.order"}),
        ("rocksdb", "rocksdb-incremental", {"orders.order"}),
        ("hashmap", "hashmap-checkpoint", {"orders.order"}),
    ],
)
def test_kryo_2_becomes_kryo_5_and_a_class_becomes_a_pojo(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str, written: str, states: set[str]
) -> None:
    """All values written by Kryo in the corpus's job of Flink 1.20, read by Kryo of 2.x; ``Money`` as a POJO. The copy has the form of the base."""
    old_case = corpus / case_folder("1.20.5", written)
    expected = expected_of(old_case)
    names = [n for n, o in judge.stateful(expected).items() if not o.get("no_uid")]
    order = class_of_fields(
        "corpus.PublicTypes$Order",
        {"flags": "Set<String>", "quantities": "Map<String, Integer>", "tags": "List<String>"},
    )
    old = statetool.load(str(metadata_of(old_case)), uids=names, declarations=[*CLASSES, order])
    new_case = corpus / case_folder("2.3.0", "hashmap-canonical")
    new_job = statetool.load(str(metadata_of(new_case)), declarations=CLASSES)
    plan = statetool.plan_migration(old, new_job)
    assert {s.name for s in plan.states} >= states
    with warnings.catch_warnings():
        # Only the classes of the new job tell where these values end in the layout of the heap backend.
        warnings.filterwarnings("ignore", message=".* becomes canonical, which the heap backend restores")
        statetool.migrate(old, str(tmp_path / "migrated"), plan=plan, flink_version=flink.version)
    managed = statetool.load(str(tmp_path / "migrated"), uids=names)["orders"].inventory.keyed.managed
    assert {s.layout() for s in managed} == {"database" if written == "rocksdb-incremental" else "canonical"}

    requests = judge.requests_for(metadata_of(new_case), expected_of(new_case))
    kept = {n: o for n, o in expected.items() if n in {"composites-by-int", "orders"}}
    requests = [r for r in requests if r["name"] in kept]
    answer = judge.restore(flink, tmp_path / "migrated", requests, backend=backend)
    assert judge.differences(answer, kept) == []


_OPENED = class_of_fields(
    "evolved.Evolved$Opened",
    {
        "a": "int",
        "b": "Long",
        "c": "String",
        "d": "String",
        "e": "double[]",
        "f": "evolved.Evolved$Front",
        "g": "evolved.Evolved$Same",
        "h": "boolean",
    },
    final=True,
)
_WITH_IT = [
    _OPENED,
    class_of_fields("evolved.Evolved$Same", {"a": "int", "b": "String"}),
    enum_of("evolved.Evolved$Front", ("RED", "BLUE")),
]


def opened() -> Suite:
    """Return states of a class for which Kryo is used in the old job, and which is a POJO in the new one."""
    value = State(element=Type("", "evolved.Evolved$Opened", ()), fill="evolved.Evolved$Opened")
    text = Type("STRING", "STRING", ())
    states = (value, replace(value, kind="list"), replace(value, kind="map", map_key=text), replace(value, ttl=True))
    names = ("value", "list", "map", "ttl")
    return Suite(name="opened", pairs=tuple(Pair(n, s, s) for n, s in zip(names, states, strict=True)))


@pytest.fixture(scope="module")
def old_savepoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the savepoint that the old job takes in a release."""

    @cache
    def take(version: str) -> Path:
        work = tmp_path_factory.mktemp(f"old-{version}")
        writer = pairs.machine(version, work, before=True)
        try:
            pairs.take_old(writer, opened(), work)
        finally:
            writer.close()
        return pairs.old_savepoint(opened(), work, pairs.short(version), work)

    return take


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_what_kryo_wrote_for_a_class_becomes_a_pojo_of_the_same_fields(
    flink: FlinkMachine, old_savepoint: Callable[[str], Path], tmp_path: Path, backend: str
) -> None:
    """In the old job a class uses Kryo, in the new job it is a POJO; with the job's release and the previous one."""
    suite = opened()
    names = tuple(p.name for p in suite.pairs)
    pairs.take_new(flink, suite, tmp_path)
    new_job = statetool.load(str(pairs.new_savepoint(suite, tmp_path, pairs.short(flink.version))), uids=names)
    requests = [state.request(uid) for uid, state in suite.states(new=True).items()]
    for version in pairs.versions_before(flink.version):
        old = old_savepoint(version)
        with pytest.raises(FlinkRefusedError):
            judge.restore(flink, old, requests, backend=backend, parallelism=1)
        snapshot = statetool.load(str(old), uids=names, declarations=_WITH_IT)
        plan = statetool.plan_migration(snapshot, new_job)
        assert {s.uid for s in plan.states} == set(names)
        assert {row.needs for row in plan.rows} == {"nothing"}, "an enum that Kryo wrote keeps its constants"
        target = tmp_path / f"migrated-{version}"
        statetool.migrate(snapshot, str(target), plan=plan, flink_version=flink.version)
        assert statetool.check(str(target), new_job, flink_version=flink.version).verdict == "fully"
        restored = pairs.rows_of(judge.restore(flink, target, requests, backend=backend, parallelism=1))
        wanted = json.loads(old.with_suffix(old.suffix + ".json").read_text(), object_hook=without_kryo)
        assert restored == wanted
