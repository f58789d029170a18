"""Savepoints of jobs with other libraries (``libraries/harness``), which run in Flink.

``LibraryJob`` has the types of Stateful Functions and Hudi, ``RabbitJob`` reads messages of RabbitMQ.

``python -m tests.support.flink.library_job`` packs a canonical savepoint of the heap backend and a native one of RocksDB of the first, and
one of the second, with the values that the jobs saw.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "libraries.tar.xz"
KINDS: Final = {"hashmap": "CANONICAL", "rocksdb": "NATIVE"}
_JOB: Final = HERE / "support" / "flink" / "libraries"
#: The last release for which the serializers of Stateful Functions are compiled is 1.16; their API exists up to 1.20.
_FLINK: Final = "1.20.5"


def library_machine(work: Path) -> FlinkMachine:
    """Start Flink with the jars of the libraries."""
    return FlinkMachine(_FLINK, work, (_JOB,), jars=maven_jars("libraries"))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run ``LibraryJob`` until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "LibraryJob"}, **request)


def read_rabbit(machine: FlinkMachine, messages: int, wanted: int, **request: Any) -> dict[str, Any]:
    """Run ``RabbitJob`` until it has received a number of messages, and return its answer."""
    return machine.call("class", **{"class": "RabbitJob"}, messages=messages, wanted=wanted, **request)


def main() -> None:
    """Take the savepoints and pack them."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        machine = library_machine(Path(work))
        try:
            for backend, kind in KINDS.items():
                request = {"backend": backend, "format": kind, "savepoint": str(Path(work) / backend)}
                add_savepoint(tar, backend, run_job(machine, **request))
            add_savepoint(tar, "rabbitmq", read_rabbit(machine, 5, 5, savepoint=str(Path(work) / "rabbitmq")))
        finally:
            machine.close()
    print(f"{PACKED.stat().st_size:,} bytes")


def add_savepoint(tar: tarfile.TarFile, name: str, answer: dict[str, Any]) -> None:
    """Add the savepoint of an answer to an archive, with the values that the job saw."""
    folder = Path(answer["savepoint"])
    (folder / "values.json").write_text(json.dumps(answer["values"], ensure_ascii=False), "utf-8")
    tar.add(folder, name)


if __name__ == "__main__":
    main()
