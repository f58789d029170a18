"""Savepoints of jobs with connectors' classes that are compiled from their sources, or have their fields, as the jars were not available.

``PubSubJob`` reads messages with Pub/Sub's source, and ``HudiJob`` keeps the state of Hudi's writers: Hudi's own classes of written files in a class
with the fields of ``WriteMetadataEvent``.

``python -m tests.support.flink.built_job FOLDER`` takes the sources from the clone ``FOLDER/pubsub`` (apache/flink-connector-gcp-pubsub), runs
the jobs and packs their savepoints with the values that they name.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from tests.support.connectors.built import extract_sources
from tests.support.corpora.archives import HERE
from tests.support.flink.library_job import add_savepoint
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "built-jobs.tar.xz"
_FLINK: Final = "1.20.5"
_TAG: Final = "v3.1.0"
_CLASSES: Final = (
    "PubSubSource DefaultPubSubSubscriberFactory BlockingGrpcPubSubSubscriber DeserializationSchemaWrapper AcknowledgeIdsForCheckpoint"
    " AcknowledgeOnCheckpoint Acknowledger PubSubDeserializationSchema PubSubSubscriber PubSubSubscriberFactory"
)


def main() -> None:
    """Take the savepoints and pack them."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        sources = Path(work) / "sources"
        sources.mkdir()
        extract_sources(Path(sys.argv[1]) / "pubsub", _TAG, _CLASSES, sources)
        jars = [*maven_jars("pubsub"), *maven_jars("hudi")]
        machine = FlinkMachine(_FLINK, Path(work), (HERE / "support" / "flink" / "built", sources), jars=jars)
        try:
            for name, job in {"pubsub": "PubSubJob", "hudi": "HudiJob"}.items():
                add_savepoint(tar, name, machine.call("class", **{"class": job}, savepoint=str(Path(work) / name)))
        finally:
            machine.close()
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
