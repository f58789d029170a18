"""Real Flink restores what ``upgrade`` writes for changed classes and a new release, with the values of the old job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

import statetool as st
from statetool.compatibility.classes.trial import user_class
from statetool.errors import EncodeError, OptionError
from tests.support.corpora.archives import unpack
from tests.support.flink import pairs
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.pair_suites import SUITES, Suite

pytestmark = pytest.mark.full
#: Pairs in which a field has another type, so that its values look different.
_RETYPED: Final = ("class-KryoRetyped",)
#: A pair whose job leaves a record to Kryo. Without a savepoint of the new job, it is taken for a POJO.
_LEFT_TO_KRYO: Final = "changed-KryoClassToRecord"
#: Suites whose old and new classes both exist. Values of Java serialization and messages are left out, because statetool converts few of
#: them to another type: ``check`` refuses the others by name, and ``test_pairs`` runs the commands that it prints. Those with libraries have a test of their own.
_CHANGED: Final = [
    s
    for s in SUITES
    if s.by_flink and not s.whole and not s.libraries and not s.by_jars and s.name != "java-serialized"
]


@pytest.mark.parametrize("suite", _CHANGED, ids=lambda s: s.name)
def test_flink_restores_an_upgraded_savepoint(flink: FlinkMachine, tmp_path: Path, suite: Suite) -> None:
    """No pair is refused, and every field that both classes have keeps its value."""
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    jars, other_jars = pairs.jars_of(suite, snapshots)
    release = pairs.short(flink.version)
    for written_by in pairs.releases_before(flink.version):
        old = pairs.old_savepoint(suite, snapshots, written_by, tmp_path)
        # The job of one pair declares a type that its class does not have by default.
        new = {"to": str(pairs.new_savepoint(suite, snapshots, release))} if suite.name == "classes" else {}
        options = {"jars": jars, "other_jars": other_jars, "flink_version": release, **new}
        upgraded, restorable = _upgrade(old, tmp_path / f"from-{written_by[0]}", suite, options)
        before = json.loads(old.with_suffix(old.suffix + ".json").read_text())
        states = {p.name: p.new for p in suite.pairs if p.name in restorable and p.new is not None}
        states.pop(_LEFT_TO_KRYO, None)
        for backend in pairs.BACKENDS:
            found = pairs.restore_each(flink, upgraded, states, backend)
            words = {n: pairs.word(before.get(n), found[n]) for n in states}
            wrong = {n: w for n, w in words.items() if w not in ("same", "kept", *["other"] * (n in _RETYPED))}
            assert wrong == {}, (written_by, backend)
        assert len(restorable) > 0.75 * len(suite.pairs), (written_by, sorted(set(suite.states(new=True)) - restorable))


@pytest.mark.since(2, 0)
@pytest.mark.parametrize(("name", "results"), [("messages", {"same"}), ("kryo-with-avro", {"refused"})])
def test_flink_restores_upgrades_of_jobs_with_libraries(
    library_flink: FlinkMachine, tmp_path: Path, name: str, results: set[str]
) -> None:
    """Thrift structs keep their bytes, Protobuf messages are written again, and flink-avro's registration is replaced."""
    suite = next(s for s in SUITES if s.name == name)
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    jars, other_jars = pairs.jars_of(suite, snapshots)
    old = pairs.old_savepoint(suite, snapshots, "1.20", tmp_path)
    found = {p: r for (s, p, backend), r in pairs.results("1.20", "2.3").items() if (s, backend) == (name, "rocksdb")}
    states = {n: state for n, state in suite.states(new=True).items() if found[n] in results}
    names = suite.states(new=False)
    part = st.load(str(old), uids=names)
    if left_out := sorted(names.keys() - states.keys()):
        st.drop(part, str(tmp_path / "part"), left_out)
        part = st.load(str(tmp_path / "part"), uids=states)
    new = str(tmp_path / "new")
    assert st.upgrade(part, new, jars=jars, other_jars=other_jars, flink_version="2.3").ok
    rows = pairs.restore(library_flink, Path(new), states, "rocksdb", config=suite.after)
    assert rows is not None
    before = pairs.content_of(library_flink, suite, old)
    assert {n: pairs.word(before[n], rows[n]) for n in states} == dict.fromkeys(states, "same")


@pytest.mark.since(2, 0)
def test_flink_restores_what_is_upgraded_without_jars(flink: FlinkMachine, tmp_path: Path) -> None:
    """States without user classes, as in SQL jobs, need no jar."""
    suite = next(s for s in SUITES if s.name == "states")
    written = pairs.old_savepoint(suite, tmp_path, "1.20", tmp_path)
    source = st.load(str(written), uids=suite.states(new=False))
    operators = {str(o.label): o for o in source._inventory.operators.values()}
    same = [p.name for p in suite.pairs if p.name.endswith("-same") and user_class(operators[p.name]) is None]
    assert len(same) > 20
    with pytest.raises(OptionError, match="an upgrade needs the jar"):
        st.upgrade(source, str(tmp_path / "new"), flink_version="2.3")
    st.drop(source, str(tmp_path / "part"), sorted(operators.keys() - set(same)))
    upgraded = st.upgrade(st.load(str(tmp_path / "part"), uids=same), str(tmp_path / "new"), flink_version="2.3")
    assert upgraded.ok
    states = {p.name: p.new for p in suite.pairs if p.name in same and p.new is not None}
    before = pairs.restore(flink, written, states, "hashmap")
    assert before
    assert pairs.restore(flink, tmp_path / "new", states, "rocksdb") == before


def _upgrade(old: Path, target: Path, suite: Suite, options: dict[str, Any]) -> tuple[Path, set[str]]:
    """Upgrade a savepoint, without the operators that cannot be upgraded, and return their uids too."""
    names = set(suite.states(new=True))
    source = st.load(str(old), uids=sorted(names))
    plan = st.upgrade(source, str(target), dry_run=True, **options).plan
    impossible = {s.uid for s in plan.states if any(step.change == "impossible" for step in s.steps)}
    impossible |= {n for n in names if any(r.startswith((f"{n}:", f"{n}.")) for r in plan.refused)}
    while True:
        if impossible:
            target = target.with_name(f"{target.name}-{len(impossible)}")
            part = str(target.with_name(f"{target.name}-source"))
            st.drop(source, part, sorted(impossible))
            source_left = st.load(part, uids=sorted(names - impossible))
        else:
            source_left = source
        plan = st.upgrade(source_left, str(target), dry_run=True, **options).plan
        accept = [row.step for row in plan.rows if row.needs == "acceptance"]
        try:
            done = st.upgrade(source_left, str(target), accept=accept, **options)
        except EncodeError as error:
            # The new type has no constant for a value: only its owner knows which one to use.
            assert error.where.operator is not None
            impossible.add(str(error.where.operator))
            continue
        assert done.after is not None
        assert done.verification is not None
        assert done.verification.ok, done.verification.problems
        assert done.after.verdict == "fully", done.after.reason
        return target, names - impossible
