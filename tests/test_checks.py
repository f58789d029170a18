"""The checks themselves are strict: they find the errors that they must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetool.columns.from_plain import plain_to_arrow
from statetool.errors import UnknownSerializerError
from tests import corpus_check
from tests.serializer_check import Case, check
from tests.support import build


def test_values_that_stay_bytes_are_failures_unless_it_is_known() -> None:
    unknown = build.INT.replace(b"IntSerializer$", b"OurSerializer$")
    result = check(Case(name="flink-core/our-serializer", snapshot=unknown, data=bytes(4)))
    assert len(result.failures) == 1
    assert "is not known" in result.failures[0]
    known = check(Case(name="any/flink-1.3.2-scala-types-serializer-data", snapshot=None, data=b""))
    assert (known.failures, len(known.unsupported)) == ([], 1)
    other = check(Case(name="any/other-data", snapshot=None, data=b""))
    assert (len(other.failures), other.unsupported) == (1, [])


def test_a_kernel_that_gives_something_else_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(name="int", snapshot=build.INT, data=bytes(range(8)), offsets=[0, 4], values=[0x10203, 0x4050607])
    assert check(case).failures == []
    monkeypatch.setattr(
        "tests.serializer_check.plain_to_arrow", lambda values, *rest: plain_to_arrow([v + 1 for v in values], *rest)
    )
    (failure,) = check(case).failures
    assert failure.startswith("the column is [66051, 67438087], decoded one by one")


@pytest.mark.parametrize("error", [UnknownSerializerError("a class"), KeyError("a key"), RecursionError("too deep")])
def test_whatever_a_case_raises_is_its_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    (tmp_path / "case.json").write_text('{"kind": "canonical", "metadata": "_metadata"}')
    (tmp_path / "expected.json").write_text('{"operator": {}}')

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(corpus_check, "Checker", fail)
    (case,) = corpus_check.find_cases(tmp_path, None)
    passed, line = corpus_check.check_case(case, [("arrow", None)])
    assert not passed
    assert str(error.args[0]) in line
