from __future__ import annotations

import io
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fastavro
import pytest

import statetool
from statetool.analysis.comparison.records import DIFFERENCES, DifferenceCounts, StructureDifference
from statetool.analysis.statistics.records import ESTIMATES, TABLES, GrowthRow
from statetool.analysis.verification.problems import Problem
from statetool.columns.text_schemas import avro_schema
from statetool.connectors.backlog import BacklogRow, backlog_rows
from statetool.connectors.commit_ids import CommitIdRow, commit_id_rows
from statetool.connectors.edits.edits import SplitChange
from statetool.connectors.lag import LagRow, lag_rows
from statetool.connectors.layouts.pipeline_schemas import TableSchemaRow, table_schema_rows
from statetool.connectors.outside.table_commits import TableCommitRow, table_commit_rows
from statetool.connectors.pending import PendingRow, pending_rows
from statetool.connectors.sinks import sinks_of
from statetool.connectors.sources import source_of
from statetool.connectors.tables import CONNECTOR_TABLES
from statetool.io.listing import FoundFile
from statetool.migration.plan import StepRow
from statetool.operations.advice.findings import Finding
from statetool.operations.advice.history import Advice
from statetool.operations.cluster.overview import JobRow, JobSnapshotRow, read_overview
from statetool.operations.directories.chain import ChainCheckpoint, ChainFile
from statetool.operations.directories.orphans import OrphanFile
from statetool.operations.directories.snapshots import SnapshotRow
from statetool.operations.directories.trash import Trash, TrashedFile
from statetool.saving.uids import UidChange
from statetool.saving.verbs.convert import ConvertRow
from statetool.saving.verbs.copies import CopiedFile
from statetool.saving.verbs.drop import DropRow
from statetool.saving.verbs.erase import ErasedRow
from statetool.saving.verbs.merge import MergeRow
from statetool.saving.verbs.purge import PurgedRow
from statetool.saving.verbs.rescale import RescaleRow
from statetool.saving.verbs.sample import SampledRow
from statetool.saving.verbs.set_values import SetRow
from statetool.snapshot.metadata_tables import METADATA_TABLES
from statetool.tables.metadata import metadata_schema, record_schema
from tests.support.connectors.committers import iceberg
from tests.support.connectors.committers import new as committing
from tests.support.connectors.lake_cases import PACKED
from tests.support.connectors.pipelines import pipeline
from tests.support.corpora.archives import unpack
from tests.support.servers.flink_rest import flink_rest
from tests.support.zoo import ZOO

SCHEMAS = Path(__file__).parents[2] / "schemas"
#: Records that commands on snapshots and directories print as JSON, by schema name.
RECORDS = {
    "snapshots": SnapshotRow,
    "chain_checkpoints": ChainCheckpoint,
    "chain_files": ChainFile,
    "orphans": OrphanFile,
    "jobs": JobRow,
    "job_snapshots": JobSnapshotRow,
    "problems": Problem,
    "copies": CopiedFile,
    "rescaled": RescaleRow,
    "converted": ConvertRow,
    "uid_changes": UidChange,
    "dropped": DropRow,
    "merged": MergeRow,
    "trashed": TrashedFile,
    "erased": ErasedRow,
    "sampled": SampledRow,
    "set_values": SetRow,
    "purged": PurgedRow,
    "migration_steps": StepRow,
    "advice": Advice,
    "findings": Finding,
    "growth": GrowthRow,
    "structure_differences": StructureDifference,
    "difference_counts": DifferenceCounts,
    **{f"stats_{name}": record for name, record in TABLES.items()},
    **{f"estimate_{name}": record for name, record in ESTIMATES.items()},
}
#: Records of sources and sinks.
CONNECTIONS = {
    **{name: t.record for name, t in CONNECTOR_TABLES.items()},
    "split_changes": SplitChange,
    "pending": PendingRow,
    "commit_ids": CommitIdRow,
    "table_schemas": TableSchemaRow,
    "table_commits": TableCommitRow,
    "lag": LagRow,
    "backlog": BacklogRow,
}


def test_there_is_a_schema_for_each_metadata_table() -> None:
    assert {p.stem for p in SCHEMAS.glob("*.avsc")} == {
        *METADATA_TABLES,
        *RECORDS,
        *CONNECTIONS,
        "differences",
        "check",
    }


@pytest.mark.parametrize("table", METADATA_TABLES)
def test_what_the_tool_emits_fits_its_schema(corpus: Path, table: str) -> None:
    schema = json.loads((SCHEMAS / f"{table}.avsc").read_text())
    assert schema == avro_schema(metadata_schema(table), name=table)
    path = str(corpus / "v2_3_0-unaligned" / "snapshot" / "chk-2") if table == "in_flight" else ZOO
    rows = statetool.load(path).to_arrow(table).to_pylist()
    assert rows
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, strict=True)
    buffer.seek(0)
    assert list(fastavro.reader(buffer)) == rows


def emitted(corpus: Path, name: str) -> list[Any]:
    """Return records of a kind, made by the tool."""
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
            return list(statetool.rescale(ZOO, str(corpus / "never-written"), 100, dry_run=True).operators)
        case "converted":
            return list(statetool.convert(ZOO, str(corpus / "never-written"), dry_run=True).operators)
        case "uid_changes":
            return statetool.change_uids(ZOO, str(corpus / "never-written"), {"timers": "t"}, dry_run=True)
        case "erased":
            return list(statetool.erase(ZOO, "never-written", ["timer-3"], dry_run=True).plan.erased)
        case "sampled":
            return list(statetool.sample(ZOO, "never-written", keys=3, dry_run=True).operators)
        case "set_values":
            return list(statetool.set_values(ZOO, "never-written", "with-ttl", 4, {"plain": 1}, dry_run=True).changes)
        case "purged":
            return list(statetool.purge(ZOO, "never-written", {"ttl-map": 1}, now_ms=0, dry_run=True).states)
        case "dropped":
            return list(statetool.drop(ZOO, str(corpus / "never-written"), ["timers"], dry_run=True).dropped)
        case "trashed":
            trash = Trash.new(root)
            return [trash.describe(FoundFile(uri=f"{root}/chk-1/x", size_bytes=1, modified_ms=2), "unneeded")]
        case "merged":
            return list(
                statetool.graft(ZOO, ZOO, str(corpus / "never-written"), {"timers": "t"}, dry_run=True).operators
            )
        case "structure_differences" | "difference_counts":
            old, new = (
                statetool.load(str(corpus / f"{v}-rocksdb-canonical" / "snapshot")) for v in ("v1_20_5", "v2_3_0")
            )
            comparison = old.diff(new, states=["variant"])
            return list(comparison.structure) if name == "structure_differences" else list(comparison.summary())
        case "migration_steps":
            before, after = (str(corpus / f"{v}-rocksdb-canonical" / "snapshot") for v in ("v1_20_5", "v2_3_0"))
            uids = [n for n in statetool.load(after) if len(n) < 32]
            return statetool.plan_migration(statetool.load(before, uids=uids), after).rows
        case "growth":
            return statetool.growth(root)
        case _ if name.startswith("stats_"):
            return statetool.load(ZOO).stats(ttl_ms=1).rows(name.removeprefix("stats_"))
        case _ if name.startswith("estimate_"):
            return statetool.load(ZOO).estimate_stats().rows(name.removeprefix("estimate_"))
        case "advice":
            return list(statetool.advise(root))
        case "findings":
            config = corpus / "flink-conf.yaml"
            config.write_text("execution.checkpointing.interval: soon\n")
            return list(statetool.lint(str(config)))
        case "jobs" | "job_snapshots":
            with flink_rest("2.3", corpus) as rest:
                overview = read_overview(rest.url)
            return list(overview.jobs if name == "jobs" else (*overview.failed, *overview.savepoints))
        case _:
            return list(statetool.orphans(root, min_age=0))


def connected(cases: Path, name: str) -> list[Any]:
    """Return records of sources or sinks, made by the tool."""
    sinks = ("sinks", "transactions", "pending")
    case = "kafka-sink" if name in sinks else "hybrid-first" if name == "backlog" else "kafka-source-inconsistent"
    savepoint = statetool.load(str(cases / f"v2_3_0-{case}" / "snapshot"))
    if name == "split_changes":
        plan = statetool.edit_source(savepoint, str(cases / "never-written"), "orders", to="latest", dry_run=True)
        return list(plan.changes)
    if name == "lag":
        source = source_of(savepoint["orders"].inventory)
        assert source is not None
        return lag_rows(source, {"orders:0": 2000})
    if name == "backlog":
        return list(backlog_rows(savepoint.inventory.operators.values()))
    if name == "commit_ids":
        with tempfile.TemporaryDirectory() as folder:
            table = committing(7, *iceberg(7)).write(f"{folder}/table").inventory
            return list(commit_id_rows(table.operators.values(), 7))
    if name == "table_schemas":
        return list(table_schema_rows(pipeline(cases / "pipeline").inventory.operators.values()))
    if name == "table_commits":
        lake = unpack(PACKED, cases / "lakes") / "paimon-1.3.1"
        operators = statetool.load(str(lake / "snapshot")).inventory.operators.values()
        return table_commit_rows(operators, str(lake / "table"), "paimon")
    if name == "pending":
        all_sinks = sinks_of(savepoint.inventory.operators.values())
        return [r for s in all_sinks for r in pending_rows(s, now_ms=10, snapshot_ms=1, timeout_ms=5)]
    return savepoint.connector_rows(name)


@pytest.mark.parametrize("name", CONNECTIONS)
def test_what_is_known_of_sources_and_sinks_fits_its_schema(name: str, connector_cases: Path) -> None:
    check_rows(name, CONNECTIONS[name], connected(connector_cases, name))


@pytest.mark.parametrize("name", RECORDS)
def test_what_commands_emit_fits_its_schema(name: str, corpus: Path) -> None:
    check_rows(name, RECORDS[name], emitted(corpus, name))


def check_rows(name: str, record: type[Any], records: list[Any]) -> None:
    """Compare records with the schema of their name."""
    schema = json.loads((SCHEMAS / f"{name}.avsc").read_text())
    assert schema == avro_schema(record_schema(record), name=name)
    rows = [asdict(r) for r in records]
    assert rows
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, strict=True)
    buffer.seek(0)
    assert list(fastavro.reader(buffer)) == rows


def test_differences_fit_their_schema() -> None:
    assert json.loads((SCHEMAS / "differences.avsc").read_text()) == avro_schema(DIFFERENCES, name="differences")


def test_a_check_fits_its_schema() -> None:
    verdict = statetool.check(ZOO, ZOO)
    row = verdict.record()
    assert row["operators"][0]["states"]
    assert row["warnings"]
    schema = fastavro.parse_schema(json.loads((SCHEMAS / "check.avsc").read_text()))
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, [row], strict=True)
    buffer.seek(0)
    (again,) = fastavro.reader(buffer)
    assert again == json.loads(json.dumps(row))
