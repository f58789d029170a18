"""Tasks run although the folder in which Spark was started has been removed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from statetool.demo import SAVEPOINT

_COUNT = """
import os, sys, tempfile
import statetool
from statetool.spark.session import local_session

folder = tempfile.mkdtemp()
os.chdir(folder)
session = local_session(cores="1")
os.chdir("/")
os.rmdir(folder)
print("rows", statetool.load(sys.argv[1], spark=session)["orders"].keyed_state().count())
"""


@pytest.mark.full
def test_rows_are_read() -> None:
    done = subprocess.run([sys.executable, "-c", _COUNT, SAVEPOINT], capture_output=True, text=True, check=False)
    assert "rows 12" in done.stdout, done.stderr[-2000:]
