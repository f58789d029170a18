"""The public face: signatures that ``help()`` shows, earlier names, and execution with or without a session."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.analysis.statistics.statistics import StatisticsRequest
from statetool.api.execution import Execution
from statetool.api.write.options import WriteOptions
from statetool.errors import MissingDependencyError, OptionError
from tests.support.zoo import ZOO
from tools import public_names
from tools.shared_parameters import API, DESCRIBED_BY, add_shared, described_parameters
from tools.verbs import MODULES, stale, write_again

REWRITES: list[Callable[..., Any]] = [
    statetool.rescale,
    statetool.convert,
    statetool.change_uids,
    statetool.drop,
    statetool.migrate,
    statetool.edit_source,
    statetool.to_kafka_source,
    statetool.drop_transactions,
]


@pytest.mark.parametrize("function", REWRITES, ids=lambda f: f.__name__)
def test_rewrites_share_their_options_and_defaults(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    for option in fields(WriteOptions):
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option.name].default == option.default
    assert {"src", "dst"} <= parameters.keys()


def test_functions_that_write_have_the_declared_options_in_signature_and_docstring() -> None:
    assert [file.name for file, _ in stale()] == [], "run python -m tools.verbs"


def test_a_declared_option_reaches_signature_and_docstring() -> None:
    source = (MODULES / "rewrite.py").read_text()
    without = source.replace("    dry_run: bool = False,\n", "", 1)
    without = without.replace("    dry_run\n        Only plan, without writing.\n", "", 1)
    assert source.count("dry_run") - without.count("dry_run") == 2
    assert write_again(without) == source


def test_the_description_of_an_option_of_reads_reaches_their_docstrings() -> None:
    source = (API / "operator.py").read_text()
    line = "            ``True`` adds the int column ``key_group``.\n"
    assert source.count(line) > 5
    assert add_shared(source.replace(line, "            Add a column.\n"), described_parameters()) == source


def test_each_parameter_of_a_function_that_writes_is_described() -> None:
    functions = [f for n in statetool.__all__ if inspect.isfunction(f := getattr(statetool, n))]
    writing = [f for f in functions if "checkpoint_id" in inspect.signature(f).parameters]
    assert len(writing) >= 18
    for function in writing:
        text = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        named = {n for line in text.split("\n") if line[:1].strip() for n in line.split(", ")}
        assert named == set(inspect.signature(function).parameters), function.__name__
        assert "As for" not in text


def test_each_parameter_that_another_function_describes_is_described_again() -> None:
    for name in DESCRIBED_BY:
        owner, _, method = name.replace("OperatorTables", "Operator").rpartition(".")
        function = getattr(getattr(statetool, owner) if owner else statetool, method)
        text = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        named = {n for line in text.split("\n") if line[:1].strip() for n in line.split(", ")}
        assert set(inspect.signature(function).parameters) - {"self"} <= named, name


def test_no_docstring_sends_the_reader_to_another_page_for_parameters() -> None:
    assert not [file for file in API.rglob("*.py") if "As for" in file.read_text("utf-8")]


@pytest.mark.parametrize("method", [statetool.Savepoint.stats, statetool.Operator.stats])
def test_statistics_have_the_defaults_of_their_request(method: Callable[..., Any]) -> None:
    parameters = inspect.signature(method).parameters
    defaults = inspect.signature(StatisticsRequest.of).parameters
    assert {name: parameters[name].default for name in defaults} == {n: p.default for n, p in defaults.items()}


def test_the_public_functions_have_no_hidden_keyword_arguments() -> None:
    members = [(n, getattr(statetool, n)) for n in statetool.__all__ if n != "kafka_end_offsets"]
    members += [
        (f"{n}.{m}", f) for n, c in members if isinstance(c, type) for m, f in inspect.getmembers(c) if m[0] != "_"
    ]
    functions = [(n, f) for n, f in members if inspect.isfunction(f) and f.__module__.startswith("statetool.api")]
    assert len(functions) > 80
    hidden = [
        n
        for n, f in functions
        for parameter in inspect.signature(f).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    ]
    assert not hidden


def test_public_functions_are_described() -> None:
    members = [(n, getattr(statetool, n)) for n in statetool.__all__]
    members += [(f"{n}.{m}", f) for n, c in members if isinstance(c, type) for m, f in vars(c).items() if m[0] != "_"]
    functions = [(n, f) for n, f in members if inspect.isfunction(f)]
    assert not [n for n, f in functions if not (inspect.getdoc(f) or "").partition("\n")[0].endswith((".", ":", ","))]


def test_numbers_and_limits_of_options() -> None:
    assert statetool.verify(ZOO, max_problems=5).ok
    with pytest.raises(OptionError, match="max_problems"):
        statetool.verify(ZOO, max_problems=0)
    sp = statetool.load(ZOO, driver_read_limit=7)
    assert sp["timers"]._access.driver_read_limit == sp._access.driver_read_limit == 7


def test_public_names_are_listed_once() -> None:
    assert len(statetool.__all__) == len(set(statetool.__all__)) > 60
    assert all(hasattr(statetool, name) for name in statetool.__all__)
    assert public_names.STUB.read_text("utf-8") == public_names.stub()
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        getattr(statetool, "lode")  # noqa: B009


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, statetool; print(*(m for m in sys.modules if m.startswith('statetool')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["statetool"]


def test_without_a_session_tables_are_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    execution = Execution(threads=2, progress=calls.append)
    assert list(execution.map(len, ["a", "bb"])) == [1, 2]
    table = pa.table({"a": [1]})
    assert execution.to_frame(table) is table
    assert execution.schema_of(table) == table.schema
    with pytest.raises(OptionError, match="not a table"):
        execution.schema_of([1])
    with pytest.raises(OptionError, match="threads"):
        Execution(threads=0)
    monkeypatch.setattr("statetool.spark.session.active_session", _no_session)
    with pytest.raises(MissingDependencyError, match="no session"):
        execution.require_session()


def _no_session() -> None:
    raise MissingDependencyError("no session")
