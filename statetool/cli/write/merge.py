"""Commands that combine operators of snapshots: graft, split, merge and move-state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from statetool.api.write.verbs import merge as verbs
from statetool.cli.group import Command
from statetool.cli.options import WRITE, CommonOptions, common_options, pairs
from statetool.cli.verb import report_target, run_verb, verb_options

if TYPE_CHECKING:
    from statetool.saving.verbs.merge import MergePlan


def _names(arguments: Sequence[str]) -> dict[str, str | None]:
    """Return new names by names, from ``NAME`` and ``NAME=NEW``."""
    names: dict[str, str | None] = dict.fromkeys(a for a in arguments if "=" not in a)
    return names | pairs([a for a in arguments if "=" in a], "NAME=NEW")


def _print_operators(plan: MergePlan, options: CommonOptions) -> None:
    """Print the operators of the new snapshot. Text output leaves out those that are kept."""
    output = options.output
    output.rows(plan.operators if output.is_json else [row for row in plan.operators if row.action != "kept"])


@click.command(cls=Command)
@verb_options(verbs.Graft, operators=_names)
@common_options(*WRITE, "on_spark")
def graft(options: CommonOptions, given: verbs.Graft) -> None:
    """Add operators of another snapshot.

    Writes a copy of SRC to DST that also has operators of OTHER, with their states, timers and operator state.

    Examples:
      statetool graft savepoint-1a2b savepoint-9f8e both --uid enrich
      statetool graft savepoint-1a2b savepoint-9f8e both --uid enrich=enrich-eu
    """
    plan = run_verb(given, options)
    _print_operators(plan, options)
    report_target(given.dst, options)


@click.command(cls=Command)
@verb_options(verbs.Merge)
@common_options(*WRITE, "on_spark")
def merge(options: CommonOptions, given: verbs.Merge) -> None:
    """Merge two snapshots into one.

    DST has all operators of A and B. An operator that both have gets the keys of both. statetool refuses
    snapshots in which it has state of the same keys, and names them.

    Examples:
      statetool merge savepoint-eu savepoint-us savepoint-all --dry-run
    """
    plan = run_verb(given, options)
    _print_operators(plan, options)
    report_target(given.dst, options)


@click.command(cls=Command)
@verb_options(verbs.Split)
@common_options(*WRITE)
def split(options: CommonOptions, given: verbs.Split) -> None:
    """Split a snapshot into those of two jobs.

    DST2 gets the operators of --uid, and DST1 all others. State keeps its bytes.

    Examples:
      statetool split savepoint-1a2b first second --uid alerts --uid alert-sink
    """
    plan = run_verb(given, options)
    rows: list[dict[str, Any]] = [
        {
            "target": target,
            "operator": row.operator,
            "max_parallelism": row.max_parallelism,
            "size_bytes": row.size_bytes,
        }
        for target, rows in ((given.first, plan.first), (given.second, plan.second))
        for row in rows
    ]
    options.output.rows(rows)
    report_target(f"{given.first} and {given.second}", options)


@click.command(cls=Command)
@verb_options(verbs.MoveState, states=_names)
@common_options(*WRITE, "on_spark")
def move_state(options: CommonOptions, given: verbs.MoveState) -> None:
    """Move keyed states to another operator.

    Both operators need the same key type. Keys and values keep their bytes.

    Examples:
      statetool move-state sp-1a2b moved --from enrich --to join --state cache
      statetool move-state sp-1a2b moved --from enrich --to join --state cache=c
    """
    plan = run_verb(given, options)
    _print_operators(plan, options)
    report_target(given.dst, options)
