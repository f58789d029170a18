"""Table files of states and key groups that do not change are carried into a native copy; the others are written again.

The copy has the same entries as one that is written completely, and RocksDB itself reads it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.errors import FormatError, StatetoolError
from statetool.formats.rocksdb import database_writer, table_writer
from statetool.formats.rocksdb.tables import Tables
from tests.support.quick import examples
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.keyed_content import content_of
from tests.support.snapshots.opened_databases import check_by_rocksdb, content, databases_of

KEYS: Final = 3000
SEEN: Final = pa.struct([("last_access", pa.timestamp("ms", "UTC")), ("value", pa.int64())])
WHOLE: Final[dict[str, Any]] = {"format": "native", "backend": "rocksdb"}


def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_writer.DatabaseWriter.__init__, "__kwdefaults__", {"table_bytes": 1 << 11})
    monkeypatch.setattr(table_writer, "_PORTION_BYTES", 1 << 11)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a savepoint with a large and a small state, values with a time to live, and timers, each in several files."""
    path = str(tmp_path_factory.mktemp("kept") / "base")
    rows = pa.table({
        "key": range(KEYS),
        "text": [f"{i:060}" for i in range(KEYS)],
        "n": pa.array(range(KEYS), pa.int32()),
        "seen": pa.array([{"last_access": i, "value": i} for i in range(KEYS)], SEEN),
    })  # fmt: skip
    timers = pa.table({"key": range(KEYS), "timestamp": range(KEYS), "domain": ["event"] * KEYS})
    types = {
        "text": statetool.value("STRING"), "n": statetool.value("INT"), "seen": statetool.value("BIGINT", ttl=True),
    }  # fmt: skip
    state = statetool.bootstrap_keyed_state(rows, key="key", states=types, timers=timers)
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_tables(monkeypatch)
        writer = statetool.SavepointWriter.new(max_parallelism=64).with_operator("op", state, parallelism=2)
        writer.write(path, flink_version="2.3", inline_bytes=0, **WHOLE)
    return path


def tables_of(path: str) -> dict[tuple[int, str], bytes]:
    """Return the table files of a snapshot by subtask and name."""
    return {
        (at, name): content(stream)
        for at, (files, _) in enumerate(databases_of(path))
        for name, stream in files.files
        if name.endswith(".sst")
    }


def families_of(path: str) -> dict[str, set[tuple[int, str]]]:
    """Return the names of the table files of each column family."""
    found: dict[str, set[tuple[int, str]]] = {}
    for at, (files, _) in enumerate(databases_of(path)):
        for family, tables in Tables(files).families.items():
            found.setdefault(family, set()).update((at, table.name) for table in tables)
    return found


def plus_one(table: pa.Table) -> pa.Table:
    return table.set_column(table.schema.get_field_index("n"), "n", pc.add(table["n"], pa.scalar(1, pa.int32())))


def transform(base: str, dst: str, form: dict[str, Any]) -> None:
    statetool.load(base)["op"].transform(plus_one, states=["n"]).write(dst, **form)


def change_type(base: str, dst: str, form: dict[str, Any]) -> None:
    def widen(table: pa.Table) -> pa.Table:
        wide = table.set_column(table.schema.get_field_index("n"), "n", table["n"].cast(pa.int64()))
        return wide.append_column("more", table["n"])

    edits = statetool.load(base)["op"].transform(widen, states=["n"])
    edits.rename_state("op", "text", "words").remove_state("op", "seen").write(dst, **form)


TIMERS: Final = "_timer_state/event_user-timers"
Verb = Callable[[str, str, dict[str, Any]], object]
#: Each verb with the states whose files it carries, by their new names, and those of which it carries some.
VERBS: Final[dict[str, tuple[Verb, dict[str, str], set[str]]]] = {
    "transform": (transform, {"text": "text", "seen": "seen", TIMERS: TIMERS}, set()),
    "change a type": (change_type, {"text": "words", TIMERS: TIMERS}, set()),
    "rename": (
        lambda base, dst, form: statetool.rename_states(base, dst, "op", {"text": "words", "n": "text"}, **form),
        {"text": "words", "n": "text", "seen": "seen", TIMERS: TIMERS},
        set(),
    ),
    "drop": (
        lambda base, dst, form: statetool.drop(base, dst, states={"op": ["text"]}, **form),
        {"n": "n", "seen": "seen", TIMERS: TIMERS},
        set(),
    ),
    "purge": (
        lambda base, dst, form: statetool.purge(base, dst, {"seen": 10}, now_ms=2000, **form),
        {"text": "text", "n": "n", TIMERS: TIMERS},
        set(),
    ),
    "purge timers": (
        lambda base, dst, form: statetool.purge(base, dst, {"seen": 10}, now_ms=1, event_timers_before_ms=1, **form),
        {"text": "text", "n": "n", "seen": "seen"},
        {TIMERS},
    ),
    "sample": (
        lambda base, dst, form: statetool.sample(base, dst, key_groups="0-9,20-40", **form),
        {},
        {"text", "n", "seen", TIMERS},
    ),
    "erase": (
        lambda base, dst, form: statetool.erase(base, dst, where="text LIKE '%00007_'", **form),
        {},
        {"text", "n", "seen", TIMERS},
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_files_that_do_not_change_are_carried(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    small_tables(monkeypatch)
    change, whole, partly = VERBS[verb]
    target, other = str(tmp_path / "same"), str(tmp_path / "whole")
    change(base, target, {})
    before, after = tables_of(base), tables_of(target)
    old, new = families_of(base), families_of(target)
    carried = {name for name in before.keys() & after.keys() if before[name] == after[name]}
    for family, name in whole.items():
        assert len(old[family]) > 4
        assert new[name] == old[family]
        assert new[name] <= carried
    for family in partly:
        assert 0 < len(new[family] & carried) < len(old[family])
        assert new[family] - carried, "no key group of it was written again"
    for family in new.keys() - set(whole.values()) - partly:
        assert not new[family] & carried
    change(base, other, WHOLE)
    assert not tables_of(other).keys() & carried or tables_of(other) != after
    wanted = content_of(other)
    assert wanted
    assert content_of(target) == wanted
    assert check_by_rocksdb(target, tmp_path / "opened") == len(wanted)
    assert [p for p in statetool.verify(target, deep=True).problems if p.severity == "error"] == []
    assert statetool.load(other).diff(target).equal


def local_files(path: str, *, name: str) -> list[Path]:
    """Return the local files of the table files of a column family."""
    named = families_of(path)[name]
    return [
        Path(stream.file.removeprefix("file:"))
        for at, (files, _) in enumerate(databases_of(path))
        for file, stream in files.files
        if (at, file) in named
    ]


@pytest.mark.parametrize("at", ["index", "data"])
def test_damage_in_a_carried_file_is_found(base: str, tmp_path: Path, at: str) -> None:
    """In the index and the properties before anything is written; in the entries, which are not read, by ``verify --deep`` and by RocksDB."""
    damaged, target = str(tmp_path / "damaged"), str(tmp_path / "target")
    statetool.copy(base, damaged)
    file = local_files(damaged, name="text")[0]
    data = bytearray(file.read_bytes())
    data[10 if at == "data" else len(data) - 80] ^= 1
    file.write_bytes(data)
    if at == "index":
        with pytest.raises(FormatError) as refused:
            transform(damaged, target, {})
        assert file.name in str(refused.value.where.file)
        assert not Path(target).exists()
        return
    transform(damaged, target, {})
    problems = [p for p in statetool.verify(target, deep=True).problems if p.severity == "error"]
    assert [p.state for p in problems] == ["text"] or "checksum" in problems[0].problem
    # rocksdict ends an iteration at the damaged block.
    assert check_by_rocksdb(target, tmp_path / "opened") < len(content_of(base))


def test_files_that_are_referenced_in_place_are_not_copied(base: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    statetool.load(base)["op"].transform(plus_one, states=["n"]).write(target, reference_files=True)
    assert {file.parent for file in local_files(target, name="text")} == {Path(base)}
    assert {file.parent for file in local_files(target, name="n")} <= {Path(target), Path(target) / "_metadata"}
    whole = str(tmp_path / "whole")
    transform(base, whole, WHOLE)
    assert content_of(target) == content_of(whole)


def test_a_dry_run_finds_a_carried_file_that_is_gone(base: str, tmp_path: Path) -> None:
    damaged = str(tmp_path / "damaged")
    statetool.copy(base, damaged)
    local_files(damaged, name="text")[0].unlink()
    for dry_run in (True, False):
        with pytest.raises(StatetoolError, match="does not exist"):
            statetool.rename_states(damaged, str(tmp_path / "new"), "op", {"n": "m"}, dry_run=dry_run)
        assert not (tmp_path / "new").exists()


# ---- databases of random jobs, with files on several levels that overlap ------------------------

Draw = random.Random


def double(table: pa.Table, name: str) -> pa.Table:
    """Change the values of a state, and remove some of them."""
    values = [None if v is None or len(v) % 7 == 0 else v + v for v in table[name].to_pylist()]
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.binary()))


def random_change(draw: Draw, base: str, number: int) -> Callable[[str, dict[str, Any]], object]:
    """Return a change of a snapshot."""
    states = [n for n in statetool.load(base)["op"].inventory.keyed_states]
    chosen = draw.choice(states)
    verb = draw.choice(["transform", "rename", "drop", "sample", "erase", "purge", "set", "several"])
    if verb == "transform":
        return lambda dst, form: (
            statetool.load(base)["op"].transform(partial(double, name=chosen), states=[chosen]).write(dst, **form)
        )
    if verb == "rename":
        swapped = (
            dict(zip(states, [*states[1:], states[0]], strict=True)) if len(states) > 1 else {chosen: f"s{number}"}
        )
        return lambda dst, form: statetool.rename_states(base, dst, "op", swapped, **form)
    if verb == "drop" and len(states) > 1:
        return lambda dst, form: statetool.drop(base, dst, states={"op": [chosen]}, **form)
    if verb == "sample":
        first = draw.randrange(100)
        return lambda dst, form: statetool.sample(base, dst, key_groups=f"0-{first},{first + 6}-127", **form)
    if verb == "purge":
        return lambda dst, form: statetool.purge(base, dst, {}, now_ms=0, empty=True, **form)
    if verb == "set":
        row = draw.choice(statetool.load(base)["op"].to_arrow(chosen).to_pylist())
        return lambda dst, form: statetool.set_values(base, dst, "op", row["key"], {chosen: b"new"}, **form)
    if verb == "erase":
        first = draw.randrange(500)
        where = f'"{chosen}" IS NOT NULL AND key BETWEEN {first} AND {first + 9}'
        return lambda dst, form: statetool.erase(base, dst, where=where, operators=["op"], **form)

    def several(dst: str, form: dict[str, Any]) -> None:
        edits = statetool.load(base)["op"].transform(partial(double, name=chosen), states=[chosen])
        for other in states:
            if other != chosen:
                edits = edits.rename_state("op", other, f"{other}{number}")
        edits.write(dst, **form)

    return several


def random_job(draw: Draw, job: Job) -> None:
    for _ in range(draw.randrange(2, 6)):
        first = draw.randrange(300)
        for key in range(first, first + draw.randrange(10, 300)):
            for state in job.truth:
                chance = draw.random()
                if chance < 0.6:
                    job.put(state, key, draw.randbytes(draw.randrange(40)))
                elif chance < 0.8:
                    job.delete(state, key)
        job.flush()
        if draw.random() < 0.5:
            group = draw.randrange(128)
            job.compact(group, group + draw.randrange(1, 60))


def test_random_changes_of_random_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tables(monkeypatch)
    carried = partly = 0
    for seed in range(examples(6)):
        draw = random.Random(seed)
        work = tmp_path / str(seed)
        work.mkdir()
        with Job(work / "job", states=("a", "b", "c")) as job:
            random_job(draw, job)
            path = str(work / "job" / f"chk-{job.checkpoint()}")
        for number in range(4):
            same, whole = str(work / f"same-{number}"), str(work / f"whole-{number}")
            change = random_change(draw, path, number)
            try:
                change(whole, WHOLE)
            except StatetoolError:
                continue
            change(same, {})
            wanted = content_of(whole)
            assert content_of(same) == wanted, f"seed {seed}, change {number}"
            assert check_by_rocksdb(same, work / f"opened-{number}") == len(wanted)
            assert [p for p in statetool.verify(same, deep=True).problems if p.severity == "error"] == []
            before, after = tables_of(path), tables_of(same)
            kept = {name for name in before.keys() & after.keys() if before[name] == after[name]}
            carried += len(kept)
            of_state = families_of(same).values()
            partly += sum(bool(names & kept) and bool(names - kept) for names in of_state)
            path = same
    assert carried > 20
    assert partly > 2
