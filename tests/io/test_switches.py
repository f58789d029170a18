"""Switch between private parts of libraries and public ones."""

from __future__ import annotations

import pytest

from statetool.errors import OptionError
from statetool.io.switches import VARIABLE, is_plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", set()),
        ("spark", {"spark"}),
        ("spark, glibc", {"spark", "glibc"}),
        ("numba,spark,glibc,", {"spark", "numba", "glibc"}),
    ],
)
def test_libraries_in_the_list_are_plain(monkeypatch: pytest.MonkeyPatch, text: str, plain: set[str]) -> None:
    monkeypatch.setenv(VARIABLE, text)
    assert {name for name in ("spark", "numba", "glibc") if is_plain(name)} == plain


def test_an_unknown_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "spark,nuumba")
    with pytest.raises(OptionError, match=r"'nuumba'.*did you mean numba"):
        is_plain("spark")
