"""Run the zoo's jobs in a real Flink and store the results as corpus cases: ``snapshot``, ``expected.json``, ``case.json``.

``python -m tests.support.flink.zoo_cases 2.3.0 TARGET SET:SCENARIO ...`` runs jobs of a release (a set of ``ZooData``, or ``ZooMore.all``);
``python -m tests.support.flink.zoo_cases pack FOLDER ARCHIVE`` packs cases in the form of ``tests/corpus/jobs.tar.xz``.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from statetool.formats.operator_id import operator_id_for_uid
from tests.support.expected.scalars import json_text
from tests.support.flink.machine import FlinkMachine

SOURCES: Final = (Path(__file__).parent / "zoo",)
#: Sources that need Flink 2.
NEW_SOURCES: Final = (*SOURCES, Path(__file__).parent / "zoo2")
_CHECKPOINTS: Final = {
    "execution.checkpointing.interval": "400ms",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.num-retained": "3",
    "state.checkpoints.num-retained": "3",
}


def sources_of(version: str) -> tuple[Path, ...]:
    """Return the sources for a release."""
    return SOURCES if version.startswith("1.") else NEW_SOURCES


def in_order(value: Any) -> Any:
    """Convert maps and sets of an answer to the form and order of ``expected.json``."""
    if isinstance(value, list):
        return [in_order(v) for v in value]
    if isinstance(value, dict):
        if set(value) == {"$map"}:
            return sorted(in_order(value["$map"]), key=lambda row: json_text(row[0]))
        if set(value) == {"$set"}:
            return {"$set": sorted(in_order(value["$set"]), key=json_text)}
        return {k: in_order(v) for k, v in value.items()}
    return value


def make_case(
    flink: FlinkMachine,
    target: Path,
    zoo: str,
    *,
    backend: str,
    kind: str = "canonical",
    config: dict[str, str] | None = None,
    phases: int = 1,
    job: str = "ZooJob",
    asynchronous: bool = False,
) -> None:
    """Run one job and write its case to the folder ``target``."""
    config = dict(config or {})
    with tempfile.TemporaryDirectory() as work:
        request: dict[str, Any] = {"set": zoo, "backend": backend, "phases": phases, "async": asynchronous}
        if kind == "checkpoint":
            folder = Path(work) / "checkpoints"
            config |= _CHECKPOINTS
            config |= {k: folder.as_uri() for k in ("state.checkpoints.dir", "execution.checkpointing.dir")}
            if "dstl.dfs.base-path" in config:
                config["dstl.dfs.base-path"] = (Path(work) / "dstl").as_uri()
            request["checkpoints"] = str(folder)
        else:
            request["savepoint"] = str(Path(work) / "savepoint")
            request["format"] = kind.upper()
        answer = flink.call("class", **{"class": job}, config=config, **request)
        snapshot = Path(answer["path"])
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        if kind == "checkpoint":
            shutil.copytree(snapshot.parent, target / "snapshot")
            for old in (target / "snapshot").glob("chk-*"):
                if old.name != snapshot.name:
                    shutil.rmtree(old)
            if (Path(work) / "dstl").exists():
                shutil.copytree(Path(work) / "dstl", target / "dstl")
            metadata = f"{snapshot.name}/_metadata"
        else:
            shutil.copytree(snapshot, target / "snapshot")
            metadata = "_metadata"
        described = {
            "flink_version": flink.version,
            "backend": backend,
            "kind": kind,
            "metadata": metadata,
            "config": config,
        }
        (target / "case.json").write_text(json.dumps(described))
    operators = in_order(answer["operators"])
    for uid, operator in operators.items():
        operator.setdefault("operator_id", operator_id_for_uid(uid))
    (target / "expected.json").write_text(json.dumps({"operators": operators}))


SCENARIOS: Final[dict[str, dict[str, Any]]] = {
    "heap": {"backend": "hashmap"},
    "rocks": {"backend": "rocksdb"},
    "heap-native": {"backend": "hashmap", "kind": "native"},
    "rocks-native": {"backend": "rocksdb", "kind": "native"},
    "heap-checkpoint": {"backend": "hashmap", "kind": "checkpoint"},
    "rocks-incremental": {
        "backend": "rocksdb", "kind": "checkpoint", "phases": 3,
        "config": {"state.backend.incremental": "true", "execution.checkpointing.incremental": "true",
                   "state.storage.fs.memory-threshold": "0", "execution.checkpointing.data-inline-threshold": "0"},
    },
    "compressed": {"backend": "rocksdb", "config": {"execution.checkpointing.snapshot-compression": "true"}},
    "heap-compressed": {"backend": "hashmap", "config": {"execution.checkpointing.snapshot-compression": "true"}},
    "merged": {
        "backend": "rocksdb", "kind": "checkpoint", "phases": 2,
        "config": {"execution.checkpointing.file-merging.enabled": "true", "execution.checkpointing.incremental": "true",
                   "execution.checkpointing.data-inline-threshold": "0"},
    },
    "changelog": {
        "backend": "hashmap", "kind": "checkpoint", "phases": 2,
        "config": {"state.changelog.enabled": "true", "state.backend.changelog.enabled": "true", "dstl.dfs.base-path": "x",
                   "state.changelog.storage": "filesystem", "state.backend.changelog.storage": "filesystem",
                   "state.changelog.periodic-materialize.interval": "10min",
                   "state.backend.changelog.periodic-materialize.interval": "10min"},
    },
    "async-heap": {"backend": "hashmap", "asynchronous": True},
    "async-rocks-native": {"backend": "rocksdb", "kind": "native", "asynchronous": True},
    "async-rocks": {"backend": "rocksdb", "asynchronous": True},
    "async-forst": {"backend": "forst", "kind": "checkpoint", "phases": 2, "asynchronous": True,
                    "config": {"execution.checkpointing.data-inline-threshold": "0"}},
    "async-forst-native": {"backend": "forst", "kind": "native", "asynchronous": True},
    "forst-native": {"backend": "forst", "kind": "native"},
    "forst": {"backend": "forst", "kind": "checkpoint", "phases": 2, "config": {"execution.checkpointing.data-inline-threshold": "0"}},
}  # fmt: skip


def pack(folder: Path, archive: Path) -> None:
    """Pack the files of a folder reproducibly: the same files give the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.size = path.stat().st_size
            with path.open("rb") as f:
                tar.addfile(member, f)
    archive.write_bytes(lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main(arguments: list[str]) -> int:
    """Write the cases ``set:scenario`` of a release, or pack some."""
    version, target, *wanted = arguments
    if version == "pack":
        pack(Path(target), Path(wanted[0]))
        return 0
    with tempfile.TemporaryDirectory() as work:
        flink = FlinkMachine(version, Path(work), sources_of(version))
        for name in wanted:
            zoo, _, scenario = name.partition(":")
            job, _, zoo = zoo.rpartition(".")
            folder = Path(target) / f"v{version.replace('.', '_')}-{zoo}-{scenario}"
            make_case(flink, folder, zoo, job=job or "ZooJob", **SCENARIOS[scenario])
            print(folder, flush=True)
        flink.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
