# mypy: warn-unused-ignores
"""Errors for misspelled options, from mypy and from Python at run time.

Every ``type: ignore`` here must be needed by mypy; otherwise mypy fails (``warn-unused-ignores`` above).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import statetool
from statetool.api.operator import Operator
from statetool.errors import OptionError
from statetool.tables.request import OPTIONS, KeyedOptions, ScanOptions, ScanRequest, StateOptions
from statetool.types.options import ShowingOptions
from tests.support.zoo import ZOO

CALLS: list[tuple[Callable[[Operator], object], str]] = [
    (lambda op: op.keyed_state(nanoz="error"), "nanos"),  # type: ignore[call-arg]
    (lambda op: op.keyed_state(subtusk=True), "subtask"),  # type: ignore[call-arg]
    (lambda op: op.state("registered", key=["a"]), "keys"),  # type: ignore[call-arg]
    (lambda op: op.table("registered", decimal="string"), "decimals"),  # type: ignore[call-arg]
    (lambda op: op.timers(state=["a"]), "states"),  # type: ignore[call-arg]
    (lambda op: op.in_flight(nano="truncate"), "nanos"),  # type: ignore[call-arg]
    (lambda op: op.scan(splitbytes=5), "split_bytes"),  # type: ignore[call-arg]
    (lambda op: op.batches(onerror="keep_raw"), "on_error"),  # type: ignore[call-arg]
    (lambda op: op.keyed_state_batches(memory=5), "memory_bytes"),  # type: ignore[call-arg]
    (lambda op: op.to_arrow(column={"key": ["a"]}), "columns"),  # type: ignore[call-arg]
    (lambda op: ScanRequest.of("registered", ttlms=5), "ttl_ms"),  # type: ignore[call-arg]
]
VALUES: list[Callable[[Operator], object]] = [
    lambda op: op.to_arrow(nanos="round"),  # type: ignore[arg-type]
    lambda op: op.to_arrow(split_bytes="5"),  # type: ignore[arg-type]
    lambda op: op.to_arrow(keys=[{1: 2}]),  # type: ignore[dict-item]
    lambda op: op.to_arrow(columns={"key": 5}),  # type: ignore[dict-item]
    lambda op: op.in_flight(like="String", on_error="keep_raw"),  # type: ignore[call-arg]
]


@pytest.fixture(scope="module")
def operator() -> Operator:
    return statetool.load(ZOO)["timers"]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_an_option_that_does_not_exist_names_the_near_ones(operator: Operator, number: int) -> None:
    call, near = CALLS[number]
    with pytest.raises(OptionError, match=rf"^no option '\w+'\. did you mean .*\b{near}\b"):
        call(operator)


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_a_value_that_an_option_does_not_have(operator: Operator, number: int) -> None:
    with pytest.raises(OptionError):
        VALUES[number](operator)


METHODS: list[tuple[Callable[..., object], Any, set[str]]] = [
    (Operator.keyed_state, KeyedOptions, {"states", "keys"}),
    (Operator.state, StateOptions, {"keys"}),
    (Operator.table, ScanOptions, set()),
    (Operator.windows, KeyedOptions, {"keys"}),
    (Operator.timers, KeyedOptions, {"states", "keys"}),
    (Operator.in_flight, ShowingOptions, set()),
    (Operator.to_arrow, ScanOptions, set()),
]


@pytest.mark.parametrize(("method", "options", "others"), METHODS)
def test_signatures_and_docstrings_name_every_option(
    method: Callable[..., object], options: Any, others: set[str]
) -> None:
    assert method.__annotations__["options"] == f"Unpack[{options.__name__}]"
    names = {*options.__annotations__, *others}
    listed = inspect.signature(method).parameters
    assert names <= listed.keys()
    assert "options" not in listed
    assert all(listed[name].default == OPTIONS[name].default for name in names)
    parameters = (inspect.getdoc(method) or "").partition("Parameters\n")[2]
    said = set(re.findall(r"\w+", " ".join(re.findall(r"^(\w.*)$", parameters, re.MULTILINE))))
    assert names <= said
    assert not (set(ScanOptions.__annotations__) - names) & said
