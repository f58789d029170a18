from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fastavro
import pytest

import statetool
from statetool.arrow.metadata import metadata_schema, record_schema
from statetool.arrow.text_schemas import avro_schema
from statetool.demo import SAVEPOINT
from statetool.ops.chain import ChainCheckpoint, ChainFile
from statetool.ops.convert import ConvertRow
from statetool.ops.copies import CopiedFile
from statetool.ops.drop import DropRow
from statetool.ops.orphans import OrphanFile
from statetool.ops.problems import Problem
from statetool.ops.rescale import OperatorPlan
from statetool.ops.snapshots import SnapshotRow
from statetool.ops.uids import UidChange
from statetool.plan.rows import METADATA_TABLES

SCHEMAS = Path(__file__).parents[1] / "schemas"
#: Records that commands on whole snapshots and directories emit as JSON, by the name of their schema.
RECORDS = {
    "snapshots": SnapshotRow,
    "chain_checkpoints": ChainCheckpoint,
    "chain_files": ChainFile,
    "orphans": OrphanFile,
    "problems": Problem,
    "copies": CopiedFile,
    "rescaled": OperatorPlan,
    "converted": ConvertRow,
    "uid_changes": UidChange,
    "dropped": DropRow,
}


def test_there_is_a_schema_for_each_metadata_table() -> None:
    assert {p.stem for p in SCHEMAS.glob("*.avsc")} == {*METADATA_TABLES, *RECORDS}


@pytest.mark.parametrize("table", METADATA_TABLES)
def test_what_the_tool_emits_fits_its_schema(corpus: Path, table: str) -> None:
    schema = json.loads((SCHEMAS / f"{table}.avsc").read_text())
    assert schema == avro_schema(metadata_schema(table), name=table)
    path = str(corpus / "v2_3_0-unaligned" / "snapshot" / "chk-2") if table == "in_flight" else SAVEPOINT
    rows = statetool.load(path).to_arrow(table).to_pylist()
    assert rows
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, strict=True)
    buffer.seek(0)
    assert list(fastavro.reader(buffer)) == rows


def emitted(corpus: Path, name: str) -> list[Any]:
    """Return records of a kind, as the tool makes them."""
    root = str(corpus / "v2_3_0-rocksdb-incremental")
    match name:
        case "snapshots":
            return list(statetool.list_snapshots(root))
        case "chain_checkpoints":
            return list(statetool.chain(root).checkpoints)
        case "chain_files":
            return list(statetool.chain(root).files)
        case "problems":
            return list(statetool.verify(str(corpus / "v2_3_0-hashmap-canonical" / "snapshot"), deep=True).problems)
        case "copies":
            plan = statetool.copy(f"{root}/snapshot/chk-4", str(corpus / "never-written"), dry_run=True)
            return list(plan.files)
        case "rescaled":
            return list(statetool.rescale(SAVEPOINT, str(corpus / "never-written"), 100, dry_run=True).operators)
        case "converted":
            return list(statetool.convert(SAVEPOINT, str(corpus / "never-written"), dry_run=True).operators)
        case "uid_changes":
            return statetool.change_uids(SAVEPOINT, str(corpus / "never-written"), {"timers": "t"}, dry_run=True)
        case "dropped":
            return list(statetool.drop(SAVEPOINT, str(corpus / "never-written"), ["timers"], dry_run=True).dropped)
        case _:
            return list(statetool.orphans(root, min_age=0))


@pytest.mark.parametrize("name", RECORDS)
def test_what_commands_emit_fits_its_schema(name: str, corpus: Path) -> None:
    schema = json.loads((SCHEMAS / f"{name}.avsc").read_text())
    assert schema == avro_schema(record_schema(RECORDS[name]), name=name)
    rows = [asdict(r) for r in emitted(corpus, name)]
    assert rows
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, strict=True)
    buffer.seek(0)
    assert list(fastavro.reader(buffer)) == rows
