"""Commands. Each is a few lines over the public API.

Exit codes: 0 fine, 1 problems found, 2 usage, 3 unreadable input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

import statetool
from statetool.cli.directories import chain, is_snapshot, orphans, print_snapshots
from statetool.cli.options import opened, output_option, rebase_option, type_options
from statetool.cli.output import Output
from statetool.cli.rewriting import convert, drop, rescale, uid
from statetool.cli.whole import copy, verify
from statetool.errors import (
    MissingDependencyError,
    OptionError,
    StatetoolError,
    TargetExistsError,
    UnknownNameError,
)
from statetool.operator import Operator

_INFO_COLUMNS = ("operator", "name", "parallelism", "max_parallelism", "subtasks", "state_bytes")
_STATE_COLUMNS = ("operator", "name", "scope", "kind", "key_type", "namespace_type", "value_type", "ttl", "readable")


class _Commands(click.Group):
    """Names near commands for unknown ones, and turns our errors into messages and exit codes."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from statetool.errors import suggest

            raise click.UsageError(f"{error.message} ({suggest(args[0], self.commands)})", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StatetoolError as error:
            if ctx.params.get("debug"):
                raise
            Output.say(f"error: {error}")
            usage = isinstance(error, OptionError | UnknownNameError | TargetExistsError)
            ctx.exit(2 if usage else 3)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(statetool.__version__)
def cli(debug: bool) -> None:
    """Open Apache Flink savepoints and checkpoints, with no Flink."""


def _snapshot(command: Callable[..., None]) -> Callable[..., None]:
    """Add what all commands on a snapshot take."""
    for decorator in (
        output_option,
        rebase_option,
        type_options,
        click.option("--uid", "uids", multiple=True, help="Name an operator that the snapshot knows by id only."),
        click.argument("path"),
    ):
        command = decorator(command)
    return command


@cli.command()
@_snapshot
def info(path: str, uids: tuple[str, ...], rebase: tuple[str, ...], form: str) -> None:
    """Show a snapshot's id, version and operators."""
    savepoint = opened(path, rebase, uids=uids)
    operators = savepoint.metadata_rows("operators")
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

        out.record({**head, "operators": [asdict(o) for o in operators]})
        return
    out.record(head)
    print()
    out.rows(operators, columns=_INFO_COLUMNS)


@cli.command()
@_snapshot
def ls(path: str, uids: tuple[str, ...], rebase: tuple[str, ...], form: str) -> None:
    """List the tables of a snapshot, or the snapshots below a directory."""
    if not is_snapshot(path):
        print_snapshots(path, rebase, form)
        return
    savepoint = opened(path, rebase, uids=uids)
    rows = [{"operator": o.name, "table": t} for o in savepoint.operators.values() for t in o.tables]
    Output(form).rows(rows)


@cli.command()
@_snapshot
def states(path: str, uids: tuple[str, ...], rebase: tuple[str, ...], form: str) -> None:
    """List all states with their types."""
    rows = opened(path, rebase, uids=uids).metadata_rows("states")
    Output(form).rows(rows, columns=_STATE_COLUMNS)
    if undeclared := [s for s in rows if s.readable and s.reason]:
        first = undeclared[0]
        Output.say(f"{len(undeclared)} states could be more than bytes; {first.operator}.{first.name}: {first.reason}")


@cli.command()
@_snapshot
def files(path: str, uids: tuple[str, ...], rebase: tuple[str, ...], form: str) -> None:
    """List every piece of state and where it lies."""
    Output(form).rows(opened(path, rebase, uids=uids).metadata_rows("files"))


@cli.command()
@_snapshot
@click.argument("operator")
@click.argument("table", default="keyed_state")
@click.option("--format", "style", type=click.Choice(["spark", "avro"]), default="spark", show_default=True)
def schema(
    path: str, uids: tuple[str, ...], rebase: tuple[str, ...], form: str, operator: str, table: str, style: str
) -> None:
    """Show the schema of a table as Spark DDL or as Avro."""
    from statetool.arrow.text_schemas import avro_schema, spark_ddl

    columns = opened(path, rebase, uids=uids)[operator].scan(table).schema
    out = Output(form)
    if style == "spark":
        text = spark_ddl(columns)
        if form == "json":
            out.record({"ddl": text})
        else:
            out.text(text)
    else:
        import json

        out.text(json.dumps(avro_schema(columns, name=table), indent=None if form == "json" else 2))


def _read_options(command: Callable[..., None]) -> Callable[..., None]:
    for decorator in (
        click.option("--decimals", type=click.Choice(["decimal", "string"]), default="decimal", show_default=True),
        click.option(
            "--nanos", type=click.Choice(["error", "companion", "truncate"]), default="error", show_default=True
        ),
        click.option("--ttl", type=click.Choice(["show", "raw"]), default="show", show_default=True),
        click.option("--states", "selected", help="Comma-separated states of keyed_state."),
    ):
        command = decorator(command)
    return command


@cli.command()
@_snapshot
@_read_options
@click.argument("operator")
@click.argument("table", default="keyed_state")
@click.option("-n", "--rows", "limit", type=click.IntRange(min=1), default=10, show_default=True)
def head(
    path: str,
    uids: tuple[str, ...],
    rebase: tuple[str, ...],
    form: str,
    operator: str,
    table: str,
    limit: int,
    **options: Any,
) -> None:
    """Show the first rows of a table; needs no Java."""
    Output(form).rows(_first_rows(opened(path, rebase, uids=uids)[operator], table, limit, **_arguments(options)))


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    selected = options.pop("selected")
    return {**options, **({"states": selected.split(",")} if selected else {})}


def _first_rows(operator: Operator, table: str, limit: int, **arguments: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in operator.batches(table, **arguments):
        rows += batch.slice(0, limit - len(rows)).to_pylist()
        if len(rows) >= limit:
            break
    return rows


@cli.command()
@_snapshot
@_read_options
@click.argument("operator")
@click.argument("table")
@click.argument("target")
@click.option(
    "--format", "style", type=click.Choice(["parquet", "avro", "jsonl"]), default="parquet", show_default=True
)
def export(
    path: str,
    uids: tuple[str, ...],
    rebase: tuple[str, ...],
    form: str,
    operator: str,
    table: str,
    target: str,
    style: str,
    **options: Any,
) -> None:
    """Write a table to TARGET on Spark; an existing target is refused."""
    from statetool.spark.export_job import export_table
    from statetool.spark.session import local_session

    spark = local_session()
    savepoint = opened(path, rebase, uids=uids, spark=spark)
    Output.say(f"exporting {operator} {table} to {target} as {style}")
    rows = export_table(savepoint[operator], table, target, style=style, progress=True, **_arguments(options))
    Output(form).record({"operator": operator, "table": table, "target": target, "format": style, "rows": rows})


@cli.command()
@click.argument("path", required=False)
@click.option("--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(path: str | None, form: str) -> None:
    """Check this machine, and a snapshot if one is given."""
    from statetool.cli.doctor import check_machine, check_snapshot

    findings = check_machine() + (check_snapshot(path) if path else [])
    Output(form).rows(findings)
    if any(not f["fine"] for f in findings):
        sys.exit(1)


@cli.command()
def demo() -> None:
    """Open the bundled savepoint in local Spark: its tables, their first rows, one SQL query."""
    from statetool.demo.run import run_demo

    run_demo()


cli.add_command(chain)
cli.add_command(copy)
cli.add_command(orphans)
cli.add_command(verify)
cli.add_command(rescale)
cli.add_command(convert)
cli.add_command(uid)
cli.add_command(drop)


def main() -> None:
    """Run the command line."""
    try:
        cli()
    except MissingDependencyError as error:
        Output.say(f"error: {error}")
        sys.exit(3)
    except BrokenPipeError:
        sys.exit(0)
