"""Differences in the state of sources and sinks show what connectors decode, not bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from statetool.connectors.element_texts import element_texts
from statetool.connectors.sources import READER_STATE


def _values(connector_cases: Path, before: str, after: str) -> dict[str, list[str]]:
    first, second = (statetool.load(str(connector_cases / name / "snapshot")) for name in (before, after))
    shown: dict[str, list[str]] = {}
    for row in first.diff(second).to_arrow().to_pylist():
        shown.setdefault(row["state"], []).extend(v for v in (row["before"], row["after"]) if v is not None)
    return shown


def test_differences_of_a_sink_name_its_transactions(connector_cases: Path) -> None:
    shown = _values(connector_cases, "v1_20_5-kafka-sink", "v1_17_2-kafka-sink")
    (first, *_) = shown["streaming_committer_raw_states"]
    pending = json.loads(first)
    assert [p["name"] for p in pending] == ["orders-out-0-1", "orders-out-0-2"]
    assert {"status", "checkpoint_id", "version"} <= set(pending[0])
    assert not any(v.startswith("0x") for v in shown["streaming_committer_raw_states"])


def test_differences_of_a_source_name_its_splits(connector_cases: Path) -> None:
    shown = _values(connector_cases, "v1_20_5-kafka-source", "v1_20_5-kafka-source-inconsistent")
    splits = [json.loads(v) for v in shown["SourceReaderState"]]
    assert splits
    assert all({"topic", "partition"} <= set(s) for s in splits)
    html = (
        statetool.load(str(connector_cases / "v1_20_5-kafka-source" / "snapshot"))
        .diff(str(connector_cases / "v1_20_5-kafka-source-inconsistent" / "snapshot"))
        ._repr_html_()
    )
    assert "&quot;topic&quot;" in html


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\0\0\0\1\0\0\0\2ab", b"\xff" * 40])
def test_bytes_that_no_connector_reads_stay_bytes(data: bytes) -> None:
    assert element_texts(READER_STATE, [data]) == {}
    assert element_texts("streaming_committer_raw_states", [data]) == {}
    assert element_texts("a state of the job", [data]) == {}
