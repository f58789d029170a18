"""Verdicts of commands as prose: problems first, one block each, then a summary of everything that is fine."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.cli.output import echo_err, echo_marked, output_width, print_line
from statetool.errors import UNREAD
from statetool.reporting.verdicts.commands import MATCHING, CommandLine
from statetool.reporting.verdicts.finding import Findings
from statetool.reporting.verdicts.text import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statetool.analysis.verification.verify import Verification
    from statetool.api.comparison import Comparison
    from statetool.compatibility.verdicts import Check
    from statetool.connectors.checks import SourceCheck
    from statetool.operations.advice.findings import Finding as ConfigurationFinding
    from statetool.operations.advice.history import Advice

#: Width of prose if stdout is not a terminal and ``STATETOOL_COLUMNS`` is not set.
_WIDTH: Final = 80
#: Options that a suggested command needs too, if the user gave them and it has them.
_KEPT: Final = (
    "--latest", "--rebase", "--uids", "--name-uid", "--declare", "--jar", "--jar-a", "--jar-b", "--columns-from-plan", "--columns-from-plan-a", "--columns-from-plan-b", "--python", "--unsafe-pickle", "--flink", "--backend", "--deep", "--map", "--graph", "--config", "--parallelism", "--max-parallelism", "--claim-mode", "--allow-non-restored", "--last-state", "--flink-home", "--match",
)  # fmt: skip

#: Commands whose options describe the new job. In others they describe what is written, so these name them themselves.
_OF_NEW_JOB: Final = (("check",), ("upgrade",), ("report",))
_ABOUT_NEW_JOB: Final = frozenset(("--backend", "--parallelism", "--max-parallelism"))


def print_findings(findings: Findings, form: str = "text") -> None:
    """Print a verdict on stdout, wrapped to the width of the terminal. If stdout has JSON, print the summary on stderr."""
    if form == "json":
        print_line(findings.summary, sys.stderr)
        return
    for text, style, styled in lines_of(findings, output_width() or _WIDTH):
        print_line(text, style=style, styled=styled)


def show_check(
    checked: Check,
    old: statetool.Savepoint,
    new: statetool.Savepoint | None,
    form: str,
    jars: Sequence[str] = (),
    flink: str | None = None,
    backend: str | None = None,
    recheck: Callable[[str, bool], Check] | None = None,
    match: str | None = None,
) -> None:
    """Print the verdict of ``check``. ``jars`` are those of the new job, and ``flink`` and ``backend`` its release and its backend.

    ``match`` says which operators have other ids in the new job.

    ``recheck`` checks a copy that a trial of the suggested commands wrote; its flag says whether values have the types of the new job.
    """
    from statetool.api.write.migrate import try_plan
    from statetool.reporting.verdicts.check import check_findings

    plan = None
    if form != "json" and not (checked.verdict == "fully" and checked.ok):
        with suppress(*UNREAD):  # The check says what cannot be read.
            if jars:
                from statetool.api.write.upgrade import plan_upgrade

                plan = plan_upgrade(old, new, other_jars=jars, flink_version=flink, backend=backend, match=match)
            elif new is not None:
                plan = statetool.plan_migration(old, new, match=match)
            if plan is not None and checked.verdict in ("not", "unknown"):
                plan = try_plan(plan, old, match={c.old_id: c.new_uid or c.new_id for c in checked.renamed})
    commands = replace(
        command_line("a", "b"), by_jar=bool(jars) and new is None, renamed="RENAMED" if checked.renamed else ""
    )
    findings = check_findings(checked, commands, plan)
    if recheck is not None and form != "json":
        from statetool.cli.remedy_trial import try_remedies

        findings = try_remedies(findings, old, commands.a, recheck)
    print_findings(findings, form)


def echo_check_of_result(label: str, checked: Check) -> None:
    """Print on stderr, in one sentence, whether the new job restores what a command wrote, with warnings and with what was taken for granted."""
    from statetool.reporting.verdicts.check import verdict_sentence

    echo_err(f"{label}: {verdict_sentence(checked, 'the result')}")
    for warning in checked.warnings:
        echo_marked("warning", warning)
    echo_err(*(f"not verified: {a.text} (proved by {a.option})" for a in checked.assumptions))


def show_verification(verification: Verification, form: str) -> None:
    """Print the verdict of ``verify``."""
    from statetool.reporting.verdicts.verify import verify_findings

    print_findings(verify_findings(verification, command_line()), form)


def show_comparison(
    comparison: Comparison, limit: int, form: str, commands: CommandLine, *, written: str | None = None
) -> None:
    """Print the verdict of ``diff``: the first differences, unless all are ``written`` to a file."""
    from statetool.reporting.verdicts.diff import diff_findings

    rows = [] if written else comparison.first(limit).to_pylist()
    summary, unread = comparison.summary(), comparison.unread
    print_findings(diff_findings(comparison.structure, summary, rows, unread, commands, written=written), form)


def show_source_checks(checks: Sequence[SourceCheck], sources: Sequence[str], form: str) -> None:
    """Print the verdict of ``sources check``."""
    from statetool.reporting.verdicts.sources import source_findings

    print_findings(source_findings(checks, sources, command_line()), form)


def show_lint(found: Sequence[ConfigurationFinding], config: str, form: str) -> None:
    """Print the verdict of ``lint``."""
    from statetool.operations.advice.live_job import configuration_of
    from statetool.reporting.verdicts.lint import lint_findings

    print_findings(lint_findings(found, len(configuration_of(config).values)), form)


def show_advice(advice: Sequence[Advice], form: str) -> None:
    """Print the verdict of ``advise``."""
    from statetool.reporting.verdicts.advise import advise_findings

    print_findings(advise_findings(advice), form)


def command_line(a: str = "path", b: str | None = None) -> CommandLine:
    """Return the paths and options of the running command, for suggested commands. ``a`` and ``b`` are its parameters."""
    context = click.get_current_context()
    paths = {name: context.params.get(parameter) for name, parameter in (("a", a), ("b", b)) if parameter}
    given = {name: path for name, path in paths.items() if path is not None}
    return CommandLine(**given, options=_options)


def _options(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of the running command that a suggested command needs too, such as ``--rebase``."""
    context = click.get_current_context()
    suggested: click.Command | None = context.find_root().command
    for name in command:
        if not isinstance(suggested, click.Group):
            break
        suggested = suggested.get_command(context, name)
    accepted = {flag for p in suggested.params for flag in p.opts} if suggested is not None else set()
    words: list[str] = []
    if command[:1] not in _OF_NEW_JOB:
        accepted -= _ABOUT_NEW_JOB
    if command[:1] not in MATCHING:
        accepted.discard("--match")  # OLD=NEW of match, and the file of uid, which suggestions name themselves
    for option in context.command.params:
        flag = max(option.opts, key=len)
        # Only hash codes of keys, in the classes of the old job, tell the new key groups.
        flag = "--jar" if flag == "--jar-a" and command[:1] == ("rescale",) else flag
        value: Any = context.params.get(option.name or "")
        if flag in _KEPT and flag in accepted and flag not in command and value:
            values = value if isinstance(value, tuple) else (value,)
            words += [flag] if value is True else [word for v in values for word in (flag, str(v))]
    return tuple(words)
