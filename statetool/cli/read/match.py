"""The command that matches the operators of two jobs."""

from __future__ import annotations

import sys
from typing import Any

import click

import statetool
from statetool.api.matching import has_no_state
from statetool.api.write.verbs.base import EQUALS_IN_UID
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import (
    OUTPUT,
    SNAPSHOT,
    CommonOptions,
    common_options,
    file_option,
    open_snapshots,
    pairs,
    sql_plan_options,
)
from statetool.cli.output import echo_err
from statetool.errors import OptionError, several
from statetool.io.json_text import write_json
from statetool.snapshot.matching import Match


@click.command(cls=Command)
@click.argument("a", metavar="A", shell_complete=complete_path)
@click.argument("b", metavar="B", shell_complete=complete_path)
@click.option(
    "--match", "given", multiple=True, metavar="OLD=NEW", help="Operator of A, and the operator of B that it is."
)
@file_option("--write", "target", help="New file for the pairs, to pass to statetool uid --match.")
@sql_plan_options
@common_options(*SNAPSHOT, *OUTPUT)
def match(
    options: CommonOptions,
    a: str,
    b: str,
    given: tuple[str, ...],
    target: str | None,
    plan_a: str | None,
    plan_b: str | None,
) -> None:
    """Match operators of two jobs whose ids differ.

    Flink finds state by operator id. Generated ids change with the
    parallelism, the chaining, the query and the release. A is the snapshot
    that has the state. B is a snapshot of the new job, the compiled plan of a
    SQL job that has not run yet (a .json file), or a job graph: the URL
    http://host:8081/jobs/ID/plan, or a .json file with the answer of /jobs/ID.

    Each pair has its evidence: the same id, states and types, name, or node of
    the compiled plan. Nothing is guessed. If several operators fit, the match
    is ambiguous, and --match OLD=NEW decides.

    Text output leaves out operators without state, which need no partner.
    Exits 1 if an operator of A that has state has no partner.

    Examples:
      statetool match savepoint-1a2b new-job --write pairs.json
      statetool match savepoint-1a2b new-job --match a1b2c3d4=orders
      statetool match sp-1a2b new.json --columns-from-plan-a old.json
    """
    matching = statetool.match(
        *_opened((a, plan_a), (b, plan_b), options), given=pairs(given, "--match OLD=NEW", EQUALS_IN_UID)
    )
    if options.output.is_json:
        options.output.rows(matching.record())
    else:
        options.output.rows([_row(m) for m in matching.rows if m.has_state], whole=("a", "b"))
        echo_err(*(f"ambiguous: {question}" for question in matching.questions))
        if left_out := sum(not m.has_state for m in matching.rows):
            echo_err(f"{several(left_out, 'operator')} without state not shown (shown by --json)")
    if target is not None:
        write_json(target, matching.record())
        echo_err(f"written to {target}")
    if not matching.ok:
        sys.exit(1)


def _opened(
    a: tuple[str, str | None], b: tuple[str, str | None], options: CommonOptions
) -> list[str | statetool.Savepoint]:
    """Open the snapshots among the two sides, each given with the compiled plan of its job. Others are compiled plans or job graphs."""
    snapshots = [(path, plan) for path, plan in (a, b) if not has_no_state(path)]
    for (path, plan), side in ((a, "a"), (b, "b")):
        if has_no_state(path) and plan is not None:
            raise OptionError(
                f"{path} is no snapshot, and --columns-from-plan-{side} gives another one", hint="leave one out"
            )
    opened = iter(open_snapshots([path for path, _ in snapshots], options, plans=[plan for _, plan in snapshots]))
    return [path if has_no_state(path) else next(opened) for path, _ in (a, b)]


def _row(match: Match) -> dict[str, Any]:
    """Return the columns for text output."""
    return {"verdict": match.verdict, "a": match.old, "b": match.new, "evidence": "; ".join(match.evidence)}
