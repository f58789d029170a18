"""Commands that write a new snapshot from an existing one. Each shows its plan first, and none changes existing files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import click

import statetool
from statetool.cli.completion import complete_operator, complete_path, complete_state
from statetool.cli.group import Command, CommandGroup
from statetool.cli.options import (
    OUTPUT,
    WRITE,
    CommonOptions,
    common_options,
    open_snapshot,
    operator_option,
    pairs,
    resolve_path,
)
from statetool.cli.output import echo_err
from statetool.cli.progress import expect
from statetool.errors import OptionError, several
from statetool.types.operators import display_name

if TYPE_CHECKING:
    from statetool.saving.verbs.rescale import RescaleRow


def source_and_target(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments of a command that writes a new snapshot."""
    target = click.argument("target", metavar="DST", shell_complete=complete_path)
    return click.argument("source", metavar="SRC", shell_complete=complete_path)(target(command))


#: The first equals sign ends the name.
_EQUALS: Final = "pass the operator id of an operator whose uid contains an equals sign (run: statetool ls PATH)"


def _numbers(arguments: tuple[str, ...], option: str) -> dict[str, int]:
    numbers = {}
    for name, number in pairs(arguments, f"{option} UID=N", _EQUALS).items():
        try:
            numbers[name] = int(number)
        except ValueError:
            raise OptionError(f"{option} {name}={number}: {number!r} is not a number") from None
    return numbers


@click.command(cls=Command)
@source_and_target
@click.option("--max-parallelism", type=int, help="Max parallelism of all operators, except those of --uid.")
@click.option(
    "--uid",
    "by_uid",
    multiple=True,
    shell_complete=complete_operator,
    metavar="UID=N",
    help="Max parallelism of one operator, by uid, name or operator id.",
)
@click.option(
    "--except",
    "excepted",
    multiple=True,
    shell_complete=complete_operator,
    metavar="UID",
    help="Operator that keeps its max parallelism.",
)
@click.option("--parallelism", type=int, help="Number of subtasks of rescaled operators.  [default: unchanged]")
@click.option(
    "--hash", "hashes", multiple=True, metavar="CLASS=FORMULA", help="Hash code of a key class: 'Objects.hash(a, b)'."
)
@common_options(*WRITE, "on_spark")
def rescale(
    options: CommonOptions,
    source: str,
    target: str,
    max_parallelism: int | None,
    by_uid: tuple[str, ...],
    excepted: tuple[str, ...],
    parallelism: int | None,
    hashes: tuple[str, ...],
) -> None:
    """Change the max parallelism of operators.

    Writes a copy of SRC to DST in which each key is in its new key group. Values are copied without decoding them.

    Operators in one chain of the job need the same max parallelism.

    Exits 1 if some operator cannot be rescaled.

    Examples:
      statetool rescale savepoint-1a2b rescaled --max-parallelism 1024 --dry-run
      statetool rescale savepoint-1a2b rescaled --uid orders=1024
      statetool rescale sp-1a2b rescaled --max-parallelism 1024 --except sink
    """
    named = _numbers(by_uid, "--uid")
    if max_parallelism is None and not named:
        raise OptionError("nothing to do", hint="pass --max-parallelism N or --uid UID=N")
    output = options.output
    savepoint = open_snapshot(source, options)
    new_numbers: Any = named or max_parallelism
    if excepted and max_parallelism is None:
        raise OptionError("--except needs --max-parallelism", hint="pass --max-parallelism N for all other operators")
    if max_parallelism is not None and (named or excepted):
        ids = {savepoint[name].operator_id: number for name, number in named.items()}
        kept = {savepoint[name].operator_id for name in excepted}
        others = (i for o in savepoint.operators.values() if (i := o.operator_id) not in kept)
        new_numbers = {i: ids.get(i, max_parallelism) for i in others}
    plan = statetool.rescale(
        savepoint,
        target,
        new_numbers,
        parallelism=parallelism,
        hashes=pairs(hashes, "--hash CLASS=FORMULA", "for example --hash 'com.acme.Key=record(a, b)'"),
        spark=options.spark,
        on_plan=lambda plan: output.rows(plan.operators if output.is_json else _rows(plan.operators)),
        **options.write_arguments,
    )
    echo_err(*(f"refused: {refusal}" for refusal in plan.refusals))
    report_target(
        target,
        options,
        sum(o.size_bytes for o in plan.operators if o.keys_move not in ("no", "refused")),
        is_changed=bool(plan.refusals) or any(map(_is_rescaled, plan.operators)),
    )
    if not plan.refusals:
        before = {o.name: o.max_parallelism for o in savepoint.operators.values()}
        numbers = before | {p.operator: p.new_max_parallelism for p in plan.operators}
        echo_err(_configuration(numbers, max_parallelism, [p.operator for p in plan.operators]))
    if plan.refusals:
        sys.exit(1)


def _is_rescaled(row: RescaleRow) -> bool:
    return (row.old_max_parallelism, row.old_parallelism) != (row.new_max_parallelism, row.new_parallelism)


def _configuration(numbers: Mapping[str, int], everywhere: int | None, changed: Sequence[str]) -> str:
    """Return what a job that sets max parallelism must set. A job that does not set it keeps that of the snapshot."""
    own = {name: n for name, n in numbers.items() if n != everywhere and (everywhere is not None or name in changed)}
    settings = [f"setMaxParallelism({n}) for {display_name(name)}" for name, n in own.items()]
    if everywhere is not None:
        settings.insert(0, f"pipeline.max-parallelism: {everywhere}")
    return f"if the job sets max parallelism, it needs {', '.join(settings)}"


def _rows(plans: Sequence[RescaleRow]) -> list[dict[str, Any]]:
    """Return the rows for text output. Columns that only some key types fill are left out if no operator has one."""
    rows = [_row(plan) for plan in plans]
    empty = {name for name in ("formula", "proof") if not any(row[name] for row in rows)}
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]


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


def report_target(target: str, options: CommonOptions, size: int | None = None, *, is_changed: bool = True) -> None:
    """Print the path of the new snapshot, or that none was written, and whether its state is that of the existing one."""
    if not is_changed:
        echo_err(f"nothing {'would change' if options.dry_run else 'changed'}: the new snapshot has the same state")
    moved = "" if size is None else f" ({size:,} bytes of keyed state)"
    echo_err(f"nothing was written{moved}" if options.dry_run else f"written to {target}{moved}")


@click.command(cls=Command)
@source_and_target
@click.option(
    "--state-api",
    type=click.Choice(["v1", "v2"]),
    help="Write keyed state for this API: v1 is restored by RocksDB and heap, v2 is asynchronous state of ForSt.",
)
@click.option(
    "--format",
    type=click.Choice(["canonical", "native"]),
    default="canonical",
    show_default=True,
    help="Format of the savepoint. A native one restores faster, with --backend only.",
)
@click.option("--backend", type=click.Choice(["rocksdb"]), help="State backend that restores a native savepoint.")
@common_options(*WRITE, "on_spark")
def convert(
    options: CommonOptions,
    source: str,
    target: str,
    state_api: Literal["v1", "v2"] | None,
    format: Literal["canonical", "native"],
    backend: Literal["rocksdb"] | None,
) -> None:
    """Convert a snapshot to a canonical or native savepoint.

    SRC is any snapshot. DST is self-contained. A canonical savepoint can be restored with RocksDB and the heap backend. A native one of RocksDB
    restores faster, and needs Flink 1.15 or later, and a job that keeps its timers in RocksDB, which is the default.

    Examples:
      statetool convert checkpoints/1a2b/chk-7 savepoints/from-chk-7 --dry-run
      statetool convert savepoint-1a2b native --format native --backend rocksdb
      statetool convert forst-checkpoint savepoint --state-api v1
    """
    savepoint = open_snapshot(source, options)
    plan = statetool.convert(
        savepoint,
        target,
        state_api=state_api,
        format=format,
        backend=backend,
        spark=options.spark,
        **options.write_arguments,
    )
    options.output.rows(plan.operators)
    if not any(o.keyed_state == "rewritten" for o in plan.operators):
        echo_err(f"no keyed state is in another form than that of a {format} savepoint: all of it is copied")
    report_target(target, options)


@click.command(cls=Command)
@source_and_target
@click.argument("changes", nargs=-1, required=True, metavar="OLD=NEW...")
@common_options(*WRITE)
def uid(options: CommonOptions, source: str, target: str, changes: tuple[str, ...]) -> None:
    """Change uids of operators.

    OLD and NEW are uids or operator ids (32 hex digits).

    Examples:
      statetool uid savepoint-1a2b renamed orders=orders-v2
      statetool uid savepoint-1a2b renamed cbc357ccb763df2852fee8c4fc7d55f2=orders
    """
    savepoint = open_snapshot(source, options)
    plan = statetool.change_uids(savepoint, target, pairs(changes, "OLD=NEW", _EQUALS), **options.write_arguments)
    options.output.rows(plan)
    report_target(target, options)


@click.command(cls=Command)
@source_and_target
@operator_option("Operator to remove, by uid, name or operator id.", "names", multiple=True, required=True)
@click.option(
    "--state", "states", multiple=True, shell_complete=complete_state, help="State to remove instead of the operator."
)
@common_options(*WRITE)
def drop(options: CommonOptions, source: str, target: str, names: tuple[str, ...], states: tuple[str, ...]) -> None:
    """Remove operators, or single states.

    Everything else keeps its bytes.

    Examples:
      statetool drop savepoint-1a2b smaller --uid old-sink
      statetool drop savepoint-1a2b smaller --uid enrich --state cache --dry-run
    """
    if states and len(names) != 1:
        raise OptionError("--state needs exactly one --uid", hint="run statetool drop once per operator")
    savepoint = open_snapshot(source, options)
    plan = statetool.drop(
        savepoint,
        target,
        () if states else names,
        states={names[0]: states} if states else None,
        **options.write_arguments,
    )
    options.output.rows(plan.dropped)
    report_target(target, options)


@click.group(cls=CommandGroup)
def state() -> None:
    """Rename states of an operator.

    Examples:
      statetool state rename savepoint-1a2b renamed \\
        --uid orders --state total --to sum
    """


@state.command()
@source_and_target
@operator_option("Operator of the states, by uid, name or operator id.", required=True)
@click.option("--state", "states", multiple=True, required=True, shell_complete=complete_state, help="State to rename.")
@click.option("--to", "new_names", multiple=True, required=True, metavar="NAME", help="New name of the state.")
@common_options(*WRITE)
def rename(
    options: CommonOptions, source: str, target: str, uid: str, states: tuple[str, ...], new_names: tuple[str, ...]
) -> None:
    """Rename states of an operator.

    Everything else keeps its bytes. To rename several states, repeat --state and --to in the same order. All names
    change at once, so states can swap their names.

    Examples:
      statetool state rename savepoint-1a2b renamed \\
        --uid orders --state total --to sum
    """
    if len(states) != len(new_names) or len(set(states)) != len(states):
        raise OptionError("each --state needs one --to", hint="as in --state total --to sum")
    savepoint = open_snapshot(source, options)
    names = dict(zip(states, new_names, strict=True))
    plan = statetool.rename_states(savepoint, target, uid, names, **options.write_arguments)
    options.output.rows(plan.renamed)
    report_target(target, options)


@click.command(cls=Command)
@source_and_target
@click.option("--compare", is_flag=True, help="Read every copied file again and compare it with the original.")
@common_options("latest", "rebase", "dry_run", "take_over", "on_spark", "threads", *OUTPUT)
def copy(options: CommonOptions, source: str, target: str, compare: bool) -> None:
    """Copy a snapshot with all files that it needs.

    SRC and DST may be in different file systems. The copy is self-contained: it has the files that only state names too,
    such as those of a write-ahead sink in taskowned. DST must not exist.

    Examples:
      statetool copy s3://bucket/savepoint-1a2b /backup/savepoint-1a2b --compare
    """
    source = resolve_path(source, options)
    plan = statetool.copy(source, target, dry_run=True, take_over=options.take_over, rebase=options.rebase)
    echo_err(f"{several(len(plan.files), 'file')} and _metadata, {several(plan.size_bytes, 'byte')}, to {target}")
    if options.dry_run:
        options.output.rows(plan.files)
        return
    expect(lambda: (3 if compare else 2) * plan.size_bytes)
    done = statetool.copy(
        source,
        target,
        take_over=options.take_over,
        rebase=options.rebase,
        spark=options.spark,
        threads=options.threads,
        compare=compare,
    )
    options.output.record(
        {"metadata_file": done.metadata_file, "files": len(done.files), "size_bytes": done.size_bytes}
    )
