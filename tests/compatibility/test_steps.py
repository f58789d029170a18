"""Steps of a restore, on snapshots that real Flink wrote. ``public-restores.tar.xz`` has a README with what Flink did."""

from __future__ import annotations

import ast
import json
import re
import shutil
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.api.load import inventory_of
from statetool.cli.main import cli
from statetool.compatibility import steps
from statetool.compatibility.restore import Restore
from statetool.compatibility.rule_table import restore_rules
from statetool.compatibility.steps import patterns, windows
from statetool.compatibility.steps.files import _is_in
from statetool.compatibility.steps.order import STEPS
from statetool.compatibility.steps.windows import OpenWindows, changed_bounds
from statetool.errors import OptionError
from statetool.formats.metadata.properties import CheckpointProperties
from tests.support.checks.restore_steps import found, job_graph, rules_of, snapshot_of, step
from tests.support.corpora.archives import HERE, unpack


@pytest.fixture(scope="module")
def jobs_of_more_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path_factory.mktemp("jobs"))


def test_every_step_has_a_verdict_and_a_reason_if_it_is_not_relevant(restores: Path) -> None:
    check = st.check(str(restores / "datastream-v2-sessions"), str(restores / "datastream-v2-sessions"))
    assert [s.step for s in check.steps] == [s.name for s in STEPS]
    assert all(bool(s.reason) == (s.status == "not_relevant") for s in check.steps)
    assert check.verdict == "fully"
    assert check.ok
    assert {kind for _, kind in found(check)} <= {"note"}
    assert {s.step for s in check.steps if s.status == "assumed"} == {
        "parallelism", "sources", "first_checkpoint",
    }  # fmt: skip
    record = check.record()["steps"]
    assert record[1] == {
        "step": "files", "status": "not_relevant", "reason": "all state is stored in _metadata", "assumptions": [], "findings": [],
    }  # fmt: skip


def test_timers_in_a_database_are_lost_if_the_new_job_keeps_them_on_the_heap(restores: Path, tmp_path: Path) -> None:
    """T1: Flink 2.3.0 fires 0 of 200 timers and reports nothing; after a conversion to canonical, 200."""
    old, new = str(restores / "rocksdb-timers-native"), str(restores / "heap-timers-native")
    check = st.check(old, new)
    assert found(check) == {("T1", "loses")}
    assert "200 timers" in check.warnings[0]
    assert not check.ok
    # B is canonical: only the configuration tells.
    canonical = str(restores / "timers-twice-in-header")
    assert ("T1", "unknown") in found(st.check(old, canonical, backend="rocksdb"))
    for factory, kinds in (("heap", {("T1", "loses")}), ("ROCKSDB", set())):
        config = tmp_path / factory / "config.yaml"
        config.parent.mkdir()
        config.write_text(
            "execution.checkpointing.dir: s3://b/c\nexecution.checkpointing.interval: 1 min\nparallelism.default: 2\n"
            f"state.backend.rocksdb.timer-service.factory: {factory}\n"
        )
        assert found(st.check(old, canonical, backend="rocksdb", config=config)) == kinds
        # Code can set another timer service than the configuration, or B ran with another one.
        shown = new if factory == "ROCKSDB" else old
        assert ("T1", "unknown") in found(st.check(old, shown, config=config))
    st.convert(old, str(tmp_path / "canonical"))
    check = st.check(str(tmp_path / "canonical"), new)
    assert found(check) == set()
    assert [a.rule for a in step(check, "timers").assumptions] == ["T3"]


def test_timers_in_a_database_are_not_read_by_asynchronous_operators(corpus: Path, tmp_path: Path) -> None:
    """T1: asynchronous operators of ForSt 2.1 to 2.3 fire none of them; those of synchronous operators fire."""
    old, new = snapshot_of(corpus / "v2_3_0-rocksdb-native"), str(tmp_path / "new")
    check = st.check(old, flink_version="2.3", backend="forst")
    assert [a.text for a in step(check, "timers").assumptions if a.rule == "T1" and "asynchronous" in a.text]
    assert "T1" not in {rule for rule, _ in found(check)}
    st.convert(old, new, format="native", backend="forst", state_api="v2")
    lost = st.check(old, new)
    assert ("T1", "loses") in found(lost)
    assert all("native savepoint of ForSt" in f.remedy for f in step(lost, "timers").findings if f.rule == "T1")
    # In raw keyed state, which the copy has, both kinds of operators find them.
    assert "T1" not in {rule for rule, _ in found(st.check(new, new))}
    assert not [a for a in step(st.check(new, new), "timers").assumptions if a.rule == "T1"]
    (tmp_path / "config.yaml").write_text("state.backend.forst.timer-service.factory: HEAP\n")
    on_heap = st.check(old, flink_version="2.3", backend="forst", config=tmp_path / "config.yaml")
    assert ("T1", "loses") in found(on_heap)
    canonical = snapshot_of(corpus / "v2_3_0-rocksdb-canonical")
    restored = st.check(canonical, flink_version="2.3", backend="forst", config=tmp_path / "config.yaml")
    assert "V1" not in rules_of(restored)
    heap = snapshot_of(corpus / "v2_3_0-hashmap-native")
    assert ("V1", "not") in found(st.check(heap, flink_version="2.3", backend="forst", config=tmp_path / "config.yaml"))
    # Operators without keyed state have no files that another backend may have written.
    v4 = [a for a in step(check, "keyed_state").assumptions if a.rule == "V4"]
    operators = inventory_of(st.load(old)).operators.values()
    assert len(v4) == sum(bool(o.keyed.managed) for o in operators) < len(operators)


def test_a_native_savepoint_lacks_the_timers_on_the_heap(restores: Path) -> None:
    """T2."""
    check = st.check(str(restores / "heap-timers-native"), str(restores / "rocksdb-timers-native"))
    assert found(check) == {("T2", "loses")}


def test_an_operator_added_to_a_chain_that_has_partly_finished_is_refused(restores: Path, tmp_path: Path) -> None:
    """F1: Flink 2.3.0 refuses with mixed operator finished state, also with allowNonRestoredState."""
    old, new = str(restores / "partly-finished"), str(restores / "one-more-chained-operator")
    check = st.check(old, new)
    assert found(check) == {("F1", "unknown")}
    assert not check.ok
    ids = {o.uid: o.operator_id for o in st.load(new).operators.values()}
    chain = "Source: Custom Source<br/>+- Map<br/>   +- Map<br/>"
    rest = (
        (ids["acc"], 2, "KeyedProcess<br/>", ((ids["src"], "HASH"),)),
        (ids["sink"], 2, "Sink: Writer<br/>", ((ids["acc"], "REBALANCE"),)),
    )
    chained = job_graph(tmp_path / "chained.json", (ids["src"], 2, chain, ()), *rest)
    check = st.check(old, new, graph=chained)
    assert found(check) == {("F1", "not")}
    assert check.verdict == "not"
    apart = job_graph(
        tmp_path / "apart.json",
        (ids["src"], 2, "Source: Custom Source<br/>", ()),
        (ids["plus"], 2, "Map<br/>", ((ids["src"], "FORWARD"),)),
        (ids["more"], 2, "Map<br/>", ((ids["plus"], "FORWARD"),)),
        *rest,
    )
    assert found(st.check(old, new, graph=apart)) == set()


def test_finished_operators_do_not_run_again(corpus: Path) -> None:
    """F4, and F1: whether the new job has the same chains is not known without its job graph."""
    path = snapshot_of(corpus / "v2_3_0-finished")
    check = st.check(path, path)
    assert {("F4", "loses"), ("F1", "unknown")} <= found(check)
    assert check.verdict == "unknown"


def test_in_flight_data_of_a_job_that_changes(corpus: Path) -> None:
    """U1, U5: without a job graph, it is unknown what changed next to in-flight data."""
    path = snapshot_of(corpus / "v2_3_0-unaligned")
    same = st.check(path, path)
    assert ("U5", "unknown") in found(same)
    assert same.verdict == "unknown"
    changed = st.check(path, path, parallelism=1)
    assert ("U1", "unknown") in found(changed)
    assert changed.verdict == "unknown"


def test_files_are_looked_for_where_flink_opens_them(restores: Path, corpus: Path, tmp_path: Path) -> None:
    """M6: files of a savepoint are missing or short. M8: files of a moved checkpoint are where Flink does not look."""
    for damage, text in (("missing", "do not exist"), ("short", "another length")):
        folder = tmp_path / damage
        shutil.copytree(restores / "rocksdb-timers-native", folder)
        files = [f for f in folder.iterdir() if f.name != "_metadata"]
        for file in files if damage == "missing" else files[:1]:
            file.unlink() if damage == "missing" else file.write_bytes(b"")
        check = st.check(str(folder), str(restores / "rocksdb-timers-native"))
        assert ("M6", "not") in found(check)
        assert check.verdict == "not"
        assert text in check.reason or "has another length" in check.reason
    path = snapshot_of(corpus / "v2_3_0-rocksdb-incremental")
    check = st.check(path, path)
    assert ("M8", "not") in found(check)
    st.copy(path, str(tmp_path / "copy"))
    assert step(st.check(str(tmp_path / "copy"), path), "files").status == "proved"


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("v1_20_5-kafka-source", "v1_20_5-kinesis-source", {("C1", "not")}),
        ("v1_20_5-mysql-cdc-binlog", "v1_20_5-incremental-cdc-stream", {("C1", "not")}),
        ("v1_20_5-kafka-source", "v1_20_5-kafka-source-enum1", {("C2", "not")}),
        ("v1_20_5-kafka-source-enum1", "v1_20_5-kafka-source", set()),
        ("v1_20_5-kafka-sink", "v1_20_5-file-sink-row", {("X1", "not"), ("X7", "unknown")}),
        ("v1_20_5-file-sink-row", "v1_20_5-kafka-sink", {("X1", "not")}),
        ("v1_17_2-kafka-sink", "v1_20_5-kafka-sink", {("X7", "unknown")}),
        ("v1_20_5-flink-kafka-consumer", "v1_20_5-kafka-source", {("O8", "loses"), ("E4", "loses")}),
        ("v1_20_5-kafka-source", "v1_20_5-flink-kafka-consumer", {("O7", "loses"), ("E4", "loses")}),
    ],
)
def test_connectors_are_compared(connector_cases: Path, old: str, new: str, kinds: set[tuple[str, str]]) -> None:
    """C1, C2, C3 (as C1), O7, O8, C15 (by O8), X1, X7."""
    check = st.check(snapshot_of(connector_cases / old), snapshot_of(connector_cases / new))
    assert {k for k in found(check) if k[1] != "note"} == kinds


def test_transactions_of_a_committer_that_is_gone(connector_cases: Path) -> None:
    """X2, O2: with --allowNonRestoredState, they are lost."""
    old, new = (snapshot_of(connector_cases / n) for n in ("v1_20_5-kafka-sink", "v1_20_5-kafka-source"))
    check = st.check(old, new, allow_non_restored=True)
    assert {("O2", "loses"), ("X2", "loses")} <= found(check)
    assert any("4 uncommitted transactions" in w for w in check.warnings)


def test_change_logs_and_claim_modes(corpus: Path, tmp_path: Path) -> None:
    """G1: unknown without the claim mode, ``later`` with NO_CLAIM, and fine with CLAIM, which consumes the snapshot (G4). M12."""
    path, without = (snapshot_of(corpus / f"v2_3_0-{name}") for name in ("changelog-rocksdb", "rocksdb-incremental"))
    assert ("M12", "note") in found(st.check(path, path))
    assert ("M12", "note") not in found(st.check(without, without))
    config = tmp_path / "config.yaml"
    config.write_text("state.changelog.enabled: true\nexecution.checkpointing.dir: s3://b/c\n")
    assert ("G1", "unknown") in found(st.check(path, path))
    failing = st.check(path, path, config=config)
    assert ("G1", "later") in found(failing)
    assert not failing.ok
    claimed = found(st.check(path, path, config=config, claim_mode="claim"))
    assert ("G4", "note") in claimed
    assert not {("G1", "later"), ("G1", "unknown")} & claimed


def test_last_state_refuses_operators_without_state(restores: Path) -> None:
    """O3: also the operator ``more``, which has no state."""
    old, new = str(restores / "one-more-chained-operator"), str(restores / "partly-finished")
    assert st.check(old, new).ok
    check = st.check(old, new, last_state=True, allow_non_restored=True)
    assert ("O3", "not") in found(check)


def test_operators_are_mapped_and_forst_is_a_target(restores: Path, public_jar: Path) -> None:
    """O6, V1: of a release that is not known, V1 is unknown."""
    old = str(restores / "partly-finished")
    jar = str(public_jar)
    kinds = {k for rule, k in found(st.check(old, other_jars=[jar], backend="forst")) if rule == "V1"}
    assert kinds == {"unknown"}
    check = st.check(old, str(restores / "one-more-chained-operator"), map_uids={"plus": "more"}, backend="forst")
    assert ("V1", "not") in found(check)
    assert next(o for o in check.operators if o.uid == "plus").verdict == "fully"


def test_the_command_takes_all_options(restores: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("execution.checkpointing.dir: s3://b/c\nexecution.checkpointing.interval: 1 min\n")
    path = str(restores / "one-more-chained-operator")
    words = ["check", path, path, "--config", str(config), "--parallelism", "2", "--max-parallelism", "128"]
    done = CliRunner().invoke(cli, [*words, "--claim-mode", "no_claim", "--map", "acc=acc"])
    assert done.stdout.startswith("The job restores. 4 of 4 states"), done.output
    assert done.exit_code == 0
    done = CliRunner().invoke(cli, [*words[:-1], "64", "--output", "json"])
    assert done.exit_code == 1
    steps: list[dict[str, Any]] = json.loads(done.stdout)["steps"]
    assert {s["step"]: s["status"] for s in steps}["parallelism"] == "not"


SWAPPED: Final = {
    # rule: case, its operators that take each other's place, and what is found about the first one
    "W1": ("v2_3_0-rocksdb-canonical", "win-tumble-reduce", "win-session-list", "loses"),
    "W2": ("v2_3_0-rocksdb-canonical", "win-session-list", "win-tumble-reduce", "loses"),
    "W3": ("v2_3_0-rocksdb-canonical", "win-tumble-reduce", "win-slide-aggregate", "may_change"),
    "K8": ("v2_3_0-rocksdb-canonical", "by-short", "op-lists", "loses"),
    "T3": ("v2_3_0-rocksdb-canonical", "timers", "win-count", "loses"),
    "T4": ("v2_3_0-rocksdb-heap-timers", "timers", "win-count", "later"),
}


@pytest.mark.parametrize("rule", SWAPPED)
def test_an_operator_in_the_place_of_another(corpus: Path, rule: str) -> None:
    """Savepoints of one job, of which two operators are mapped to each other."""
    case, first, second, kind = SWAPPED[rule]
    path = snapshot_of(corpus / case)
    check = st.check(path, path, map_uids={first: second, second: first})
    assert (rule, kind, first) in {(f.rule, f.kind, f.operator) for s in check.steps for f in s.findings}


def test_only_a_native_savepoint_hides_timers(restores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T3: a checkpoint of RocksDB has the timers of the heap as raw state, so an operator without any has no service."""
    old, new = (str(restores / n) for n in ("timers-twice-in-header", "heap-timers-native"))
    assert "T3" not in {rule for rule, _ in found(st.check(old, new))}
    checkpoint = CheckpointProperties(kind="checkpoint", type_name="Checkpoint", format=None, flags=())
    monkeypatch.setattr(Restore, "new_properties", checkpoint)
    assert ("T3", "loses") in found(st.check(old, new))


def test_windows_of_sql_are_windows(sql_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W3: slices of windows do not show the size of windows. Without B, no window is read."""
    path = snapshot_of(sql_corpus / "sql_window_tumble")
    assert [a.rule for a in step(st.check(path, path), "windows").assumptions] == ["W3"]
    monkeypatch.setattr(windows, "open_windows", None)
    assert [a.rule for a in step(st.check(path, flink_version="2.3"), "windows").assumptions] == ["W3"]


_SLIDING: Final = OpenWindows(frozenset({12}), frozenset({72, 76, 80}))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (_SLIDING, _SLIDING, ""),
        (_SLIDING, OpenWindows(frozenset({12}), frozenset({73, 76, 79})), "every 4 ms in the snapshot, every 3 ms"),
        (_SLIDING, OpenWindows(frozenset({12}), frozenset({73, 77, 81})), "at other times"),
        (_SLIDING, OpenWindows(frozenset({12}), frozenset({73})), "at other times"),
        (_SLIDING, OpenWindows(frozenset({12}), frozenset({84})), None),
        (_SLIDING, OpenWindows(frozenset({10}), frozenset({84})), "have 12 ms, those of the new job 10 ms"),
        (_SLIDING, OpenWindows(frozenset(), frozenset()), None),
        # Tumbling windows of which few are open.
        (OpenWindows(frozenset({10}), frozenset({0})), OpenWindows(frozenset({10}), frozenset({50})), ""),
        (OpenWindows(frozenset({10}), frozenset({0})), OpenWindows(frozenset({10}), frozenset({50, 60})), ""),
        (
            OpenWindows(frozenset({10}), frozenset({0})),
            OpenWindows(frozenset({10}), frozenset({51, 61})),
            "at other times",
        ),
        (OpenWindows(frozenset({10}), frozenset({0})), OpenWindows(frozenset({10}), frozenset({55})), None),
        (
            OpenWindows(frozenset({10}), frozenset({0, 10})),
            OpenWindows(frozenset({10}), frozenset({50, 90, 130})),
            "",
        ),
        # Slices: their ends.
        (
            OpenWindows(frozenset(), frozenset({30, 60, 90})),
            OpenWindows(frozenset(), frozenset({60, 120, 180})),
            "30 ms",
        ),
        (OpenWindows(frozenset(), frozenset({30, 60, 90})), OpenWindows(frozenset(), frozenset({120})), None),
    ],
)
def test_bounds_of_windows_are_compared(before: OpenWindows, after: OpenWindows, change: str | None) -> None:
    """W3: size, slide and offset."""
    found = changed_bounds(before, after)
    assert (found is None) == (change is None)
    assert (change or "") in (found or "")
    assert bool(change) == bool(found)


def test_numbers_of_timers_and_of_windows_are_told(corpus: Path) -> None:
    path = snapshot_of(corpus / "v2_3_0-rocksdb-canonical")
    check = st.check(path, path, map_uids={"timers": "win-count", "win-count": "timers"})
    assert any("150 timers" in w for w in check.warnings)
    check = st.check(path, path, map_uids={"win-session-list": "win-count", "win-count": "win-session-list"})
    assert any("merged sessions of the snapshot (5 entries)" in w for w in check.warnings)


def test_one_operator_of_a_possible_chain_was_rescaled(corpus: Path, tmp_path: Path) -> None:
    """P4: without the job graph, it is a warning; with it, the check is exact."""
    path = snapshot_of(corpus / "v2_3_0-rocksdb-canonical")
    st.rescale(path, str(tmp_path / "rescaled"), {"timers": 64})
    assert ("P4", "may_change") in found(st.check(str(tmp_path / "rescaled"), path))
    ids = {o.uid: o.operator_id for o in st.load(path).operators.values()}
    alone = job_graph(tmp_path / "alone.json", *((i, 1, uid or "x", ()) for uid, i in ids.items()))
    assert "P4" not in {rule for rule, _ in found(st.check(str(tmp_path / "rescaled"), path, graph=alone))}
    assert not {k for k in found(st.check(path, path)) if k[0] == "P4"}


def test_chains_of_a_job_that_is_not_known(corpus: Path) -> None:
    """P4: operators of one chain have one max parallelism in a snapshot. With another parallelism, Flink may chain others."""
    path = snapshot_of(corpus / "v2_3_0-rocksdb-canonical")
    same = st.check(path, flink_version="2.3")
    assert "P4" in {a.rule for a in step(same, "parallelism").assumptions}
    assert "P4" not in {rule for rule, _ in found(same)}
    assert ("P4", "unknown") in found(st.check(path, flink_version="2.3", parallelism=2))


def test_older_releases_and_lists_with_wrong_offsets(corpus: Path, tmp_path: Path) -> None:
    """M5, E1."""
    check = st.check(snapshot_of(corpus / "v1_20_5-hashmap-canonical"), flink_version="1.17")
    assert ("M5", "not") in found(check)
    assert ("M5", "not") not in found(st.check(snapshot_of(corpus / "v1_17_2-hashmap-canonical"), flink_version="1.17"))
    lists = str(unpack(HERE / "corpus" / "compressed-lists.tar.xz", tmp_path) / "1.18.1")
    assert found(st.check(lists, flink_version="1.20")) == {("E1", "not")}


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("v1_20_5-hashmap-canonical", "v1_15_4-hashmap-canonical", ("M1", "unknown")),
        ("v1_20_5-hashmap-canonical", "v1_17_2-hashmap-canonical", ("M5", "not")),
        ("v1_17_2-hashmap-canonical", "v1_20_5-hashmap-canonical", None),
    ],
)
def test_the_release_is_one_that_can_have_written_the_other_snapshot(
    corpus: Path, old: str, new: str, finding: tuple[str, str] | None
) -> None:
    """M1, M5: metadata of version 3 is that of Flink 1.15 or of statetool, and operator state of version 5 that of 1.17 or older."""
    check = st.check(snapshot_of(corpus / old), snapshot_of(corpus / new))
    assert (finding in found(check)) if finding else (step(check, "metadata").status == "proved")


def test_metadata_of_version_5_is_that_of_one_release(jobs_of_more_kinds: Path) -> None:
    """M1: Flink 2.0 does not read what 2.1 and later write."""
    old, new = (snapshot_of(jobs_of_more_kinds / n) for n in ("v2_1_3-types-heap-checkpoint", "v2_0_2-types-heap"))
    assert ("M1", "not") in found(st.check(old, new))
    assert "M1" not in {rule for rule, _ in found(st.check(new, old))}


def test_a_release_that_is_not_known_is_assumed(corpus: Path, tmp_path: Path) -> None:
    """M1, M5: B shows a range of releases, or only the jar of the new job is known."""
    path = snapshot_of(corpus / "v1_20_5-hashmap-canonical")
    operators = st.load(path).operators.values()
    states = {o.operator_id: [n for n, s in o.states.items() if s.scope == "operator"] for o in operators}
    st.drop(path, str(tmp_path / "keyed"), states={o: names for o, names in states.items() if names})
    metadata = step(st.check(path, str(tmp_path / "keyed")), "metadata")
    assert {(a.rule, a.option) for a in metadata.assumptions} == {("M5", "--flink")}
    assert step(st.check(path, str(tmp_path / "keyed"), flink_version="1.20"), "metadata").status == "proved"
    jar = tmp_path / "job.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("job.properties", "")
    assert [a.rule for a in step(st.check(path, other_jars=[jar]), "metadata").assumptions] == ["M1"]


def test_a_savepoint_that_statetool_wrote_does_not_show_the_release_of_the_job(tmp_path: Path) -> None:
    """M1: its metadata has version 3, as that of Flink 1.15."""
    keyed = st.bootstrap_keyed_state(pa.table({"id": [1], "count": [1]}), key="id")
    both = st.bootstrap_list_state("list", pa.table({"value": [1]}))
    statuses = {}
    for name, state in (("keyed", keyed), ("both", both)):
        old, new = (str(tmp_path / f"{name}-{which}") for which in ("old", "new"))
        writer = st.SavepointWriter.new().with_operator("a", state, parallelism=1)
        writer.write(old, flink_version="2.3")
        writer.write(new)
        assert step(st.check(old, new, flink_version="2.3"), "metadata").status == "proved"
        statuses[name] = step(st.check(old, new), "metadata").status
        writer.write(str(tmp_path / f"{name}-again"))
        assert step(st.check(new, str(tmp_path / f"{name}-again")), "metadata").status == "assumed"
    assert statuses == {"keyed": "unknown", "both": "unknown"}


_HEAP: Final = "v2_3_0-hashmap-checkpoint"
_DATABASE: Final = "v2_3_0-rocksdb-native"
_CANONICAL: Final = "v2_3_0-hashmap-canonical"


@pytest.mark.parametrize(
    ("old", "new", "options", "expected"),
    [
        (_HEAP, _HEAP, {}, "proved"),
        (_HEAP, _CANONICAL, {}, ("K1", "unknown")),
        (_HEAP, _CANONICAL, {"backend": "heap"}, "proved"),
        (_HEAP, None, {"flink_version": "2.3"}, "K1"),
        (_DATABASE, None, {"flink_version": "2.3"}, "K1"),
        (_DATABASE, _DATABASE, {}, "V4"),
        (_DATABASE, _DATABASE, {"backend": "rocksdb"}, "proved"),
        (_DATABASE, _HEAP, {}, ("K1", "not")),
        (_CANONICAL, _CANONICAL, {}, "V1"),
        (_CANONICAL, "v2_3_0-forst", {}, "V1"),
        (_CANONICAL, _DATABASE, {"backend": "rocksdb"}, "proved"),
        ("v2_3_0-changelog-rocksdb", _CANONICAL, {"backend": "heap"}, "proved"),
        ("v1_20_5-rocksdb-native", "v1_20_5-rocksdb-native", {}, "proved"),
        ("v1_20_5-hashmap-canonical", "v1_20_5-hashmap-canonical", {}, "proved"),
    ],
)
def test_the_backend_is_proved_or_assumed(
    corpus: Path, old: str, new: str | None, options: dict[str, Any], expected: str | tuple[str, str]
) -> None:
    """K1, V1, V4: a finding, an assumption, or neither."""
    check = st.check(snapshot_of(corpus / old), None if new is None else snapshot_of(corpus / new), **options)
    rules = ("K1", "V1", "V4")
    findings: list[Any] = sorted({k for k in found(check) if k[0] in rules})
    findings += [a.rule for a in step(check, "keyed_state").assumptions if a.rule in rules]
    assert findings == ([] if expected == "proved" else [expected])


def test_a_configuration_and_a_snapshot_may_name_different_backends(corpus: Path, tmp_path: Path) -> None:
    """K1: code of the job sets a backend, or B ran with another configuration."""
    heap, database = (snapshot_of(corpus / n) for n in (_HEAP, _DATABASE))
    config = tmp_path / "config.yaml"
    config.write_text("state.backend.type: rocksdb\n")
    assert ("K1", "unknown") in found(st.check(database, heap, config=config))
    assert not {k for k in found(st.check(database, database, config=config)) if k[0] == "K1"}
    config.write_text("parallelism.default: 2\n")
    assert ("K1", "unknown") in found(st.check(database, flink_version="2.3", config=config))


@pytest.mark.parametrize(
    ("snapshot", "name", "rule", "change"),
    [
        ("sql_dedup_topn", "sql_topn", "Q10", ('"isAscending": false', '"isAscending": true', "the order was")),
        ("sql_dedup_topn", "sql_topn", "Q10", ('"end": 3', '"end": 5', "the ranks were")),
        ("sql_window_tumble", "sql_window_tumble", "W3", ("PT30S", "PT1M", "the window was")),
    ],
)
def test_the_plans_tell_which_rows_are_kept(
    sql_corpus: Path, tmp_path: Path, snapshot: str, name: str, rule: str, change: tuple[str, str, str]
) -> None:
    """Q10, W3: with the plans of both jobs it is known, otherwise assumed."""
    plan = json.loads(next(unpack(HERE / "corpus" / "sql-plans.tar.xz", tmp_path).rglob(f"{name}.json")).read_text())
    whole, path = snapshot_of(sql_corpus / snapshot), str(tmp_path / "operator")
    kinds = {n["type"].removeprefix("stream-exec-").removesuffix("_1"): n["id"] for n in plan["nodes"]}
    kind = next(k for k in ("rank", "global-window-aggregate") if k in kinds)
    uids = list(st.load(whole).operators)
    uid = next(u for u in uids if u.endswith(f"_{kind}"))
    st.drop(whole, path, [u for u in uids if u != uid])
    # The plan is that of the same query in another script, in which nodes have other ids.
    shift = int(uid.partition("_")[0]) - kinds[kind]
    for node in plan["nodes"]:
        node["id"] += shift
    for edge in plan["edges"]:
        edge.update({end: edge[end] + shift for end in ("source", "target")})
    before, after, shown = change
    text = json.dumps(plan)
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(text.replace(before, after))
    a, b = (st.load(path, columns_from_plan=str(tmp_path / f"{side}.json")) for side in "ab")
    changed = [w for w in st.check(a, b).warnings if "By the compiled plans" in w]
    assert len(changed) == 1
    assert shown in changed[0]
    assert not [w for w in st.check(a, a).warnings if "By the compiled plans" in w]
    assert rule in {x.rule for x in st.check(path, path).assumptions}
    assert rule not in {x.rule for x in st.check(a, b).assumptions}


def test_asynchronous_state_is_of_forst_only(rule_cases: Path, tmp_path: Path) -> None:
    """V3: of ForSt's synchronous operators, Flink 2.0 refuses it, and later releases refuse it if it has a time to live."""
    path, new = str(rule_cases / "asynchronous"), str(tmp_path / "new")
    kinds = {
        backend: found(st.check(path, flink_version="2.3", backend=backend)) for backend in ("heap", "rocksdb", "forst")
    }
    assert ("V3", "not") in kinds["heap"]
    assert ("V3", "not") in kinds["rocksdb"]
    assert not {k for k in kinds["forst"] if k[0] == "V3"}
    st.convert(path, new, format="native", backend="forst", state_api="v1")
    check = st.check(path, new, backend="forst")
    assert ("V3", "not") in found(check)
    assert "has a time to live: kept value, kept list, kept map." in rules_of(check)["V3"]
    # B has files of RocksDB or of ForSt.
    assert ("V3", "unknown") in found(st.check(path, new))
    operators = (o for o in inventory_of(path).operators.values() if o.listed_keyed)
    living = {str(o.label): [n for n in o.listed_keyed if n.startswith("kept ")] for o in operators}
    st.drop(path, str(tmp_path / "mortal"), states=living)
    canonical = str(tmp_path / "canonical")
    st.convert(str(tmp_path / "mortal"), canonical)
    assert ("V3", "not") in found(st.check(canonical, new, backend="forst"))
    old, new = str(tmp_path / "v2"), str(tmp_path / "v1")
    st.convert(canonical, old, format="native", backend="forst")
    st.convert(canonical, new, format="native", backend="forst", state_api="v1")
    for release, kind in (("2.3", set()), ("2.1", set()), ("2.0", {"not"})):
        restored = found(st.check(old, new, backend="forst", flink_version=release))
        assert {k for rule, k in restored if rule == "V3"} == kind


def test_asynchronous_state_becomes_state_of_the_other_backends(jobs_of_more_kinds: Path, tmp_path: Path) -> None:
    """V3: by ``convert``, which its remedy names, by ``migrate`` as in a savepoint of the new job, and by ``upgrade`` as of its backend."""
    whole, path = snapshot_of(jobs_of_more_kinds / "v2_3_0-keys-async-forst"), str(tmp_path / "old")
    st.drop(whole, path, [o for o in st.load(whole).inventory.operators if not o.startswith("k-b")])
    check = st.check(path, flink_version="2.3", backend="heap")
    assert "statetool convert A NEW --state-api v1" in check.operators[0].remedy
    st.convert(path, str(tmp_path / "v1"), state_api="v1")
    assert st.check(path, str(tmp_path / "v1"), backend="forst").verdict == "fully"
    assert ("V3", "not") in found(st.check(path, str(tmp_path / "v1"), backend="heap"))
    assert ("V3", "not") not in found(st.check(str(tmp_path / "v1"), flink_version="2.3", backend="heap"))
    st.migrate(path, str(tmp_path / "migrated"), to=str(tmp_path / "v1"))
    upgraded = st.upgrade(path, str(tmp_path / "upgraded"), flink_version="2.3", backend="rocksdb")
    assert upgraded.ok
    st.convert(str(tmp_path / "v1"), str(tmp_path / "v2"), state_api="v2")
    metas = {
        n: {s: m for s, (_, m) in next(iter(inventory_of(str(tmp_path / n)).operators.values())).listed_keyed.items()}
        for n in ("old", "v1", "migrated", "upgraded", "v2")
    }
    values = {n: st.load(str(tmp_path / n))["k-boolean"].to_arrow("keyed_state").sort_by("key") for n in metas}
    for name in metas:
        assert values[name] == values["old"]
        api = 4 if name in ("old", "v2") else 0
        assert {m.backend_type for m in metas[name].values() if m.kind != "timers"} == {api}
    assert metas["v2"].keys() == metas["old"].keys()


def test_names_of_partial_matches_are_looked_for_in_the_jar(connector_cases: Path, public_jar: Path) -> None:
    """W7."""
    path = snapshot_of(connector_cases / "v2_3_0-cep")
    check = st.check(path, other_jars=[public_jar])
    assert ("W7", "later") in found(check)
    assert any("login" in w for w in check.warnings)
    assert "W7" not in {rule for rule, _ in found(st.check(path, path))}


def test_a_text_in_a_jar_does_not_prove_the_name_of_a_pattern(
    connector_cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7: the text may be another one. The names of MATCH_RECOGNIZE are no texts of their own."""
    path, jar = snapshot_of(connector_cases / "v2_3_0-cep"), tmp_path / "job.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("job.properties", "login\nview\n")
    assert [a.rule for a in step(st.check(path, other_jars=[jar]), "patterns").assumptions] == ["W7", "W8"]
    sql = str(unpack(HERE / "corpus" / "sql-operators.tar.xz", tmp_path) / "sql-operators" / "1.20.5" / "match")
    assert ("W7", "unknown") in found(st.check(sql, other_jars=[jar]))
    monkeypatch.setattr(patterns, "_MOST_KEYS", 1)
    assert [a.rule for a in step(st.check(path, path), "patterns").assumptions] == ["W7", "W8"]


def test_coordinators_that_are_not_of_sources_are_assumed(connector_cases: Path, rule_cases: Path) -> None:
    """C18: their formats are those of other libraries, here of a sink that collects results. The format of source coordinators has a version (C4)."""
    source, path = snapshot_of(connector_cases / "v1_20_5-kafka-source"), str(rule_cases / "first")
    assert step(st.check(source, source), "coordinators").status == "proved"
    (assumed,) = step(st.check(path, path), "coordinators").assumptions
    assert assumed.rule == "C18"
    assert "Data stream collect sink" in assumed.text


def test_configuration_that_fails_later(corpus: Path, tmp_path: Path) -> None:
    """H6, H7, G7, Q9, S4: settings of the new job."""
    path = snapshot_of(corpus / "v2_3_0-hashmap-canonical")
    config = tmp_path / "config.yaml"
    config.write_text(
        "execution.runtime-mode: BATCH\npipeline.generic-types: false\nexecution.checkpointing.dir: s3://b/c\n"
        "execution.state-recovery.approximate-local-recovery: true\n"
    )
    kinds = found(st.check(path, path, config=config))
    assert {("H6", "not"), ("H7", "note"), ("G7", "loses"), ("S4", "not")} <= kinds
    config.write_text("execution.runtime-mode: AUTOMATIC\n")
    check = st.check(path, path, config=config)
    assert ("H6", "unknown") in found(check)
    assert "Q9" not in rules_of(check)
    for option in ("execution.state-recovery.path", "execution.savepoint.path"):
        config.write_text(f"{option}: s3://b/savepoint\n")
        check = st.check(path, path, config=config)
        assert ("Q9", "note") in found(check)
        assert option in rules_of(check)["Q9"]


def test_a_uid_that_only_the_old_jar_has_is_unknown(restores: Path, tmp_path: Path) -> None:
    """An operator whose uid is in the old jar and not in the new one must not count as restored."""
    jars = []
    for name, uids in (("old", ("acc", "src", "plus", "sink")), ("new", ("src", "plus", "sink"))):
        jars.append(tmp_path / f"{name}.jar")
        with zipfile.ZipFile(jars[-1], "w") as jar:
            jar.writestr("job.properties", "".join(f"{uid}\n" for uid in uids))
    path = str(restores / "one-more-chained-operator")
    check = st.check(path, jars=jars[:1], other_jars=jars[1:])
    assert {f.operator for s in check.steps for f in s.findings if f.rule == "O1"} == {"acc"}
    assert check.verdict == "unknown"
    assert st.check(path, jars=jars[:1], other_jars=jars[:1]).verdict == "fully"


def test_pointwise_exchanges_with_in_flight_data_cannot_be_rescaled(corpus: Path, tmp_path: Path) -> None:
    """U2."""
    path = snapshot_of(corpus / "v2_3_0-unaligned")
    operators = list(st.load(path).operators.values())
    nodes = [
        (o.operator_id, 1, o.uid or "x", tuple((p.operator_id, "FORWARD") for p in operators if p is not o))
        for o in operators
    ]
    check = st.check(path, path, graph=job_graph(tmp_path / "graph.json", *nodes), parallelism=1)
    assert ("U2", "not") in found(check)


def test_the_last_operator_of_a_chain_has_in_flight_data_for_others(corpus: Path, tmp_path: Path) -> None:
    """U1: Flink restores it to the last operator of the chain."""
    path = snapshot_of(corpus / "v2_3_0-unaligned")
    ids = {o.uid: o.operator_id for o in st.load(path).operators.values()}

    def check(name: str, chain: str, first: str = "relay") -> set[tuple[str, str]]:
        nodes: list[tuple[str, int, str, tuple[tuple[str, str], ...]]] = []
        if first == "relay":
            nodes.append((ids["events-source"], 1, "Source: source<br/>", ()))
        nodes += [
            (ids[first], 1, chain, tuple((n[0], "HASH") for n in nodes)),
            (ids["slow"], 2, "slow<br/>", ((ids[first], "HASH"),)),
        ]
        return {k for k in found(st.check(path, path, graph=job_graph(tmp_path / name, *nodes))) if k[0] == "U1"}

    assert check("alone", "relay<br/>") == set()
    assert check("last", "Source: source<br/>+- relay<br/>", "events-source") == set()
    assert check("first", "relay<br/>+- Map<br/>") == {("U1", "not")}
    assert check("middle", "Source: source<br/>+- relay<br/>   +- Map<br/>", "events-source") == {("U1", "not")}
    assert check("one of two", "Source: source<br/>:- relay<br/>+- Map<br/>", "events-source") == {("U1", "unknown")}


def test_a_directory_may_have_a_random_name_above_it() -> None:
    """M8: ``s3.entropy.key`` replaces a name in the paths of files, and removes it from that of ``_metadata``."""
    root = "s3://bucket/checkpoints/job"
    assert _is_in(root, f"{root}/shared")
    assert not _is_in(root, "s3://bucket/ab12/checkpoints/job/shared")
    assert _is_in(root, "s3://bucket/ab12/checkpoints/job/shared", entropy=True)
    assert not _is_in(root, "s3://bucket/old/checkpoints/other/shared", entropy=True)


def test_a_compiled_plan_needs_the_nodes_of_its_release(sql_corpus: Path, tmp_path: Path) -> None:
    """Q4: Flink 1.20 has no table-source-scan of version 2. Q3 is assumed of each plan."""
    plans = unpack(HERE / "corpus" / "sql-plans.tar.xz", tmp_path)
    path = snapshot_of(sql_corpus / "sql_interval_join")
    new = st.load(path, columns_from_plan=str(next(plans.rglob("sql_interval_join.json"))))
    check = st.check(path, new, flink_version="1.20")
    texts = [f.text for f in step(check, "plans").findings if (f.rule, f.kind) == ("Q4", "not")]
    assert len(texts) == 1
    assert "table-source-scan_2" in texts[0]
    readable = step(st.check(path, new, flink_version="2.3"), "plans")
    assert readable.status == "assumed"
    assert [a.rule for a in readable.assumptions] == ["Q3", "Q11"]


_ID: Final = re.compile(r'"([A-Z]\d{1,2})"|"""((?:[A-Z]\d+(?:, | to | and )?)+)')


def _ids_in_code() -> set[str]:
    """Return the ids of all rules in the modules of the steps."""
    folder = Path(str(steps.__file__)).parent
    texts = (m[1] or m[2] for f in folder.glob("*.py") for m in _ID.finditer(f.read_text()))
    return {i for text in texts for i in re.findall(r"[A-Z]\d+", text)}


def test_the_table_of_rules_is_that_of_the_code() -> None:
    rules = {r.id: r for r in restore_rules()}
    assert len(rules) == len(restore_rules())
    assert {r.step for r in rules.values()} <= {s.name for s in STEPS}
    assert {i for i in _ids_in_code() if not (i in rules and rules[i].test)} == set()
    assert all(bool(r.test) != bool(r.reason) for r in rules.values())
    for test in {r.test for r in rules.values() if r.test}:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (HERE.parent / file).read_text(), test


#: Tests of all rules that pairs of jobs show: they compare verdicts with what Flink did.
_OF_PAIRS: Final = "test_what_flink_did_with_each_pair_is_what_is_said"


def test_each_rule_is_named_where_its_test_is() -> None:
    """In the function, or in the tables of its module, such as ``SWAPPED``."""
    unnamed = []
    for rule in restore_rules():
        file, _, name = rule.test.partition("::")
        if name in ("", _OF_PAIRS):
            continue
        functions, tables = _definitions(file)
        if not any(re.search(rf"\b{rule.id}\b", found) for found in (functions[name], *tables)):
            unnamed.append((rule.id, rule.test))
    assert unnamed == []


@cache
def _definitions(file: str) -> tuple[dict[str, str], list[str]]:
    """Return the functions of a file by name, and its annotated tables, as text."""
    text = (HERE.parent / file).read_text()
    lines, nodes = text.splitlines(), ast.parse(text).body
    segment = {n: "\n".join(lines[n.lineno - 1 : n.end_lineno]) for n in nodes}
    functions = {n.name: segment[n] for n in nodes if isinstance(n, ast.FunctionDef)}
    return functions, [segment[n] for n in nodes if isinstance(n, ast.AnnAssign)]


def test_unknown_options_are_refused(restores: Path) -> None:
    with pytest.raises(OptionError, match="no option 'flink'"):
        st.check(str(restores / "partly-finished"), flink_version="2.3", flink="1.20")  # type: ignore[call-arg]


def test_a_native_savepoint_without_timers_may_have_lost_them(restores: Path) -> None:
    """T2: the new job's savepoint is native too, and shows as little."""
    path = str(restores / "heap-timers-native")
    timers = step(st.check(path, path), "timers")
    assert [(a.rule, a.option) for a in timers.assumptions] == [("T2", "a canonical savepoint of the old job")]


def test_a_configuration_does_not_hide_what_code_may_set(restores: Path, tmp_path: Path) -> None:
    """P1, P3: the max parallelism and parallelism of the job's code come before those of the configuration."""
    old, new = str(restores / "timers-twice-in-header"), str(tmp_path / "new")
    st.rescale(old, new, 256)
    config = tmp_path / "config.yaml"
    config.write_text("parallelism.default: 1\n")
    for options in ({}, {"config": str(config)}):
        check = st.check(new, old, **options)  # type: ignore[arg-type]
        assert ("P1", "unknown") in found(check)
        assert "P3" in {a.rule for a in step(check, "parallelism").assumptions}
