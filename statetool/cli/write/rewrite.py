"""Commands that write a new snapshot from an existing one. Each shows its plan first, and none changes existing files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.api.write.verbs import rewrite as verbs
from statetool.api.write.verbs.base import EQUALS_IN_UID
from statetool.cli.group import Command, CommandGroup
from statetool.cli.options import OUTPUT, WRITE, CommonOptions, common_options, pairs, resolve_path
from statetool.cli.output import echo_err
from statetool.cli.progress import expect
from statetool.cli.verb import open_given, report_target, run_verb, verb_options
from statetool.errors import OptionError, several
from statetool.types.operators import display_name

if TYPE_CHECKING:
    from statetool.saving.verbs.rescale import RescaleRow


def _numbers(arguments: tuple[str, ...], option: str) -> dict[str, int]:
    numbers = {}
    for name, number in pairs(arguments, f"{option} UID=N", EQUALS_IN_UID).items():
        try:
            numbers[name] = int(number)
        except ValueError:
            raise OptionError(f"{option} {name}={number}: {number!r} is not a number") from None
    return numbers


@click.command(cls=Command)
@verb_options(verbs.Rescale, by_uid=partial(_numbers, option="--uid"))
@common_options(*WRITE, "on_spark")
def rescale(options: CommonOptions, given: verbs.Rescale) -> None:
    """Change the max parallelism of operators.

    Writes a copy of SRC to DST in which each key is in its new key group. Values are copied without decoding them.

    Operators in one chain of the job need the same max parallelism.

    Exits 1 if some operator cannot be rescaled.

    Examples:
      statetool rescale savepoint-1a2b rescaled --max-parallelism 1024 --dry-run
      statetool rescale savepoint-1a2b rescaled --uid orders=1024
      statetool rescale sp-1a2b rescaled --max-parallelism 1024 --except sink
    """
    if given.number is None and not given.by_uid:
        raise OptionError("nothing to do", hint="pass --max-parallelism N or --uid UID=N")
    output = options.output
    (savepoint,) = open_given(given, options)
    if given.excepted and given.number is None:
        raise OptionError("--except needs --max-parallelism", hint="pass --max-parallelism N for all other operators")
    plan = run_verb(
        given,
        options,
        src=savepoint,
        max_parallelism=_new_numbers(savepoint, given),
        on_plan=lambda plan: output.rows(plan.operators if output.is_json else _rows(plan.operators)),
    )
    echo_err(*(f"refused: {refusal}" for refusal in plan.refusals))
    report_target(
        given.dst,
        options,
        sum(o.size_bytes for o in plan.operators if o.keys_move not in ("no", "refused")),
        is_changed=bool(plan.refusals) or any(map(_is_rescaled, plan.operators)),
    )
    if not plan.refusals:
        before = {o.name: o.max_parallelism for o in savepoint.operators.values()}
        numbers = before | {p.operator: p.new_max_parallelism for p in plan.operators}
        echo_err(_configuration(numbers, given.number, [p.operator for p in plan.operators]))
    if plan.refusals:
        sys.exit(1)


def _new_numbers(savepoint: statetool.Savepoint, given: verbs.Rescale) -> int | Mapping[str, int] | None:
    named = given.by_uid or {}
    if given.number is None or not (named or given.excepted):
        return named or given.number
    ids = {savepoint[name].operator_id: number for name, number in named.items()}
    kept = {savepoint[name].operator_id for name in given.excepted}
    others = (i for o in savepoint.operators.values() if (i := o.operator_id) not in kept)
    return {i: ids.get(i, given.number) for i in others}


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


@click.command(cls=Command)
@verb_options(verbs.Convert)
@common_options(*WRITE, "on_spark")
def convert(options: CommonOptions, given: verbs.Convert) -> None:
    """Convert a snapshot to a canonical or native savepoint.

    SRC is any snapshot. DST is self-contained. A canonical savepoint can be restored with RocksDB and the heap backend. A native one of RocksDB
    restores faster at the same parallelism, and needs Flink 1.15 or later, and a job that keeps its timers in RocksDB, which is the default.
    By default, ForSt restores native savepoints only.

    Examples:
      statetool convert checkpoints/1a2b/chk-7 savepoints/from-chk-7 --dry-run
      statetool convert savepoint-1a2b native --format native --backend rocksdb
      statetool convert forst-checkpoint savepoint --state-api v1
    """
    plan = run_verb(given, options)
    options.output.rows(plan.operators)
    if not any(o.keyed_state == "rewritten" for o in plan.operators):
        echo_err(f"no keyed state is in another form than that of a {given.format} savepoint: all of it is copied")
    report_target(given.dst, options)


@click.command(cls=Command)
@verb_options(verbs.ChangeUids)
@common_options(*WRITE)
def uid(options: CommonOptions, given: verbs.ChangeUids) -> None:
    """Change uids of operators.

    OLD and NEW are uids or operator ids (32 hex digits). With --match, each operator gets the uid or id that its partner
    has in the new job, and operators without a partner keep theirs.

    Examples:
      statetool uid savepoint-1a2b renamed orders=orders-v2
      statetool uid savepoint-1a2b renamed cbc357ccb763df2852fee8c4fc7d55f2=orders
      statetool uid savepoint-1a2b renamed --match pairs.json
    """
    if (given.match is None) == (not given.changes):
        raise OptionError("uid needs the new uids", hint="pass either OLD=NEW or --match FILE")
    changes = given.changes if given.match is None else _changes_of_match(given.match)
    options.output.rows(run_verb(given, options, changes=changes))
    report_target(given.dst, options)


def _changes_of_match(file: str) -> dict[str, str]:
    """Return the new uid or id by old id from a file of ``statetool match``.

    Raises
    ------
    OptionError
        The file is not one of ``match``, an operator has no decided partner, or all operators have the same id in both jobs.
    FormatError
        The file is not valid JSON.
    """
    from statetool.io.json_text import read_json
    from statetool.snapshot.matching import Matching  # needs the serializers

    try:
        changes = Matching.parse(read_json(file)).changes
    except OptionError as error:
        raise error.at(file=file) from None
    if not changes:
        raise OptionError(f"{file} has no operator with another id in B", hint="start the job from the snapshot itself")
    return changes


@click.command(cls=Command)
@verb_options(verbs.Drop)
@common_options(*WRITE)
def drop(options: CommonOptions, given: verbs.Drop) -> None:
    """Remove operators, or single states.

    Everything else keeps its bytes.

    Examples:
      statetool drop savepoint-1a2b smaller --uid old-sink
      statetool drop savepoint-1a2b smaller --uid enrich --state cache --dry-run
    """
    names, states = tuple(given.operators), tuple(given.state)
    if states and len(names) != 1:
        raise OptionError("--state needs exactly one --uid", hint="run statetool drop once per operator")
    plan = run_verb(given, options, **({"operators": (), "states": {names[0]: states}} if states else {}))
    options.output.rows(plan.dropped)
    report_target(given.dst, options)


@click.group(cls=CommandGroup)
def state() -> None:
    """Rename states of an operator.

    Examples:
      statetool state rename savepoint-1a2b renamed \\
        --uid orders --state total --to sum
    """


@state.command()
@verb_options(verbs.RenameStates)
@common_options(*WRITE)
def rename(options: CommonOptions, given: verbs.RenameStates) -> None:
    """Rename states of an operator.

    Everything else keeps its bytes. To rename several states, repeat --state and --to in the same order. All names
    change at once, so states can swap their names.

    Examples:
      statetool state rename savepoint-1a2b renamed \\
        --uid orders --state total --to sum
    """
    names = dict(zip(given.state, given.to, strict=False))
    if not len(names) == len(tuple(given.state)) == len(tuple(given.to)):
        raise OptionError("each --state needs one --to", hint="as in --state total --to sum")
    plan = run_verb(given, options, names=names)
    options.output.rows(plan.renamed)
    report_target(given.dst, options)


@click.command(cls=Command)
@verb_options(verbs.Copy)
@common_options("latest", "rebase", "dry_run", "take_over", "on_spark", "threads", *OUTPUT)
def copy(options: CommonOptions, given: verbs.Copy) -> None:
    """Copy a snapshot with all files that it needs.

    SRC and DST may be in different file systems. The copy is self-contained: it has the files that only state names too,
    such as those of a write-ahead sink in taskowned. DST must not exist.

    Examples:
      statetool copy s3://bucket/savepoint-1a2b /backup/savepoint-1a2b --compare
    """
    run = partial(run_verb, given, options, source=resolve_path(given.source, options), rebase=options.rebase)
    plan = run(spark=None, dry_run=True)
    echo_err(f"{several(len(plan.files), 'file')} and _metadata, {several(plan.size_bytes, 'byte')}, to {given.target}")
    if options.dry_run:
        options.output.rows(plan.files)
        return
    expect(lambda: (3 if given.compare else 2) * plan.size_bytes)
    done = run(threads=options.threads)
    options.output.record(
        {"metadata_file": done.metadata_file, "files": len(done.files), "size_bytes": done.size_bytes}
    )
