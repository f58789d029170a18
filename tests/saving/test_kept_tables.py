"""Table files of states and key groups that do not change are carried into a native copy; the others are written again.

The copy has the same entries as one that is written completely, and RocksDB itself reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.errors import FormatError
from statetool.formats.rocksdb import database_writer, table_writer
from tests.saving.test_native import check_by_rocksdb, content, databases_of
from tests.support.snapshots.keyed_content import content_of

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
        writer.write(path, flink_version="2.3", **WHOLE)
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
    from statetool.formats.rocksdb.tables import Tables

    found: dict[str, set[tuple[int, str]]] = {}
    for at, (files, _) in enumerate(databases_of(path)):
        for family, tables in Tables(files).families.items():
            found.setdefault(family, set()).update((at, table.name) for table in tables)
    return found


def plus_one(table: pa.Table) -> pa.Table:
    return table.set_column(table.schema.get_field_index("n"), "n", pc.add(table["n"], pa.scalar(1, pa.int32())))


def transform(base: str, dst: str, form: dict[str, Any]) -> None:
    statetool.load(base)["op"].transform(plus_one, states=["n"]).write(dst, **form)


def add_state(base: str, dst: str, form: dict[str, Any]) -> None:
    def add(table: pa.Table) -> pa.Table:
        return table.append_column("more", table["n"])

    statetool.load(base)["op"].transform(add, states=["n"]).write(dst, **form)


def change_type(base: str, dst: str, form: dict[str, Any]) -> None:
    def widen(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("n"), "n", table["n"].cast(pa.int64()))

    edits = statetool.load(base)["op"].transform(widen, states=["n"])
    edits.rename_state("op", "text", "words").remove_state("op", "seen").write(dst, **form)


TIMERS: Final = "_timer_state/event_user-timers"
Verb = Callable[[str, str, dict[str, Any]], object]
#: Each verb with the states whose files it carries, by their new names, and those of which it carries some.
VERBS: Final[dict[str, tuple[Verb, dict[str, str], set[str]]]] = {
    "transform": (transform, {"text": "text", "seen": "seen", TIMERS: TIMERS}, set()),
    "add a state": (add_state, {"text": "text", "seen": "seen", TIMERS: TIMERS}, set()),
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
