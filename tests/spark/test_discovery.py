"""Spark 4 finds ``flink-state`` and ``flink-state-metadata`` by the names of their modules, in sessions that never import statetool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.support.spark.data_sources import data_sources
from tests.support.zoo import ZOO

pytestmark = [pytest.mark.full, data_sources]
ROOT = Path(__file__).parents[2]
QUERIES = f"""
CREATE TEMPORARY VIEW timers USING `flink-state` OPTIONS (path '{ZOO}', operatorUid 'timers');
CREATE TEMPORARY VIEW states USING `flink-state-metadata` OPTIONS (path '{ZOO}', table 'states');
CREATE TEMPORARY VIEW here USING `flink-state` OPTIONS (path 'savepoint', operatorUid 'timers');
SELECT 'keys', count(*), min(key) FROM timers;
SELECT 'relative', count(*) FROM here;
SELECT 'states', count(*) > 10 FROM states;
"""


def test_the_sql_shell_finds_the_sources(tmp_path: Path) -> None:
    (tmp_path / "savepoint").symlink_to(ZOO)
    shell = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [str(shell), "--master", "local[2]", "--conf", "spark.ui.enabled=false", "-e", QUERIES]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["keys", "14", "timer-0"] in rows
    assert ["relative", "14"] in rows
    assert ["states", "true"] in rows
