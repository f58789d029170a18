"""Commands that write a new snapshot from an existing one. Each shows its plan, has ``--dry-run``, and never changes existing files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.cli.completion import complete_operator, complete_path, complete_state
from statetool.cli.options import (
    declare_option,
    latest_option,
    opened,
    output_option,
    pairs,
    rebase_option,
    session,
    spark_option,
    take_over_option,
)
from statetool.cli.output import Output
from statetool.errors import OptionError, several

if TYPE_CHECKING:
    from statetool.saving.rescale import RescaleRow


def rewriting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options and arguments that all these commands share."""
    for decorator in (
        output_option,
        rebase_option,
        latest_option,
        declare_option,
        take_over_option,
        click.option("--dry-run", is_flag=True, help="Show the plan only."),
        click.option(
            "--checkpoint-id", type=click.IntRange(min=0), help="Id of the new snapshot. [default: the old one's]"
        ),
        click.argument("target", metavar="DST"),
        click.argument("source", metavar="SRC", shell_complete=complete_path),
    ):
        command = decorator(command)
    return command


#: The first equals sign ends the name.
_EQUALS: Final = "an operator whose uid has an equals sign is named by its 32 hex digits (statetool ls)"


def _numbers(arguments: tuple[str, ...], option: str) -> dict[str, int]:
    numbers = {}
    for name, number in pairs(arguments, f"{option} UID=N", _EQUALS).items():
        try:
            numbers[name] = int(number)
        except ValueError:
            raise OptionError(f"{option} {name}={number}: {number!r} is not a number") from None
    return numbers


@click.command()
@rewriting
@spark_option("Write on Spark.")
@click.option("--max-parallelism", type=int, help="For all operators (but those of --uid).")
@click.option(
    "--uid",
    "by_uid",
    multiple=True,
    shell_complete=complete_operator,
    metavar="UID=N",
    help="Max parallelism of one operator, by uid, name or id.",
)
@click.option("--parallelism", type=int, help="Number of subtasks of what is rescaled. [default: as it is]")
@click.option(
    "--hash", "hashes", multiple=True, metavar="CLASS=WORDS", help="How a class hashes: 'Objects.hash(a, b)'."
)
def rescale(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    on_spark: bool,
    max_parallelism: int | None,
    by_uid: tuple[str, ...],
    parallelism: int | None,
    hashes: tuple[str, ...],
) -> None:
    """Write SRC to DST with another max parallelism; values pass through undecoded."""
    named = _numbers(by_uid, "--uid")
    if max_parallelism is None and not named:
        raise OptionError("nothing to do", hint="give --max-parallelism N, or --uid UID=N")
    savepoint = opened(source, rebase)
    new_numbers: Any = named or max_parallelism
    if max_parallelism is not None and named:
        ids = {savepoint[name].operator_id: number for name, number in named.items()}
        new_numbers = {o.operator_id: ids.get(o.operator_id, max_parallelism) for o in savepoint.operators.values()}
    plan = statetool.rescale(
        savepoint,
        target,
        new_numbers,
        parallelism=parallelism,
        hashes=pairs(hashes, "--hash CLASS=WORDS", "for example --hash 'com.acme.Key=record(a, b)'"),
        spark=session(on_spark),
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        take_over=take_over,
        on_plan=lambda plan: Output(form).rows(plan.operators if form == "json" else list(map(_row, plan.operators))),
    )
    for refusal in plan.refusals:
        Output.say(f"refused: {refusal}")
    say_done(target, dry_run, sum(o.size_bytes for o in plan.operators if o.keys_move not in ("no", "refused")))
    if plan.refusals:
        sys.exit(1)


def _row(plan: RescaleRow) -> dict[str, Any]:
    """Return the columns of one operator for text output."""
    proof = f"{several(plan.keys_tested, 'key')}, chance {plan.chance:.0e}" if plan.formula else ""
    return {
        "operator": plan.operator,
        "max_parallelism": _change(plan.old_max_parallelism, plan.new_max_parallelism),
        "parallelism": _change(plan.old_parallelism, plan.new_parallelism),
        "keys_move": plan.keys_move,
        "size_bytes": plan.size_bytes,
        "formula": plan.formula,
        "proof": proof,
    }


def _change(old: int, new: int) -> str:
    return str(old) if old == new else f"{old} -> {new}"


def say_done(target: str, dry_run: bool, size: int | None = None) -> None:
    """Print the path of the new snapshot, or that none was written."""
    moved = "" if size is None else f" ({size:,} bytes of keyed state)"
    Output.say(f"nothing was written{moved}" if dry_run else f"written to {target}{moved}")


@click.command()
@rewriting
@spark_option("Write on Spark.")
def convert(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    on_spark: bool,
) -> None:
    """Write SRC, a checkpoint or native savepoint, to DST as a self-contained canonical savepoint."""
    savepoint = opened(source, rebase)
    plan = statetool.convert(
        savepoint,
        target,
        spark=session(on_spark),
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        take_over=take_over,
    )
    Output(form).rows(plan.operators)
    say_done(target, dry_run)


@click.command()
@rewriting
@click.argument("changes", nargs=-1, required=True, metavar="OLD=NEW...")
def uid(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    changes: tuple[str, ...],
) -> None:
    """Write SRC to DST with other uids; OLD and NEW are uids or 32 hex digits of an operator id."""
    savepoint = opened(source, rebase)
    plan = statetool.change_uids(
        savepoint,
        target,
        pairs(changes, "OLD=NEW", _EQUALS),
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        take_over=take_over,
    )
    Output(form).rows(plan)
    say_done(target, dry_run)


@click.command()
@rewriting
@click.option(
    "--uid",
    "names",
    multiple=True,
    required=True,
    shell_complete=complete_operator,
    help="The operator, by uid, name or id.",
)
@click.option(
    "--state", "states", multiple=True, shell_complete=complete_state, help="Leave out only this state of the operator."
)
def drop(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    names: tuple[str, ...],
    states: tuple[str, ...],
) -> None:
    """Write SRC to DST without operators, or without single states; what stays keeps its bytes."""
    if states and len(names) != 1:
        raise OptionError("--state needs exactly one --uid")
    savepoint = opened(source, rebase)
    plan = statetool.drop(
        savepoint,
        target,
        () if states else names,
        states={names[0]: states} if states else None,
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        take_over=take_over,
    )
    Output(form).rows(plan.dropped)
    say_done(target, dry_run)
