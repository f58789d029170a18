"""States written by connectors' own serializers that were compiled from the sources of their releases, as their jars were not available.

``python -m tests.support.connectors.built FOLDER [PROGRAM...]`` takes the sources from clones below the folder (``FOLDER/clickhouse``), compiles
them with the programs below ``java``, runs these, and packs what they print. Lines of programs that are not named stay as they are. Clones: ``clickhouse`` (ClickHouse/flink-connector-clickhouse), ``delta``
(delta-io/delta), and of Apache ``elasticsearch`` (flink-connector-elasticsearch), ``aws`` (flink-connector-aws), ``fluss``
(fluss), ``kafka`` (flink-connector-kafka), ``paimon`` (paimon) and ``rocketmq`` (rocketmq-flink).
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tests.support.connectors.written import BUILT
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

_JAVA: Final = Path(__file__).parent / "java"


@dataclass(frozen=True, slots=True)
class Program:
    """A program, the release that it writes, the tag of its sources in a clone, their classes, and the jars that they need.

    ``module`` is the folder of the sources, if others have classes of the same names, and ``flink`` is Flink's release.
    """

    folder: str
    name: str
    release: str
    clone: str
    tag: str
    classes: str
    jar_sets: str
    module: str = ""
    flink: str = "1.20.5"


PROGRAMS: Final = (
    Program(
        "oldclickhouses", "OldClickHouse", "0.1.3", "clickhouse", "998d80b",
        "ClickHousePayload ClickHouseAsyncSinkSerializer", "async-sinks",
    ),
    Program(
        "clickhouses", "ClickHouse", "0.2.0", "clickhouse", "v0.2.0",
        "ClickHousePayload ClickHouseAsyncSinkSerializer TypeTags", "async-sinks",
    ),
    Program(
        "deltas", "Delta", "3.3.2", "delta", "v3.3.2",
        "DeltaPendingFile DeltaCommittable DeltaCommittableSerializer DeltaGlobalCommittable DeltaGlobalCommittableSerializer"
        " DeltaWriterBucketState DeltaWriterBucketStateSerializer",
        "delta-standalone",
    ),
    *(
        Program(
            "elasticsearches", "Elasticsearch", release, "elasticsearch", f"v{release}",
            "Elasticsearch8AsyncSinkSerializer Operation OperationSerializer", "async-sinks elasticsearch", flink=flink,
        )
        for release, flink in (("3.1.0", "1.20.5"), ("4.0.0", "2.3.0"))
    ),
    *(
        Program(
            "dynamodbstreams", "DynamoDbStreams", release, "aws", f"v{release}",
            "DynamoDbStreamsShardSplit DynamoDbStreamsShardSplitSerializer StartingPosition SplitAssignmentStatus"
            " DynamoDBStreamsShardSplitWithAssignmentStatus DynamoDbStreamsSourceEnumeratorState"
            " DynamoDbStreamsSourceEnumeratorStateSerializer",
            "async-sinks", module="flink-connector-aws/flink-connector-dynamodb",
        )
        for release in ("5.0.0", "5.1.0", "6.0.0")
    ),
    Program(
        "oldrocketmqs", "OldRocketMq", "1.0.0-SNAPSHOT", "rocketmq", "b9efd1e^",
        "RocketMQPartitionSplit RocketMQPartitionSplitSerializer RocketMQSourceEnumState RocketMQSourceEnumStateSerializer",
        "async-sinks rocketmq",
    ),
    *(
        Program(
            "rocketmqs", "RocketMq", release, "rocketmq", commit,
            "RocketMQSourceSplit RocketMQPartitionSplitSerializer RocketMQSourceEnumState RocketMQSourceEnumStateSerializer"
            " UtilAll SendCommittable SendCommittableSerializer", "rocketmq",
        )
        for release, commit in (("1.15.0 of 2023", "1576ae2"), ("1.15.0 of 2025", "fce246b"))
    ),
    Program(
        "retainedkafkas", "RetainedKafka", "5.1-SNAPSHOT", "kafka", "70fb6311",
        # They replace the classes of the jar.
        "DynamicKafkaSourceSplit DynamicKafkaSourceSplitSerializer DynamicKafkaSourceEnumState DynamicKafkaSourceEnumStateSerializer",
        "kafka-5.0.0",
    ),
    *(
        Program(
            "paimoncommits", "PaimonCommits", release, "paimon", tag,
            # They replace the classes of the jar.
            "CommitMessageSerializer CommitMessageLegacyV2Serializer DataFileMeta DataFileMetaSerializer PojoDataFileMeta"
            " DataFileMetaFirstRowIdLegacySerializer DataFileMetaWriteColsLegacySerializer DataFileMeta08Serializer"
            " DataFileMeta09Serializer DataFileMeta10LegacySerializer DataFileMeta12LegacySerializer IndexFileMeta"
            " IndexFileMetaSerializer IndexFileMetaV3Deserializer IndexFileMetaV4Deserializer GlobalIndexMeta Range",
            "paimon-1.4.2",
        )
        for release, tag in (("1.4.2", "release-1.4.2"), ("2.0.0", "release-2.0.0"), ("2.1-SNAPSHOT", "7a4643b907"))
    ),
    Program(
        "latestflusses", "LatestFluss", "1.0-SNAPSHOT", "fluss", "545c553",
        # They replace the classes of the jar.
        "SourceSplitSerializer SourceSplitBase HybridSnapshotLogSplit SnapshotSplit KvBatchSplit"
        " FlussSourceEnumeratorStateSerializer SourceEnumeratorState LeaseContext LakeSplitSerializer LakeSnapshotSplit"
        " LakeSnapshotAndFlussLogSplit",
        "fluss-0.9.1", module="fluss-flink/fluss-flink-common",
    ),
    Program("kerneldeltas", "KernelDelta", "4.4.0", "delta", "v4.4.0", "DeltaCommittable WriterResultContext", "delta trees"),
)  # fmt: skip


def run_program(program: Program, clones: Path) -> list[str]:
    """Compile a program with the sources of its connector, run it, and return its lines."""
    jars = [jar for jar_set in program.jar_sets.split() for jar in maven_jars(jar_set)]
    with tempfile.TemporaryDirectory() as work:
        extract_sources(clones / program.clone, program.tag, program.classes, Path(work), program.module)
        classes = compiled(program.flink, _JAVA / "written", _JAVA / program.folder, Path(work), jars=jars)
    path = os.pathsep.join(map(str, [classes, *jars, *flink_jars(program.flink)]))
    command = [java_tool("java"), *SHORT_LIVED, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", path]
    command += [f"writing.{program.name}", f"{program.release}, built from its sources"]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()


def extract_sources(clone: Path, tag: str, classes: str, folder: Path, module: str = "") -> None:
    """Write the sources of classes, of a tag of a clone, to a folder. ``module`` is their folder, if others have classes of the same names."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", clone, *arguments], capture_output=True, text=True, check=True).stdout

    wanted = set(classes.split())
    for name in git("ls-tree", "-r", "--name-only", tag).splitlines():
        path = PurePosixPath(name)
        if path.is_relative_to(module) and "main" in path.parts and path.suffix == ".java" and path.stem in wanted:
            # Both modules of ClickHouse have the same serializer: the last one is taken.
            (folder / path.name).write_text(git("show", f"{tag}:{name}"), "utf-8")


def main() -> None:
    """Run programs, all by default, and pack their lines."""
    clones, names = Path(sys.argv[1]), sys.argv[2:]
    chosen = [p for p in PROGRAMS if not names or p.name in names]
    new = [line for program in chosen for line in run_program(program, clones)]
    written = {(state["connector"], state["release"]) for state in map(json.loads, new)}
    old = lzma.decompress(BUILT.read_bytes()).decode("utf-8").splitlines() if names else []
    lines = [line for line in old if (json.loads(line)["connector"], json.loads(line)["release"]) not in written]
    lines += new
    BUILT.write_bytes(lzma.compress("\n".join(lines).encode("utf-8")))
    print(f"{len(lines)} states, {BUILT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
