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

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.drawn import draw_no_constants
from tests.support.recorder import kinds_of
from tests.support.repeated import STEPS, Candidate, by_function, choose, function_of, read_repeated
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


def test_workflows_run_every_step_of_the_check() -> None:
    steps = set(re.findall(r"^ *step (\.ci/\w+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert steps - {".ci/packages"} == {
        f".ci/{name}" for name in re.findall(r"(?:\{ step: |run: \.ci/)(\w+)", workflow)
    }


def test_the_map_of_the_tests_names_what_exists() -> None:
    named = re.findall(r"`([\w./-]+(?:/|\.py|\.tsv))`", (TESTS / "README.md").read_text("utf-8"))
    assert len(named) > 30
    assert [name for name in named if not (TESTS / name).exists()] == []


def defined_tests(file: Path) -> Iterator[str]:
    """Yield the ids of the test functions of a file."""
    name = file.relative_to(ROOT).as_posix()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield f"{name}::{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield from (f"{name}::{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))


@pytest.mark.parametrize("step", STEPS)
def test_tests_that_a_step_need_not_repeat_exist(
    step: str, collected: frozenset[str], pytestconfig: pytest.Config
) -> None:
    repeated = read_repeated(step)
    files = {ROOT / test.partition("::")[0] for test in repeated}
    functions = {test for file in files if file.exists() for test in defined_tests(file)}
    # Parameters of the files of this run: all of them in .ci/quick.
    whole = (
        set() if any("::" in argument for argument in pytestconfig.args) else {function_of(test) for test in collected}
    )
    gone = {
        test
        for test in repeated
        if function_of(test) not in functions or ("[" in test and function_of(test) in whole and test not in collected)
    }
    assert not gone, "run python -m tests.support.repeated"


def test_of_tests_that_execute_the_same_the_cheapest_run() -> None:
    slow, quick, part, other = (
        Candidate("slow", 0b111, 9), Candidate("quick", 0b011, 1), Candidate("part", 0b001, 2), Candidate("other", 0b110, 1.5),
    )  # fmt: skip
    assert choose(0, [slow, quick, part, other]) == (["quick", "other"], ["part", "slow"])
    assert choose(0b011, [slow, quick]) == (["slow"], ["quick"])


def test_a_table_with_other_types_or_nulls_is_of_another_kind() -> None:
    def kinds(type_: pa.DataType, *values: Any) -> set[str]:
        return set(kinds_of(pa.table({"column": pa.array(values, type_)})))

    text = pa.map_(pa.string(), pa.string())
    number = pa.map_(pa.string(), pa.int8())
    assert kinds(text, [("a", "b")]) == kinds(text, [("c", "d")], [])
    assert kinds(number, [("a", 1)]) - kinds(text, [("a", "b")]) == {
        "pyarrow.ChunkedArray StructType of int8", "pyarrow.ChunkedArray int8",
    }  # fmt: skip
    assert kinds(text, None) - kinds(text, []) == {"pyarrow.ChunkedArray MapType with nulls"}
    assert set(kinds_of([np.zeros(1, np.int32)])) == {"list", "list of numpy.ndarray", "list of numpy.ndarray int32"}


def test_a_function_is_left_out_by_its_name_if_all_of_its_tests_are() -> None:
    tests = ["a::f[1]", "a::f[2]", "a::g[1]", "a::g[2]", "a::h"]
    assert by_function(["a::f[1]", "a::f[2]", "a::g[2]", "a::h"], tests) == ["a::f", "a::g[2]", "a::h"]


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
