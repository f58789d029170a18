"""Run the examples of the documentation and compare, or store, their outputs.

``python -m tools.examples [PAGE ...]`` runs the examples of the pages in a sandbox (``tools.sandbox``) and writes their outputs into the
pages. The tests run the same and compare.

A block ``python``, ``bash`` or ``sql`` is executed; the block ``text`` or ``json`` directly after it is its output. A line ``...`` in an
output stands for omitted lines. Blocks ``py`` and ``shell`` need a cluster, a bucket or a running job, and are only shown.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from statetool.cli.output import COLUMNS
from tools import sandbox
from tools.translations import english_of

ROOT: Final = sandbox.ROOT
#: A block that is executed, and its output if it is shown. Blocks may be indented, as in a list or a tab.
_BLOCK: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>python|bash|sql)\n(?P<code>.*?)^(?P=indent)```\n"
    r"(?:\n?(?P=indent)```(?P<format>text|json)\n(?P<output>.*?)^(?P=indent)```\n)?",
    re.DOTALL | re.MULTILINE,
)
#: A part that :mod:`tools.generated` writes, and whose examples it runs.
GENERATED: Final = re.compile(
    r"(?P<begin>^<!-- generated: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(?P<end>^<!-- end -->$)", re.DOTALL | re.MULTILINE
)
_OMITTED: Final = "..."
#: Width of the outputs of commands: the characters that a line of the site holds in a window of 1280 pixels with a bar to scroll.
WIDTH: Final = 86


class ExampleError(Exception):
    """Failure of an example: the page's line, the code and what it printed."""


def pages() -> list[Path]:
    """Return the pages of the documentation in English and in Chinese."""
    return [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pages_with_examples() -> list[Path]:
    """Return the pages whose examples are executed: in English, because the Chinese ones have the same (:mod:`tools.translations`)."""
    return [page for page in pages() if english_of(page) is None and has_examples(page.read_text("utf-8"))]


def has_examples(text: str) -> bool:
    """Return True if a page has a block that is executed."""
    return _BLOCK.search(GENERATED.sub("", text)) is not None


def run_page(text: str, folder: Path) -> str:
    """Run a page's examples in a sandbox and return the page with their outputs."""
    names: dict[str, Any] = {}
    parts, end = [], 0
    generated = [part.span() for part in GENERATED.finditer(text)]
    for block in _BLOCK.finditer(text):
        if any(start <= block.start() < stop for start, stop in generated):
            continue
        code = _unindent(block["code"], block["indent"])
        try:
            with _working_in(folder):
                printed = _run(block["language"], code, names)
        except Exception as error:  # whatever an example raises
            line = text.count("\n", 0, block.start()) + 1
            raise ExampleError(f"line {line}:\n{code}\n{type(error).__name__}: {error}") from error
        parts.append(text[end : block.start()])
        shown = sandbox.without_folder(printed, folder)
        parts.append(block[0] if block["format"] is None else _replace_output(block, shown))
        end = block.end()
    return "".join([*parts, text[end:]])


def _replace_output(block: re.Match[str], printed: str) -> str:
    indent = block["indent"]
    shown = _omit(printed, _unindent(block["output"], indent))
    before, after = (n - block.start() for n in block.span("output"))
    indented = "".join(f"{indent}{line}".rstrip() + "\n" for line in shown.splitlines())
    return f"{block[0][:before]}{indented}{block[0][after:]}"


def _omit(printed: str, shown: str) -> str:
    """Return the printed text with lines omitted where a page omits them: as many lines stay before and after ``...`` as the page shows."""
    lines, wanted = printed.splitlines(), shown.splitlines()
    if _OMITTED not in wanted:
        return printed
    first = wanted.index(_OMITTED)
    last = len(wanted) - first - 1
    if len(lines) <= first + last:
        return printed
    return "\n".join([*lines[:first], _OMITTED, *lines[len(lines) - last :]]) + "\n"


def _unindent(text: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))


def _run(language: str, code: str, names: dict[str, Any]) -> str:
    if language == "bash":
        return _without_trailing_space(run_bash(code))
    return _without_trailing_space(_run_python(code, names) if language == "python" else _run_sql(code))


def run_bash(code: str) -> str:
    """Run shell commands and return what they print on stdout.

    A command may exit with 1, which says that statetool found a problem.

    Raises
    ------
    ExampleError
        A command exited with another code.
    """
    with tempfile.TemporaryDirectory() as bin_folder:
        program = Path(bin_folder) / "statetool"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m statetool "$@"\n')
        program.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            COLUMNS: str(WIDTH),
        }
        call = ["bash", "-c", f"trap '[ $? -le 1 ] || exit 9' ERR\n{code}\ntrue"]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExampleError(f"{done.stdout}{done.stderr}")
    return done.stdout


def _run_python(code: str, names: dict[str, Any]) -> str:
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
    return printed.getvalue()


def _run_sql(code: str) -> str:
    """Run a query in the session that the page's Python started."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise ExampleError("no block of the page started a session before this query")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in filter(str.strip, code.split(";")):
            result = spark.sql(statement)
            if result.columns:
                result.show(truncate=False)
    return printed.getvalue()


def _without_trailing_space(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.rstrip().splitlines())


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def check_page(page: Path) -> str:
    """Run a page's examples in another process and return the difference between its outputs and those of the page.

    Spark's processes keep the folder in which the first query ran, so each page has a process of its own.

    Raises
    ------
    ExampleError
        An example failed.
    """
    return _in_process(page, "--check")


def _in_process(page: Path, *options: str) -> str:
    call = [sys.executable, "-m", "tools.examples", *options, str(page)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExampleError(f"{page.relative_to(ROOT)}: {done.stderr[-8000:]}")
    return done.stdout


def _run_one(page: Path, *, check: bool) -> None:
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as work, sandbox.fresh(sandbox.create(Path(work) / "made")) as folder:
        new = run_page(text, folder)
    if check:
        print("".join(difflib.unified_diff(text.splitlines(keepends=True), new.splitlines(keepends=True))), end="")
    elif new != text:
        page.write_text(new, "utf-8")
        print(page.relative_to(ROOT), "changed")


def main() -> None:
    """Run the command line."""
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    chosen = [Path(name).resolve() for name in arguments] or pages_with_examples()
    if len(chosen) == 1:
        _run_one(chosen[0], check="--check" in sys.argv)
        return
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        found = [(p, threads.submit(_in_process, p)) for p in chosen if has_examples(p.read_text("utf-8"))]
        failed = 0
        for _page, printed in found:
            try:
                print(printed.result(), end="", flush=True)
            except ExampleError as error:
                failed += 1
                print(error, file=sys.stderr)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
