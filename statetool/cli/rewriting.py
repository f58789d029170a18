"""Commands that make a new snapshot of an old one. Each shows its plan, takes ``--dry-run``, and never touches what is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.cli.options import declare_option, opened, output_option, rebase_option
from statetool.cli.output import Output
from statetool.errors import OptionError

if TYPE_CHECKING:
    from statetool import Savepoint
    from statetool.ops.rescale import OperatorPlan


def _rewriting(command: Callable[..., None]) -> Callable[..., None]:
    """Add what all of these commands take."""
    for decorator in (
        output_option,
        rebase_option,
        declare_option,
        click.option("--dry-run", is_flag=True, help="Show the plan only."),
        click.option(
            "--checkpoint-id", type=click.IntRange(min=0), help="Id of the new snapshot. [default: the old one's]"
        ),
        click.argument("target", metavar="DST"),
        click.argument("source", metavar="SRC"),
    ):
        command = decorator(command)
    return command


class _Progress:
    """Bytes done, on stderr: a line that renews itself on a terminal, else a line now and then."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._said = time.monotonic()

    def __call__(self, size: int) -> None:
        self.done += size
        live = sys.stderr.isatty()
        if live or time.monotonic() - self._said > 5:
            self._said = time.monotonic()
            share = min(100, 100 * self.done // max(self.total, 1))
            print(f"{share} % of {self.total:,} bytes", end="\r" if live else "\n", file=sys.stderr)


def _progress_of(savepoint: Savepoint) -> _Progress:
    return _Progress(sum(r.state_bytes for r in savepoint.metadata_rows("operators")))


def _pairs(given: tuple[str, ...], what: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for one in given:
        # A uid may have an equals sign in it, a number or a new uid hardly.
        left, equals, right = one.rpartition("=")
        if not equals or not left or not right:
            raise OptionError(f"{one!r} is not {what}")
        if left in pairs:
            raise OptionError(f"{left!r} is given twice")
        pairs[left] = right
    return pairs


def _numbers(given: tuple[str, ...], option: str) -> dict[str, int]:
    found = {}
    for name, number in _pairs(given, f"{option} NAME=NUMBER").items():
        try:
            found[name] = int(number)
        except ValueError:
            raise OptionError(f"{option} {name}={number}: {number!r} is not a number") from None
    return found


@click.command()
@_rewriting
@click.option("--max-parallelism", type=int, help="For all operators (but those of --uid).")
@click.option("--uid", "by_uid", multiple=True, metavar="UID=N", help="Max parallelism of one operator, by uid or id.")
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
    checkpoint_id: int | None,
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
    wanted: Any = named or max_parallelism
    if max_parallelism is not None and named:
        ids = {savepoint[name].operator_id: number for name, number in named.items()}
        wanted = {o.operator_id: ids.get(o.operator_id, max_parallelism) for o in savepoint.operators.values()}
    plan = statetool.rescale(
        savepoint,
        target,
        wanted,
        parallelism=parallelism,
        hashes=_pairs_of_hashes(hashes),
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        progress=_progress_of(savepoint),
        on_plan=lambda plan: Output(form).rows(plan.operators if form == "json" else list(map(_row, plan.operators))),
    )
    for refusal in plan.refusals:
        Output.say(f"refused: {refusal}")
    _say_done(target, dry_run, sum(o.size_bytes for o in plan.operators if o.keys_move not in ("no", "refused")))
    if plan.refusals:
        sys.exit(1)


def _row(plan: OperatorPlan) -> dict[str, Any]:
    """Return what text shows of one operator."""
    proof = f"{plan.keys_tested} keys, chance {plan.chance:.0e}" if plan.formula else ""
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


def _pairs_of_hashes(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, words = one.partition("=")
        if not equals:
            raise OptionError(
                f"--hash {one!r} is not CLASS=WORDS", hint="for example --hash 'com.acme.Key=record(a, b)'"
            )
        found[name.strip()] = words
    return found


def _say_done(target: str, dry_run: bool, size: int | None = None) -> None:
    moved = "" if size is None else f" ({size:,} bytes of keyed state)"
    Output.say(f"nothing was written{moved}" if dry_run else f"written to {target}{moved}")


@click.command()
@_rewriting
def convert(
    source: str, target: str, form: str, rebase: tuple[str, ...], dry_run: bool, checkpoint_id: int | None
) -> None:
    """Write SRC, a checkpoint or native savepoint, to DST as a self-contained canonical savepoint."""
    savepoint = opened(source, rebase)
    plan = statetool.convert(
        savepoint,
        target,
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        progress=_progress_of(savepoint),
    )
    Output(form).rows(plan.operators)
    _say_done(target, dry_run)


@click.command()
@_rewriting
@click.argument("changes", nargs=-1, required=True, metavar="OLD=NEW...")
def uid(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    checkpoint_id: int | None,
    changes: tuple[str, ...],
) -> None:
    """Write SRC to DST with other uids; OLD and NEW are uids or 32 hex digits of an operator id."""
    savepoint = opened(source, rebase)
    plan = statetool.change_uids(
        savepoint,
        target,
        _pairs(changes, "OLD=NEW"),
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        progress=_progress_of(savepoint),
    )
    Output(form).rows(plan)
    _say_done(target, dry_run)


@click.command()
@_rewriting
@click.option("--uid", "names", multiple=True, required=True, help="The operator, by uid or id.")
@click.option("--state", "states", multiple=True, help="Leave out only this state of the operator.")
def drop(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
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
        progress=_progress_of(savepoint),
    )
    Output(form).rows(plan.dropped)
    _say_done(target, dry_run)
