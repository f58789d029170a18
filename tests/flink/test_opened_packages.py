"""Which values Kryo writes and reads in a JVM whose packages are not opened (``--add-opens``)."""

from __future__ import annotations

import os
import subprocess
from typing import Final

import pytest

from tests.support.corpora.archives import HERE
from tools.flink_jars import compiled, flink_jars, java_tool

pytestmark = pytest.mark.full

_FAILS: Final = "InaccessibleObjectException"


@pytest.mark.parametrize(
    ("release", "fails"), [("1.20.5", {"Own", "UUID", "BitSet", "AtomicLong"}), ("2.3.0", {"AtomicLong"})]
)
def test_kryo_needs_opened_packages(release: str, fails: set[str]) -> None:
    """S7: that of Flink 1.x for all values, that of 2.x for values of the JDK's classes for which it has no serializer."""
    path = [compiled(release, HERE / "support" / "flink" / "opened"), *flink_jars(release)]
    command = [java_tool("java"), "-cp", os.pathsep.join(map(str, path)), "harness.KryoValues"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    outcomes = dict(line.split() for line in shown)
    assert outcomes == {name: _FAILS if name in fails else "works" for name in ("Own", "UUID", "BitSet", "AtomicLong")}
