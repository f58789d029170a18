"""A command reads the index of each jar once, although it opens the jar several times."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.java.classes import class_path
from statetool.java.classes.class_path import ClassPath
from tests.support.checks.corpus_check import Case

_SNAPSHOT = "v2_3_0-hashmap-canonical"


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the index of each jar is read. Class paths that are not used any longer are collected before the next is made."""
    counts: Counter[str] = Counter()
    read, make = class_path._cached_index, ClassPath.__init__

    def counted(jar: Any, release: int, name: str) -> Any:
        counts[jar.path] += 1
        return read(jar, release, name)

    def collect_first(*args: Any, **kwargs: Any) -> None:
        gc.collect()
        make(*args, **kwargs)

    monkeypatch.setattr(class_path, "_cached_index", counted)
    monkeypatch.setattr(ClassPath, "__init__", collect_first)
    # Cached headers of other tests may keep their class paths.
    monkeypatch.setattr(class_path, "_INDEXES", WeakValueDictionary())
    return counts


@pytest.mark.parametrize(
    "command",
    [
        "check A --jar-a JAR --jar-b JAR",
        "check A --jar-b JAR",
        "upgrade A NEW --jar-a JAR --jar-b JAR",
        "info A --jar JAR",
    ],
)
def test_a_command(corpus: Path, public_jar: Path, tmp_path: Path, indexed: Counter[str], command: str) -> None:
    places = {
        "A": str(Case(corpus / _SNAPSHOT).metadata),
        "JAR": str(public_jar),
        "NEW": str(tmp_path / "new"),
    }
    result = CliRunner().invoke(cli, [places.get(word, word) for word in command.split()])
    assert result.exit_code in (0, 1), result.output
    assert indexed == {str(public_jar): 1}


def test_snapshots_that_are_open(corpus: Path, public_jar: Path, indexed: Counter[str]) -> None:
    path = str(Case(corpus / _SNAPSHOT).metadata)
    one, two = (statetool.load(path, jars=[public_jar]) for _ in range(2))
    statetool.check(one, two, other_jars=[public_jar])
    assert indexed == {str(public_jar): 1}


def test_an_index_is_dropped_with_its_last_class_path(public_jar: Path, indexed: Counter[str]) -> None:
    for _ in range(2):
        ClassPath([public_jar])
    assert indexed == {str(public_jar): 2}
