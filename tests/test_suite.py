"""Structure of the tests: shared code is in ``tests/support``, and build tools are in ``tools``."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noxfile
from tests.support.drawn import draw_no_constants
from tests.support.patience import eventually
from tests.support.quick import LONG
from tools import flink_jars

TESTS: Final = Path(__file__).parent
ROOT: Final = TESTS.parent
#: Programs that have tests.
PROGRAMS: Final = ("tests.fuzz", "tests.journeys", "tests.perf", "tests.ten_minutes")


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
        f"{path.name} imports {name}"
        for path in (ROOT / "tools").rglob("*.py")
        for name in imported(path)
        if within(name, ("tests",)) and not within(name, ("tests.support",))
    ]
    assert not wrong


def sessions_of_the_workflow() -> set[str]:
    return set(re.findall(r"session: (\w+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text()))


def test_workflow_and_check_run_every_session() -> None:
    (names,) = re.findall(r"^sessions=\((.*)\)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    defined = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE))
    own_environment = {"uncompiled", "lowest", "lakes"}
    assert set(str(names).split()) == defined - {"fast"} - own_environment
    assert sessions_of_the_workflow() == defined - {"fast"}


def test_the_longest_tests_exist() -> None:
    for name in LONG:
        file, *names = name.split("::")
        text = (ROOT / file).read_text()
        assert all(re.search(rf"^ *(def|class) {found}\b", text, re.MULTILINE) for found in names), name


class Dry:
    """A session of nox that keeps the arguments of pytest instead of running anything."""

    posargs = ()
    python = None
    virtualenv = SimpleNamespace(location="")

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

    def install(self, *_: str) -> None: ...

    def run(self, *arguments: str, **_: Any) -> None:
        if (command := [Path(a).name for a in arguments[:3]]).count("pytest"):
            self.runs.append(list(arguments[command.index("pytest") + 1 :]))


def selects(arguments: list[str], test: str, marks: frozenset[str]) -> bool:
    """Return True if pytest with these arguments runs a test with these markers and needed options."""
    places = [a for a in arguments if a.startswith("tests/")]
    condition = arguments[arguments.index("-m") + 1] if "-m" in arguments else "True"
    given = {a.partition("=")[0] for a in arguments}
    return (
        (not places or any(test.startswith(place) for place in places))
        and {mark for mark in marks if mark.startswith("--")} <= given
        and ("full" not in marks or "--full" in given)
        and eval(condition, {}, {name: name in marks for name in ("spark", "flink", "full")})
    )


def test_every_test_is_in_a_session_of_the_workflow(collected: dict[str, frozenset[str]]) -> None:
    dry = Dry()
    for name in sorted(sessions_of_the_workflow()):
        getattr(noxfile, name)(dry)
    assert len(dry.runs) > 8
    # They need data that cannot be downloaded, another Python, or a clone.
    left_out = {"--shared", "--pyflink", "--flinkx"}
    assert [
        test
        for test, marks in collected.items()
        if not marks & left_out and not any(selects(run, test, marks) for run in dry.runs)
    ] == []


def test_a_wait_ends_with_the_result_or_explains_what_was_missing() -> None:
    answers: Iterator[int | KeyError] = iter([0, KeyError("not yet"), 7])

    def check() -> int:
        answer = next(answers)
        if isinstance(answer, KeyError):
            raise answer
        return answer

    assert eventually(check, retry=KeyError, every=0) == 7
    with pytest.raises(AssertionError, match="the end of the log"):
        eventually(lambda: False, within=0, every=0, describe=lambda: "the end of the log")


def test_the_map_of_the_tests_names_what_exists() -> None:
    named = re.findall(r"`([\w./-]+(?:/|\.py|\.tsv))`", (TESTS / "README.md").read_text("utf-8"))
    assert len(named) > 30
    assert [name for name in named if not (TESTS / name).exists()] == []


def test_examples_of_ci_do_not_depend_on_imported_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    providers = pytest.importorskip(
        "hypothesis.internal.conjecture.providers", reason="this release draws no constants"
    )

    def drawn() -> list[int]:
        found: list[int] = []

        @settings(derandomize=True, max_examples=200, database=None)
        @given(st.integers())
        def draw(number: int) -> None:
            found.append(number)

        draw()
        return found

    monkeypatch.setattr(
        providers, "_get_local_constants", getattr(providers, "_get_local_constants", None), raising=False
    )
    draw_no_constants()
    before = drawn()
    (tmp_path / "constants_of_a_module.py").write_text(f"NUMBERS = {[1_000_003 * n for n in range(200)]}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("constants_of_a_module")
    assert drawn() == before


@pytest.mark.parametrize(("breaks", "code", "runs"), [(0, 0, 1), (2, 0, 3), (9, 1, 3)])
def test_a_download_that_breaks_is_tried_again(
    breaks: int, code: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flink_jars, "time", SimpleNamespace(sleep=lambda seconds: None))
    log = tmp_path / "log"
    program = (
        "import pathlib, sys; log = pathlib.Path(sys.argv[1]); n = log.stat().st_size if log.exists() else 0\n"
        "log.write_text('x' * (n + 1)); sys.exit(n < int(sys.argv[2]))"
    )
    done = flink_jars.run_download([sys.executable, "-c", program, str(log), str(breaks)])
    assert (done.returncode, log.stat().st_size) == (code, runs)
