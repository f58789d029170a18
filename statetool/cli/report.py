"""The command that writes a report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from statetool.api.execution import Execution
from statetool.cli.completion import complete_path
from statetool.cli.options import (
    finding_options,
    opened_together,
    rebase_pairs,
    session,
    showing_progress,
    type_options,
)
from statetool.cli.output import Output
from statetool.cli.resolve_path import is_snapshot, newest_snapshot
from statetool.errors import several

if TYPE_CHECKING:
    from statetool.report.facts import Facts

#: Maximum number of printed reasons. The page has all.
_MOST_REASONS: Final = 5


@click.command()
@finding_options
@type_options
@click.option("-o", "--output", "target", default="report.html", show_default=True, metavar="FILE", help="A new file.")
@click.option("--deep", is_flag=True, help="Decode every value to its last byte too.")
@click.option("--allow-unread", is_flag=True, help="Do not fail on state that cannot be read.")
@click.option("--flink", metavar="RELEASE", help="The release that restores, such as 2.3. [default: that of B]")
@click.option("--backend", type=click.Choice(["heap", "rocksdb"]), help="The backend of the new job. [default: B's]")
@click.option("--largest", type=click.IntRange(min=0), default=10, show_default=True, help="How many are named.")
@click.option("--parallelism", type=click.IntRange(min=1), help="Show the skew at this parallelism too.")
@click.option("--ttl-ms", type=click.IntRange(min=1), help="Count values as expired that are older.")
@click.option("--now-ms", type=int, help="Epoch milliseconds that ages count from. [default: now]")
@click.option("--spark", "on_spark", is_flag=True, help="Read on Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("path", shell_complete=complete_path)
@click.argument("other", metavar="[B]", required=False, shell_complete=complete_path)
@showing_progress
def report(path: str, other: str | None, rebase: tuple[str, ...], target: str, on_spark: bool, **options: Any) -> None:
    """Write an HTML page of all answers about PATH, and against B.

    B is a savepoint of the new job. The page needs no network. Of a directory of checkpoints the newest is reported, and what grew.

    \b
    Exit codes:
      0  everything was read, and nothing is wrong
      1  something is wrong or would be lost, or something could not be read
         (--allow-unread: only if something is wrong or would be lost)
    """
    if not is_snapshot(path):
        options["history"], path = path, newest_snapshot(path, rebase_pairs(rebase))
    from statetool.api.report import write_report

    execution = Execution(session(on_spark), options.pop("threads"))
    first, *others = opened_together([path] if other is None else [path, other], rebase)
    facts = write_report(first.inventory, others[0].inventory if others else None, target, execution, **options)
    for reason in facts.unread[:_MOST_REASONS]:
        Output.say(f"not read: {reason}")
    if len(facts.unread) > _MOST_REASONS:
        Output.say(f"... and {len(facts.unread) - _MOST_REASONS:,} more: {target} names them")
    Output.say(f"{target}: {_verdict(facts)}")
    if not facts.ok:
        sys.exit(1)


def _verdict(facts: Facts) -> str:
    if not facts.is_sound:
        return "something is wrong or not known, see there"
    if facts.unread:
        return f"nothing wrong was found in what was read; {several(len(facts.unread), 'piece')} of state could not be read"
    return "nothing wrong was found"
