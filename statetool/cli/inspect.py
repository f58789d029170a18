"""Commands that analyze snapshots: large state, growth, differences."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.cli.completion import complete_operator, complete_path, complete_state
from statetool.cli.options import (
    finding_options,
    given_options,
    latest_wanted,
    opened,
    opened_together,
    output_of,
    output_option,
    rebase_pairs,
    session,
    spark_option,
    type_options,
)
from statetool.cli.output import Output
from statetool.cli.resolve_path import is_snapshot
from statetool.errors import OptionError, TargetExistsError, several
from statetool.tables.request import ScanRequest

if TYPE_CHECKING:
    from statetool.api.inspect import Comparison
    from statetool.compatibility.verdicts import OperatorVerdict, StateVerdict

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
#: Options that also apply to growth.
_OF_GROWTH = ("form", "wide", "json", "rebase", "threads")
_ALL_TABLES = ("operators", "states", "sizes", "largest", "distribution", "skew", "ages", "timers", "restore")


@click.command()
@output_option
@finding_options
@type_options
@click.option(
    "--operator",
    "operators",
    multiple=True,
    shell_complete=complete_operator,
    help="Measure only this operator, by uid or id.",
)
@click.option("--table", type=click.Choice(_ALL_TABLES), help="Show this table alone, with all of its columns.")
@click.option("--largest", type=click.IntRange(min=0), default=10, show_default=True, help="How many are named.")
@click.option("--parallelism", type=click.IntRange(min=1), help="Show the skew at this parallelism too.")
@click.option("--ttl-ms", type=click.IntRange(min=1), help="Count values as expired that are older.")
@click.option("--now-ms", type=int, help="Epoch milliseconds that ages count from. [default: now]")
@click.option("--bandwidth", "bandwidth_mib", type=float, default=100.0, show_default=True, help="MiB/s of a restore.")
@click.option("--latency-ms", type=float, default=20.0, show_default=True, help="What a request of a restore waits.")
@spark_option("Measure on Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("path", shell_complete=complete_path)
def stats(
    path: str,
    rebase: tuple[str, ...],
    form: str,
    operators: tuple[str, ...],
    table: str | None,
    on_spark: bool,
    **options: Any,
) -> None:
    """Show what is large: states, keys, values, subtasks; ages and timers. Of a directory of checkpoints: what grew.

    Exit code 1 if some state could not be read: only its bytes are counted.
    """
    if not latest_wanted() and not is_snapshot(path):
        for name, option in given_options().items():
            if name not in _OF_GROWTH:
                raise OptionError(
                    f"{option} does nothing for a directory of snapshots, of which growth is shown",
                    hint="leave it out, or take the newest snapshot: --latest",
                )
        Output(form).rows(statetool.growth(path, rebase=rebase_pairs(rebase), threads=options["threads"]))
        return
    savepoint = opened(path, rebase)
    statistics = savepoint.stats(operators=operators or None, spark=session(on_spark), **options)
    out = Output(form)
    if table is not None:
        out.rows(statistics.rows(table))
    elif form == "json":
        tables = {name: [asdict(r) for r in statistics.rows(name)] for name in statistics.tables}
        out.record({**tables, "unread": list(statistics.unread)})
    else:
        for name, columns in _SHOWN.items():
            if rows := statistics.rows(name):
                out.text(f"{name}:")
                out.rows([_add_times(asdict(r)) for r in rows], columns=columns)
                out.text("")
    for reason in statistics.unread:
        Output.say(f"not read, so only its bytes are counted: {reason}")
    if statistics.unread:
        sys.exit(1)


@click.command()
@output_of("text", "json", "parquet")
@finding_options
@type_options
@click.option(
    "--operator",
    "operators",
    multiple=True,
    shell_complete=complete_operator,
    help="Compare only this operator, by uid or id.",
)
@click.option("--states", shell_complete=complete_state, help="States to compare, separated by commas.")
@click.option("--keys", metavar="KEYS", help='Keys to compare, as JSON: [1, "a", {"tuple": ["b", 2]}].')
@click.option("--ignore-access-times", is_flag=True, help="Of values with a time to live compare the values alone.")
@click.option(
    "--limit", type=click.IntRange(0, sys.maxsize), default=20, show_default=True, help="Differences that are shown."
)
@click.option("--target", metavar="FILE", help="A new file for all differences, of --output parquet.")
@spark_option("Compare on Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("before", metavar="A", shell_complete=complete_path)
@click.argument("after", metavar="B", shell_complete=complete_path)
def diff(
    before: str,
    after: str,
    rebase: tuple[str, ...],
    form: str,
    operators: tuple[str, ...],
    states: str | None,
    keys: str | None,
    ignore_access_times: bool,
    limit: int,
    target: str | None,
    on_spark: bool,
    threads: int | None,
) -> None:
    """Show what differs between A and B: what they say of states, counts, and key by key.

    Backend, form, release and parallelism may differ. Exit code 1 if there are differences, or state that could not be compared.
    """
    _check_target(form, target)
    request = ScanRequest.from_options({k: v for k, v in (("states", states), ("keys", keys)) if v is not None})
    spark = session(on_spark)
    first, second = opened_together([before, after], rebase, spark=spark)
    comparison = first.diff(
        second,
        operators=operators or None,
        states=request.states,
        keys=request.keys,
        access_times=not ignore_access_times,
        threads=threads,
    )
    if target is not None:
        _write_parquet(comparison, target)
    show_differences(comparison, Output(form), limit, written=target)
    if not comparison.equal:
        sys.exit(1)


def show_differences(comparison: Comparison, out: Output, limit: int, *, written: str | None = None) -> None:
    """Show a comparison: structure, counts, and the first differences unless all are ``written`` to a file."""
    summary = [s for s in comparison.summary() if s.added + s.removed + s.changed]
    rows = [] if written else comparison.first(limit).to_pylist()
    if out.form == "json":
        out.record(
            {
                "equal": comparison.equal,
                "structure": [asdict(s) for s in comparison.structure],
                "summary": [asdict(s) for s in summary],
                "differences": rows,
                "unread": list(comparison.unread),
            }
        )
    else:
        for name, records in (("structure", comparison.structure), ("summary", summary), ("differences", rows)):
            if records:
                out.text(f"{name}:")
                out.rows(records)
                out.text("")
    for reason in comparison.unread:
        Output.say(f"not compared: {reason}")
    total = sum(s.added + s.removed + s.changed for s in summary)
    shown = f", shown: {len(rows):,} (--limit)" if total > len(rows) else ""
    Output.say(several(total, "difference") + (f", written to {written}" if written else shown))


@click.command()
@output_option
@finding_options
@type_options
@click.option("--flink", metavar="RELEASE", help="The release that restores, such as 2.3. [default: that of B]")
@click.option("--backend", type=click.Choice(["heap", "rocksdb"]), help="The backend of the new job. [default: B's]")
@click.option("--plan", "plan_file", metavar="FILE", help="Write a plan for migrate into a new file; needs B.")
@click.argument("a", metavar="A", shell_complete=complete_path)
@click.argument("b", metavar="[B]", required=False, shell_complete=complete_path)
def check(
    a: str, b: str | None, rebase: tuple[str, ...], form: str, flink: str | None, backend: Any, plan_file: str | None
) -> None:
    """Tell whether a job would restore from A: against B, a savepoint of the new job, a release of Flink, or both.

    Exit code 1 unless it does, fully or after migration, and nothing is lost or may change.
    """
    first, *others = opened_together([a] if b is None else [a, b], rebase)
    checked = statetool.check(first, *others, flink=flink, backend=backend)
    out = Output(form)
    if form == "json":
        out.record({**asdict(checked), "warnings": list(checked.warnings)})
    else:
        out.record({"verdict": checked.verdict, "reason": checked.reason})
        rows = [_verdict_row(o.uid, None, o) for o in checked.operators]
        rows += [_verdict_row(o.uid, s.name, s) for o in checked.operators for s in o.states if s.verdict != "fully"]
        out.text("")
        out.rows(rows)
    for warning in checked.warnings:
        Output.say(f"warning: {warning}")
    if plan_file is not None:
        if not others:
            raise OptionError("a plan needs a savepoint of the new job", hint="statetool check A B --plan FILE")
        plan = statetool.plan_migration(first, *others)
        statetool.write_plan(plan, plan_file)
        Output.say(f"{several(len(plan.states), 'state')} to migrate, written to {plan_file}")
    if not checked.ok:
        sys.exit(1)


def _verdict_row(operator: str, state: str | None, verdict: OperatorVerdict | StateVerdict) -> dict[str, Any]:
    answer = {"verdict": verdict.verdict, "reason": verdict.reason, "remedy": verdict.remedy}
    return {"operator": operator, "state": state, **answer}


def _check_target(form: str, target: str | None) -> None:
    if (form == "parquet") != (target is not None):
        raise OptionError(
            "--output parquet needs --target, which nothing else takes",
            hint="statetool diff A B --output parquet --target differences.parquet",
        )
    if target is not None and "limit" in given_options():
        raise OptionError("--limit does nothing for a file, which has all differences", hint="leave it out")
    if target is not None and os.path.exists(target):
        raise TargetExistsError(f"{target} is there already", hint="name a new file")


def _write_parquet(comparison: Comparison, target: str) -> None:
    import pyarrow.parquet as pq

    from statetool.comparison.records import DIFFERENCES

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
