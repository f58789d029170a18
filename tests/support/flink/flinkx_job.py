"""Savepoints of a job with flink-scala-api, and its compilation from a clone, because the jars of flink-scala-api were not available.

``FlinkxJob.scala`` (``flinkx/all``) is compiled with the sources of flink-scala-api by a compiler of Scala that Maven fetches. Releases since 2.0
also take ``flinkx/newer``, and Scala 3 ``flinkx/scala3``.

``python -m tests.support.flink.flinkx_job CLONE FOLDER`` takes a canonical savepoint of the heap backend and a native one of RocksDB of each
build, with the values that the job saw. ``tests/corpus/flinkx.tar.xz`` has them, and two of release 1.1.7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.library_job import KINDS
from tests.support.flink.machine import FlinkMachine
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "flinkx.tar.xz"
_JOB: Final = HERE / "support" / "flink" / "flinkx"
_TAG: Final = "v2.2.4"
_SOURCES: Final = "modules/flink-common-api/src/main"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkxBuild:
    """A release of Flink and of Scala, and what a compiler of Scala takes."""

    flink: str
    scala: str
    compiler: str
    folders: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def case(self) -> str:
        """Folder of its canonical savepoint in the archive."""
        return f"flink-{self.flink.rpartition('.')[0]}-scala-{self.scala}-release-{_TAG[1:]}"


BUILDS: Final = (
    FlinkxBuild(
        flink="2.3.0", scala="2.13", compiler="scala.tools.nsc.Main", folders=("all", "newer"),
        options=("-language:higherKinds", "-language:implicitConversions"),
    ),
    FlinkxBuild(
        flink="1.20.5", scala="3", compiler="dotty.tools.dotc.Main", folders=("all", "newer", "scala3"),
        options=("-Xmax-inlines", "128"),
    ),
)  # fmt: skip


@contextmanager
def flinkx_machine(build: FlinkxBuild, clone: Path, work: Path) -> Iterator[FlinkMachine]:
    """Compile the job, and run Flink with it."""
    jars = maven_jars(f"scala-{build.scala}")
    classes = _compile(build, clone, Path(tempfile.mkdtemp(dir=work)), jars)
    # Flink's own Scala 2.12 would hide the other one.
    machine = FlinkMachine(build.flink, work, jars=[classes, *jars], scala=False)
    try:
        yield machine
    finally:
        machine.close()


def _compile(build: FlinkxBuild, clone: Path, work: Path, jars: list[Path]) -> Path:
    archive = subprocess.run(["git", "-C", clone, "archive", _TAG, _SOURCES], capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", work], input=archive.stdout, check=True)
    own = [work / _SOURCES / name for name in ("scala", f"scala-{build.scala[0]}")]
    sources = [p for folder in (*own, *(_JOB / f for f in build.folders)) for p in sorted(folder.rglob("*.scala"))]
    classes = work / "classes"
    classes.mkdir()
    harness = compiled(build.flink, HERE / "support" / "flink" / "java")
    against = [harness, *jars, *(j for j in flink_jars(build.flink) if not j.name.startswith("flink-scala_"))]
    command = [java_tool("java"), *SHORT_LIVED, "-Xss8m"]
    command += ["-cp", os.pathsep.join(map(str, jars)), build.compiler, *build.options, "-nowarn"]
    command += ["-classpath", os.pathsep.join(map(str, against)), "-d", str(classes), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the compiler of Scala {build.scala}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return classes


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "FlinkxJob"}, **request)


def main() -> None:
    """Take the savepoints."""
    clone, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True)
    for build in BUILDS:
        with tempfile.TemporaryDirectory() as work, flinkx_machine(build, clone, Path(work)) as machine:
            for backend, kind in KINDS.items():
                answer = run_job(machine, backend=backend, savepoint=str(target / "taken"), format=kind)
                name = build.case if backend == "hashmap" else f"{build.case}-{backend}"
                folder = Path(answer["savepoint"]).rename(target / name)
                (folder / "values.json").write_text(json.dumps(answer["values"], indent=0, sort_keys=True))


if __name__ == "__main__":
    main()
