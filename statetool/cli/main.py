"""The command group and its basic commands, each a few lines over the public API.

Exit codes: 0 success, 1 problems found or state that could not be read, 2 usage error, 3 unreadable input or output that cannot be written,
130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.api.execution import remarks
from statetool.cli.browse import browse
from statetool.cli.checkpoints import advise, lint
from statetool.cli.completion import complete_operator, complete_path, complete_table, completion
from statetool.cli.connectors import sinks, sources
from statetool.cli.directories import chain, orphans, print_snapshots
from statetool.cli.examples import add_examples
from statetool.cli.inspect import check, diff, stats
from statetool.cli.installation import demo, doctor, kernels
from statetool.cli.mcp import mcp
from statetool.cli.migrating import migrate, transform
from statetool.cli.options import (
    asked_for,
    finding_options,
    latest_wanted,
    opened,
    output_option,
    reading_options,
    type_options,
)
from statetool.cli.output import Output, print_traceback, use_escapes
from statetool.cli.report import report
from statetool.cli.resolve_path import SnapshotChoicesError, is_snapshot
from statetool.cli.rewrite import convert, drop, rescale, uid
from statetool.cli.shell import shell
from statetool.cli.verify_copy import copy, verify
from statetool.errors import (
    MissingDependencyError,
    OptionError,
    StatetoolError,
    TargetExistsError,
    UnknownNameError,
    printable,
    several,
)

if TYPE_CHECKING:
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo
    from statetool.tables.scan import TableScan

_INFO_COLUMNS = ("operator", "name", "parallelism", "max_parallelism", "subtasks", "state_bytes")
_STATE_COLUMNS = ("operator", "name", "scope", "kind", "key_type", "namespace_type", "value_type", "ttl", "readable")

#: The shells' exit code for Ctrl-C: 128 plus the number of the signal.
_INTERRUPTED: Final = 130
#: Commands that write snapshots.
_WRITES: Final = {"rescale", "convert", "uid", "drop", "migrate", "transform", "copy", "export", "report"}


class _Commands(click.Group):
    """Suggests similar names for unknown commands, and turns statetool's errors into messages and exit codes."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from statetool.errors import suggest

            beginning = [name for name in self.commands if name.startswith(args[0])]
            raise click.UsageError(f"{error.message} ({suggest(args[0], beginning or self.commands)})", ctx) from None

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _printable_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings(), _printable_usage():
                warnings.showwarning = lambda message, *_, **__: Output.say(f"warning: {message}")
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except StatetoolError as error:
            if ctx.params.get("debug"):
                raise
            Output.say(f"error: {error}", *(error.choices if isinstance(error, SnapshotChoicesError) else ()))
            usage = isinstance(error, OptionError | UnknownNameError | TargetExistsError)
            ctx.exit(2 if usage else 3)
        except KeyboardInterrupt as interrupt:
            Output.say(str(interrupt) or "interrupted")
            ctx.exit(_INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The reader of stdout has closed it, so the success of a write is not known. Prevent flushing at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(1 if ctx.invoked_subcommand in _WRITES else 0)
            if ctx.params.get("debug"):
                raise
            Output.say(f"error: {error}")
            ctx.exit(3)
        except Exception as error:
            if ctx.params.get("debug") or not _is_of_spark(error):
                raise
            Output.say(f"error: Spark says: {str(error).strip().splitlines()[0]} (statetool --debug shows all of it)")
            ctx.exit(3)


@contextmanager
def _printable_usage() -> Iterator[None]:
    """Escape the parts of the command line in click's errors, which a script may have taken from a snapshot or from file names."""
    try:
        yield
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]
        raise


def _is_of_spark(error: Exception) -> bool:
    """Return True if Spark raised an error, such as a division by zero in a user's expression."""
    return any(kind.__module__.startswith("pyspark.errors") for kind in type(error).__mro__)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(statetool.__version__)
def cli(debug: bool) -> None:
    """Open Apache Flink savepoints and checkpoints, with no Flink."""
    use_escapes()


def _snapshot(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options and arguments of all commands on a snapshot."""
    for decorator in (
        output_option,
        finding_options,
        type_options,
        click.argument("path", shell_complete=complete_path),
    ):
        command = decorator(command)
    return command


@cli.command()
@_snapshot
def info(path: str, rebase: tuple[str, ...], form: str) -> None:
    """Show a snapshot's id, version and operators, and which sources were behind, as far as their state tells."""
    savepoint = opened(path, rebase)
    operators = savepoint.metadata_rows("operators")
    backlogs = _backlogs(savepoint) if any(o.coordinator_bytes for o in operators) else []
    out = Output(form)
    head = {
        "path": savepoint.path,
        "checkpoint_id": savepoint.checkpoint_id,
        "metadata_version": savepoint.metadata_version,
        "operators": len(operators),
        "state_bytes": sum(o.state_bytes for o in operators),
    }
    if form == "json":
        from dataclasses import asdict

        out.record({**head, "operators": [asdict(o) for o in operators], "backlog": [asdict(b) for b in backlogs]})
        return
    out.record(head)
    out.text("")
    out.rows(operators, columns=_INFO_COLUMNS)
    if backlogs:
        out.text("")
        out.rows(backlogs)
    if unnamed := [o for o in operators if not o.uid and o.state_bytes]:
        out.text("")
        _print_unnamed(savepoint, unnamed, out)


def _backlogs(savepoint: statetool.Savepoint) -> list[Any]:
    from statetool.connectors.backlog import backlog_rows

    return list(backlog_rows(savepoint.inventory.operators.values()))


def _print_unnamed(savepoint: statetool.Savepoint, unnamed: Sequence[OperatorRow], out: Output) -> None:
    """Show operators without a uid with their states, which distinguish them."""
    states = savepoint.metadata_rows("states")
    out.rows(
        [
            {"without_uid": o.operator, "states": ", ".join(s.name for s in states if s.operator == o.operator) or None}
            for o in unnamed
        ]
    )
    out.say(
        "--name-uid UID names one; --uids FILE looks for their uids in the job's jar, its source or a compiled plan"
    )


@cli.command()
@_snapshot
def ls(path: str, rebase: tuple[str, ...], form: str) -> None:
    """List the tables of a snapshot, or the snapshots below a directory."""
    if not latest_wanted() and not is_snapshot(path):
        print_snapshots(path, rebase, form)
        return
    savepoint = opened(path, rebase)
    rows = [{"operator": o.name, "table": t} for o in savepoint.operators.values() for t in o.tables]
    Output(form).rows(rows)
    _say_unread(savepoint.metadata_rows("states"))


@cli.command()
@_snapshot
def states(path: str, rebase: tuple[str, ...], form: str) -> None:
    """List all states with their types."""
    rows = opened(path, rebase).metadata_rows("states")
    Output(form).rows(rows, columns=_STATE_COLUMNS)
    if undeclared := [s for s in rows if s.readable and s.reason]:
        first = undeclared[0]
        Output.say(
            f"{several(len(undeclared), 'state')} could be more than bytes; {first.operator}.{first.name}: {first.reason}"
        )
    _say_unread(rows)


def _say_unread(rows: Sequence[StateInfo]) -> None:
    """Report the operators whose keyed or operator state could not be listed."""
    for row in rows:
        if row.kind == "unread":
            Output.say(f"{row.operator}: its {row.scope} state is not listed: {row.reason}")


@cli.command()
@_snapshot
def files(path: str, rebase: tuple[str, ...], form: str) -> None:
    """List every piece of state and where it lies."""
    Output(form).rows(opened(path, rebase).metadata_rows("files"))


@cli.command()
@_snapshot
@reading_options
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", default="keyed_state", shell_complete=complete_table)
@click.option("--format", "style", type=click.Choice(["spark", "avro"]), default="spark", show_default=True)
def schema(path: str, rebase: tuple[str, ...], form: str, operator: str, table: str, style: str) -> None:
    """Show the schema of a table as Spark DDL or as Avro."""
    from statetool.columns.text_schemas import avro_schema, ddl_lines

    columns = opened(path, rebase)[operator].plan(asked_for(table)).schema
    out = Output(form)
    if style == "spark":
        lines = ddl_lines(columns)
        if form == "json":
            out.record({"ddl": "\n".join(lines)})
        else:
            out.text(*lines)
    else:
        import json

        out.text(*json.dumps(avro_schema(columns, name=table), indent=None if form == "json" else 2).split("\n"))


@cli.command()
@_snapshot
@reading_options
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", default="keyed_state", shell_complete=complete_table)
@click.option("-n", "--rows", "limit", type=click.IntRange(1, sys.maxsize), default=10, show_default=True)
def head(path: str, rebase: tuple[str, ...], form: str, operator: str, table: str, limit: int) -> None:
    """Show the first rows of a table; needs no Java."""
    opened_operator = opened(path, rebase)[operator]
    Output(form).rows(_first_rows(opened_operator.plan(asked_for(table)), limit))
    for remark in remarks(opened_operator.states, table):
        Output.say(remark)


def _first_rows(scan: TableScan, limit: int) -> list[dict[str, Any]]:
    from statetool.columns.python_values import rows_to_python

    rows: list[dict[str, Any]] = []
    for batch in scan.batches():
        rows += rows_to_python(batch.slice(0, limit - len(rows)))
        if len(rows) >= limit:
            break
    return rows


@cli.command()
@_snapshot
@reading_options
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", shell_complete=complete_table)
@click.argument("target")
@click.option(
    "--format",
    "style",
    type=click.Choice(["parquet", "avro", "jsonl", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
)
@click.option("--by-key-group", is_flag=True, help="Partition by the column key_group.")
@click.option("--append", is_flag=True, help="Add to what other checkpoints gave, with the column checkpoint_id.")
def export(
    path: str,
    rebase: tuple[str, ...],
    form: str,
    operator: str,
    table: str,
    target: str,
    style: str,
    by_key_group: bool,
    append: bool,
) -> None:
    """Write a table to TARGET on Spark: a new directory, for iceberg a table. What is there is never overwritten."""
    from statetool.spark.export import export_table
    from statetool.spark.session import local_session

    request = asked_for(table)
    spark = local_session()
    savepoint = opened(path, rebase, spark=spark)
    Output.say(f"exporting {operator} {table} to {target} as {style}")
    rows = export_table(
        savepoint[operator],
        request,
        target,
        style=style,
        by_key_group=by_key_group,
        append_as=savepoint.checkpoint_id if append else None,
    )
    Output(form).record({"operator": operator, "table": table, "target": target, "format": style, "rows": rows})


_FROM_OTHER_MODULES: tuple[click.Command, ...] = (
    advise, browse, chain, check, completion, convert, copy, demo, diff, doctor, drop, kernels, lint, mcp, migrate, orphans,
    report, rescale, shell, sinks, sources, stats, transform, uid, verify,
)  # fmt: skip
for _command in _FROM_OTHER_MODULES:
    cli.add_command(_command)
add_examples(cli)


def _replace_closed_streams() -> None:
    """Redirect closed stdin, stdout and stderr to the null device. Otherwise the next opened files would get their file descriptors."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def main() -> None:
    """Run the command line."""
    _replace_closed_streams()
    sys.excepthook = print_traceback
    try:
        cli()
    except MissingDependencyError as error:
        Output.say(f"error: {error}")
        sys.exit(3)
