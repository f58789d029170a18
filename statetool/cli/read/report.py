"""The command that writes a report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from statetool.api.execution import Execution
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import SNAPSHOT, CommonOptions, common_options, jar_options, open_snapshots
from statetool.cli.output import echo_err
from statetool.cli.read.inspect import largest_options, new_job_options
from statetool.cli.read.verify import verification_options
from statetool.cli.resolve_path import is_snapshot, newest_snapshot
from statetool.errors import several

if TYPE_CHECKING:
    from statetool.reporting.report.facts import Facts

#: Maximum number of printed reasons. The page has all.
_MOST_REASONS: Final = 5


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("other", metavar="[B]", required=False, shell_complete=complete_path)
@click.option(
    "--target", "-o", metavar="FILE", default="report.html", show_default=True, help="New file for the report."
)
@verification_options
@new_job_options
@jar_options
@largest_options
@common_options(*SNAPSHOT, "on_spark", "threads")
def report(
    options: CommonOptions,
    path: str,
    other: str | None,
    target: str,
    jar_a: tuple[str, ...],
    jar_b: tuple[str, ...],
    **analyses: Any,
) -> None:
    """Write an HTML report about a snapshot.

    The report has the results of verify, stats and states. If you pass B, a savepoint of the new job, it also has those
    of check and diff. The jar of the new job (--jar-b) or its release (--flink) are enough for check. For a directory of checkpoints, it describes the newest one and shows how state grew. The file
    loads nothing from the network.

    Exits 1 if there are errors, if state would be lost, or if state could not be read (unless --allow-unread).

    Examples:
      statetool report s3://bucket/savepoint-1a2b
      statetool report savepoint-1a2b savepoint-of-new-job --target new.html
      statetool report savepoint-1a2b --jar-a old.jar --jar-b new.jar
    """
    if not is_snapshot(path):
        analyses["history"], path = path, newest_snapshot(path, options.rebase)
    from statetool.api.report import collect_report

    execution = Execution(options.spark, options.threads)
    first, *others = open_snapshots([path] if other is None else [path, other], options, jars=[jar_a, jar_b])
    new_job = others[0].inventory if others else None
    facts = collect_report(first.inventory, new_job, target, execution, other_jars=jar_b, **analyses)
    echo_err(*(f"not read: {reason}" for reason in facts.unread[:_MOST_REASONS]))
    if len(facts.unread) > _MOST_REASONS:
        echo_err(f"... and {len(facts.unread) - _MOST_REASONS:,} more, listed in {target}")
    echo_err(f"{target}: {_verdict(facts)}")
    if not facts.ok:
        sys.exit(1)


def _verdict(facts: Facts) -> str:
    from statetool.reporting.report.findings import report_findings

    if not facts.is_sound:
        return "problems found"
    warnings = sum(f.severity == "warning" for f in report_findings(facts).leading)
    found = f"no errors, {several(warnings, 'warning')} found" if warnings else "no problems found"
    if facts.unread:
        return f"{found} in the state that was read; {several(len(facts.unread), 'piece')} of state could not be read"
    return found
