"""A newcomer's first change: ``python -m tests.support.first_change`` does only what ``docs/internals/first-change.md`` says, and prints what it sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.examples import ROOT

PAGE: Final = ROOT / "docs" / "internals" / "first-change.md"
#: Programs that take longer than the rest together. The test of the page leaves out lines that begin with them.
SLOW: Final = ("git clone", "python3 -m venv", "pip install", "mypy")
_BLOCK: Final = re.compile(r"^```shell\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Block in which a test fails, because it was changed before the code.
_FAILS: Final = "tests/cli/expected"
_LEFT_OUT: Final = (
    ".git", ".venv", "venv", "site", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "spark-warehouse",
)  # fmt: skip
_NAMES: Final = {
    f"GIT_{role}_{part}": text
    for role in ("AUTHOR", "COMMITTER")
    for part, text in (("NAME", "Newcomer"), ("EMAIL", "newcomer@example.com"))
}


class StepError(AssertionError):
    """A block of the page that did not do what the page says."""


def steps(page: str) -> list[str]:
    """Return the page's commands, block by block."""
    return _BLOCK.findall(page)


def make_clone(folder: Path) -> Path:
    """Make a repository of the files at hand, committed or not."""
    clone = folder / "statetool"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    for command in ("init --quiet", "add --all", "commit --quiet --message start"):
        subprocess.run(["git", *command.split()], cwd=clone, env={**os.environ, **_NAMES}, check=True)
    return clone


def walk(clone: Path, *, slow: bool) -> Iterator[tuple[str, str]]:
    """Run the page's blocks in a clone, and yield each with its output.

    Parameters
    ----------
    slow
        Set up a virtual environment and run all checks, as the page says. Otherwise the environment at hand is used.

    Raises
    ------
    StepError
        A block failed, or the changed test did not.
    """
    environment = _environment(clone)
    for code in steps(PAGE.read_text("utf-8")):
        lines = code if slow else "".join(line for line in code.splitlines(True) if not line.startswith(SLOW))
        lines = lines.replace("git clone <repository> statetool && cd statetool", "true")
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", f"[ ! -e venv/bin/activate ] || . venv/bin/activate\n{lines}"],
            cwd=clone,
            env={**os.environ, **_NAMES} if slow else environment,
            capture_output=True,
            text=True,
            check=False,
        )
        shown = done.stdout + done.stderr
        if (done.returncode != 0) != (_FAILS in code or "statetool info" in code):
            raise StepError(f"{code}\nexit code {done.returncode}\n{shown}")
        yield code, shown


def _environment(clone: Path) -> Mapping[str, str]:
    """Return variables with which the program and the tests of a clone run in the environment at hand."""
    bin_folder = clone.with_name("bin")
    bin_folder.mkdir(exist_ok=True)
    program = bin_folder / "statetool"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m statetool "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(bin_folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, **_NAMES, "PATH": path, "PYTHONPATH": str(clone)}


def main() -> None:
    """Run the command line."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        for code, shown in walk(make_clone(Path(work)), slow=True):
            print(f"[{time.monotonic() - began:.0f} s] {code.rstrip()}\n{shown}", flush=True)


if __name__ == "__main__":
    main()
