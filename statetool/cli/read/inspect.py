"""Commands that analyze snapshots: large state, growth, differences."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.cli.completion import complete_path, complete_state
from statetool.cli.group import Command
from statetool.cli.options import (
    OUTPUT,
    SNAPSHOT,
    CommonOptions,
    Count,
    backend_option,
    common_options,
    file_option,
    flink_option,
    given_options,
    jar_options,
    match_option,
    open_snapshot,
    open_snapshots,
    operator_option,
    sql_plan_options,
    start_options,
)
from statetool.cli.output import echo_err
from statetool.cli.resolve_path import is_snapshot
from statetool.cli.verdicts import command_line, show_check, show_comparison
from statetool.errors import OptionError, TargetExistsError, several

if TYPE_CHECKING:
    from statetool.api.comparison import Comparison
    from statetool.api.start_options import StartOptions
    from statetool.compatibility.verdicts import Check

#: Statistics tables shown in text output, with their columns.
_SHOWN = {
    "operators": ("operator", "size_bytes", "entries_bytes", "header_bytes", "framing_bytes", "entries", "keys", "snappy_ratio"),
    "states": ("operator", "scope", "state", "kind", "entries", "keys", "size_bytes", "share", "mean_value", "largest_value"),
    "largest": ("operator", "what", "state", "key", "key_group", "subtask", "length", "size_bytes"),
    "skew": ("operator", "parallelism", "subtask", "key_groups", "entries", "size_bytes", "of_mean"),
    "restore": ("operator", "parallelism", "subtask", "files", "requests", "read_bytes", "own_bytes", "seconds"),
    "ages": ("operator", "state", "age_at_least_ms", "age_below_ms", "count", "expired"),
    "timers": ("operator", "state", "domain", "in_at_least_ms", "in_below_ms", "count", "first", "last"),
}  # fmt: skip
_ESTIMATED = {
    "operators": ("operator", "files", "stored_bytes", "entries", "at_least", "at_most", "size_bytes"),
    "states": ("operator", "scope", "state", "kind", "entries", "at_least", "at_most", "stored_bytes", "basis"),
}
_ESTIMATED_TABLES = ("operators", "states", "key_groups")
#: Options that do not apply to estimates.
_EXACT_ONLY = ("largest", "parallelism", "ttl_ms", "now_ms", "bandwidth_mib", "latency_ms")
#: Options that also apply to growth.
_OF_GROWTH = ("output", "wide", "json", "rebase", "threads")
_ALL_TABLES = (
    "operators",
    "states",
    "sizes",
    "largest",
    "distribution",
    "skew",
    "ages",
    "timers",
    "restore",
    "key_groups",
)


def largest_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of statistics that ``stats`` and ``report`` share."""
    for option in (
        click.option("--now-ms", type=int, help="Epoch milliseconds from which ages are measured.  [default: now]"),
        click.option("--ttl-ms", type=click.IntRange(min=1), help="Age in ms above which values count as expired."),
        click.option("--parallelism", type=click.IntRange(min=1), help="Also show the skew at this parallelism."),
        click.option(
            "--largest",
            type=click.IntRange(min=0),
            default=10,
            show_default=True,
            help="Number of largest values listed.",
        ),
    ):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@operator_option("Operator to measure, by uid, name or operator id.", "operators", multiple=True)
@click.option(
    "--table",
    type=click.Choice(_ALL_TABLES),
    metavar="TABLE",
    help=f"Show only this table, with all of its columns: {', '.join(_ALL_TABLES[:-1])}, or {_ALL_TABLES[-1]}.",
)
@click.option("--estimate", is_flag=True, help="Estimate without reading entries.")
@largest_options
@click.option(
    "--bandwidth", "bandwidth_mib", type=float, default=100.0, show_default=True, help="Restore bandwidth in MiB/s."
)
@click.option(
    "--latency-ms", type=float, default=20.0, show_default=True, help="Latency of one request during a restore."
)
@common_options(*SNAPSHOT, "on_spark", "threads", *OUTPUT)
def stats(
    options: CommonOptions, path: str, operators: tuple[str, ...], table: str | None, estimate: bool, **measure: Any
) -> None:
    """Find large states, keys and values, skew, or growth.

    For a directory of checkpoints, shows how state grew from checkpoint to checkpoint.

    With --estimate, reads no entries: at most one small request per file. Numbers of entries come from the files of
    RocksDB, with bounds. Unknown numbers are empty. The tables are operators, states and key_groups.

    Exits 1 if some state could not be read. Its bytes are counted. Numbers that are not known for this reason are shown as - (null in JSON).

    Examples:
      statetool stats s3://bucket/savepoint-1a2b
      statetool stats s3://bucket/savepoint-1a2b --table largest
      statetool stats s3://bucket/savepoint-1a2b --estimate
      statetool stats s3://bucket/checkpoints/1a2b
    """
    if not options.latest and not is_snapshot(path):
        for name, option in given_options().items():
            if name not in _OF_GROWTH:
                raise OptionError(
                    f"{option} cannot be used for the growth of a directory of snapshots",
                    hint="leave it out, or add --latest to measure the newest snapshot",
                )
        options.output.rows(statetool.growth(path, rebase=options.rebase, threads=options.threads))
        return
    columns = _ESTIMATED if estimate else _SHOWN
    _check_estimate(table, estimate)
    savepoint = open_snapshot(path, options, operators=operators)
    run = savepoint.estimate_stats if estimate else partial(savepoint.stats, **measure)
    statistics = run(operators=operators or None, spark=options.spark, threads=options.threads)
    output = options.output
    if table is not None:
        output.rows(statistics.rows(table))
    elif output.is_json:
        tables = {name: [asdict(r) for r in statistics.rows(name)] for name in statistics.tables}
        output.record({**tables, "unread": list(statistics.unread)})
    else:
        for name, shown in columns.items():
            if rows := statistics.rows(name):
                output.text(f"{name}{' (estimate)' if estimate else ''}:")
                output.rows([_add_times(asdict(r)) for r in rows], columns=shown)
                output.text("")
    for reason in statistics.unread:
        echo_err(f"only the bytes are counted: {reason}")
    if statistics.unread:
        sys.exit(1)


def _check_estimate(table: str | None, estimate: bool) -> None:
    """Raise an error for options and tables that only the other form of ``stats`` has."""
    given = given_options()
    if not estimate:
        if table == "key_groups":
            raise OptionError("--table key_groups is a table of estimates only", hint="add --estimate")
        return
    for option in (given[name] for name in _EXACT_ONLY if name in given):
        raise OptionError(f"{option} cannot be used with --estimate", hint=f"leave out {option}")
    if table not in (None, *_ESTIMATED_TABLES):
        raise OptionError(
            f"--table {table} is not a table of estimates",
            hint=f"leave out --estimate, or pass one of {', '.join(_ESTIMATED_TABLES)}",
        )


@click.command(cls=Command)
@click.argument("before", metavar="A", shell_complete=complete_path)
@click.argument("after", metavar="B", shell_complete=complete_path)
@operator_option("Operator to compare, by uid, name or operator id.", "operators", multiple=True)
@click.option("--states", shell_complete=complete_state, help="States to compare, separated by commas.")
@click.option("--keys", metavar="KEYS", help='Keys to compare, as JSON: [1, "a", {"tuple": ["b", 2]}].')
@click.option("--ignore-access-times", is_flag=True, help="Ignore the last access of values with a time to live.")
@match_option
@click.option("--limit", type=Count(0), default=20, show_default=True, help="Number of differences shown.")
@file_option("--target", help="New file for all differences (with --output parquet).")
@common_options(*SNAPSHOT, "on_spark", "threads", *OUTPUT, formats=("text", "json", "parquet"))
def diff(
    options: CommonOptions,
    before: str,
    after: str,
    operators: tuple[str, ...],
    states: str | None,
    keys: str | None,
    ignore_access_times: bool,
    match: str | None,
    limit: int,
    target: str | None,
) -> None:
    """Compare two snapshots, key by key.

    Compares types, numbers of entries, and values. A and B may have different backends, formats, Flink releases and
    parallelism. With --match, operators may have other ids in B. --uid then takes their names in B or in A.

    Exits 1 if there are differences, or state that could not be compared.

    Examples:
      statetool diff savepoint-1a2b savepoint-3c4d --uid orders
      statetool diff old-savepoint new-savepoint -o parquet --target diff.parquet
      statetool diff old-savepoint new-savepoint --match auto
    """
    from statetool.tables.request import ScanRequest

    _check_target(options.output.form, target)
    request = ScanRequest.from_options({k: v for k, v in (("states", states), ("keys", keys)) if v is not None})
    first, second = open_snapshots([before, after], options, operators=operators, spark=options.spark)
    comparison = first.diff(
        second,
        operators=operators or None,
        states=request.states,
        keys=request.keys,
        access_times=not ignore_access_times,
        match=match,
        threads=options.threads,
    )
    if target is not None:
        _write_parquet(comparison, target)
    if options.output.is_json:
        options.output.record(comparison_record(comparison, limit))
    show_comparison(comparison, limit, options.output.form, command_line("before", "after"), written=target)
    if not comparison.equal:
        sys.exit(1)


def comparison_record(comparison: Comparison, limit: int) -> dict[str, Any]:
    """Return a comparison as a JSON object, with the first differences."""
    return {
        "equal": comparison.equal,
        "structure": [asdict(s) for s in comparison.structure],
        "summary": [asdict(s) for s in comparison.summary() if s.added + s.removed + s.changed],
        "differences": comparison.first(limit).to_pylist(),
        "unread": list(comparison.unread),
    }


def new_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe the new job."""
    return flink_option("B")(backend_option(command))


@click.command(cls=Command)
@click.argument("a", metavar="A", shell_complete=complete_path)
@click.argument("b", metavar="[B]", required=False, shell_complete=complete_path)
@new_job_options
@file_option(
    "--write-plan",
    "plan_file",
    help="New file for a migration plan, to edit and pass to statetool migrate (needs B).",
)
@match_option
@jar_options
@click.option("--run", "runs", is_flag=True, help="Run the classes of the new job (--jar-b) with Flink, in a JVM.")
@click.option("--flink-home", metavar="DIR", help="Flink for --run.  [default: FLINK_HOME, apache-flink-libraries]")
@click.option("--sample", metavar="N|all", default="1000", show_default=True, help="Values per state for --run.")
@click.option("--all-files", is_flag=True, help="Look for each file of A, also with many requests.")
@sql_plan_options
@start_options
@common_options(*SNAPSHOT, *OUTPUT)
def check(
    options: CommonOptions,
    a: str,
    b: str | None,
    flink_version: str | None,
    backend: Any,
    plan_file: str | None,
    match: str | None,
    jar_a: tuple[str, ...],
    jar_b: tuple[str, ...],
    runs: bool,
    flink_home: str | None,
    sample: str,
    all_files: bool,
    plan_a: str | None,
    plan_b: str | None,
    start: StartOptions,
) -> None:
    """Check whether a job would restore from a snapshot.

    A is the snapshot to restore. Pass at least one of B (a savepoint of the new job), the jar of the new job (--jar-b),
    and a Flink release (--flink). With --jar-b but without B, the new job has the states of A.

    Follows the restore step by step: files, metadata, operators, parallelism, finished tasks, in-flight data,
    coordinators, operator state, keyed state, timers, windows, sources, sinks, claim, and the first checkpoint. What it
    takes for granted is listed, with the option that proves it. If the files of A take more than a few requests to an
    object store, it looks for three of them, and for the others only if one is missing, or with --all-files.

    --run decides what only running code tells: own serializers, constructors, serializers of Kryo, hash codes. It starts a
    JVM (JDK 11 or later) in which Flink and the new job's classes read serializers and values of A. They run with your
    rights.

    With --match, the verdict is on a copy of A in which operators have the ids of B. Flink does not find their state in A
    itself, so write the copy first: the command is in the output.

    Exits 0 only if the job restores, no state is lost or altered, and nothing fails later.

    Examples:
      statetool check savepoint-1a2b --flink 2.3
      statetool check savepoint-1a2b savepoint-of-new-job --match auto
      statetool check savepoint-1a2b savepoint-of-new-job --write-plan plan.json
      statetool check savepoint-1a2b --jar-a old.jar --jar-b new.jar --flink 2.3
      statetool check savepoint-1a2b --jar-b new.jar --run --flink-home flink-2.3
    """
    paths = [a] if b is None else [a, b]
    first, *others = open_snapshots(paths, options, jars=[jar_a, jar_b], plans=[plan_a, plan_b])
    run: dict[str, Any] = {
        "run": runs,
        "flink_home": flink_home,
        "sample": _sample_size(sample),
        "all_files": all_files,
    }
    if runs:
        echo_err("--run: the classes of the new job run on this machine, with your rights")
    checked = statetool.check(
        first, *others, flink_version=flink_version, backend=backend, other_jars=jar_b, match=match, **run, **start
    )
    if options.output.is_json:
        options.output.record(checked.record())

    def recheck(path: str, is_migrated: bool) -> Check:
        jars, plans = (jar_b if is_migrated else jar_a), (plan_b if is_migrated else plan_a)
        # Only the given snapshots are in another place, or need a choice.
        opened, *_ = open_snapshots(
            [path], replace(options, rebase={}, latest=False, uids=(), name_uid=()), jars=[jars], plans=[plans]
        )
        return statetool.check(opened, *others, flink_version=flink_version, backend=backend, other_jars=jar_b, **start)

    new = others[0] if others else None
    # The suggested commands are about the renamed copy, which does not exist yet.
    trial = None if checked.renamed else recheck
    show_check(checked, first, new, options.output.form, jar_b, flink_version, backend, trial, match)
    if plan_file is not None:
        if not others:
            raise OptionError(
                "--write-plan needs B, a savepoint of the new job", hint="run: statetool check A B --write-plan FILE"
            )
        plan = statetool.plan_migration(first, *others, match=match)
        statetool.write_plan(plan, plan_file)
        echo_err(f"{several(len(plan.states), 'state')} to migrate, written to {plan_file}")
    if not checked.ok:
        sys.exit(1)


def _sample_size(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise OptionError(f"--sample {text} is not a number of values", hint="pass a number of 1 or more, or all")
    return int(text)


def _check_target(form: str, target: str | None) -> None:
    if (form == "parquet") != (target is not None):
        raise OptionError(
            "--output parquet and --target FILE can only be used together",
            hint="run: statetool diff A B --output parquet --target differences.parquet",
        )
    if target is not None and "limit" in given_options():
        raise OptionError(
            "--limit cannot be used with --target: the file has all differences", hint="leave out --limit"
        )
    if target is not None and os.path.exists(target):
        raise TargetExistsError(f"{target} already exists", hint="pass the name of a new file")


def _write_parquet(comparison: Comparison, target: str) -> None:
    import pyarrow.parquet as pq

    from statetool.analysis.comparison.records import DIFFERENCES

    partial = f"{target}.partial"
    try:
        with pq.ParquetWriter(partial, DIFFERENCES) as writer:
            for batch in comparison.batches(skip_unread=True):
                writer.write_batch(batch)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        raise


def _add_times(row: dict[str, Any]) -> dict[str, Any]:
    """Add the times of a row in readable form."""
    return row | {name: _date(row[f"{name}_ms"]) for name in ("first", "last") if f"{name}_ms" in row}


def _date(epoch_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return str(epoch_ms)
