"""Erased and kept keys, and samples: exactly these keys are gone, and everything else keeps its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import statetool
from statetool.api.write.options import WriteOptions
from statetool.entries.database import StoredDatabase
from statetool.errors import EncodeError, MissingKeyError, OptionError
from statetool.formats.key_groups import range_for
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.rocksdb.table_edit import write_changed
from statetool.formats.rocksdb.table_runs import read_runs
from statetool.formats.rocksdb.tables import Tables
from statetool.io.files import local_path
from statetool.saving.composition import OperatorChange
from statetool.saving.streams import databases
from statetool.saving.streams.filters import AddedEntry, ReplaceFilter
from statetool.saving.verbs.sample import SampleSize
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import Subtask, composite_key, encoded, group_of, keyed, serializer
from tests.support.snapshots.entries import damage, entries_of, readable
from tests.support.snapshots.incremental import BYTES, Job
from tests.support.snapshots.native import native_savepoint
from tests.support.snapshots.stored import records, stream_bytes
from tests.support.zoo import ZOO

KINDS = (
    "v1_20_5-hashmap-checkpoint",
    "v1_20_5-rocksdb-native",
    "v2_3_0-changelog-hashmap",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-forst",
    "v2_3_0-hashmap-canonical-compressed",
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-full",
    "v2_3_0-rocksdb-heap-timers",
)
LONG_KEY = serializer(LONG)
KEYS = ("timer-3", "w1", "order-1", 4, 8)


def key_groups_of(operator: OperatorInventory) -> Iterator[tuple[int, int, bytes]]:
    """Yield subtask, key group and stored bytes of each key group in an operator's streams."""
    for stored in operator.keyed.managed:
        assert isinstance(stored.place.handle, KeyGroupsHandle)
        found = stored.key_group_bytes(operator.keyed.context)
        assert found is not None
        with found.stream.open() as f:
            for group in found.ranges:
                yield stored.place.subtask, group.number, bytes(f.read_at(group.offset, group.size_bytes))


@pytest.mark.parametrize("name", quick(KINDS, "v2_3_0-hashmap-canonical-compressed", "v2_3_0-rocksdb-heap-timers"))
def test_only_the_entries_of_the_keys_are_gone(corpus: Path, tmp_path: Path, name: str) -> None:
    source = str(readable(Case(corpus / name), tmp_path / "readable"))
    done = statetool.erase(source, str(tmp_path / "new"), KEYS, allow_missing=True)
    old, new = Inventory(source), Inventory(str(tmp_path / "new"))
    forms = {o.operator: o.form for o in done.plan.operators}
    assert any(form != "unchanged" for form in forms.values())
    assert list(new.operators) == list(old.operators)
    removed = {(r.operator, r.state): r.entries for r in done.plan.erased}
    for uid, operator in new.operators.items():
        if forms.get(uid, "unchanged") == "unchanged":
            if old.operators[uid].keyed_states:
                assert sorted(entries_of(operator)) == sorted(entries_of(old.operators[uid]))
            continue
        before, after = entries_of(old.operators[uid]), set(entries_of(operator))
        gone = [r for r in before if r not in after]
        assert len(before) - len(gone) == len(after)
        for state in operator.keyed_states:
            assert sum(r[1] == state for r in gone) == removed.get((uid, state), 0)
    assert not damage(tmp_path / "new")


def test_key_groups_without_the_keys_keep_their_stored_bytes(corpus: Path, tmp_path: Path) -> None:
    source = str(Case(corpus / "v2_3_0-hashmap-canonical-compressed").metadata)
    statetool.erase(source, str(tmp_path / "new"), ["timer-3"], operators=["timers"])
    old, new = (Inventory(path).operators["timers"] for path in (source, str(tmp_path / "new")))
    before, after = set(key_groups_of(old)), set(key_groups_of(new))
    assert len(before - after) == 1
    assert {(s, g) for s, g, _ in after - before} <= {(s, g) for s, g, _ in before - after}


def stored_keys(operator: OperatorInventory) -> set[bytes]:
    """Return the keys (with key groups) of all versions of all entries in the table files of an operator."""
    found = set()
    for state in operator.keyed.managed:
        assert isinstance(state, StoredDatabase)
        tables = Tables(state.files)
        for file in chain.from_iterable(tables.families.values()):
            table = tables.open_file(file)
            for run in read_runs([(table, np.arange(len(table.blocks.size)))]):
                ends = zip(run.key.tolist(), run.key_end.tolist(), strict=True)
                found |= {bytes(run.keys[start:end]) for start, end in ends}
    return found


def with_old_versions(root: Path) -> None:
    """Take two checkpoints of a database in which key 7 was replaced, key 8 deleted, and key 3 replaced; others are far from these."""
    with Job(root, ("a", "b")) as job:
        for key in range(4000):
            job.put("a", key, b"old value of %06d" % key + bytes(40))
        job.flush()
        for key in (3, 7, 8, *range(5000, 5100)):
            job.put("b", key, b"value of %06d" % key)
            job.put("a", key, b"new value of %06d" % key)
        job.checkpoint()
        job.delete("a", 8)
        job.delete("b", 8)
        job.checkpoint()


@pytest.mark.parametrize("on_spark", [False, pytest.param(True, marks=pytest.mark.full)])
def test_databases_keep_their_form_and_lose_all_versions_of_a_key(
    tmp_path: Path, on_spark: bool, request: pytest.FixtureRequest
) -> None:
    with_old_versions(tmp_path / "checkpoints")
    source = str(tmp_path / "checkpoints/chk-2")
    spark = request.getfixturevalue("spark") if on_spark else None
    done = statetool.erase(source, str(tmp_path / "new"), [7, 8, 9], spark=spark, allow_missing=True)
    assert [(o.form, o.keys) for o in done.plan.operators] == [("in place", 2)]
    assert {r.state: r.entries for r in done.plan.erased} == {"a": 2, "b": 1}
    (before,) = Inventory(source).operators.values()
    (after,) = Inventory(str(tmp_path / "new")).operators.values()
    gone = {group_of(LONG_KEY, key, 128).to_bytes(1, "big") + key.to_bytes(8, "big") for key in (7, 8, 9)}
    assert {key[:9] for key in stored_keys(before) - stored_keys(after)} == gone
    assert not any(key[:9] in gone for key in stored_keys(after))
    old, new = entries_of(before), entries_of(after)
    assert len(set(old) - set(new)) == 3
    assert len(old) - 3 == len(new)
    assert not damage(tmp_path / "new")
    # A self-contained snapshot: its files are its own, and those without the keys have the same bytes.
    for state in after.keyed.managed:
        assert isinstance(state, StoredDatabase)
        assert all(Path(local_path(stream.file)).parent == tmp_path / "new" for _, stream in state.files.files)
        assert not list((tmp_path / "new").glob(".statetool*"))
        assert len(list((tmp_path / "new").iterdir())) == len(state.files.files) + 1


def test_a_failed_copy_of_a_database_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_old_versions(tmp_path / "checkpoints")
    written: list[object] = []

    def fail(*given: Any) -> object:
        written.append(write_changed(*given))
        if len(written) == 2:
            raise OSError("no space left")
        return written[-1]

    monkeypatch.setattr(databases, "write_changed", fail)
    with pytest.raises(OSError, match="no space left"):
        statetool.erase(str(tmp_path / "checkpoints/chk-2"), str(tmp_path / "new"), [7])
    assert len(written) == 2
    assert not (tmp_path / "new").exists()


def test_keys_that_only_old_versions_have_are_removed_from_databases(tmp_path: Path) -> None:
    with_old_versions(tmp_path / "checkpoints")
    source = str(tmp_path / "checkpoints/chk-2")
    done = statetool.erase(source, str(tmp_path / "new"), [8], allow_missing=True)
    assert done.plan.entries == 0
    (before,), (after,) = (Inventory(p).operators.values() for p in (source, str(tmp_path / "new")))
    place = group_of(LONG_KEY, 8, 128).to_bytes(1, "big") + (8).to_bytes(8, "big")
    assert any(key.startswith(place) for key in stored_keys(before))
    assert not any(key.startswith(place) for key in stored_keys(after))
    assert sorted(entries_of(before)) == sorted(entries_of(after))


def test_new_values_are_not_hidden_by_old_versions_of_their_keys(tmp_path: Path) -> None:
    """Key 8 was deleted, and key 9999 sorts into no file of its state."""
    with_old_versions(tmp_path / "checkpoints")
    source = str(tmp_path / "checkpoints/chk-2")
    (before,) = Inventory(source).operators.values()
    for key in (7, 8, 9999):
        group, new = group_of(LONG_KEY, key, 128), str(tmp_path / f"new-{key}")
        place, value = composite_key(key.to_bytes(8, "big")), encoded(serializer(BYTES), b"a new value")
        added = AddedEntry(state="a", key_group=group, key=place, value=value)
        change = ReplaceFilter(removed={}, added=(added,), groups=frozenset({group}))
        WriteOptions().write(Inventory(source), new, changes={str(before.label): OperatorChange(filter=change)})
        (after,) = Inventory(new).operators.values()
        assert isinstance(after.keyed.managed[0], StoredDatabase)
        old, found = set(entries_of(before)), set(entries_of(after))
        assert found - old == {(group, "a", place, value)}
        assert len(found) == len({(entry[1], entry[2]) for entry in old} | {("a", place)})
        assert not damage(Path(new))


def test_keys_that_only_the_history_of_a_manifest_has_are_removed_from_it(tmp_path: Path) -> None:
    with Job(tmp_path / "checkpoints") as job:
        job.put("a", 9000, b"alone in its file")
        job.flush()
        job.put("a", 1, b"another")
        job.delete("a", 9000)
        job.flush()
        job.compact()
        job.checkpoint()
    place = group_of(LONG_KEY, 9000, 128).to_bytes(1, "big") + (9000).to_bytes(8, "big")
    source, new = tmp_path / "checkpoints/chk-1", tmp_path / "new"
    assert any(place in p.read_bytes() for p in source.iterdir())
    assert statetool.erase(str(source), str(new), [9000], allow_missing=True).plan.entries == 0
    assert not any(place in p.read_bytes() for p in new.iterdir())
    assert not damage(new)


def test_databases_with_keys_of_other_subtasks_lose_them_too(tmp_path: Path) -> None:
    """After rescaling, a database has key groups of other subtasks, whose entries belong to no one."""
    entries = [
        ("a", group_of(LONG_KEY, key, 128), encoded(LONG_KEY, key) + b"\0", b"\0\0\0\5value") for key in range(3000)
    ]
    halves = [[e for e in entries if e[1] in range_for(i, 2, 128)] for i in (0, 1)]
    subtasks = [Subtask(key=LONG, states=[keyed("a", "value", BYTES)], entries=half) for half in halves]
    (tmp_path / "old").mkdir()
    native_savepoint(tmp_path / "old", subtasks, outside=entries)
    done = statetool.erase(str(tmp_path / "old"), str(tmp_path / "new"), [100, 200], operators=["op"], uids=["op"])
    assert [(o.form, o.keys) for o in done.plan.operators] == [("in place", 2)]
    (after,) = Inventory(str(tmp_path / "new")).operators.values()
    keys = stored_keys(after)
    assert {int.from_bytes(key[1:9], "big") for key in keys} == set(range(3000)) - {100, 200}
    assert len(keys) == 2998


def test_a_condition_on_keys_keeps_the_form_of_databases(tmp_path: Path) -> None:
    with_old_versions(tmp_path / "checkpoints")
    source = str(tmp_path / "checkpoints/chk-2")
    done = statetool.erase(source, str(tmp_path / "new"), where="key % 2 = 1 AND key < 4000")
    assert [(o.form, o.keys) for o in done.plan.operators] == [("in place", 2000)]
    (after,) = Inventory(str(tmp_path / "new")).operators.values()
    assert not damage(tmp_path / "new")
    assert {int.from_bytes(key[1:9], "big") for key in stored_keys(after)} == {*range(0, 4000, 2), *range(5000, 5100)}


def test_operators_without_the_keys_are_not_written_again(tmp_path: Path) -> None:
    statetool.erase(ZOO, str(tmp_path / "new"), ["timer-3"])
    old, new = Inventory(ZOO), Inventory(str(tmp_path / "new"))
    for uid, operator in new.operators.items():
        assert (stream_bytes(operator) == stream_bytes(old.operators[uid])) is (uid != "timers")


def test_keeping_keys_is_the_opposite_of_erasing_them(tmp_path: Path) -> None:
    statetool.erase(ZOO, str(tmp_path / "erased"), ["timer-3", "timer-4"])
    statetool.keep(ZOO, str(tmp_path / "kept"), ["timer-3", "timer-4"], operators=["timers"])
    old, erased, kept = (
        set(records(Inventory(str(p)).operators["timers"])) for p in (ZOO, tmp_path / "erased", tmp_path / "kept")
    )
    assert erased | kept == old
    assert not erased & kept
    assert kept


@pytest.mark.parametrize("keep", [False, True])
def test_a_condition_selects_the_same_keys_as_a_list(tmp_path: Path, keep: bool) -> None:
    write = statetool.keep if keep else statetool.erase
    where = "key LIKE 'timer-%' AND right(key, 1) IN ('3', '4')"
    by_where = write(ZOO, str(tmp_path / "a"), where=where, operators=["timers"])
    keys = ["timer-3", "timer-13", "timer-4", "timer-14"]
    by_keys = write(ZOO, str(tmp_path / "b"), keys, operators=["timers"], allow_missing=True)
    assert by_where.plan.erased == by_keys.plan.erased
    a, b = (stream_bytes(Inventory(str(tmp_path / name)).operators["timers"]) for name in "ab")
    assert a == b


def test_the_report_names_no_key_but_the_remaining_copies(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-unaligned" / "snapshot" / "chk-2"
    done = statetool.erase(str(source), str(tmp_path / "new"), ["timer-3"], allow_missing=True)
    report = json.dumps(done.report())
    assert "timer-3" not in report
    assert done.proof is not None
    assert done.proof.entries_of_keys == 0
    places = {c.place for c in done.plan.copies}
    assert {"in-flight data", "source snapshot"} <= places
    places = {c.place for c in statetool.erase(ZOO, "unused", ["timer-3"], dry_run=True).plan.copies}
    assert {"operator state", "keyed state", "map keys", "source snapshot"} <= places


def test_other_snapshots_of_the_job_are_named(corpus: Path, tmp_path: Path) -> None:
    root = corpus / "v2_3_0-rocksdb-incremental"
    done = statetool.erase(ZOO, str(tmp_path / "new"), ["timer-3"], root=str(root), dry_run=True)
    assert [c for c in done.plan.copies if c.place == "other snapshot" and "chk-" in c.name]
    assert done.proof is None
    assert not (tmp_path / "new").exists()


def test_edits_erase_keys_of_one_operator(tmp_path: Path) -> None:
    operator = statetool.load(ZOO)["timers"]
    new = operator.erase(["timer-3"]).keep("timers", where="key <= 'timer-5'").write(str(tmp_path / "new"))["timers"]
    keys = set(new.to_arrow()["key"].to_pylist())
    assert keys == {k for k in operator.to_arrow()["key"].to_pylist() if k <= "timer-5" and k != "timer-3"}
    assert set(new.to_arrow("timers")["key"].to_pylist()) <= keys
    assert operator.erase(["timer-3"]).preview().summary()


def test_what_cannot_be_decided_is_refused(corpus: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    for keys, where in ((None, None), ([], None), (["a"], "key = 1"), ("abc", None)):
        with pytest.raises(OptionError):
            statetool.erase(ZOO, target, keys, where=where)
    with pytest.raises(OptionError, match=r"the columns are key \(string\)"):
        statetool.erase(ZOO, target, where="nothing > 1", operators=["timers"])
    with pytest.raises(OptionError, match="has a subquery"):
        statetool.erase(ZOO, target, where="key IN (SELECT * FROM '/etc/passwd')", operators=["timers"])
    with pytest.raises(MissingKeyError, match="1 key fits the type of no operator: 7 is a number"):
        statetool.erase(ZOO, target, ["timer-3", 7], operators=["timers"])
    with pytest.raises(EncodeError, match="String"):
        statetool.erase(ZOO, target, [7], operators=["timers"])
    with pytest.raises(MissingKeyError, match="missing: b'bytes'; 1 key fits the type of no operator"):
        statetool.erase(ZOO, target, ["timer-3", b"bytes"])
    with pytest.raises(OptionError, match="no operator can have these keys"):
        statetool.erase(ZOO, target, [b"bytes"])
    with pytest.raises(
        OptionError, match=r"^the condition 'kye = 1' cannot be evaluated: there is no column 'kye'"
    ) as typo:
        statetool.erase(ZOO, target, where="kye = 1")
    assert str(typo.value).count("kye = 1") == 1
    assert typo.value.hint.startswith("did you mean key?")
    with pytest.raises(OptionError, match="the condition fits no operator: ") as unfit:
        statetool.erase(ZOO, target, where="key.f7 = 1")
    assert str(unfit.value).count("is not a struct") == 1
    edits = statetool.load(ZOO)["timers"].erase(["timer-3"]).transform("timers", lambda table: table)
    with pytest.raises(OptionError, match="new values"):
        edits.write(target)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("random() < 0.5", "random"),
        ("key = uuid()::VARCHAR", "uuid"),
        ("registered < epoch_ms(now())", "now"),
        ("current_timestamp > '2026-01-01'", "current_timestamp"),
        ("list_filter([1], x -> x > random()) = []", "random"),
    ],
)
def test_conditions_whose_result_changes_are_refused_at_once(tmp_path: Path, where: str, name: str) -> None:
    for verb in (statetool.erase, statetool.keep):
        with pytest.raises(OptionError, match=f"calls {name}, whose result changes"):
            verb(ZOO, str(tmp_path / "new"), where=where)


@pytest.mark.parametrize("name", quick(KINDS, "v2_3_0-rocksdb-canonical"))
def test_a_sample_has_complete_keys(corpus: Path, tmp_path: Path, name: str) -> None:
    source = str(readable(Case(corpus / name), tmp_path / "readable"))
    plan = statetool.sample(source, str(tmp_path / "new"), keys=2, seed=3)
    old, new = Inventory(source), Inventory(str(tmp_path / "new"))
    assert all(row.keys is not None and row.keys <= 2 for row in plan.operators)
    assert {row.keys for row in plan.operators} == {2}
    for row in plan.operators:
        mine, all_records = (set(entries_of(i.operators[row.operator])) for i in (new, old))
        assert mine <= all_records
    assert not damage(tmp_path / "new")


def test_samples_of_equal_seeds_are_equal_and_nested(tmp_path: Path) -> None:
    def sampled(name: str, **options: Any) -> set[object]:
        statetool.sample(ZOO, str(tmp_path / name), **options)
        return set(records(Inventory(str(tmp_path / name)).operators["timers"]))

    small, large = sampled("a", keys=3), sampled("b", keys="60%")
    assert small < large
    assert sampled("c", keys=3) == small
    assert sampled("d", keys=3, seed=1) != small
    assert sampled("e", keys=1.0) == set(records(Inventory(ZOO).operators["timers"]))


def test_a_sample_of_key_groups_has_these_key_groups(tmp_path: Path) -> None:
    statetool.sample(ZOO, str(tmp_path / "new"), key_groups="0-3,68", operators=["timers"])
    found = {g for _, g, _ in key_groups_of(Inventory(str(tmp_path / "new")).operators["timers"])}
    assert 68 in found
    assert found <= {0, 1, 2, 3, 68}


@pytest.mark.parametrize(
    "size", [{}, {"keys": "0%"}, {"keys": 0}, {"keys": "many"}, {"key_groups": "3-1"}, {"keys": 2.0}]
)
def test_sizes_that_are_not_valid(size: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        SampleSize.of(size.get("keys"), size.get("key_groups"))  # type: ignore[arg-type]
