"""Rules of a restore about the state of sources, sinks and lists: each on a snapshot of real Flink, or on a copy in which one thing is changed."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import statetool as st
from tests.support.checks.restore_steps import found, rules_of, snapshot_of, step
from tests.support.corpora.archives import HERE, unpack
from tests.support.failures.damage import Patient

#: A writer of Kafka's sink whose transactions have an owner by its subtask.
WRITER = rb"(\x00\x0aorders-out\x00{3}[\x00-\x01]\x00{3}\x02\x00{3})\x00"


def change_bytes(snapshot: str, folder: Path, pattern: bytes, replacement: bytes, *, most: int = 0) -> str:
    """Copy a snapshot, and change bytes in its files, at all places or at most so many. Sizes and offsets stay."""
    shutil.copytree(snapshot, folder)
    changed = 0
    for file in sorted(f for f in folder.rglob("*") if f.is_file()):
        if most and changed >= most:
            break
        before = file.read_bytes()
        after, count = re.subn(pattern, replacement, before, count=max(0, most - changed), flags=re.DOTALL)
        assert len(after) == len(before)
        changed += count
        file.write_bytes(after)
    assert changed
    return str(folder)


def test_names_of_transactions_of_kafka(connector_cases: Path, tmp_path: Path) -> None:
    """X4, X6: the writers name their transactions otherwise, or with another prefix."""
    old, before_4 = (snapshot_of(connector_cases / n) for n in ("v2_3_0-kafka-sink", "v1_20_5-kafka-sink"))
    pooling = change_bytes(old, tmp_path / "pooling", WRITER, b"\\g<1>\x01")
    assert ("X4", "not") in found(st.check(pooling, old))
    assert "X4" not in {rule for rule, _ in found(st.check(old, pooling))}
    assert ("X4", "not") in found(st.check(before_4, pooling))
    other = change_bytes(old, tmp_path / "prefix", rb"\x00\x0aorders-out", b"\x00\x0aorders-new")
    check = st.check(old, other)
    assert ("X6", "may_change") in found(check)
    assert any("The transactional id prefix is orders-new in the new job, and orders-out" in w for w in check.warnings)
    assert not {"X4", "X6", "X8"} & {rule for rule, _ in found(st.check(old, old))}


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("v1_20_5-kafka-sink", "v1_17_2-kafka-sink", True),
        ("v2_3_0-kafka-sink", "v1_20_5-kafka-sink", True),
        ("v1_17_2-kafka-sink", "v1_20_5-kafka-sink", False),
        ("v1_20_5-kafka-sink", "v2_3_0-kafka-sink", False),
    ],
)
def test_committers_of_an_older_release(connector_cases: Path, old: str, new: str, refused: bool) -> None:
    """X8: Flink 1.17 has no number of writers and no subtask in a collector, 1.20 has the number of drained committables, 2.3 has not."""
    check = st.check(snapshot_of(connector_cases / old), snapshot_of(connector_cases / new))
    assert (("X8", "not") in found(check)) == refused


def test_other_folders_of_a_file_sink(connector_cases: Path, tmp_path: Path) -> None:
    """X12, X13."""
    old = snapshot_of(connector_cases / "v2_3_0-file-sink-row")
    for name, folder, kind in (
        ("near", b"file:/data/file-sink-new/", "note"),
        ("far", b"hdfs://h/data/sinks-row1/", "unknown"),
    ):
        new = change_bytes(old, tmp_path / name, rb"file:/data/file-sink-row/", folder)
        rules = found(st.check(old, new))
        assert (("X12" if kind == "note" else "X13"), kind) in rules
        assert len({"X12", "X13"} & {rule for rule, _ in rules}) == 1
    assert not {"X12", "X13"} & {rule for rule, _ in found(st.check(old, old))}


def test_compaction_that_is_switched_off(connector_cases: Path) -> None:
    """X14: with --allowNonRestoredState, files that were not compacted yet are lost."""
    old, new = (snapshot_of(connector_cases / f"v1_20_5-file-sink-{kind}") for kind in ("compact", "row"))
    assert ("X14", "not") in found(st.check(old, new))
    assert ("X14", "loses") in found(st.check(old, new, allow_non_restored=True))
    assert "X14" not in {rule for rule, _ in found(st.check(new, old))}


def test_a_global_committer_waits_for_more(tmp_path: Path) -> None:
    """X9: a job of Delta with two committables in the global committer."""
    path = str(unpack(HERE / "corpus" / "delta-sink.tar.xz", tmp_path) / "snapshot")
    assert ("X9", "unknown") in found(st.check(path, flink_version="1.20", parallelism=4))
    assert not any(rule == "X9" for rule, _ in found(st.check(path, flink_version="1.20", parallelism=2)))
    assert not any(rule == "X9" for rule, _ in found(st.check(path, flink_version="2.3", parallelism=4)))


def test_requests_that_a_writer_has_not_sent(rule_cases: Path) -> None:
    """X15: a sink based on ``AsyncSinkBase``."""
    check = st.check(str(rule_cases / "buffered"), flink_version="2.3")
    assert ("X15", "note") in found(check)
    assert "buffered requests of the snapshot first" in rules_of(check)["X15"]
    assert "X15" not in rules_of(st.check(str(rule_cases / "first"), flink_version="2.3"))


def test_splits_keep_their_end(connector_cases: Path, tmp_path: Path) -> None:
    """C7: the splits of Kafka stop at an offset in one of the jobs."""
    path = snapshot_of(connector_cases / "v2_3_0-kafka-source")
    bounded = change_bytes(
        path, tmp_path / "bounded", rb"(\x00\x06orders.{12})\x80\x00{7}", b"\\g<1>\x00\x00\x00\x00\x00\x00\x20\x00"
    )
    for old, new, text in ((bounded, path, "stops at 8192"), (path, bounded, "has no end")):
        check = st.check(old, new)
        assert ("C7", "may_change") in found(check)
        assert any(text in w for w in check.warnings)
    assert not any(rule == "C7" for rule, _ in found(st.check(bounded, bounded)))


def test_another_source_in_the_list_of_a_hybrid_source(connector_cases: Path, tmp_path: Path) -> None:
    """C12: numbers are the second source of the job, and the first one of its copy."""
    first, second = (snapshot_of(connector_cases / f"v2_3_0-hybrid-{n}") for n in ("first", "second"))
    assert not any(rule == "C12" for rule, _ in found(st.check(first, second)))
    moved = change_bytes(
        second, tmp_path / "moved", rb"\x00{3}\x01(\x00\x01\d\x00{3}\x01\x00{3}\x13)", b"\x00\x00\x00\x00\\g<1>"
    )
    assert ("C12", "not") in found(st.check(first, moved))
    assert ("C12", "not") in found(st.check(moved, first))


def test_a_partition_that_no_reader_of_the_dynamic_source_has(rule_cases: Path, tmp_path: Path) -> None:
    """C17: one of its readers has no splits. The same fault is C16 for other sources."""
    path = rule_cases / "dynamic"
    assert not {"C16", "C17"} & rules_of(st.check(str(path), str(path))).keys()
    patient = Patient.of(path, tmp_path / "recovered")
    patient.change_subtask("dynamic", 0, lambda s: replace(s, managed_operator=None))
    check = st.check(str(patient.folder), str(path))
    assert {k for k in found(check) if k[0] in ("C16", "C17")} == {("C17", "loses")}
    assert "FLINK-40469" in rules_of(check)["C17"]


def test_writers_whose_input_had_ended(rule_cases: Path) -> None:
    """F6: Flink 2.0.0 has the state; later releases do not read it."""
    ended, running, newer = (str(rule_cases / name) for name in ("drained", "running", "first"))
    assert ("F6", "later") in found(st.check(ended, running))
    assert ("F6", "unknown") in found(st.check(ended, flink_version="2.0"))
    for check in (st.check(ended, flink_version="2.3"), st.check(ended, newer), st.check(running, running)):
        assert "F6" not in rules_of(check)


@pytest.mark.parametrize(("name", "verdict"), [("first", ""), ("second", "assumed"), ("third", "may_change")])
def test_union_state_that_grows_at_each_restore(rule_cases: Path, name: str, verdict: str) -> None:
    """P7: a job of parallelism 2, restored from its savepoint ``first`` and then from ``second``."""
    path = str(rule_cases / name)
    lists = step(st.check(path, path), "operator_state")
    kinds = {"assumed" for a in lists.assumptions if a.rule == "P7"} | {
        f.kind for f in lists.findings if f.rule == "P7"
    }
    assert kinds == ({verdict} if verdict else set())


def test_copies_of_broadcast_state_that_differ(corpus: Path, tmp_path: Path) -> None:
    """P8: only another parallelism hands them to other subtasks."""
    path = snapshot_of(corpus / "v2_3_0-hashmap-canonical")
    other = change_bytes(path, tmp_path / "s", rb"(\x00{3}\x04\x07rule-)4", rb"\g<1>5", most=1)
    assert not any(rule == "P8" for rule, _ in found(st.check(path, path, parallelism=1)))
    assert not any(rule == "P8" for rule, _ in found(st.check(other, other)))
    assert ("P8", "may_change") in found(st.check(other, other, parallelism=1))
