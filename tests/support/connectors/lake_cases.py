"""Savepoints of jobs that write to Paimon and Iceberg, with the table's own record of the commits.

``python -m tests.support.connectors.lake_cases [CASE...]`` runs each release in Flink and packs, per case: the savepoint, the metadata of the
table with its commits, and the paths of its files. Cases that are not named stay as they are.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE, unpack
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "lakes.tar.xz"
JOB: Final = HERE / "support" / "flink" / "lakes"
FLINK: Final = "1.20.5"
_APPENDED: Final = "'bucket'='2', 'bucket-key'='n', 'sink.savepoint.auto-tag'='true'"
_KEYED: Final = "'bucket'='-1', 'deletion-vectors.enabled'='true', 'num-sorted-run.compaction-trigger'='2'"
#: Writers keep the buckets that they have written since the last full compaction.
_COMPACTED: Final = (
    "'bucket'='2', 'changelog-producer'='full-compaction', 'full-compaction.delta-commits'='1000',"
    " 'num-sorted-run.compaction-trigger'='100', 'sink.savepoint.auto-tag'='true'"
)
_COLUMNS: Final = "n BIGINT, d STRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeCase:
    """A table that a job writes."""

    jar_set: str
    catalog: str
    columns: str
    options: str
    #: Folder of the table below the warehouse, and its files of commits.
    table: str
    commits: str
    pattern: str
    config: tuple[tuple[str, str], ...] = ()

    def run(self, machine: FlinkMachine, warehouse: Path, **more: Any) -> dict[str, Any]:
        """Run the job, and return its answer."""
        setup = [
            f"CREATE CATALOG lake WITH ({self.catalog}, 'warehouse'='file://{warehouse}')",
            "CREATE DATABASE IF NOT EXISTS lake.shop",
            f"CREATE TABLE IF NOT EXISTS lake.shop.numbers ({self.columns}) PARTITIONED BY (d) WITH ({self.options})",
        ]
        return machine.call(
            "class",
            **{"class": "TableJob"},
            setup=setup,
            insert="INSERT INTO lake.shop.numbers SELECT n, d FROM numbers_in",
            commits=str(warehouse / self.table / self.commits),
            pattern=self.pattern,
            config=dict(self.config),
            **more,
        )

    def machine(self, work: Path, *sources: Path) -> FlinkMachine:
        """Start Flink with the jars of the case, and with more programs."""
        return FlinkMachine(FLINK, work, (JOB, *sources), jars=[*maven_jars(self.jar_set), *maven_jars("hadoop")])


def _paimon(release: str, options: str) -> LakeCase:
    return LakeCase(
        jar_set=f"paimon-{release}",
        catalog="'type'='paimon'",
        columns=_COLUMNS if options == _APPENDED else f"{_COLUMNS}, PRIMARY KEY (d, n) NOT ENFORCED",
        options=options,
        table="shop.db/numbers",
        commits="snapshot",
        pattern="snapshot-*",
    )


def _iceberg(*, sink_v2: bool) -> LakeCase:
    return LakeCase(
        jar_set="iceberg-flink-1.10.0",
        catalog="'type'='iceberg', 'catalog-type'='hadoop'",
        columns=_COLUMNS,
        options="'format-version'='2'",
        table="shop/numbers",
        commits="metadata",
        pattern="*.metadata.json",
        config=(("table.exec.iceberg.use-v2-sink", str(sink_v2).lower()),),
    )


CASES: Final = {
    **{f"paimon-{r}": _paimon(r, _APPENDED) for r in ("0.8.2", "0.9.0", "1.0.1", "1.2.0", "1.3.1")},
    **{f"paimon-{r}-keyed": _paimon(r, _KEYED) for r in ("1.0.1", "1.3.1")},
    **{f"paimon-{r}-compacted": _paimon(r, _COMPACTED) for r in ("0.9.0", "1.3.1")},
    "iceberg-1.10.0": _iceberg(sink_v2=False),
    "iceberg-1.10.0-v2": _iceberg(sink_v2=True),
}

#: Jobs that write with all sinks of Iceberg: release of Flink and set of jars.
ALL_SINKS: Final = {
    "iceberg-1.10.0-all": ("1.20.5", "iceberg-flink-1.10.0"),
    "iceberg-1.11.0-all": ("2.1.3", "iceberg-flink-1.11.0"),
}


def all_sinks_machine(name: str, work: Path) -> FlinkMachine:
    """Start Flink for a job that writes with all sinks of Iceberg."""
    flink, jar_set = ALL_SINKS[name]
    job = HERE / "support" / "flink" / "icebergs"
    return FlinkMachine(flink, work, (job,), jars=[*maven_jars(jar_set), *maven_jars("hadoop-3.4.1")])


def record_all_sinks(name: str, work: Path, target: Path) -> None:
    """Run a job that writes with all sinks of Iceberg, and write its folder: savepoint, metadata and numbers of each table."""
    machine = all_sinks_machine(name, work)
    warehouse = str(work / name)
    request: dict[str, Any] = {"class": "IcebergJob", "uid": "a", "parallelism": 2}
    try:
        answer = machine.call("class", **request, warehouse=warehouse, savepoint=str(work / f"{name}-savepoints"))
    finally:
        machine.close()
    shutil.copytree(answer["savepoint"], target / name / "snapshot")
    for table in answer["rows"]:
        metadata = Path(warehouse) / "shop" / table / "metadata"
        shutil.copytree(metadata, target / name / table / "metadata", ignore=_unneeded)
    (target / name / "case.json").write_text(json.dumps(answer["rows"]))


def record(name: str, work: Path, target: Path) -> None:
    """Run a case and write its folder."""
    case = CASES[name]
    machine = case.machine(work)
    try:
        answer = case.run(machine, work / name, savepoint=str(work / f"{name}-savepoints"))
    finally:
        machine.close()
    table = work / name / case.table
    shutil.copytree(answer["savepoint"], target / name / "snapshot")
    shutil.copytree(table / case.commits, target / name / "table" / case.commits, ignore=_unneeded)
    files = sorted(p.relative_to(table).as_posix() for p in table.rglob("*") if p.is_file() and p.name[0] != ".")
    (target / name / "case.json").write_text(json.dumps({"jars": case.jar_set, "flink": FLINK, "files": files}))


def _unneeded(folder: str, names: list[str]) -> list[str]:
    """Leave out manifests and checksums of Iceberg, and all metadata but the newest."""
    newest = max(
        (n for n in names if n.endswith(".metadata.json")), key=lambda n: int(n[1:].split(".")[0]), default=None
    )
    return [n for n in names if n.endswith((".avro", ".crc")) or (n.endswith(".metadata.json") and n != newest)]


def main(names: list[str]) -> None:
    """Run cases, all by default, and pack them."""
    with tempfile.TemporaryDirectory() as work:
        target = unpack(PACKED, Path(work) / "cases")
        for name in names or [*CASES, *ALL_SINKS]:
            shutil.rmtree(target / name, ignore_errors=True)
            (record_all_sinks if name in ALL_SINKS else record)(name, Path(work), target)
            print(name, flush=True)
        with tarfile.open(PACKED, "w:xz") as tar:
            for folder in sorted(target.iterdir()):
                tar.add(folder, folder.name)
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
