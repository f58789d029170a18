"""Tables of the documentation: serializers, snapshot kinds, releases and connectors proved by real bytes, and types of undeclared columns.

``tests/serializers/verified.tsv`` is written by ``python -m tests.support.facts`` from real snapshots. A class that none of them has is
marked as unproved: its reader only follows Flink's sources. The snapshot kinds are those of the test cases.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import statetool
from statetool.columns.infer import infer_type
from statetool.compatibility.rule_table import restore_rules
from statetool.compatibility.steps.order import STEPS
from statetool.connectors import registry
from statetool.connectors.connector import SinkConnector, SplitConnector, StateSource
from statetool.errors import OptionError
from statetool.java.declaring.job_code import java_info
from statetool.java.hashing.possible_keys import check_key_type
from statetool.serializers.table import FAMILIES, bundled_classes, snapshot_classes
from statetool.snapshot.views import DELTA_JOIN_QUEUE
from tests.support.connectors.pipelines import coordinator_states
from tests.support.connectors.written import written_states
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink.delta_job import PACKED as DELTA_JOINS
from tools.flink_jars import DEFAULT_VERSIONS

COLUMNS: Final = ("read", "written", "kernel", "versions")
#: Archives of cases with ``case.json``.
ARCHIVES: Final = tuple(
    HERE / "corpus" / f"{name}.tar.xz" for name in ("public-datastream", "public-sql-sources", "jobs")
)
#: Restores by Flink that ``check`` is compared with.
PAIRS: Final = tuple(HERE / "support" / "flink" / f"{name}.tsv" for name in ("pairs", "job_pairs"))
#: Part of the state by role of a packed state or of an operator of a sink.
PARTS: Final = {
    "split": "splits",
    "enumerator": "enumerators",
    "writer": "writers",
    "committable": "committables",
    "committer": "committables",
    "global": "global committables",
    "compact-coordinator": "committables",
}
COORDINATOR_VERSIONS: Final = frozenset({0, 1, 2})
#: Archives of savepoints of jobs with sources and sinks.
CONNECTOR_ARCHIVES: Final = tuple(
    HERE / "corpus" / f"{name}.tar.xz"
    for name in ("connectors", "fluss", "lakes", "libraries", "sources", "built-jobs", "delta-sink", "write-ahead")
)
#: Columns by their names in Spark.
COLUMN_TYPES: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(p, s)": pa.decimal128(38, 18),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "MAP<STRING, BIGINT>": pa.map_(pa.string(), pa.int64()),
    "STRUCT<id BIGINT, name STRING>": pa.struct({"id": pa.int64(), "name": pa.string()}),
}
NOT_OF_A_CLASS: Final = "yes, a `Row`; a class of the job is declared: `key_type=flink.pojo(...)`"
ORDERED: Final = "of one entry at most: only the job knows the order of more, by which RocksDB finds a key"
#: Libraries with their own serializers, by Java package. The table has the full names of their classes.
LIBRARIES: Final = {
    "com.datasqrl.flinkrunner.stdlib.json": "DataSQRL",
    "org.apache.beam.runners.flink.translation.types": "Beam",
    "org.apache.flinkx.api.serializer": "flink-scala-api",
    "org.apache.fluss.flink.sink.state": "Fluss",
    "org.apache.flink.statefun.flink.common.protobuf": "Stateful Functions",
    "org.apache.flink.statefun.flink.core.message": "Stateful Functions",
    "org.apache.flink.statefun.flink.core.types.remote": "Stateful Functions",
    "pl.touk.nussknacker.engine.flink.api.typeinfo.caseclass": "Nussknacker",
    "pl.touk.nussknacker.engine.flink.api.typeinfo.option": "Nussknacker",
    "pl.touk.nussknacker.engine.flink.typeinformation": "Nussknacker",
    "pl.touk.nussknacker.engine.process.typeinformation.internal.typedobject": "Nussknacker",
}
_BACKENDS: Final = {"hashmap": "heap", "rocksdb": "RocksDB", "forst": "ForSt"}
_KINDS: Final = {"canonical": "canonical savepoint", "native": "native savepoint", "checkpoint": "checkpoint"}
_FEATURES: Final = {
    "incremental": "incremental",
    "changelog.enabled": "changelog",
    "file-merging.enabled": "merged files",
    "unaligned.enabled": "unaligned",
    "snapshot-compression": "compressed",
    "timer-service.factory": "heap timers",
}


def verified() -> dict[str, dict[str, str]]:
    """Return ``read``, ``written``, ``kernel`` and ``versions`` by snapshot class."""
    text = (HERE / "serializers" / "verified.tsv").read_text("utf-8")
    return {row["class"]: row for row in csv.DictReader(text.splitlines(), delimiter="\t")}


def support_table() -> str:
    """Return the table of serializers as Markdown."""
    facts = verified()
    lines = ["| family | snapshot class | read | written | kernel | verified on Flink |", "|---|---|---|---|---|---|"]
    named = {family: sorted(snapshot_classes(family)) for family in FAMILIES}
    for name in sorted(bundled_classes()):
        named.setdefault(LIBRARIES[name.rpartition(".")[0]], []).append(name)
    for family, names in named.items():
        for name in names:
            cells = [facts[name][c] for c in COLUMNS] if name in facts else ["unproved", "unproved", "", ""]
            lines.append(f"| {family} | `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


Kind = tuple[str, str, str]
Release = tuple[int, ...]


def snapshot_kinds(folders: Iterable[Path]) -> dict[Kind, set[Release]]:
    """Return the snapshot kinds of the cases below the folders (backend, snapshot, features), each with its releases of Flink."""
    releases: dict[Kind, set[Release]] = {}
    for folder in folders:
        for file in folder.rglob("case.json"):
            case = json.loads(file.read_text("utf-8"))
            releases.setdefault(_kind(case), set()).add(_release(case["flink_version"]))
    return releases


def snapshot_table(kinds: Mapping[Kind, Set[Release]]) -> str:
    """Return the table of snapshot kinds as Markdown."""
    lines = ["| backend | snapshot | with | verified on Flink |", "|---|---|---|---|"]
    for kind in sorted(kinds):
        lines.append(f"| {' | '.join(kind)} | {' '.join(map(_dotted, sorted(kinds[kind])))} |")
    return "\n".join(lines)


def version_table(kinds: Mapping[Kind, Set[Release]]) -> str:
    """Return the matrix of Flink's releases as Markdown: what the tests of each prove."""
    read = Counter(release for releases in kinds.values() for release in releases)
    serializers = Counter(_release(v) for row in verified().values() for v in row["versions"].split())
    checks = Counter(
        _release(row["release"])
        for table in PAIRS
        for row in csv.DictReader(table.read_text("utf-8").splitlines(), delimiter="\t")
    )
    restoring = set(map(_release, DEFAULT_VERSIONS))
    lines = ["| Flink | snapshot kinds | serializers | restores written savepoints | restores compared with `check` |"]
    lines.append("|---|---|---|---|---|")
    for release in sorted({*read, *serializers, *checks, *restoring}, reverse=True):
        cells = [read[release] or "", serializers[release] or "", "yes" if release in restoring else ""]
        lines.append(f"| {_dotted(release)} | {' | '.join(map(str, cells))} | {_grouped(checks[release])} |")
    return "\n".join(lines)


def requirement_table() -> str:
    """Return the supported versions of Python and PySpark as Markdown, from ``pyproject.toml``."""
    project = (HERE.parent / "pyproject.toml").read_text("utf-8")
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    (pyspark,) = re.findall(r'^ *"pyspark([^"]*)"', project, re.MULTILINE)
    rows = {"Python": ", ".join(pythons), "PySpark, extra `spark`": f"`{pyspark}`"}
    return "\n".join(["| | versions |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())])


def _release(version: str) -> Release:
    return tuple(map(int, version.split(".")[:2]))


def _dotted(release: Release) -> str:
    return ".".join(map(str, release))


def _grouped(number: int) -> str:
    return f"{number:,}" if number else ""


def unpack_cases(folder: Path) -> list[Path]:
    """Unpack the cases of the snapshot table below a folder."""
    return [unpack(archive, folder / archive.stem) for archive in ARCHIVES]


def connector_table(folder: Path) -> str:
    """Return the table of connectors as Markdown: the versions that they read, the bytes that confirm them, and versions without bytes."""
    proofs = _proofs(folder)
    lines = ["| connector | reads | confirmed by bytes of | without bytes |", "|---|---|---|---|"]
    for connector in registry.connectors():
        proof = proofs.pop(connector.name, _Proof())
        known = ", ".join(sorted(proof.origins)) or "no bytes in the repository"
        versions = _versions(connector)
        missing = {part: numbers - proof.versions.get(part, set()) for part, numbers in versions.items()}
        reads = _listed(versions) or (
            f"state `{connector.state}`" if isinstance(connector, StateSource) else "its list states"
        )
        lines.append(f"| `{connector.name}` | {reads} | {known} | {_listed(missing)} |")
    coordinators = coordinator_states()
    releases = ", ".join(f"release {r}" for r in sorted({s["release"] for s in coordinators}))
    missing = {"coordinators": COORDINATOR_VERSIONS - {s["version"] for s in coordinators}}
    reads = _listed({"coordinators": COORDINATOR_VERSIONS})
    lines.append(f"| schemas of CDC pipelines | {reads} | {releases} | {_listed(missing)} |")
    joins = [case.name for case in sorted(unpack(DELTA_JOINS, folder / DELTA_JOINS.stem).iterdir()) if _waits(case)]
    lines.append(f"| waiting rows of delta joins | state `{DELTA_JOIN_QUEUE}` | jobs in Flink {', '.join(joins)} |  |")
    return "\n".join(lines)


@dataclass
class _Proof:
    """Origins of the bytes that a connector reads, and their versions by part of the state."""

    origins: set[str] = field(default_factory=set)
    versions: dict[str, set[int]] = field(default_factory=dict)

    def add(self, origin: str, part: str | None, versions: Iterable[int]) -> None:
        self.origins.add(origin)
        if part is not None:
            self.versions.setdefault(part, set()).update(versions)


def _proofs(folder: Path) -> dict[str, _Proof]:
    """Return the bytes that each connector reads, by its name. Archives are unpacked below the folder."""
    proofs: dict[str, _Proof] = {}
    for state in written_states():
        for name in state["connector"].split(" or "):
            proof = proofs.setdefault(name, _Proof())
            proof.add(f"release {state['release']}", PARTS.get(state["role"]), [state["version"]])
    for archive in CONNECTOR_ARCHIVES:
        for metadata in sorted(unpack(archive, folder / archive.stem).rglob("_metadata")):
            savepoint = statetool.load(str(metadata.parent))
            for source in savepoint.connector_rows("sources"):
                proof = proofs.setdefault(source.connector, _Proof())
                proof.add("a job in Flink", "splits", _numbers(source.split_versions))
                proof.add("a job in Flink", "enumerators", {source.enumerator_version} - {None})
            for sink in savepoint.connector_rows("sinks"):
                proof = proofs.setdefault(sink.connector, _Proof())
                proof.add("a job in Flink", PARTS.get(sink.role), _numbers(sink.versions))
    return proofs


def _numbers(versions: str) -> set[int]:
    return {int(number) for number in versions.split(", ") if number}


def _waits(case: Path) -> bool:
    """Return True if the rows of a savepoint's delta join can be read."""
    operators = statetool.load(str(case)).operators.values()
    return any(op.to_arrow("waiting").num_rows > 0 for op in operators if "waiting" in op.tables)


def _versions(connector: registry.Connector) -> dict[str, frozenset[int]]:
    """Return the versions that a connector reads, by part of the state; empty if it reads states without versions."""
    match connector:
        case SplitConnector():
            return {"splits": connector.split_versions, "enumerators": connector.enumerator_versions}
        case SinkConnector():
            return {
                "writers": connector.writer_versions,
                "committables": connector.committable_versions,
                "global committables": connector.global_versions,
            }
    return {}


def _listed(versions: Mapping[str, Set[int]]) -> str:
    return ", ".join(f"{part} {', '.join(map(str, sorted(numbers)))}" for part, numbers in versions.items() if numbers)


def rule_table() -> str:
    """Return the rules of restores as Markdown, a table for each step."""
    lines: list[str] = []
    for step in STEPS:
        rules = [r for r in restore_rules() if r.step == step.name]
        lines += [f"### {step.title}", "", f"Follows `{step.follows.replace(', ', '`, `')}`.", ""]
        lines += ["| id | condition | Flink | verdict | needs | remedy | checked |", "|---|---|---|---|---|---|---|"]
        for r in rules:
            cells = (r.id, r.condition, r.flink, r.verdict, r.inputs, r.remedy, r.checked)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _kind(case: dict[str, Any]) -> Kind:
    settings = case.get("config") or {}
    features = [
        word
        for name, word in _FEATURES.items()
        if any(key.endswith(name) and str(value).lower() in ("true", "heap") for key, value in settings.items())
    ]
    kind = case["kind"]
    # A savepoint does not depend on checkpoint settings.
    if kind != "checkpoint":
        features = [word for word in features if word in ("compressed", "heap timers")]
    return _BACKENDS[case["backend"]], _KINDS[kind], ", ".join(features)


def column_table() -> str:
    """Return the types of undeclared columns as Markdown."""
    lines = ["| column | values in Java | the job declares | as a key |", "|---|---|---|---|"]
    for name, kind in COLUMN_TYPES.items():
        serializer = infer_type(kind)
        info = java_info(serializer)
        try:
            check_key_type(serializer)
            key = NOT_OF_A_CLASS if pa.types.is_struct(kind) else ORDERED if pa.types.is_map(kind) else "yes"
        except OptionError:
            key = "no: Java hashes arrays by where they lie in memory"
        lines.append(f"| {name} | `{info.java_class}` | `{info.information}` | {key} |")
    return "\n".join(lines)
