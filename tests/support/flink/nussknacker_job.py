"""Savepoints of a job with the serializers of Nussknacker 1.18.1 (``nussknackers``), and a restore of what statetool makes of them.

The jars of Nussknacker were not available, and its sources are not part of this repository, so no test runs the job.
``python -m tests.support.flink.nussknacker_job JAR...`` packs a canonical savepoint of the heap backend and a native one of RocksDB, and
restores rewritten copies on both backends. The jars are ``NussknackerJob.scala``, compiled for Scala 2.12 with the classes of Nussknacker that
it imports, scala-logging, scala-collection-compat, and ``stream`` of ``com.clearspring.analytics``.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import statetool
from statetool.serializers.typeutils.data_output import SKETCH
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink.library_job import KINDS
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.tree_job import pack_savepoints

PACKED: Final = HERE / "corpus" / "nussknacker.tar.xz"
_FLINK: Final = "1.20.5"


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "NussknackerJob"}, **request)


def rewrite_and_restore(machine: FlinkMachine, work: Path) -> None:
    """Change values of one key in a rescaled copy, and check that the job finds them.

    Raises
    ------
    AssertionError
        The job does not find its values.
    """
    folder = unpack(PACKED, work) / "hashmap"
    expected = json.loads((folder / "values.json").read_text("utf-8"))
    rescaled, changed = str(work / "rescaled"), str(work / "changed")
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"])
    aggregates: list[dict[str, Any]] = [
        {"java.lang.Long": 7},
        {"java.util.Collections$UnmodifiableRandomAccessList": ["x"]},
        {"java.util.Collections$UnmodifiableMap": [["left", {"java.lang.Long": 5}]]},
        {SKETCH: expected["key-4"]["distinct"]},
    ]
    buckets = [{"scala.Tuple2": [{"java.lang.Long": i * 60000}, a]} for i, a in enumerate(aggregates)]
    sums = {"comparator": {"scala.math.Ordering$Long$": None}, "elements": buckets}
    changes = {
        "distinct": {"bytes": base64.b64decode(expected["key-5"]["distinct"]).hex()},
        "memo.left": 5,
        "memo.right": 2.5,
        "delayed[180000][0]._2.input.name": "geändert",
        "sums": json.dumps({"scala.collection.immutable.TreeMap": sums}),
    }
    statetool.set_values(rescaled, changed, "keeper", "key-3", changes, uids=["keeper"])
    expected["key-3"]["memo"] |= {"left": 5, "right": 2.5}
    expected["key-3"]["delayed"]["180000"][0]["variables"]["input"]["name"] = "geändert"
    expected["key-3"]["sums"] = {"0": 7, "60000": ["x"], "120000": {"left": 5}, "180000": expected["key-4"]["distinct"]}
    expected["key-3"]["distinct"] = expected["key-5"]["distinct"]
    for backend in KINDS:
        request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
        assert run_job(machine, **request)["values"] == expected, backend


def main(argv: list[str]) -> int:
    """Pack the savepoints, and restore rewritten copies."""
    jars = [Path(a) for a in argv]
    kinds = {backend: (backend, kind) for backend, kind in KINDS.items()}
    pack_savepoints(PACKED, kinds, lambda _, work: FlinkMachine(_FLINK, work, jars=jars), run_job)
    with tempfile.TemporaryDirectory() as work:
        machine = FlinkMachine(_FLINK, Path(work), jars=jars)
        try:
            rewrite_and_restore(machine, Path(work))
        finally:
            machine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
