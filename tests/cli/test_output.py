"""The whole output of commands, compared with ``expected/*.txt``. See :mod:`tests.support.cli_output` for how to write these files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cli_output

_COMMANDS = tuple(cli_output.commands())


def compare(file: Path, text: str) -> None:
    expected = file.read_text()
    if text != expected:
        lines, now = (t.splitlines(keepends=True) for t in (expected, text))
        difference = "".join(difflib.unified_diff(lines, now, file.name, "output"))
        pytest.fail(f"after a wanted change, run: python -m tests.support.cli_output\n{difference}")


@pytest.fixture(scope="module")
def where() -> Iterator[dict[str, str]]:
    with cli_output.paths() as paths:
        yield paths


@pytest.mark.parametrize("names", _COMMANDS, ids=" ".join)
def test_help(names: tuple[str, ...]) -> None:
    compare(cli_output.help_file(names), cli_output.help_of(names))


@pytest.mark.parametrize("name", cli_output.RUNS)
def test_output(name: str, where: dict[str, str]) -> None:
    compare(cli_output.output_file(name), cli_output.output_of(name, where))


def test_every_expected_file_is_compared() -> None:
    compared = {*map(cli_output.help_file, _COMMANDS), *map(cli_output.output_file, cli_output.RUNS)}
    assert set(cli_output.EXPECTED.glob("*.txt")) == compared
