"""Structure of the tests: shared code is in ``tests/support``, and build tools are in ``tools``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
ROOT: Final = TESTS.parent
#: Programs that have tests.
PROGRAMS: Final = ("tests.fuzz", "tests.perf")


def imported(file: Path) -> Iterator[str]:
    """Yield the full names of everything that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{file} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("file", ["test_*.py", "conftest.py"])
def test_tests_import_shared_code_from_support_only(file: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in TESTS.rglob(file)
        for name in imported(path)
        if within(name, ("tests",)) and not within(name, ("tests.support", *PROGRAMS))
    ]
    assert not wrong


def test_support_imports_no_tests() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (TESTS / "support").rglob("*.py")
        for name in imported(path)
        if within(name, ("tests",)) and not within(name, ("tests.support",))
    ]
    assert not wrong


def test_tools_import_no_tests() -> None:
    wrong = [
        f"{path.name} imports {n}"
        for path in (ROOT / "tools").rglob("*.py")
        for n in imported(path)
        if within(n, ("tests",))
    ]
    assert not wrong


def test_workflows_run_every_step_of_the_check() -> None:
    steps = set(re.findall(r"^ *step (\.ci/\w+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert steps - {".ci/packages"} == {
        f".ci/{name}" for name in re.findall(r"(?:\{ step: |run: \.ci/)(\w+)", workflow)
    }
