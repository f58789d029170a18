"""Sources of the SQL corpus: each split and enumerator equals the one decoded by Flink's classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.sources import source_of
from tests.support.checks.connector_check import ordered


def named(value: Any) -> Any:
    """Rename the fields of a Flink split to statetool's names; an enumerator becomes the list of its splits."""
    match value:
        case {"class": "FileSourceSplit"}:
            at = value["readerPosition"]
            return {
                "split_id": value["id"],
                "path": value["filePath"],
                "offset": value["offset"],
                "length": value["length"],
                "file_modification_time": value["fileModificationTime"],
                "file_size": value["fileSize"],
                "hosts": value["hostnames"],
                "reader_position": at and {"offset": at["offset"], "records_to_skip": at["recordsAfterOffset"]},
            }
        case {"class": "NumberSequenceSource$NumberSequenceSplit"}:
            return {"split_id": value["splitId"], "start": value["from"], "end": value["to"]}
        case {"class": "PendingSplitsCheckpoint"}:
            return [named(s) for s in value["splits"]]
        case {"wrapped": inner}:
            return named(inner)
    return value


def shown(split: Any) -> Any:
    split = getattr(split, "wrapped", split)
    fields = {name: getattr(split, name) for name in type(split).__dataclass_fields__}
    if "path" in fields:
        at = fields["reader_position"]
        position = at and {"offset": at.offset, "records_to_skip": at.records_to_skip}
        fields |= {"path": str(fields["path"]), "hosts": list(fields["hosts"]), "reader_position": position}
    return fields


@pytest.mark.parametrize(
    "name", ["file_source_bounded", "file_source_continuous", "hybrid_first_source", "hybrid_second_source"]
)
def test_splits_and_enumerators_are_what_flink_decodes(sql_corpus: Path, name: str) -> None:
    expected = json.loads((sql_corpus / name / "expected.json").read_text())["operators"]
    compared = 0
    for operator_id, wanted in expected.items():
        if "coordinator_state" not in wanted:
            continue
        operator = statetool.load(str(sql_corpus / name / "snapshot"))[operator_id]
        source = source_of(operator.inventory)
        assert source is not None
        assert source.given is not None
        subtasks = wanted["operator_state"]["SourceReaderState"]["by_subtask"]
        readers = [
            [int(n), e["decoded"]["version"], named(e["decoded"]["value"])]
            for n, elements in subtasks.items()
            for e in elements
        ]
        assert ordered([[h.subtask, h.version, shown(h.split)] for h in source.state.held]) == ordered(readers)
        decoded = wanted["coordinator_state"]["decoded"]
        assert source.coordinator_version == decoded["format_version"]
        assert source.given.enumerator_version == decoded["enumerator_version"]
        enumerator = source.state.enumerator
        assert enumerator is not None
        assert ordered([shown(k.split) for k in enumerator.splits]) == ordered(named(decoded["enumerator"]))
        paths = decoded["enumerator"].get("alreadyProcessedPaths", [])
        assert list(enumerator.facts.get("already_processed_paths", [])) == paths
        compared += 1
    assert compared == 1
