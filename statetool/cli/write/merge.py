"""Commands that combine operators of snapshots: graft, split, merge and move-state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.cli.completion import complete_operator, complete_path, complete_state
from statetool.cli.group import Command
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    common_options,
    flink_option,
    open_snapshot,
    open_snapshots,
    operator_option,
    pairs,
)
from statetool.cli.write.rewrite import report_target, source_and_target

if TYPE_CHECKING:
    from statetool.saving.verbs.merge import MergePlan

_NUMBER = click.option(
    "--max-parallelism", type=int, help="Max parallelism of the added operators.  [default: unchanged]"
)
_HASHES = click.option(
    "--hash", "hashes", multiple=True, metavar="CLASS=FORMULA", help="Hash code of a key class: 'Objects.hash(a, b)'."
)


def _hashes(arguments: tuple[str, ...]) -> dict[str, str]:
    return pairs(arguments, "--hash CLASS=FORMULA", "for example --hash 'com.acme.Key=record(a, b)'")


def _names(arguments: Sequence[str]) -> dict[str, str | None]:
    """Return new names by names, from ``NAME`` and ``NAME=NEW``."""
    names: dict[str, str | None] = dict.fromkeys(a for a in arguments if "=" not in a)
    return names | pairs([a for a in arguments if "=" in a], "NAME=NEW")


def _print_operators(plan: MergePlan, options: CommonOptions) -> None:
    """Print the operators of the new snapshot. Text output leaves out those that are kept."""
    output = options.output
    output.rows(plan.operators if output.is_json else [row for row in plan.operators if row.action != "kept"])


@click.command(cls=Command)
@click.argument("source", metavar="SRC", shell_complete=complete_path)
@click.argument("other", metavar="OTHER", shell_complete=complete_path)
@click.argument("target", metavar="DST", shell_complete=complete_path)
@operator_option(
    "Operator of OTHER to add, by uid, name or operator id; with =NEW under another uid.",
    "names",
    multiple=True,
    required=True,
    metavar="UID[=NEW]",
)
@_NUMBER
@_HASHES
@flink_option("SRC")
@common_options(*WRITE, "on_spark")
def graft(
    options: CommonOptions,
    source: str,
    other: str,
    target: str,
    names: tuple[str, ...],
    max_parallelism: int | None,
    hashes: tuple[str, ...],
    flink: str | None,
) -> None:
    """Add operators of another snapshot.

    Writes a copy of SRC to DST that also has operators of OTHER, with their states, timers and operator state.

    Examples:
      statetool graft savepoint-1a2b savepoint-9f8e both --uid enrich
      statetool graft savepoint-1a2b savepoint-9f8e both --uid enrich=enrich-eu
    """
    savepoint, others = open_snapshots([source, other], options)
    plan = statetool.graft(
        savepoint,
        others,
        target,
        _names(names),
        max_parallelism=max_parallelism,
        hashes=_hashes(hashes),
        flink_version=flink,
        spark=options.spark,
        **options.write_arguments,
    )
    _print_operators(plan, options)
    report_target(target, options)


@click.command(cls=Command)
@click.argument("first", metavar="A", shell_complete=complete_path)
@click.argument("second", metavar="B", shell_complete=complete_path)
@click.argument("target", metavar="DST", shell_complete=complete_path)
@_NUMBER
@_HASHES
@flink_option("A")
@common_options(*WRITE, "on_spark")
def merge(
    options: CommonOptions,
    first: str,
    second: str,
    target: str,
    max_parallelism: int | None,
    hashes: tuple[str, ...],
    flink: str | None,
) -> None:
    """Merge two snapshots into one.

    DST has all operators of A and B. An operator that both have gets the keys of both. statetool refuses
    snapshots in which it has state of the same keys, and names them.

    Examples:
      statetool merge savepoint-eu savepoint-us savepoint-all --dry-run
    """
    one, other = open_snapshots([first, second], options)
    plan = statetool.merge(
        one,
        other,
        target,
        max_parallelism=max_parallelism,
        hashes=_hashes(hashes),
        flink_version=flink,
        spark=options.spark,
        **options.write_arguments,
    )
    _print_operators(plan, options)
    report_target(target, options)


@click.command(cls=Command)
@click.argument("source", metavar="SRC", shell_complete=complete_path)
@click.argument("first", metavar="DST1", shell_complete=complete_path)
@click.argument("second", metavar="DST2", shell_complete=complete_path)
@operator_option("Operator of the second job, by uid, name or operator id.", "names", multiple=True, required=True)
@click.option(
    "--both", multiple=True, shell_complete=complete_operator, metavar="UID", help="Operator that both jobs get."
)
@common_options(*WRITE)
def split(
    options: CommonOptions, source: str, first: str, second: str, names: tuple[str, ...], both: tuple[str, ...]
) -> None:
    """Split a snapshot into those of two jobs.

    DST2 gets the operators of --uid, and DST1 all others. State keeps its bytes.

    Examples:
      statetool split savepoint-1a2b first second --uid alerts --uid alert-sink
    """
    plan = statetool.split(open_snapshot(source, options), first, second, names, both=both, **options.write_arguments)
    rows: list[dict[str, Any]] = [
        {
            "target": target,
            "operator": row.operator,
            "max_parallelism": row.max_parallelism,
            "size_bytes": row.size_bytes,
        }
        for target, rows in ((first, plan.first), (second, plan.second))
        for row in rows
    ]
    options.output.rows(rows)
    report_target(f"{first} and {second}", options)


@click.command(cls=Command)
@source_and_target
@click.option(
    "--from", "old", required=True, shell_complete=complete_operator, metavar="UID", help="Operator that has the state."
)
@click.option(
    "--to", "new", required=True, shell_complete=complete_operator, metavar="UID", help="Operator that gets the state."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    required=True,
    shell_complete=complete_state,
    metavar="NAME[=NEW]",
    help="Keyed state to move; with =NEW under another name.",
)
@_HASHES
@common_options(*WRITE, "on_spark")
def move_state(
    options: CommonOptions,
    source: str,
    target: str,
    old: str,
    new: str,
    states: tuple[str, ...],
    hashes: tuple[str, ...],
) -> None:
    """Move keyed states to another operator.

    Both operators need the same key type. Keys and values keep their bytes.

    Examples:
      statetool move-state sp-1a2b moved --from enrich --to join --state cache
      statetool move-state sp-1a2b moved --from enrich --to join --state cache=c
    """
    plan = statetool.move_state(
        open_snapshot(source, options),
        target,
        old,
        new,
        _names(states),
        hashes=_hashes(hashes),
        spark=options.spark,
        **options.write_arguments,
    )
    _print_operators(plan, options)
    report_target(target, options)
