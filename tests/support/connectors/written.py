"""States of sources and sinks written by connectors' own serializers, with the contents that the writing program names.

``python -m tests.support.connectors.written`` compiles and runs the programs below ``java`` and packs what they print.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "connector-states.jsonl.xz"
#: States written by :mod:`tests.support.connectors.built`.
BUILT: Final = HERE / "corpus" / "built-connector-states.jsonl.xz"
_JAVA: Final = Path(__file__).parent / "java"
_FLINK: Final = "1.20.5"
#: Release of Flink by set of jars, for connectors that need an older one. Programs are compiled with the first set of jars.
_OLDER_FLINK: Final = {"pulsar-3.0.0": "1.16.3", "pulsar-1.14.6": "1.14.6"}
#: Program by folder, and its sets of jars. A program of several releases receives the set.
PROGRAMS: Final = {
    "asyncsinks": ("AsyncSinks", "async-sinks"),
    "doris": ("Doris", "doris"),
    "starrocks": ("StarRocks", "starrocks"),
    "pulsar": ("Pulsar", "pulsar-4.1.0 pulsar-3.0.0 pulsar-1.14.6"),
    "jdbcs": ("Jdbc", "jdbc"),
    "dynamickafka": ("DynamicKafka", "kafka-1.20.5 kafka-5.0.0"),
    "icebergs": ("Iceberg", "iceberg-flink-1.10.0 iceberg-flink-1.5.2"),
    "mongodb": ("MongoDb", "mongodb"),
    "debezium": ("Debezium", "debezium"),
    "paimons": ("Paimon", "paimon-0.9.0 paimon-1.3.1"),
    "flusses": ("Fluss", "fluss"),
    "newflusses": ("NewFluss", "fluss-0.9.1"),
    "cdcsources": (
        "CdcSources",
        "mysql-cdc-2.0.2 mysql-cdc-2.1.1 mysql-cdc-2.2.0 mysql-cdc-2.2.1 mysql-cdc-2.3.0 mysql-cdc-3.3.0"
        " oracle-cdc-2.3.0 postgres-cdc-2.4.2 postgres-cdc-3.1.1 postgres-cdc-3.3.0",
    ),
    "firstschemas": ("FirstSchemas", "cdc-3.0.1"),
    "cdcs": ("Schemas", "cdc-3.1.1 cdc-3.2.1 cdc-3.5.0"),
}


def written_states() -> list[dict[str, Any]]:
    """Return the packed states: connector, release, role, version, data (bytes) and expected contents."""
    lines = [
        line for packed in (PACKED, BUILT) for line in lzma.decompress(packed.read_bytes()).decode("utf-8").splitlines()
    ]
    return [{**state, "data": bytes.fromhex(state["data"])} for state in map(json.loads, lines)]


def run_program(folder: str) -> list[str]:
    """Compile and run a program with each of its sets of jars, and return its lines."""
    program, jar_sets = PROGRAMS[folder]
    return [line for jar_set in jar_sets.split() for line in _run(folder, program, jar_set)]


def _run(folder: str, program: str, jar_set: str) -> list[str]:
    jars = maven_jars(jar_set)
    classes = compiled(_FLINK, _JAVA / "written", _JAVA / folder, jars=jars)
    path = os.pathsep.join(map(str, [classes, *jars, *flink_jars(_OLDER_FLINK.get(jar_set, _FLINK))]))
    command = [java_tool("java"), *SHORT_LIVED, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", path]
    command += [f"writing.{program}", jar_set]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def main() -> None:
    """Run all programs and pack their lines."""
    lines = [line for folder in PROGRAMS for line in run_program(folder)]
    PACKED.write_bytes(lzma.compress("\n".join(lines).encode("utf-8")))
    print(f"{len(lines)} states, {PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
