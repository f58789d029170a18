"""Samples of snapshots, compared with statistics and with the tables of sources and sinks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.errors import OptionError, UnknownNameError
from statetool.reporting.openmetrics.families import FAMILIES, Samples, render
from tests.support.metrics import Metrics
from tests.support.zoo import ZOO

KAFKA = str(Path(ZOO).parent / "kafka-source")
SINK = str(Path(ZOO).parent / "kafka-sink")
KEYED = {name for name, family in FAMILIES.items() if family.reads == "keyed"}
CONNECTORS = {name for name, family in FAMILIES.items() if family.reads == "connectors"}


def test_sizes_come_from_the_metadata_alone(tmp_path: Path) -> None:
    metadata = (Path(ZOO) / "_metadata").read_bytes()
    (tmp_path / "_metadata").write_bytes(metadata)  # without the other files
    metrics = Metrics(statetool.metrics(str(tmp_path)))
    assert metrics.families.keys() == Metrics(statetool.metrics(ZOO)).families.keys()
    assert not metrics.families.keys() & (KEYED | CONNECTORS)
    savepoint = statetool.load(ZOO)
    rows = {row.operator: row for row in savepoint.metadata_rows("operators")}
    by_slot = metrics.values("operator_bytes", "operator", "slot")
    for name, row in rows.items():
        size = sum(value for (operator, _), value in by_slot.items() if operator == name)
        assert size == row.state_bytes + row.coordinator_bytes
        assert metrics.value("operator_max_parallelism", operator=name) == row.max_parallelism
        assert metrics.value("operator_parallelism", operator=name, operator_name=row.name) == row.parallelism
    assert metrics.value("checkpoint_bytes") == sum(r.state_bytes + r.coordinator_bytes for r in rows.values())
    assert metrics.value("checkpoint_id") == savepoint.checkpoint_id
    assert metrics.value("metadata_bytes") == len(metadata)
    assert metrics.value("checkpoint_timestamp_seconds") == pytest.approx(
        os.stat(tmp_path / "_metadata").st_mtime, abs=1e-3
    )
    assert metrics.value("job_readable") == 1


def test_operator_state_is_that_of_the_statistics() -> None:
    metrics = Metrics(statetool.metrics(ZOO))
    rows = [row for row in statetool.load(ZOO).stats().rows("states") if row.scope == "operator"]
    assert rows
    for row in rows:
        labels = {"operator": row.operator, "state": row.state, "scope": "operator"}
        assert metrics.value("state_entries", **labels) == row.entries
        assert metrics.value("state_bytes", **labels) == row.size_bytes
        assert metrics.value("state_largest_value_bytes", **labels) == row.largest_value


def test_keyed_state_is_that_of_the_statistics() -> None:
    metrics = Metrics(statetool.metrics(ZOO, read=["keyed"]))
    assert metrics.families.keys() >= KEYED
    assert not metrics.families.keys() & CONNECTORS
    savepoint = statetool.load(ZOO)
    written_ms = os.stat(os.path.join(ZOO, "_metadata")).st_mtime_ns // 1_000_000
    statistics = savepoint.stats(now_ms=written_ms)
    for row in statistics.rows("states"):
        labels = {"operator": row.operator, "state": row.state, "scope": row.scope}
        assert metrics.value("state_entries", **labels) == row.entries
        assert metrics.value("state_bytes", **labels) == row.size_bytes
        assert metrics.value("state_largest_value_bytes", **labels) == row.largest_value
        if row.keys is not None:
            assert metrics.value("state_keys", **labels) == row.keys
    for row in statistics.rows("operators"):
        assert metrics.value("operator_unread_bytes", operator=row.operator) == row.unread_bytes
    totals = [row for row in statistics.rows("timers") if row.in_at_least_ms is None and row.in_below_ms is None]
    timers = metrics.values("timers", "operator", "state", "domain")
    assert timers == {(row.operator, row.state, row.domain): row.count for row in totals}
    # Only the watermark decides whether an event-time timer is overdue.
    overdue = metrics.values("timers_overdue", "operator", "domain")
    assert overdue == {("timers", "processing"): 0}


def test_timers_are_overdue_by_the_time_of_the_checkpoint(tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    statetool.copy(ZOO, str(copied))
    os.utime(copied / "_metadata", (5_000_000_000, 5_000_000_000))
    metrics = Metrics(statetool.metrics(str(copied), read=["keyed"]))
    timers = metrics.values("timers", "operator", "domain")[("timers", "processing")]
    assert metrics.value("timers_overdue", operator="timers") == timers > 0


def test_splits_and_lag_of_sources() -> None:
    metrics = Metrics(statetool.metrics(KAFKA, read=["connectors"]))
    (source,) = statetool.load(KAFKA).connector_rows("sources")
    splits = statetool.load(KAFKA).connector_rows("source_splits")
    assert metrics.value("source_splits", status="held", connector=source.connector) == source.held == len(splits)
    assert metrics.value("source_problems") == 0
    assert metrics.value("connector_readable", operator=source.operator) == 1
    # A split whose position is a marker, such as "earliest", has no offset.
    positions = {(row.split_id,): float(row.position) for row in splits if row.position is not None}
    assert 0 < len(positions) < len(splits)
    assert metrics.values("source_position", "split") == positions
    assert "statetool_source_lag" not in metrics.families
    ends = {split: int(position) + 7 for (split,), position in positions.items()}
    lag = Metrics(statetool.metrics(KAFKA, ends=ends)).values("source_lag", "split")
    assert lag == dict.fromkeys(positions, 7.0)
    with pytest.raises(UnknownNameError, match="no end offset matches"):
        statetool.metrics(KAFKA, ends={"nothing:0": 1})


def test_uncommitted_transactions_of_sinks() -> None:
    metrics = Metrics(statetool.metrics(SINK, read=["connectors"]))
    rows = statetool.load(SINK).connector_rows("sinks")
    pending = metrics.values("sink_pending_transactions", "operator", "role")
    assert pending == {(row.operator, row.role): row.pending for row in rows}
    assert sum(pending.values()) > 0
    assert metrics.values("sink_open_transactions", "operator", "role") == {
        (row.operator, row.role): row.open for row in rows
    }
    oldest = metrics.values("sink_oldest_pending_checkpoint_id", "operator")
    assert oldest == {(r.operator,): r.oldest_checkpoint for r in rows if r.oldest_checkpoint is not None}
    unknown = [row.operator for row in statetool.load(SINK).connector_rows("sources") if row.undecoded]
    readable = metrics.values("connector_readable", "operator")
    assert readable == {**{(row.operator,): 1.0 for row in rows}, **{(name,): 0.0 for name in unknown}}


def test_unknown_reads_are_refused() -> None:
    with pytest.raises(OptionError, match="read='timers' is not valid"):
        statetool.metrics(ZOO, read=["timers"])  # type: ignore[list-item]


@given(st.lists(st.tuples(st.text(), st.text()), unique=True), st.floats(allow_nan=False, allow_infinity=False))
def test_any_names_are_escaped(names: list[tuple[str, str]], value: float) -> None:
    samples = Samples()
    for job, name in names:
        samples.add("statetool_checkpoint_bytes", value, job_id=job, job_name=name)
    text = render([samples])
    text.encode()
    metrics = Metrics(text)
    if all(name.isprintable() for pair in names for name in pair):
        assert metrics.values("checkpoint_bytes", "job_id", "job_name") == dict.fromkeys(names, value)
