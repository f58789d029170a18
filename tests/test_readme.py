"""Examples in the README pages are executed, and their outputs compared."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statetool.serializers.table import SNAPSHOT_CLASSES
from statetool.tables.request import OPTIONS
from tests.support.corpora.archives import HERE, unpack
from tests.support.facts import gather
from tests.support.quick import quick
from tests.support.table import column_table, snapshot_table, support_table, verified, with_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SERIALIZERS = (ROOT / "statetool" / "serializers" / "README.md").read_text()
TABLES = (ROOT / "statetool" / "tables" / "README.md").read_text()
SAVING = (ROOT / "statetool" / "saving" / "README.md").read_text()
FORMATS = (ROOT / "statetool" / "formats" / "README.md").read_text()
#: Python, followed by its output, if any.
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (statetool|rm -r) (.*?)(?:  +#.*)?\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in sorted(
        [
            ROOT / "README.md",
            *(ROOT / ".github").glob("*.md"),
            *ROOT.glob("*/README.md"),
            *ROOT.glob("statetool/**/*.md"),
        ]
    )
}


def run_block(code: str, names: dict[str, Any]) -> str:
    """Run a block like a notebook cell: the value of a last expression is printed."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "page", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
            if value is not None:
                print(repr(value))
    return without_blank_lines(printed.getvalue())


def without_blank_lines(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if PYTHON.search(text)])
def test_python_examples_show_what_they_show(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    from statetool.spark.session import has_data_sources

    monkeypatch.chdir(tmp_path)
    (tmp_path / "statetool").symlink_to(ROOT / "statetool")
    zone = spark.conf.get("spark.sql.session.timeZone")
    names: dict[str, Any] = {}
    try:
        for code, expected in PYTHON.findall(PAGES[page]):
            if has_data_sources() or "spark.read.format" not in code:
                assert run_block(code, names) == without_blank_lines(expected)
        assert left_behind(tmp_path) == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


#: Pages with shell examples; those of the README start Spark several times.
SHELL_PAGES = [name for name, text in PAGES.items() if CONSOLE.search(text)]


@pytest.mark.parametrize("page", quick(SHELL_PAGES, *(p for p in SHELL_PAGES if p != "README.md")))
def test_shell_examples_show_what_they_show(tmp_path: Path, page: str) -> None:
    (tmp_path / "statetool").symlink_to(ROOT / "statetool")
    commands = COMMAND.findall("".join(CONSOLE.findall(PAGES[page])))
    assert commands
    for program, arguments, expected in commands:
        if program == "rm -r":
            shutil.rmtree(tmp_path / arguments)
            continue
        call = [sys.executable, "-m", "statetool", *arguments.split()]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert shows(done.stdout, expected), (arguments, done.stdout, done.stderr)
    assert left_behind(tmp_path) == []


def shows(printed: str, expected: str) -> bool:
    """Return True if a page shows the printed text, with ``...`` in place of omitted lines."""
    first, *more = expected.split("...\n")
    if not more:
        return printed == first
    at = len(first) if printed.startswith(first) else -1
    for part in more[:-1]:
        at = -1 if at < 0 or (found := printed.find(part, at)) < 0 else found + len(part)
    return at >= 0 and printed[at:].endswith(more[-1])


def left_behind(folder: Path) -> list[str]:
    """Return the files that examples leave in their folder, which would make a second run fail."""
    return sorted(p.name for p in folder.iterdir() if p.name != "statetool")


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        (page, link)
        for page, text in PAGES.items()
        for link in LINK.findall(text)
        if not (ROOT / page).parent.joinpath(link).exists()
    ]
    assert not broken


def test_messages_that_troubleshooting_explains_are_those_of_the_code() -> None:
    code = " ".join(f.read_text() for f in (ROOT / "statetool").rglob("*.py"))
    ours = PAGES["statetool/TROUBLESHOOTING.md"].partition("## What Flink says")[0]
    messages = re.findall(r"^\| `(.*?)` \|", ours, re.MULTILINE)
    assert len(messages) > 10
    assert [m for m in messages if m not in code] == []


def test_the_table_of_serializers_is_that_of_the_code() -> None:
    assert with_table(SERIALIZERS, support_table()) == SERIALIZERS, "run python -m tests.support.table"
    assert set(verified()) <= set(SNAPSHOT_CLASSES)


def test_the_table_of_snapshots_is_that_of_the_cases(corpus: Path, sql_corpus: Path, tmp_path: Path) -> None:
    jobs = unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path)
    assert with_table(FORMATS, snapshot_table([corpus, sql_corpus, jobs])) == FORMATS, (
        "run python -m tests.support.table"
    )


def test_the_table_of_columns_is_that_of_the_code() -> None:
    assert with_table(SAVING, column_table()) == SAVING, "run python -m tests.support.table"


def test_the_table_of_options_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", TABLES[TABLES.index("Options of every read") :], re.MULTILINE)
    table = {name: text for names, text in rows for name in re.findall(r"`(\w+)`", names)}
    for name, option in OPTIONS.items():
        if name != "table":
            text = table["ttl" if name in ("ttl_ms", "now_ms") else name]
            assert set(option.words) <= set(re.findall(r"`(\w+)`", text))
            assert not option.words or f"`{option.default}` (default)" in text
    assert all(f"`{name}=`" in table["ttl"] for name in ("ttl_ms", "now_ms"))
    assert set(table) <= set(OPTIONS)


@pytest.mark.full
def test_what_the_support_table_says_is_what_the_corpora_show(corpus: Path, tmp_path: Path) -> None:
    """The file was made from more snapshots than the project has; the results of the available ones must be in it."""
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
    head = README[:1800]
    assert "pip install -e '.[spark]' && statetool demo" in head
    assert "pip install -e '.[test]' && pytest" in head
    assert "Python 3.10" in head
    assert "Java 17" in head
    assert README.count("\n") <= 100
