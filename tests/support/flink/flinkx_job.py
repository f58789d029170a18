"""Savepoints of a job with flink-scala-api, and restores of what statetool makes of them.

``python -m tests.support.flink.flinkx_job FLINK TARGET JAR...`` runs ``flinkx/all/FlinkxJob.scala`` in Flink and writes
``TARGET/hashmap`` (canonical) and ``TARGET/rocksdb`` (native), each with the ``values.json`` that the job saw. Then the job restores the
canonical one after ``rescale`` and ``uid``, on both backends, and has to find the same values. The jars are: flink-scala-api with magnolia, Scala's library, and the Scala files of ``flinkx`` compiled with them
(``newer`` for releases since 2.0, ``scala3`` for Scala 3; for releases before 1.2.7, only ``all``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import statetool
from tests.support.flink.machine import FlinkMachine

_MAX_PARALLELISM = 300


def take(machine: FlinkMachine, target: Path, backend: str, kind: str) -> None:
    """Run the job and keep a savepoint with the values of its states."""
    answer = machine.call(
        "class", **{"class": "FlinkxJob"}, backend=backend, savepoint=str(target / "taken"), format=kind
    )
    folder = Path(answer["savepoint"]).rename(target / backend)
    (folder / "values.json").write_text(json.dumps(answer["values"], indent=0, sort_keys=True))


def rewrite_and_restore(machine: FlinkMachine, target: Path, backend: str) -> int:
    """Restore a rescaled copy under another uid, and return the number of equal values.

    Raises
    ------
    AssertionError
        The job does not find its values.
    """
    source, new = target / "hashmap", target / f"rescaled-{backend}"
    statetool.rescale(str(source), str(new / "rescaled"), _MAX_PARALLELISM, parallelism=3, uids=["keeper"])
    statetool.change_uids(str(new / "rescaled"), str(new / "renamed"), {"keeper": "renamed"}, uids=["keeper"])
    request: dict[str, Any] = {"backend": backend, "snapshot": str(new / "renamed"), "uid": "renamed"}
    request |= {"parallelism": 3, "max_parallelism": _MAX_PARALLELISM, "savepoint": str(new / "next")}
    found = machine.call("class", **{"class": "FlinkxJob"}, **request)["values"]
    assert found == json.loads((source / "values.json").read_text())
    return sum(map(len, found.values()))


def main(argv: list[str]) -> int:
    """Take savepoints, rewrite and restore them, and print the number of equal values."""
    version, target, jars = argv[0], Path(argv[1]), [Path(a) for a in argv[2:]]
    target.mkdir(parents=True)
    machine = FlinkMachine(version, target, jars=jars, scala=False)
    try:
        take(machine, target, "hashmap", "CANONICAL")
        take(machine, target, "rocksdb", "NATIVE")
        for backend in ("hashmap", "rocksdb"):
            print(f"{backend}: {rewrite_and_restore(machine, target, backend)} equal values")
    finally:
        machine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
