"""The test of a job in the notebook ``test-a-job`` passes with Flink, which the notebook itself does without."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.compile import files_of, make_jar
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import OPENS
from tests.support.notebooks import NOTEBOOKS
from tools.flink_jars import DEFAULT_VERSIONS, SHORT_LIVED, compiled, flink_jars, java_tool


def flink_home(folder: Path, version: str) -> Path:
    """Make a folder like that of a distribution, with the program ``bin/flink``."""
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "config.yaml").touch()
    program = folder / "bin" / "flink"
    program.parent.mkdir()
    classes = os.pathsep.join(map(str, flink_jars(version)))
    java = [java_tool("java"), *OPENS, *SHORT_LIVED, "-cp", classes, "org.apache.flink.client.cli.CliFrontend"]
    program.write_text(f'#!/bin/sh\nFLINK_CONF_DIR={folder}/conf exec {shlex.join(java)} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.full
def test_the_job_goes_on_from_the_savepoint_of_its_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    version = DEFAULT_VERSIONS[0]
    notebook = nbformat.read(NOTEBOOKS / "test-a-job.ipynb", as_version=4)
    names: dict[str, Any] = {}
    exec(next(cell.source for cell in notebook.cells if cell.cell_type == "code"), names)
    classes = files_of(compiled(version, HERE / "support" / "flink" / "points"))
    make_jar(names["folder"] / "job.jar", {"META-INF/MANIFEST.MF": b"Main-Class: Points\n", **classes})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--color=no", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "runs")],
        cwd=names["folder"],
        env={**os.environ, "FLINK_HOME": str(flink_home(tmp_path / "flink", version))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout
