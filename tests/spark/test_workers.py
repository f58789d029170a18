"""Another Python in Spark's workers, and errors raised by workers."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import statetool
from statetool.errors import DecodeError, MissingDependencyError, StatetoolError, UndescribedClassError
from statetool.spark import workers
from statetool.spark.failures import own_error


def session(python: str, master: str = "local[2]") -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=python, master=master))


def script(folder: Path, text: str) -> str:
    file = folder / "python3"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def test_the_same_python_is_fine_and_a_cluster_is_not_asked() -> None:
    workers.check_workers(session(sys.executable))
    workers.check_workers(session("/nowhere/python", "spark://host:7077"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("printf '/usr\\n2.7\\n\\n'", "which is Python 2.7, and this is Python"),
        (
            f"printf '/usr\\n{sys.version_info[0]}.{sys.version_info[1]}\\nnumba cramjam\\n'",
            "which has no numba, cramjam",
        ),
        ("echo broken >&2; exit 1", "which does not start: broken"),
    ],
)
def test_another_python_is_named_before_anything_runs(tmp_path: Path, text: str, message: str) -> None:
    spark = session(script(tmp_path, text))
    with pytest.raises(MissingDependencyError, match=message) as caught:
        workers.check_workers(spark)
    assert f"set PYSPARK_PYTHON={sys.executable}" in str(caught.value)
    with pytest.warns(UserWarning, match="only small tables can be read"):
        workers.warn_of_workers(spark)


def test_another_python_with_all_packages_is_fine(tmp_path: Path) -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    workers.check_workers(session(script(tmp_path, f"printf '/usr\\n{version}\\n\\n'")))


def test_the_text_of_a_failed_task_is_an_error_again() -> None:
    text = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "x.py", line 1, in read
statetool.errors.DecodeError: too long [file f, offset 7]. shorten it
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner
"""
    error = own_error(text)
    assert type(error) is DecodeError
    assert str(error) == "too long [file f, offset 7]. shorten it"
    assert own_error("ValueError: none of ours") is None
    assert own_error("ModuleNotFoundError: No module named 'mine'") is None


@pytest.mark.parametrize(
    ("module", "remote", "text"),
    [
        ("cramjam", False, "a Spark worker cannot import cramjam .*PYSPARK_PYTHON"),
        ("cramjam", True, "the Spark Connect server cannot import cramjam .*install"),
        ("statetool", False, "a Spark worker cannot import statetool .*--py-files statetool.zip"),
        ("statetool", True, "the Spark Connect server cannot import statetool .*addArtifacts"),
    ],
)
def test_a_missing_module_is_an_error_with_what_helps(module: str, remote: bool, text: str) -> None:
    missing = own_error(f"Traceback\nModuleNotFoundError: No module named '{module}'\n", remote=remote)
    assert type(missing) is MissingDependencyError
    assert re.match(text, str(missing))


def test_the_driver_raises_the_error_of_a_worker_alone(corpus: Path, spark: Any) -> None:
    path = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    operator = statetool.load(path, spark=spark, driver_read_limit=0)["orders"]
    frame = operator.keyed_state(states=["pet"])
    for action in (frame.collect, frame.count, lambda: frame.write.format("noop").mode("overwrite").save()):
        with pytest.raises(
            UndescribedClassError, match=r"Cat.*state pet, key group \d+\]\. pass the job's jar.* declare the class"
        ) as caught:
            action()
        assert isinstance(caught.value, StatetoolError)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
