"""Verdicts as prose: complete output, nothing broken or cut at any width, and suggested commands that the command line accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

import click
import pytest

from statetool.cli import verdicts
from statetool.cli.main import cli
from statetool.compatibility.verdicts import NEW, A
from statetool.errors import printable
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings
from statetool.reporting.verdicts.text import lines_of
from tests.support.verdict_output import COMMANDS, EXPECTED, inputs, run_commands


@pytest.fixture(scope="module", autouse=True)
def _inputs() -> Iterator[None]:
    """The inputs of all commands, in the current folder."""
    with inputs():
        yield


@pytest.fixture(scope="module")
def all_findings() -> list[Findings]:
    """The findings of all commands."""
    found: list[Findings] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "print_findings", lambda findings, _: found.append(findings))
        for name in COMMANDS:
            run_commands(name)
    assert len(found) == sum(map(len, COMMANDS.values()))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_expected(name: str) -> None:
    expected = (EXPECTED / f"{name}.txt").read_text()
    assert run_commands(name) == expected, "run python -m tests.support.verdict_output"


def texts_of(finding: Finding) -> list[str]:
    prose = [finding.severity, ", ".join(finding.where), finding.what, finding.why, finding.remedy]
    return [*prose, *(word for detail in finding.details for word in detail), finding.command, finding.page]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_broken_or_cut_at_any_width(all_findings: list[Findings], width: int) -> None:
    """Every word is complete, and commands, values and URLs are in one line."""
    for findings in all_findings:
        lines = [line.text for line in lines_of(findings, width)]
        shown = " ".join(" ".join(lines).split())
        words = shown.split()
        for finding in findings.findings:
            for text in texts_of(finding):
                assert set(printable(text).split()) <= {w.rstrip(":") for w in words} | set(words)
            whole = [finding.command, finding.page, *(value for _, value in finding.details)]
            for text in whole:
                assert any(printable(text).rstrip() in line for line in lines), text
        assert " ".join(findings.summary.split()) in shown
        # Only words that are longer than the line exceed the width.
        plain = tuple(replace(f, details=(), command="", page="") for f in findings.findings)
        for line, _, _ in lines_of(replace(findings, findings=plain), width):
            assert len(line) <= width or len(line.split()) == 1, line


def test_suggested_commands_are_accepted(all_findings: list[Findings]) -> None:
    commands = {f.command for findings in all_findings for f in findings.findings if f.command}
    assert len(commands) > 8
    for text in commands:
        program, *arguments = shlex.split(text)
        assert program == "statetool"
        group: click.Command = cli
        context = click.Context(cli, **cli.context_settings)
        while isinstance(group, click.Group):
            name = arguments.pop(0)
            command = group.get_command(context, name)
            assert command is not None, name
            group = command
        group.make_context(name, arguments, parent=context)


@pytest.mark.parametrize("columns", [40, 200])
def test_prose_is_as_wide_as_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = Findings(findings=(), summary="word " * 100)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    verdicts.print_findings(findings)
    assert capsys.readouterr().out.splitlines() == [line.text for line in lines_of(findings, columns)]


def test_unknown_is_neither_fine_nor_a_problem(all_findings: list[Findings]) -> None:
    """Each unknown has a reason and a way out."""
    unknown = [f for findings in all_findings for f in findings.findings if f.severity == "unknown"]
    assert len(unknown) > 5
    for finding in unknown:
        assert finding.what
        assert finding.remedy or finding.command or "--rest" in finding.what, finding


def test_paths_with_spaces_are_quoted() -> None:
    line = CommandLine(a="my savepoint", b="s3://bucket/b")
    assert line.suggest("convert", A, NEW) == "statetool convert 'my savepoint' NEW"
    assert line.suggest("uid", A, NEW, "A=B") == "statetool uid 'my savepoint' NEW A=B"
