"""All changes to an operator, alone or combined, go through one composition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool.errors import OptionError
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.local import LocalRunner
from statetool.saving.versions import parse_release
from tests.support.checks.corpus_check import Case
from tests.support.snapshots.stored import streams


def written(composition: Composition, target: Path) -> st.Savepoint:
    assert composition.base is not None
    release = parse_release(None, default=composition.base.metadata.version)
    write_composition(composition, str(target), release, LocalRunner())
    verification = st.verify(str(target), deep=True)
    assert [p for p in verification.problems if p.severity == "error"] == []
    return st.load(str(target))


def content(op: st.Operator) -> dict[str, list[Any]]:
    return {t: sorted(op.to_arrow(t).to_pylist(), key=repr) for t in op.tables}


@pytest.mark.parametrize(("max_parallelism", "parallelism"), [(300, 2), (64, 5)])
def test_all_changes_at_once_are_those_one_after_another(
    tmp_path: Path, max_parallelism: int, parallelism: int
) -> None:
    n = 500
    table = pa.table({"id": range(n), "a": range(n), "b": [f"b{i}" for i in range(n)], "c": [[i] for i in range(n)]})
    more = pa.table({"id": [1, n + 1], "d": ["x", "y"]})
    timers = pa.table({"id": range(50), "timestamp": range(50)})
    lists = [
        st.bootstrap_list_state("l", pa.table({"value": range(20)})),
        st.bootstrap_union_state("u", pa.table({"value": ["p", "q", "r"]})),
        st.bootstrap_broadcast_state("m", pa.table({"key": ["k"], "value": [1]})),
    ]
    extra = st.bootstrap_list_state("new", pa.table({"value": [1.5]}))
    base = (
        st.SavepointWriter.new()
        .with_operator("op", st.bootstrap_keyed_state(table, key="id", timers=timers), *lists, parallelism=3)
        .write(str(tmp_path / "base"), flink_version="2.3")
    )
    added = st.bootstrap_keyed_state(more, key="id")
    change = OperatorChange(
        bootstraps=(added.bootstrap, extra.bootstrap),
        max_parallelism=max_parallelism,
        parallelism=parallelism,
        dropped_states=frozenset({"b", "u"}),
        renames={"a": "total", "l": "positions"},
    )
    at_once = written(
        Composition(base=base.inventory, changes={"op": change}, uids={"op": "other"}, checkpoint_id=7),
        tmp_path / "at-once",
    )
    st.rescale(str(tmp_path / "base"), str(tmp_path / "1"), max_parallelism, parallelism=parallelism)
    st.drop(str(tmp_path / "1"), str(tmp_path / "2"), states={"op": ["b", "u"]})
    writer = st.SavepointWriter.from_existing(st.load(str(tmp_path / "2"))).with_operator("op", added, extra)
    writer = writer.rename_state("op", "a", "total").rename_state("op", "l", "positions").change_uid("op", "other")
    steps = writer.with_checkpoint_id(7).write(str(tmp_path / "3"))
    assert content(at_once["other"]) == content(steps["other"])
    assert at_once.checkpoint_id == steps.checkpoint_id == 7
    for sp in (at_once, steps):
        assert (sp["other"].max_parallelism, sp["other"].parallelism) == (max_parallelism, parallelism)
    assert [sorted(p.stat().st_size for p in (tmp_path / d).iterdir()) for d in ("at-once", "3")]


def test_new_subtasks_hold_all_of_a_broadcast_state(tmp_path: Path) -> None:
    rules = st.bootstrap_broadcast_state("m", pa.table({"key": ["k", "l"], "value": [1, 2]}))
    elements = st.bootstrap_list_state("l", pa.table({"value": range(20)}))
    base = st.SavepointWriter.new().with_operator("op", rules, elements, parallelism=2).write(str(tmp_path / "base"))
    for parallelism in (1, 5):
        target = str(tmp_path / f"{parallelism}")
        st.rescale(base.path, target, 128, parallelism=parallelism)
        after = st.load(target, uids=["op"])["op"]
        assert content(after) == content(base["op"])
        rows = after.to_arrow("m", subtask=True).to_pylist()
        assert {r["subtask"] for r in rows} == set(range(parallelism))
        assert len(rows) == 2 * parallelism


def test_compressed_state_stays_compressed(corpus: Path, tmp_path: Path) -> None:
    case = Case(corpus / "v2_3_0-hashmap-canonical-compressed")
    base = st.load(str(case.metadata))
    both = next(o for o in base.operators.values() if len(o.inventory.operator_states) > 1)
    keyed = base["timers"]
    name, *_ = both.inventory.operator_states
    state = next(n for n, s in keyed.states.items() if s.kind != "timers")
    writer = st.SavepointWriter.from_existing(base).rename_state(both.name, name, "renamed")
    after = writer.rename_state("timers", state, "renamed").write(str(tmp_path / "new"))
    assert all(h.compressed for _, h in after[both.name].inventory.elements.headers())
    assert all(s.header().compressed for s in streams(after["timers"].inventory))
    for op, old in ((after[both.name], both), (after["timers"], keyed)):
        before = {("renamed" if t in (name, state) else t): rows for t, rows in content(old).items()}
        assert {t: r for t, r in content(op).items() if t != "keyed_state"} == {
            t: r for t, r in before.items() if t != "keyed_state"
        }


def test_a_state_that_is_renamed_is_not_replaced_as_well(tmp_path: Path) -> None:
    table = pa.table({"key": [1, 2], "a": [1, 2]})
    base = st.SavepointWriter.new().with_operator("op", st.bootstrap_keyed_state(table)).write(str(tmp_path / "base"))
    writer = st.SavepointWriter.from_existing(base).rename_state("op", "a", "b")
    for edits in (writer.with_operator("op", st.bootstrap_keyed_state(table)), writer.remove_state("op", "a")):
        with pytest.raises(OptionError, match="state 'a' cannot be both renamed and dropped or replaced"):
            edits.write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
