"""Each verb that writes keyed state writes it as native savepoints too: entry by entry what its canonical output has."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.metadata.handles import IncrementalHandle, KeyGroupsHandle, streams_of
from statetool.saving.streams.native import KEY_GROUPS_TAG
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink.corpus_cases import metadata_of
from tests.support.snapshots.caught_up import changed, new_job, written
from tests.support.snapshots.keyed_content import content_of
from tests.support.zoo import ZOO

Write: TypeAlias = Callable[[statetool.Savepoint, Path, Path, dict[str, Any]], object]


def catch_up(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    numbers = {key: key for key in range(300)}
    a, b = written(work / "a", numbers, 1), written(work / "b", changed(numbers), 2)
    job = new_job(work / "job")
    statetool.migrate(a, str(work / "migrated"), to=job, format="canonical")
    statetool.catch_up(str(work / "migrated"), a, b, str(dst), to=job, **form)


def migrate(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    a = written(work / "a", {key: key for key in range(300)}, 1)
    statetool.migrate(a, str(dst), to=new_job(work / "job"), **form)


def upgrade(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    """The values have no classes of a user, so no jar is needed."""
    bootstrap(zoo, work, work / "a", {})
    statetool.upgrade(str(work / "a"), str(dst), flink_version="2.3", **form)


def split(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    statetool.split(zoo, str(dst), str(work / "second"), ["timers", "orders"], **form)


def merge(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    statetool.split(zoo, str(work / "first"), str(work / "second"), ["timers", "orders"])
    first, second = (statetool.load(str(work / name), declarations=CLASSES) for name in ("first", "second"))
    statetool.merge(first, second, str(dst), **form)


def transform(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    def double(table: pa.Table) -> pa.Table:
        return table.append_column("more", pa.array(range(table.num_rows), pa.int64()))

    edits = zoo["timers"].transform(double).rename_state("orders", "pet", "animal")
    edits.remove_state("with-ttl", "plain").write(str(dst), **form)


def bootstrap(zoo: statetool.Savepoint, work: Path, dst: Path, form: dict[str, Any]) -> None:
    table = pa.table({"key": range(500), "n": range(500), "some": [[i, i + 1] for i in range(500)]})
    timers = pa.table({"key": range(500), "timestamp": [i * 1000 for i in range(500)], "domain": ["event"] * 500})
    state = statetool.bootstrap_keyed_state(table, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(dst), flink_version="2.3", **form)


#: Each writes a copy of the zoo, or of other state, with the arguments of a form.
VERBS: Final[dict[str, Write]] = {
    "rescale": lambda zoo, _, dst, form: statetool.rescale(zoo, str(dst), 300, **form),
    "rescale one": lambda zoo, _, dst, form: statetool.rescale(zoo, str(dst), {"orders": 64}, parallelism=3, **form),
    "keep": lambda zoo, _, dst, form: statetool.keep(zoo, str(dst), ["timer-3"], operators=["timers"], **form),
    "erase": lambda zoo, _, dst, form: statetool.erase(zoo, str(dst), ["timer-3"], operators=["timers"], **form),
    "drop": lambda zoo, _, dst, form: statetool.drop(zoo, str(dst), states={"timers": ["registered"]}, **form),
    "state rename": lambda zoo, _, dst, form: statetool.rename_states(
        zoo, str(dst), "timers", {"registered": "noted"}, **form
    ),
    "sample": lambda zoo, _, dst, form: statetool.sample(zoo, str(dst), key_groups="0-3", **form),
    "purge": lambda zoo, _, dst, form: statetool.purge(
        zoo, str(dst), {"ttl-value": 1}, now_ms=1 << 60, event_timers_before_ms=1 << 60, empty=True, **form
    ),
    "set": lambda zoo, _, dst, form: statetool.set_values(
        zoo, str(dst), "timers", "timer-3", {"registered": 7}, add_timers=[("event", 5)], **form
    ),
    "migrate": migrate,
    "catch-up": catch_up,
    "upgrade": upgrade,
    "graft": lambda zoo, _, dst, form: statetool.graft(
        zoo, zoo, str(dst), {"timers": "more", "orders": "others"}, max_parallelism=256, **form
    ),
    "merge": merge,
    "split": split,
    "move-state": lambda zoo, _, dst, form: statetool.move_state(
        zoo, str(dst), "collections-by-string", "timers", ["total", "history"], **form
    ),
    "transform": transform,
    "bootstrap": bootstrap,
}


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> Iterator[Write]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of timers, which each form has
        yield VERBS[request.param]


def test_native_output_has_the_entries_of_canonical_output(verb: Write, tmp_path: Path) -> None:
    zoo = statetool.load(ZOO, declarations=CLASSES)
    canonical = tmp_path / "canonical"
    (tmp_path / "work").mkdir()
    verb(zoo, tmp_path / "work", canonical, {"format": "canonical"})
    wanted = content_of(str(canonical))
    assert wanted
    for backend in ("rocksdb", "forst", "heap"):
        work, native = tmp_path / f"work-{backend}", tmp_path / backend
        work.mkdir()
        verb(zoo, work, native, {"format": "native", "backend": backend})
        opened = statetool.load(str(native), declarations=CLASSES)
        handles = [h for o in opened._inventory.operators.values() for s in o.state.subtasks if (h := s.managed_keyed)]
        assert handles
        for handle in handles:
            if backend == "heap":
                assert isinstance(handle, KeyGroupsHandle)
                assert handle.tag == KEY_GROUPS_TAG
            else:
                assert isinstance(handle, IncrementalHandle)
        assert content_of(str(native)) == wanted
        assert statetool.load(str(canonical), declarations=CLASSES).diff(opened).equal
        found = statetool.verify(str(native), deep=True).problems
        assert [problem for problem in found if problem.severity == "error"] == []


def test_a_form_that_does_not_exist_is_refused_before_anything_is_read(verb: Write, tmp_path: Path) -> None:
    zoo = statetool.load(ZOO, declarations=CLASSES)
    with pytest.raises(OptionError, match="the native format needs a backend"):
        verb(zoo, tmp_path, tmp_path / "new", {"format": "native"})
    assert not (tmp_path / "new").exists()


def test_a_native_savepoint_needs_a_release_that_reads_it(tmp_path: Path) -> None:
    state = statetool.bootstrap_keyed_state(pa.table({"key": ["a"], "n": [1]}))
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=1)
    with pytest.raises(UnsupportedError, match="state handles of tag 11"):
        writer.write(str(tmp_path / "new"), flink_version="1.14", format="native", backend="rocksdb")
    assert not (tmp_path / "new").exists()


def test_new_state_with_a_name_of_no_column_family_is_refused(tmp_path: Path) -> None:
    state = statetool.bootstrap_keyed_state(pa.table({"key": ["a"], "default": [1]}))
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=1)
    with pytest.raises(UnsupportedError, match="cannot use for a column family"):
        writer.write(str(tmp_path / "new"), flink_version="2.3", format="native", backend="forst")
    assert not (tmp_path / "new").exists()


def test_timers_of_new_operators_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="operator op has timers: a job that keeps timers on the heap") as warned:
        bootstrap(statetool.load(ZOO), tmp_path, tmp_path / "new", {"format": "native", "backend": "rocksdb"})
    assert warned[0].filename == __file__


def kinds_of(snapshot: str) -> dict[str, set[str]]:
    operators = statetool.load(snapshot, declarations=CLASSES)._inventory.operators.values()
    return {o.label: {stored.layout() for stored in o.keyed.managed} for o in operators if o.keyed.managed}


@pytest.mark.parametrize(
    "name", ["rocksdb-incremental", "hashmap-checkpoint", "rocksdb-heap-timers", "rocksdb-canonical"]
)
def test_the_same_format_is_that_of_the_base(corpus: Path, tmp_path: Path, name: str) -> None:
    """Of each operator, of which unchanged ones keep their bytes. The entries are those of canonical output."""
    source = statetool.load(str(metadata_of(corpus / f"v2_3_0-{name}")), declarations=CLASSES)
    base = kinds_of(source.path)
    for verb in ("rescale one", "transform"):
        (tmp_path / verb).mkdir()
        canonical, same = tmp_path / verb / "canonical", tmp_path / verb / "same"
        VERBS[verb](source, tmp_path, canonical, {"format": "canonical"})
        assert {kind for kinds in kinds_of(str(canonical)).values() for kind in kinds} >= {"canonical"}
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "operators? .* timers")  # they stay where the job finds them
            VERBS[verb](source, tmp_path, same, {"format": "same"})
        assert kinds_of(str(same)) == base
        assert content_of(str(same)) == content_of(str(canonical))
        assert [p for p in statetool.verify(str(same), deep=True).problems if p.severity == "error"] == []
        before, after = (digests(s) for s in (source, statetool.load(str(same), declarations=CLASSES)))
        assert before["by-tuple"] == after["by-tuple"]
        assert before["orders"] != after["orders"]


def digests(savepoint: statetool.Savepoint) -> dict[str, list[bytes]]:
    """The bytes of the keyed state of each operator, in the order of its handles."""
    found: dict[str, list[bytes]] = {}
    for operator in savepoint._inventory.operators.values():
        handles = [s.managed_keyed for s in operator.state.subtasks if s.managed_keyed is not None]
        for stream in (s for handle in handles for s in streams_of(handle)):
            place = savepoint._inventory.resolve(stream)
            assert place is not None
            with place.open() as f:
                found.setdefault(operator.label, []).append(bytes(f.read_at(0, place.size_bytes)))
    return found


def with_timers(backend: str, tmp_path: Path) -> tuple[statetool.Savepoint, Any, Any]:
    """A native base with an operator without timers, its state, and that with timers."""
    table = pa.table({"key": [1, 2], "n": [3, 4]})
    state = statetool.bootstrap_keyed_state(table)
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=1)
    writer.write(str(tmp_path / "base"), flink_version="2.3", format="native", backend=backend)  # type: ignore[arg-type]
    timers = pa.table({"key": [1], "timestamp": [5], "domain": ["event"]})
    return statetool.load(str(tmp_path / "base")), state, statetool.bootstrap_keyed_state(table, timers=timers)


def handles_of(snapshot: str) -> dict[str, tuple[type | None, type | None]]:
    """The kinds of managed and of raw keyed state of the first subtask of each operator."""
    operators = statetool.load(snapshot)._inventory.operators.values()
    first = {str(o.label): o.state.subtasks[0] for o in operators}
    return {
        uid: (None if s.managed_keyed is None else type(s.managed_keyed), None if s.raw_keyed is None else type(s.raw_keyed))
        for uid, s in first.items()
    }  # fmt: skip


def test_first_timers_of_an_operator_in_databases_are_raw(tmp_path: Path) -> None:
    """Nothing shows where the job will keep its timers. It finds raw ones in each place."""
    base, _, timed = with_timers("rocksdb", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edits = statetool.SavepointWriter.from_existing(base)
        edits.with_operator("op", timed).write(str(tmp_path / "same"), format="same")
    assert handles_of(str(tmp_path / "same")) == {"op": (IncrementalHandle, KeyGroupsHandle)}
    (timer,) = statetool.load(str(tmp_path / "same"))["op"].to_arrow("timers").to_pylist()
    assert (timer["key"], timer["timestamp"]) == (1, 5)
    # Timers that are in a database already stay there.
    edits = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path / "same")))
    edits.with_operator("op", timed).write(str(tmp_path / "again"), format="same")
    assert handles_of(str(tmp_path / "again")) == {"op": (IncrementalHandle, KeyGroupsHandle)}


def test_an_operator_with_its_first_keyed_state_has_the_form_of_all_others(tmp_path: Path) -> None:
    """ForSt restores no canonical state."""
    base, state, _ = with_timers("forst", tmp_path)
    elements = statetool.bootstrap_list_state("list", pa.table({"value": [1]}))
    edits = statetool.SavepointWriter.from_existing(base).with_operator("new", elements, new=True, parallelism=1)
    edits.write(str(tmp_path / "elements"))
    assert handles_of(str(tmp_path / "elements"))["new"] == (None, None)
    edits = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path / "elements")))
    edits.with_operator("new", state).write(str(tmp_path / "same"))
    assert handles_of(str(tmp_path / "same"))["new"] == (IncrementalHandle, None)


@pytest.mark.parametrize("others", [True, False])
def test_an_operator_of_raw_timers_alone_keeps_them(tmp_path: Path, others: bool) -> None:
    """ForSt restores no canonical state."""
    base, _, timed = with_timers("forst", tmp_path)
    edits = statetool.SavepointWriter.from_existing(base).with_operator("op", timed)
    edits.write(str(tmp_path / "timed"))
    edits = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path / "timed"))).remove_state("op", "n")
    edits = edits.with_operator("new", timed, new=True) if others else edits
    edits.write(str(tmp_path / "alone"))
    assert handles_of(str(tmp_path / "alone"))["op"] == (None, KeyGroupsHandle)
    statetool.rescale(str(tmp_path / "alone"), str(tmp_path / "rescaled"), {"op": 64})
    statetool.set_values(str(tmp_path / "alone"), str(tmp_path / "set"), "op", 1, add_timers=[("event", 9)])
    for name, wanted in (("rescaled", [5]), ("set", [5, 9])):
        assert handles_of(str(tmp_path / name))["op"] == (None, KeyGroupsHandle)
        table = statetool.load(str(tmp_path / name))["op"].to_arrow("timers")
        assert sorted(table["timestamp"].to_pylist()) == wanted


@pytest.mark.parametrize(
    ("backend", "managed", "raw"),
    [("rocksdb", IncrementalHandle, KeyGroupsHandle), ("forst", IncrementalHandle, KeyGroupsHandle), ("heap", KeyGroupsHandle, None)],
)  # fmt: skip
def test_a_new_operator_has_the_form_of_all_others(
    tmp_path: Path, backend: str, managed: type, raw: type | None
) -> None:
    """ForSt restores no canonical state. The heap backend does."""
    base, _, timed = with_timers(backend, tmp_path)
    edits = statetool.SavepointWriter.from_existing(base)
    edits.with_operator("new", timed, parallelism=1, new=True).write(str(tmp_path / "same"), format="same")
    found = handles_of(str(tmp_path / "same"))
    assert found["new"] == (managed, raw)
    if backend == "heap":
        new = statetool.load(str(tmp_path / "same"))["new"].inventory
        assert {stored.layout() for stored in new.keyed.managed} == {"canonical"}


@pytest.mark.parametrize(
    ("base", "other", "wanted"),
    [
        ("rocksdb", "heap", "database"),
        ("rocksdb", "canonical", "database"),
        ("rocksdb", "rocksdb", "database"),
        ("heap", "rocksdb", "canonical"),
        ("heap", "heap", "heap"),
        ("canonical", "rocksdb", "canonical"),
        ("none", "rocksdb", "database"),
    ],
)
def test_a_graft_that_changes_has_a_form_that_the_backend_of_the_base_restores(
    tmp_path: Path, base: str, other: str, wanted: str
) -> None:
    folders = {}
    for name, form in (("base", base), ("other", other)):
        state = statetool.bootstrap_keyed_state(pa.table({"key": [1, 2], "n": [3, 4]}))
        writer = statetool.SavepointWriter.new().with_operator(name, state, parallelism=1)
        folders[name] = str(tmp_path / name)
        chosen: Any = {} if form in ("canonical", "none") else {"format": "native", "backend": form}
        writer.write(folders[name], flink_version="2.3", **chosen)
    if base == "none":
        statetool.drop(folders["base"], str(tmp_path / "empty"), ["base"])
        folders["base"] = str(tmp_path / "empty")
    dst = str(tmp_path / "new")
    statetool.graft(folders["base"], folders["other"], dst, ["other"], max_parallelism=256, format="same")
    assert {s.layout() for s in statetool.load(dst)["other"].inventory.keyed.managed} == {wanted}
    assert content_of(dst)


@pytest.mark.parametrize(
    ("base", "other", "warned"),
    [("rocksdb", "heap", "keeps its files of the heap backend"), ("heap", "forst", "keeps its files of RocksDB or ForSt"), ("heap", "heap", "")],
)  # fmt: skip
def test_an_unchanged_graft_of_another_backend_is_warned_of(tmp_path: Path, base: str, other: str, warned: str) -> None:
    table = pa.table({"key": [1, 2], "n": [3, 4]})
    for name, backend in (("base", base), ("other", other)):
        state = statetool.bootstrap_keyed_state(table)
        writer = statetool.SavepointWriter.new().with_operator(name, state, parallelism=1)
        writer.write(str(tmp_path / name), flink_version="2.3", format="native", backend=backend)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        statetool.graft(str(tmp_path / "base"), str(tmp_path / "other"), str(tmp_path / "new"), ["other"])
    assert [warned in str(w.message) for w in found] == [True] * bool(warned)


def test_a_release_without_native_savepoints_gets_canonical_state(corpus: Path, tmp_path: Path) -> None:
    """It is unknown if the job has a later release than the one that wrote the base."""
    base = str(metadata_of(corpus / "v1_13_6-rocksdb-incremental"))
    old = statetool.load(base, declarations=CLASSES, uids=["by-tuple"])
    (tmp_path / "work").mkdir()
    with pytest.warns(UserWarning, match="becomes canonical: Flink before 1.15"):
        statetool.rescale(old, str(tmp_path / "old"), {"by-tuple": 64}, format="same")
    assert [*kinds_of(str(tmp_path / "old")).values()].count({"canonical"}) == 1
    writer = statetool.SavepointWriter.from_existing(old).with_operator(
        "new", statetool.bootstrap_keyed_state(pa.table({"key": [1], "n": [2]})), new=True, parallelism=1
    )
    writer.write(str(tmp_path / "later"), flink_version="1.15", format="same")
    assert [*kinds_of(str(tmp_path / "later")).values()] == [{"database"}] * (len(kinds_of(base)) + 1)


def test_what_the_layout_of_the_heap_backend_cannot_hold_becomes_canonical(tmp_path: Path) -> None:
    """Values without a known end: the heap backend restores them from canonical state, which has lengths."""
    zoo = statetool.load(ZOO)  # without the declarations of the classes of orders
    others = [name for name in map(str, zoo._inventory.operators) if name != "timers"]
    only, heap, both = (str(tmp_path / name) for name in ("only", "heap", "both"))
    statetool.drop(zoo, only, others)
    statetool.convert(only, heap, format="native", backend="heap")
    statetool.graft(heap, zoo, both, ["orders"], format="same")
    assert kinds_of(both) == {"timers": {"heap"}, "orders": {"canonical"}}
    with pytest.warns(
        UserWarning, match="operator timers becomes canonical, which the heap backend restores: the end of"
    ):
        statetool.move_state(both, str(tmp_path / "moved"), "orders", "timers", ["order"], format="same")
    assert kinds_of(str(tmp_path / "moved"))["timers"] == {"canonical"}
    canonical = str(tmp_path / "canonical")
    statetool.move_state(both, canonical, "orders", "timers", ["order"], format="canonical")
    assert content_of(str(tmp_path / "moved")) == content_of(canonical)


def test_the_same_format_has_no_backend(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="with the format of the base"):
        statetool.rescale(ZOO, str(tmp_path / "new"), 300, format="same", backend="rocksdb")
    statetool.convert(ZOO, str(tmp_path / "copied"), format="same")
    assert content_of(str(tmp_path / "copied")) == content_of(ZOO)
