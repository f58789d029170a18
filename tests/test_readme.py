"""What the README shows is run, and its outputs are compared."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statetool.serializers.table import READERS
from tests.corpora import HERE, unpack
from tests.support_facts import gather
from tests.support_table import END, START, support_table, verified

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def run_block(code: str, names: dict[str, Any]) -> str:
    """Run a block as a notebook does: the value of a last expression is shown."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "README.md", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "README.md", "eval"), names)
            if value is not None:
                print(repr(value))
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines() if line.strip())


def test_python_examples_show_what_they_show(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from statetool.spark.session import has_data_sources

    monkeypatch.chdir(tmp_path)
    (tmp_path / "statetool").symlink_to(ROOT / "statetool")
    zone = spark.conf.get("spark.sql.session.timeZone")
    names: dict[str, Any] = {}
    try:
        for (language, code), (_, expected) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
            if language == "python" and (has_data_sources() or "spark.read.format" not in code):
                assert run_block(code, names) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_shell_examples_show_what_they_show(tmp_path: Path) -> None:
    (tmp_path / "statetool").symlink_to(ROOT / "statetool")
    sessions = [body for language, body in BLOCKS if language == "console"]
    commands = re.findall(r"^\$ statetool (.*?)(?:  +#.*)?\n((?:(?!\$ ).*\n)*)", "".join(sessions), re.MULTILINE)
    assert len(commands) >= 3
    for command, expected in commands:
        call = [sys.executable, "-m", "statetool", *command.split()]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        head, cut, _ = expected.partition("...\n")
        assert done.stdout.startswith(head) if cut else done.stdout == head, (command, done.stdout, done.stderr)


def test_the_support_table_is_that_of_the_code() -> None:
    table = README[README.index(START) : README.index(END) + len(END)]
    assert table == support_table(), "paste what python -m tests.support_table prints"
    assert set(verified()) <= set(READERS)


def test_what_the_support_table_says_is_what_the_corpora_show(corpus: Path, tmp_path: Path) -> None:
    """The file was made from more snapshots than the project has; what these show must stand in it."""
    cases = unpack(HERE / "serializers" / "generated.tar.xz", tmp_path)
    avro = unpack(HERE / "serializers" / "avro" / "cases.tar.xz", tmp_path / "avro")
    facts = verified()
    shown = gather([cases, avro, corpus])
    assert len(shown) > 80
    for name, row in shown.items():
        assert set(row["versions"].split()) <= set(facts[name]["versions"].split()), name
        for column in ("read", "written", "kernel"):
            said = facts[name][column]
            assert said == row[column] or row[column] in ("exact bytes", "no", "parts") or said == "partly", (
                name,
                column,
            )


def test_the_readme_starts_with_the_two_commands() -> None:
    head = README[:900]
    assert "pip install -e . && statetool demo" in head
    assert "pip install -e '.[test]' && pytest" in head
    assert "Python 3.10" in head
    assert "Java 17" in head
