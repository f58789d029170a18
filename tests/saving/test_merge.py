"""Grafts, splits, merges and moved states: what keeps its bytes, and what is refused with its reason."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.api.comparison import Comparison
from statetool.cli.main import cli
from statetool.errors import OptionError, TargetExistsError, UnknownNameError, UnsupportedError, WriteFailedError
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.formats.metadata.handles import IncrementalHandle
from statetool.formats.metadata.model import MasterState
from statetool.saving.composition import SourceOperator
from statetool.saving.grafts import check_source
from statetool.saving.publish import Publication
from statetool.saving.versions import Target
from statetool.snapshot.inventory import Inventory
from tests.support.checks.corpus_check import Case
from tests.support.snapshots.halves import write_halves
from tests.support.snapshots.stored import records
from tests.support.zoo import ZOO

SECOND = ("timers", "with-ttl", "op-lists")
BY_KEYS = ("timers", "by-tuple", "with-ttl", "collections-by-string")


def small(path: Path, uid: str, keys: list[int], *, max_parallelism: int | None = None) -> str:
    """Write a savepoint with one value per key."""
    table = pa.table({"id": keys, "n": [key * 10 for key in keys]})
    state = statetool.bootstrap_keyed_state(table, key="id")
    statetool.SavepointWriter.new(checkpoint_id=3).with_operator(uid, state, max_parallelism=max_parallelism).write(
        str(path)
    )
    return str(path)


def rewritten(source: str, target: Path, **changes: object) -> str:
    """Copy a snapshot with other metadata."""
    statetool.copy(source, str(target))
    file = target / "_metadata"
    file.write_bytes(write_metadata(replace(parse_metadata(file.read_bytes()), **changes)))  # type: ignore[arg-type]
    return str(target)


def changed_entries(comparison: Comparison) -> list[dict[str, Any]]:
    return [row for batch in comparison.batches() for row in batch.to_pylist()]


def test_a_merge_of_a_split_is_the_same_savepoint(tmp_path: Path) -> None:
    first, second, merged = (str(tmp_path / n) for n in ("first", "second", "merged"))
    plan = statetool.split(ZOO, first, second, SECOND, both=["orders"])
    assert {r.operator for r in plan.second} == {*SECOND, "orders"}
    assert statetool.load(second).checkpoint_id == statetool.load(ZOO).checkpoint_id
    statetool.drop(second, str(tmp_path / "own"), ["orders"])
    statetool.merge(first, str(tmp_path / "own"), merged)
    assert not changed_entries(statetool.load(ZOO).diff(statetool.load(merged)))
    before, after = Inventory(ZOO), Inventory(merged)
    assert before.operators.keys() == after.operators.keys()
    for name in SECOND:
        assert list(records(before.operators[name])) == list(records(after.operators[name]))


def test_a_split_job_with_eleven_max_parallelisms_is_merged(tmp_path: Path) -> None:
    numbers = (7, 32, 60, 64, 90, 100, 128, 200, 256, 300, 1024)
    writer = statetool.SavepointWriter.new()
    for number in numbers:
        state = statetool.bootstrap_keyed_state(
            pa.table({"id": range(50), "n": [k * number for k in range(50)]}), key="id"
        )
        writer = writer.with_operator(f"op-{number}", state, max_parallelism=number)
    writer.write(str(tmp_path / "whole"), flink_version="2.3")
    first, second, merged = (str(tmp_path / n) for n in ("first", "second", "merged"))
    statetool.split(str(tmp_path / "whole"), first, second, [f"op-{n}" for n in numbers[::2]])
    done = CliRunner().invoke(cli, ["merge", first, second, merged])
    assert done.exit_code == 0, done.output
    assert "warning: 6 operators (op-7, op-60, " in done.stderr
    assert "have a max parallelism that no other operator has" in done.stderr
    operators = statetool.load(merged).operators
    assert {name: operator.max_parallelism for name, operator in operators.items()} == {f"op-{n}": n for n in numbers}
    assert not changed_entries(statetool.load(str(tmp_path / "whole")).diff(statetool.load(merged)))
    assert statetool.verify(merged, deep=True).ok


def test_an_operator_of_another_snapshot_keeps_its_bytes(tmp_path: Path) -> None:
    base = statetool.load(small(tmp_path / "base", "mine", [1, 2]))
    other = statetool.load(ZOO)
    writer = (
        statetool.SavepointWriter.from_existing(base)
        .with_operator("alarms", other["timers"])
        .with_operator("op-lists", other["op-lists"])
    )
    grafted = writer.write(str(tmp_path / "new"), flink_version="2.3")
    assert grafted["mine"].to_arrow().num_rows == 2
    assert list(records(grafted["alarms"].inventory)) == list(records(other["timers"].inventory))
    assert grafted["op-lists"].to_arrow("buffered") == other["op-lists"].to_arrow("buffered")
    assert grafted.checkpoint_id == max(base.checkpoint_id, other.checkpoint_id)
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok


def test_a_graft_can_drop_rename_and_add_states(tmp_path: Path) -> None:
    other = statetool.load(ZOO)
    more = statetool.bootstrap_keyed_state(pa.table({"key": ["a"], "more": [1]}), key_type="STRING")
    writer = statetool.SavepointWriter.new().with_operator("timers", other["timers"], more)
    written = writer.write(str(tmp_path / "new"))
    assert {"registered", "more"} <= set(written["timers"].states)
    assert written["timers"].to_arrow(states=["more"]).to_pylist() == [{"key": "a", "more": 1}]


def test_reference_files_names_the_files_of_both_snapshots(tmp_path: Path) -> None:
    base, other = small(tmp_path / "base", "mine", [1]), statetool.load(ZOO)
    writer = statetool.SavepointWriter.from_existing(statetool.load(base)).with_operator("timers", other["timers"])
    writer.write(str(tmp_path / "new"), reference_files=True, flink_version="2.3")
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok
    assert list(records(Inventory(str(tmp_path / "new")).operator("timers"))) == list(
        records(Inventory(ZOO).operator("timers"))
    )


def test_a_graft_keeps_its_max_parallelism_or_gets_another(tmp_path: Path) -> None:
    base, other = small(tmp_path / "base", "mine", [1], max_parallelism=64), ZOO
    for number, given in ((128, None), (64, 64), (128, 128), (90, 90)):
        target = str(tmp_path / f"new-{number}-{given}")
        plan = statetool.graft(base, other, target, ["timers"], max_parallelism=given, flink_version="2.3")
        assert [r.max_parallelism for r in plan.operators if r.action == "grafted"] == [number]
        assert plan.parted == (() if number == 64 else ("timers",))
        grafted = Inventory(target).operator("timers")
        assert grafted.state.max_parallelism == number
        wanted = Counter(r[1:] for r in records(Inventory(ZOO).operator("timers")))
        assert Counter(r[1:] for r in records(grafted)) == wanted
        assert statetool.verify(target, deep=True).ok


@pytest.mark.parametrize(
    ("operators", "error", "words"),
    [
        ([], OptionError, "nothing to graft"),
        (["timer"], UnknownNameError, "timer"),
        (["timers"], OptionError, "'timers' already exists"),
        ({"timers": "x", "orders": "x"}, OptionError, "two operators would get the uid 'x'"),
    ],
)
def test_grafts_that_are_refused(
    tmp_path: Path, operators: list[str] | dict[str, str | None], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        statetool.graft(ZOO, ZOO, str(tmp_path / "new"), operators)
    assert not (tmp_path / "new").exists()


def test_an_operator_is_taken_from_one_operator(tmp_path: Path) -> None:
    other = statetool.load(ZOO)
    with pytest.raises(OptionError, match="taken from two operators"):
        statetool.SavepointWriter.new().with_operator("a", other["timers"], other["orders"])


def test_an_older_release_refuses_the_serializers_of_a_newer_one(corpus: Path, tmp_path: Path) -> None:
    old = str(Case(corpus / "v1_20_5-hashmap-canonical").metadata.parent)
    new = str(Case(corpus / "v2_3_0-hashmap-canonical").metadata.parent)
    smaller = str(tmp_path / "smaller")
    statetool.drop(old, smaller, ["orders"])
    with pytest.raises(UnsupportedError, match=r"Kryo|does not have"):
        statetool.graft(smaller, new, str(tmp_path / "new"), ["orders"])
    assert not (tmp_path / "new").exists()


def test_a_graft_gets_the_highest_checkpoint_id_and_its_own_backend_id(corpus: Path, tmp_path: Path) -> None:
    """A copy of an operator beside the original must not share files with it, and no id of its files is in the future."""
    source = str(Case(corpus / "v2_3_0-rocksdb-incremental").metadata.parent)
    low = statetool.copy(source, str(tmp_path / "low"))
    assert low.metadata_file is not None
    statetool.graft(source, source, str(tmp_path / "new"), {"timers": "timers-2"})
    inventory = Inventory(str(tmp_path / "new"))
    first, second = (
        {
            s.managed_keyed.backend_id
            for s in inventory.operator(name).state.subtasks
            if isinstance(s.managed_keyed, IncrementalHandle)
        }
        for name in ("timers", "timers-2")
    )
    assert first
    assert second
    assert not first & second
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok
    with pytest.raises(OptionError, match="checkpoint id 0 is lower than"):
        statetool.graft(source, source, str(tmp_path / "no"), {"timers": "timers-2"}, checkpoint_id=0)


def test_unaligned_checkpoints_are_refused(corpus: Path, tmp_path: Path) -> None:
    names = [p.name for p in corpus.iterdir() if "unaligned" in p.name]
    source = str(Case(corpus / sorted(names)[-1]).metadata.parent)
    uid = next(iter(Inventory(source).operators))
    base = small(tmp_path / "base", "mine", [1])
    for write in (
        lambda: statetool.graft(base, source, str(tmp_path / "new"), [uid], max_parallelism=128, flink_version="2.3"),
        lambda: statetool.merge(base, source, str(tmp_path / "new")),
        lambda: statetool.split(source, str(tmp_path / "new"), str(tmp_path / "other"), [uid]),
    ):
        with pytest.raises(UnsupportedError, match="in-flight records"):
            write()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("number", [None, 60, 256, 77])
def test_halves_of_the_keys_are_merged(tmp_path: Path, number: int | None) -> None:
    first, second = write_halves(statetool.load(ZOO), BY_KEYS, tmp_path)
    if number is not None:
        statetool.rescale(second, str(tmp_path / "rescaled"), number)
        second = str(tmp_path / "rescaled")
    statetool.merge(first, second, str(tmp_path / "merged"))
    assert statetool.verify(str(tmp_path / "merged"), deep=True).ok
    whole, merged = statetool.load(ZOO), statetool.load(str(tmp_path / "merged"))
    assert not changed_entries(whole.diff(merged, operators=list(BY_KEYS)))


def test_the_same_keys_are_refused_and_named(tmp_path: Path) -> None:
    first = small(tmp_path / "a", "counts", [1, 2, 3, 4, 5, 6, 7, 8])
    second = small(tmp_path / "b", "counts", [7, 8, 9], max_parallelism=90)
    with pytest.raises(UnsupportedError, match=r"both snapshots have state of 2 keys: 7, 8 "):
        statetool.merge(first, second, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_key_is_shared_even_if_its_states_differ(tmp_path: Path) -> None:
    """One side has a timer of the key only, the other a state of another name."""
    one = small(tmp_path / "a", "counts", [1, 2])
    timers = pa.table({"key": [2], "timestamp": [5], "service": ["user-timers"]})
    table = pa.table({"key": pa.array([], pa.int64()), "other": pa.array([], pa.int64())})
    state = statetool.bootstrap_keyed_state(table, timers=timers)
    statetool.SavepointWriter.new().with_operator("counts", state).write(str(tmp_path / "b"))
    for first, second in ((one, str(tmp_path / "b")), (str(tmp_path / "b"), one)):
        with pytest.raises(UnsupportedError, match=r"state of 1 key: 2 "):
            statetool.merge(first, second, str(tmp_path / "new"))


def test_other_types_of_key_or_state_are_refused(tmp_path: Path) -> None:
    first = small(tmp_path / "a", "counts", [1])
    for name, words, table in (
        ("key", "have different key types: Long and String", pa.table({"id": ["x"], "n": [1]})),
        ("state", "describe this state differently", pa.table({"id": [2], "n": ["x"]})),
    ):
        state = statetool.bootstrap_keyed_state(table, key="id")
        statetool.SavepointWriter.new().with_operator("counts", state).write(str(tmp_path / name))
        with pytest.raises(UnsupportedError, match=f"two operators {words}"):
            statetool.merge(first, str(tmp_path / name), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_operator_state_of_both_is_refused_unless_one_has_no_elements(tmp_path: Path) -> None:
    def write(name: str, values: list[int]) -> str:
        table = pa.table({"v": pa.array(values, pa.int64())})
        state = statetool.bootstrap_list_state("items", table, value="v")
        statetool.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / name))
        return str(tmp_path / name)

    one, other, empty = write("one", [1, 2]), write("other", [3]), write("empty", [])
    with pytest.raises(UnsupportedError, match="both snapshots have operator state: items"):
        statetool.merge(one, other, str(tmp_path / "new"))
    for i, (first, second) in enumerate(((one, empty), (empty, one))):
        statetool.merge(first, second, str(tmp_path / f"new-{i}"))
        merged = statetool.load(str(tmp_path / f"new-{i}")).with_uids(["op"])
        assert sorted(merged["op"].to_arrow("items")["value"].to_pylist()) == [1, 2]


def test_equal_broadcast_state_is_merged_and_other_is_not(tmp_path: Path) -> None:
    def write(name: str, keys: list[int], limit: int) -> str:
        rules = pa.table({"k": ["a"], "v": pa.array([limit], pa.int64())})
        states = (
            statetool.bootstrap_keyed_state(pa.table({"id": keys, "n": keys}), key="id"),
            statetool.bootstrap_broadcast_state("rules", rules, key="k", value="v"),
        )
        statetool.SavepointWriter.new().with_operator("op", *states).write(str(tmp_path / name))
        return str(tmp_path / name)

    first, same, other = write("a", [1], 5), write("b", [2], 5), write("c", [3], 6)
    statetool.merge(first, same, str(tmp_path / "new"))
    merged = statetool.load(str(tmp_path / "new")).with_uids(["op"])
    assert sorted(merged["op"].to_arrow()["key"].to_pylist()) == [1, 2]
    assert {r["value"] for r in merged["op"].to_arrow("rules").to_pylist()} == {5}
    with pytest.raises(UnsupportedError, match="both snapshots have operator state: rules"):
        statetool.merge(first, other, str(tmp_path / "no"))


def test_master_state_of_the_second_snapshot_alone_is_refused(tmp_path: Path) -> None:
    first, plain = small(tmp_path / "a", "one", [1]), small(tmp_path / "b", "two", [1])
    hook = MasterState(version=1, name="hook", payload=b"x")
    second = rewritten(plain, tmp_path / "c", master_states=(hook,))
    with pytest.raises(UnsupportedError, match=r"state of a master hook.*hook"):
        statetool.merge(first, second, str(tmp_path / "new"))
    statetool.merge(second, first, str(tmp_path / "new"))
    assert parse_metadata((tmp_path / "new" / "_metadata").read_bytes()).master_states == (hook,)


@pytest.mark.parametrize("error", [WriteFailedError("no quota"), RuntimeError("no thread"), KeyboardInterrupt()])
def test_a_split_that_publishes_only_the_second_names_what_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    commit = Publication.commit

    def fail(publication: Publication, *arguments: Any) -> str:
        if publication.target == str(first):
            raise error
        return commit(publication, *arguments)

    monkeypatch.setattr(Publication, "commit", fail)
    told = f"{second} is complete: remove it before you run the command again, with rm -r {second}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(type(error)) as raised:
            statetool.split(ZOO, str(first), str(second), SECOND)
    assert [told in str(raised.value), told in [str(w.message) for w in caught]].count(True) == 1
    assert (first.exists(), statetool.verify(str(second)).ok) == (False, True)
    shutil.rmtree(second)
    monkeypatch.undo()
    statetool.split(ZOO, str(first), str(second), SECOND)


def test_functions_warn_of_max_parallelisms_that_differ(tmp_path: Path) -> None:
    one = small(tmp_path / "one", "one", [1], max_parallelism=32)
    two = small(tmp_path / "two", "two", [1], max_parallelism=64)
    with pytest.warns(UserWarning, match="has a max parallelism that no other operator has"):
        statetool.merge(one, two, str(tmp_path / "merged"))
    with pytest.warns(UserWarning, match="has a max parallelism that no other operator has"):
        statetool.graft(one, statetool.load(two, uids=["two"]), str(tmp_path / "grafted"), ["two"], dry_run=True)
    three = small(tmp_path / "three", "three", [1], max_parallelism=32)
    statetool.merge(one, three, str(tmp_path / "both"))
    with pytest.warns(UserWarning, match="keeps the old max parallelism"):
        statetool.rescale(str(tmp_path / "both"), str(tmp_path / "rescaled"), {"one": 64})


def test_a_split_refuses_what_is_no_split(tmp_path: Path) -> None:
    everything = [*Inventory(ZOO).operators]
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    for operators, both, words in (
        ([], [], "no operators of its own"),
        (everything, [], "no operators of its own"),
        (["timers"], ["timers"], "both as moved and as shared"),
    ):
        with pytest.raises(OptionError, match=words):
            statetool.split(ZOO, first, second, operators, both=both)
    with pytest.raises(OptionError, match="overlap"):
        statetool.split(ZOO, first, f"{first}/second", ["timers"])
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "file").touch()
    with pytest.raises(TargetExistsError):
        statetool.split(ZOO, first, second, ["timers"])
    assert not (tmp_path / "first").exists()


def test_a_state_moves_to_an_operator_with_other_key_groups(tmp_path: Path) -> None:
    states = {"total": None, "visits": "seen", "names": None}
    statetool.move_state(ZOO, str(tmp_path / "new"), "collections-by-string", "timers", states)
    old, new = Inventory(ZOO).operator("collections-by-string"), Inventory(str(tmp_path / "new"))
    moved = [r for r in records(old) if r[1] in states]
    assert moved
    names = {name: renamed or name for name, renamed in states.items()}
    wanted = Counter((names[r[1]], *r[2:]) for r in moved)
    wanted.update(r[1:] for r in records(Inventory(ZOO).operator("timers")))
    assert Counter(r[1:] for r in records(new.operator("timers"))) == wanted
    stay = [r for r in records(old) if r[1] not in states]
    assert sorted(records(new.operator("collections-by-string"))) == sorted(stay)
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok


@pytest.mark.parametrize(
    ("source", "target", "states", "error", "words"),
    [
        ("timers", "timers", ["registered"], OptionError, "both operators are the same"),
        ("timers", "orders", [], OptionError, "nothing to move"),
        ("timers", "orders", ["register"], UnknownNameError, "no keyed state 'register'"),
        ("op-lists", "orders", ["buffered"], UnsupportedError, "'buffered' is operator state"),
        ("timers", "by-short", ["registered"], UnsupportedError, "different key types: Short and String"),
        ("timers", "orders", {"registered": "pet"}, OptionError, "two states 'pet'"),
        ("timers", "orders", ["_timer_state/event_user-timers"], OptionError, "two states"),
    ],
)
def test_moves_that_are_refused(
    tmp_path: Path,
    source: str,
    target: str,
    states: list[str] | dict[str, str | None],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        statetool.move_state(ZOO, str(tmp_path / "new"), source, target, states)
    assert not (tmp_path / "new").exists()


def test_a_graft_into_metadata_of_older_releases_than_the_known_ones_needs_a_release() -> None:
    """Flink 1.5 to 1.10 write version 2."""
    inventory = Inventory(ZOO)
    source = SourceOperator(inventory, inventory.operator("timers"))
    with pytest.raises(UnsupportedError, match="metadata version 2: it is unknown which release") as refused:
        check_source(source, Target(None, 2, 17))
    assert "--flink" in str(refused.value)
    check_source(source, Target("2.3", 6, 17))
