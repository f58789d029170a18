"""What a job in BATCH mode does with the snapshot that it is given."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.corpora.archives import HERE
from tools.flink_jars import compiled, flink_jars, java_tool

pytestmark = pytest.mark.full


@pytest.mark.parametrize("release", ["1.20.5", "2.3.0"])
def test_a_snapshot_is_ignored(release: str) -> None:
    """H6."""
    path = [compiled(release, HERE / "support" / "flink" / "batches"), *flink_jars(release)]
    java = [java_tool("java"), "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", os.pathsep.join(map(str, path))]

    def outcome(mode: str) -> str:
        command = [*java, "harness.RunInMode", mode, "/nowhere/savepoint"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]

    assert "Cannot find checkpoint or savepoint" in outcome("STREAMING")
    assert outcome("BATCH") == "ran"
