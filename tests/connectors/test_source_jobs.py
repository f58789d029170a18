"""Savepoints of jobs in the middle of a source: the positions are those of the records that the job had read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.rows import SplitRow
from tests.support.corpora.archives import unpack
from tests.support.flink.source_jobs import PACKED, read_numbers, shard_positions

#: Numbers of a file.
PART = 100


@pytest.fixture(scope="module")
def source_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("sources"))


def answer_of(case: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((case / "answer.json").read_text())
    return answer


def split_rows(case: Path, connector: str) -> list[tuple[SplitRow, dict[str, Any]]]:
    """Return the splits of a connector, with their details."""
    rows: list[Any] = [r for r in statetool.load(str(case)).connector_rows("source_splits") if r.connector == connector]
    return [(row, json.loads(row.details)) for row in rows]


def test_each_job_has_its_connectors(source_cases: Path) -> None:
    found = {
        source: {
            (r.connector, r.enumerator_version)
            for r in statetool.load(str(source_cases / source)).connector_rows("sources")
        }
        for source in ("jdbc", "iceberg", "files", "kinesis")
    }
    assert found == {
        "jdbc": {("jdbc-source", 0)},
        "iceberg": {("iceberg-source", 2)},
        "files": {("continuous-file-monitoring", None), ("continuous-file-reader", None)},
        "kinesis": {("flink-kinesis-consumer", None)},
    }


def test_jdbc_has_read_the_first_rows_of_its_ranges(source_cases: Path) -> None:
    read = read_numbers(answer_of(source_cases / "jdbc"))
    held = {d["parameters"][0]: int(row.position or 0) for row, d in split_rows(source_cases / "jdbc", "jdbc-source")}
    assert len(held) == 2
    assert read == sorted(n for low, count in held.items() for n in range(low, low + count))
    (source,) = statetool.load(str(source_cases / "jdbc")).connector_rows("sources")
    assert (source.held, source.unassigned) == (2, 2)


def test_iceberg_has_read_the_files_before_the_current_one(source_cases: Path) -> None:
    read = read_numbers(answer_of(source_cases / "iceberg"))
    rows = split_rows(source_cases / "iceberg", "iceberg-source")
    assert {row.version for row, _ in rows} == {2}
    counts = dict.fromkeys(range(8), 0)
    for _, details in rows:
        files = [int(Path(t["file"]).stem) for t in details["tasks"]]
        assert len(files) == 2
        for index, file in enumerate(files):
            at = details["file_offset"]
            counts[file] = PART if index < at else details["record_offset"] if index == at else 0
    # Splits that are finished or wait are not held: the job finishes none before the savepoint.
    assert sum(counts.values()) > 0
    assert read == sorted(n for file, count in counts.items() for n in range(file * PART, file * PART + count))


def test_files_have_been_read_up_to_their_positions(source_cases: Path) -> None:
    answer = answer_of(source_cases / "files")
    read = read_numbers(answer)
    ((monitor, _),) = split_rows(source_cases / "files", "continuous-file-monitoring")
    assert monitor.position == str(max(answer["modified_ms"]))
    rows = split_rows(source_cases / "files", "continuous-file-reader")
    files = {int(Path(d["path"]).stem): row for row, d in rows}
    finished = {n // PART for n in read} - files.keys()
    for number, row in files.items():
        lines = [n for n in read if n // PART == number]
        assert row.position == (str(sum(len(f"{n}\n") for n in lines)) if lines else None)
        assert row.start == "0"
    assert len(files) + len(finished) == 8
    assert any(row.position for row in files.values())


def test_kinesis_has_read_up_to_the_numbers_of_its_shards(source_cases: Path) -> None:
    expected = shard_positions(answer_of(source_cases / "kinesis"))
    rows = split_rows(source_cases / "kinesis", "flink-kinesis-consumer")
    found = {}
    for row, details in rows:
        sub_number = details.get("sub_sequence_number")
        found[row.split_id] = (row.position or row.marker or "").removeprefix("after=")
        found[row.split_id] += "" if sub_number is None else f"-{sub_number}"
        assert row.source == "orders"
    assert len(expected) == 4
    assert found == expected
    assert found["shardId-000000000003"] == "EARLIEST_SEQUENCE_NUM"
    assert "-" in found["shardId-000000000001"]
