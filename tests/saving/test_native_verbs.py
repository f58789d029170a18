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
    statetool.migrate(a, str(work / "migrated"), to=job)
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
    verb(zoo, tmp_path / "work", canonical, {})
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
        VERBS[verb](source, tmp_path, canonical, {})
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


def test_first_timers_of_an_operator_in_databases_are_warned_of(tmp_path: Path) -> None:
    table = pa.table({"key": [1, 2], "n": [3, 4]})
    writer = statetool.SavepointWriter.new().with_operator("op", statetool.bootstrap_keyed_state(table), parallelism=1)
    writer.write(str(tmp_path / "base"), flink_version="2.3", format="native", backend="rocksdb")
    timers = pa.table({"key": [1], "timestamp": [5], "domain": ["event"]})
    edits = statetool.SavepointWriter.from_existing(statetool.load(str(tmp_path / "base")))
    added = edits.with_operator("op", statetool.bootstrap_keyed_state(table, timers=timers))
    with pytest.warns(UserWarning, match="operator op has timers: a job that keeps timers on the heap"):
        added.write(str(tmp_path / "same"), format="same")


def test_the_same_format_has_no_backend(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="with the format of the base"):
        statetool.rescale(ZOO, str(tmp_path / "new"), 300, format="same", backend="rocksdb")
    statetool.convert(ZOO, str(tmp_path / "copied"), format="same")
    assert content_of(str(tmp_path / "copied")) == content_of(ZOO)
