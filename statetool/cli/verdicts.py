"""Verdicts of commands as prose: problems first, one block each, then one line that says what is fine."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.cli.output import Output
from statetool.errors import UNREAD
from statetool.verdicts.commands import CommandLine
from statetool.verdicts.finding import Findings
from statetool.verdicts.text import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statetool.advice.findings import Finding as ConfigurationFinding
    from statetool.advice.history import Advice
    from statetool.api.comparison import Comparison
    from statetool.compatibility.verdicts import Check
    from statetool.connectors.checks import SourceCheck
    from statetool.verification.verify import Verification

#: Width of prose if stdout is not a terminal.
_WIDTH: Final = 80
#: Options that a suggested command needs too, if the user gave them and it has them.
_KEPT: Final = (
    "rebase",
    "uids",
    "name_uid",
    "declare",
    "python",
    "unsafe_pickle",
    "columns_from_plan",
    "flink",
    "backend",
    "deep",
)


def print_findings(findings: Findings) -> None:
    """Print a verdict on stdout, wrapped to the width of the terminal."""
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    Output().text(*lines_of(findings, width))


def show_check(checked: Check, old: statetool.Savepoint, new: statetool.Savepoint | None) -> None:
    """Print the verdict of ``check``."""
    from statetool.verdicts.check import check_findings

    plan = None
    if new is not None and any(o.verdict != "fully" or o.states for o in checked.operators):
        try:
            plan = statetool.plan_migration(old, new)
        except UNREAD:  # The check says what cannot be read.
            plan = None
    print_findings(check_findings(checked, command_line("a", "b"), plan))


def show_verification(verification: Verification) -> None:
    """Print the verdict of ``verify``."""
    from statetool.verdicts.verify import verify_findings

    print_findings(verify_findings(verification, command_line()))


def show_comparison(comparison: Comparison, limit: int, commands: CommandLine, *, written: str | None = None) -> None:
    """Print the verdict of ``diff``: the first differences, unless all are ``written`` to a file."""
    from statetool.verdicts.diff import diff_findings

    rows = [] if written else comparison.first(limit).to_pylist()
    findings = diff_findings(
        comparison.structure, comparison.summary(), rows, comparison.unread, commands, written=written
    )
    print_findings(findings)


def show_source_checks(checks: Sequence[SourceCheck], sources: Sequence[str]) -> None:
    """Print the verdict of ``sources check``."""
    from statetool.verdicts.sources import source_findings

    print_findings(source_findings(checks, sources, command_line()))


def show_lint(found: Sequence[ConfigurationFinding], config: str) -> None:
    """Print the verdict of ``lint``."""
    from statetool.advice.configuration import read_configuration
    from statetool.verdicts.lint import lint_findings

    print_findings(lint_findings(found, len(read_configuration(config).values)))


def show_advice(advice: Sequence[Advice]) -> None:
    """Print the verdict of ``advise``."""
    from statetool.verdicts.advise import advise_findings

    print_findings(advise_findings(advice))


def command_line(a: str = "path", b: str | None = None) -> CommandLine:
    """Return the paths and options of the running command, for suggested commands. ``a`` and ``b`` are its parameters."""
    context = click.get_current_context()
    paths = {name: context.params.get(parameter) for name, parameter in (("a", a), ("b", b)) if parameter}
    given = {name: path for name, path in paths.items() if path is not None}
    return CommandLine(**given, options=_options)


def _options(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of the running command that a suggested command needs too, such as ``--rebase``."""
    context = click.get_current_context()
    words: list[str] = []
    suggested: click.Command | None = context.find_root().command
    for name in command:
        if not isinstance(suggested, click.Group):
            break
        suggested = suggested.get_command(context, name)
    known = {p.name: p for p in suggested.params} if suggested is not None else {}
    for name in _KEPT:
        option = known.get(name)
        value: Any = context.params.get(name)
        if option is None or not value:
            continue
        flag = max(option.opts, key=len)
        if flag not in command:
            values = value if isinstance(value, tuple) else (value,)
            words += [flag] if value is True else [word for v in values for word in (flag, str(v))]
    return tuple(words)
