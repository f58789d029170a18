"""What Flink's ``TypeExtractor`` makes of classes, field by field, as the judge of the types that statetool derives from class files.

``python -m tests.support.flink.typed_fields`` compiles the classes of ``typed`` in Java, Kotlin and Scala into ``typed.tar.xz``, and asks each default
release of Flink for their serializers (``TypeJudge.java``), which ``typed.tsv`` then has. Their snapshots are beside the classes.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.compile import compile_java
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import OPENS
from tools.flink_jars import DEFAULT_VERSIONS, SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

SOURCES: Final = HERE / "support" / "flink" / "typed"
CLASSES: Final = SOURCES / "typed.tar.xz"
ANSWERS: Final = SOURCES / "typed.tsv"
#: Languages whose classes need other jars than those of Flink.
WITH_LIBRARIES: Final = ("avro", "kotlin", "scala")


class Answer(NamedTuple):
    """The serializer of a class, or of a field if it is a POJO."""

    version: str
    language: str
    java_class: str
    field: str
    serializer: str


def answers() -> list[Answer]:
    """Return the recorded answers of Flink."""
    with ANSWERS.open(newline="") as f:
        return [Answer(**row) for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)]


def unpack(folder: Path) -> Path:
    """Unpack the classes, in a folder for each language, and the snapshots of their serializers, in one for each release."""
    with tarfile.open(CLASSES) as tar:
        tar.extractall(folder, filter="data")
    return folder


def ask(version: str, classes: Path, language: str) -> list[Answer]:
    """Ask a release of Flink for the serializers of the classes of a language."""
    jars = [] if language == "java" else libraries(language, version)
    # Flink's own Scala 2.12 would hide the other one.
    flink = [j for j in flink_jars(version) if language != "scala" or not j.name.startswith("flink-scala_")]
    judge = compiled(version, SOURCES / "judge")
    path = [judge, *dict.fromkeys((classes / language, classes / "java")), *jars, *flink]
    command = [java_tool("java"), *SHORT_LIVED, *OPENS, "-cp", os.pathsep.join(map(str, path)), "harness.TypeJudge"]
    snapshots = classes / "snapshots" / version
    snapshots.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*command, str(classes / language), str(snapshots)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [Answer(version, language, *line.split("\t")) for line in done.stdout.splitlines()]


def libraries(language: str, version: str) -> list[Path]:
    """Return the jars that classes of a language need."""
    return maven_jars({"avro": f"flink-avro-{version}", "kotlin": "kotlin", "scala": "scala-2.13"}[language])


def compile_all(folder: Path) -> Path:
    """Compile all classes, in a folder for each language."""
    against = flink_jars(DEFAULT_VERSIONS[-1])
    java = compile_java((SOURCES / "java").rglob("*.java"), folder / "java", "--release", "17", "-cp", _joined(against))
    avro = libraries("avro", DEFAULT_VERSIONS[-1])
    options = ("--release", "17", "-cp", _joined([java, *avro, *against]))
    compile_java((SOURCES / "avro").rglob("*.java"), folder / "avro", *options)
    kotlin, scala = libraries("kotlin", ""), libraries("scala", "")
    standard = [j for j in kotlin if j.name.startswith("kotlin-stdlib")]
    _run(kotlin, "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect", "-nowarn", "-cp", _joined(standard),
         "-d", folder / "kotlin", *(SOURCES / "kotlin").rglob("*.kt"))  # fmt: skip
    (folder / "scala").mkdir()
    _run(
        scala,
        "scala.tools.nsc.Main",
        "-nowarn",
        "-cp",
        _joined(scala),
        "-d",
        folder / "scala",
        *(SOURCES / "scala").rglob("*.scala"),
    )
    return folder


def _run(jars: Sequence[Path], program: str, *arguments: str | Path) -> None:
    command = [java_tool("java"), *SHORT_LIVED, "-Xss8m", "-cp", _joined(jars), program, *map(str, arguments)]
    subprocess.run(command, check=True)


def _joined(paths: Iterable[Path]) -> str:
    return os.pathsep.join(map(str, paths))


def main() -> None:
    """Compile the classes, and record what Flink makes of them."""
    with tempfile.TemporaryDirectory() as work:
        classes = compile_all(Path(work))
        found = [
            a for v in DEFAULT_VERSIONS for language in ("java", *WITH_LIBRARIES) for a in ask(v, classes, language)
        ]
        with tarfile.open(CLASSES, "w:xz") as tar:
            files = [*classes.rglob("*.class"), *(f for f in (classes / "snapshots").rglob("*") if f.is_file())]
            for file in sorted(files):
                info = tarfile.TarInfo(file.relative_to(classes).as_posix())
                info.size = file.stat().st_size
                tar.addfile(info, io.BytesIO(file.read_bytes()))
    with ANSWERS.open("w", newline="") as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerow(Answer._fields)
        writer.writerows(found)
    print(f"{len(found)} answers, {CLASSES.stat().st_size:,} bytes of classes")


if __name__ == "__main__":
    main()
