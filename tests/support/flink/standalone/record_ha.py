"""High-availability metadata as Flink's own classes write it, stored for tests without Flink.

``python -m tests.support.flink.standalone.record_ha`` writes ``tests/operations/cluster/recorded/ha-RELEASE.json``: the entries of the config map of a
job with two checkpoints and a third one that is marked for deletion, and the files that the entries name.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import statetool
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink.machine import OPENS
from tests.support.servers.flink_rest import RECORDED
from tools.flink_jars import DEFAULT_VERSIONS, compiled, flink_jars, java_tool

#: The folder that the metadata names. It exists only while it is recorded.
FOLDER: Final = Path("/tmp/flink-ha-of-the-tests")
JOB: Final = "5ca1ab1e" * 4
_SOURCES: Final = Path(__file__).parent / "ha"
#: A small snapshot of the release before, which both releases read.
_SNAPSHOT: Final = ("connectors", "v1_20_5-flink-kafka-consumer/snapshot")


def record(version: str) -> dict[str, Any]:
    """Return the entries of a config map and the files that they name."""
    FOLDER.mkdir()
    try:
        checkpoints = [FOLDER / "checkpoints" / JOB / f"chk-{number}" for number in (41, 42, 43)]
        archive, inside = _SNAPSHOT
        unpack(HERE / "corpus" / f"{archive}.tar.xz", FOLDER / "corpus")
        for path in checkpoints:
            number = int(path.name.removeprefix("chk-"))
            statetool.convert(str(FOLDER / "corpus" / inside), str(path), checkpoint_id=number)
        storage = FOLDER / "ha" / "orders"
        classes = [compiled(version, _SOURCES), *flink_jars(version)]
        command = [java_tool("java"), *OPENS, "-cp", os.pathsep.join(map(str, classes))]
        command += ["org.apache.flink.kubernetes.highavailability.HaEntries", JOB, storage.as_uri()]
        command += [f"checkpointID-{43:019d}", *(path.as_uri() for path in checkpoints)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        entries = dict(line.split("\t") for line in done.stdout.splitlines() if line.startswith("checkpointID-"))
        files = {file.name: base64.b64encode(file.read_bytes()).decode() for file in storage.iterdir()}
        return {"job": JOB, "folder": str(FOLDER), "entries": entries, "files": files}
    finally:
        shutil.rmtree(FOLDER)


if __name__ == "__main__":
    for version in DEFAULT_VERSIONS:
        release = ".".join(version.split(".")[:2])
        (RECORDED / f"ha-{release}.json").write_text(json.dumps(record(version), indent=1) + "\n")
