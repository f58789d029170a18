from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statetool.spark import java_classes
from statetool.spark.java_classes import java_options

_VARIABLE = "SPARK_SUBMIT_OPTS"
#: Starts Spark as the commands do, and prints the archives that its JVM has mapped.
_MAPPED = """
import os
from statetool.spark.session import local_session
spark = local_session(cores="1")
assert spark.range(3).count() == 3
pid = spark._jvm.java.lang.ProcessHandle.current().pid()
print(*{line.split()[-1] for line in open(f"/proc/{pid}/maps") if ".jsa" in line})
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (_VARIABLE, "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def options(java: str = "", *, keep_classes: bool = False) -> str:
    with java_options(java, keep_classes=keep_classes):
        return os.environ[_VARIABLE]


def test_classes_are_kept_when_asked_and_used_when_there() -> None:
    file = java_classes.archive()
    assert file is not None
    assert not file.exists()
    assert options("-Xint") == "-Xint"
    assert f'"-XX:ArchiveClassesAtExit={file}"' in options(keep_classes=True)
    file.write_bytes(b"\xf0\x0b\xab\xa8 and the rest")
    assert f'"-XX:SharedArchiveFile={file}"' in options()
    assert "ArchiveClassesAtExit" not in options(keep_classes=True)


def test_an_archive_that_was_not_written_to_its_end_is_none() -> None:
    file = java_classes.archive()
    assert file is not None
    file.write_bytes(bytes(4096))
    assert options() == ""
    assert "ArchiveClassesAtExit" in options(keep_classes=True)


def test_options_of_the_user_come_first_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_VARIABLE, "-Dmine=1")
    assert options("-Xint") == "-Dmine=1 -Xint"
    assert os.environ[_VARIABLE] == "-Dmine=1"
    monkeypatch.delenv(_VARIABLE)
    options("-Xint")
    assert _VARIABLE not in os.environ


def test_a_spark_with_a_folder_of_its_own_has_no_archive(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(own_cache))
    assert java_classes.archive() is None
    assert options("-Xint", keep_classes=True) == "-Xint"


def test_without_private_parts_there_is_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_PLAIN", "spark")
    assert java_classes.archive() is None


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.timeout(3600)  # all kernels are compiled
def test_the_next_jvm_maps_what_doctor_kept() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_SUBMIT_ARGS"}
    subprocess.run([sys.executable, "-m", "statetool", "doctor", "--warm"], env=environment, check=True)
    run = subprocess.run([sys.executable, "-c", _MAPPED], env=environment, check=True, capture_output=True, text=True)
    file = java_classes.archive()
    assert file is not None
    assert file.exists()
    assert str(file) in run.stdout.split()
