"""Commands on one table: its schema, its first rows, its export."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from statetool.cli.completion import complete_operator, complete_path, complete_table
from statetool.cli.group import Command, SectionOption
from statetool.cli.options import OUTPUT, SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import echo_err
from statetool.tables.option_text import Option
from statetool.tables.request import OPTIONS, SHOWING, ScanRequest


def _read_option(option: Option) -> Any:
    """Return the command line option for an option of a read. Its value stays text, which :class:`ScanRequest` parses."""
    more: dict[str, Any] = {"metavar": option.kind.upper()}
    if option.kind == "flag":
        more = {"is_flag": True, "flag_value": "true", "default": None}
    elif option.kind == "word":
        more = {"type": click.Choice(option.words)}
    default = "" if option.default in (None, False, ()) else f"  [default: {option.default}]"
    name = f"--{option.name.replace('_', '-')}"
    help = f"{option.help}{default}"
    return click.option(name, option.name, cls=SectionOption, section="Read options", help=help, **more)


def request_from_options(parameters: dict[str, Any]) -> ScanRequest:
    """Take the table and the options of a read out of a command's parameters.

    Raises
    ------
    OptionError
        A text is not valid for its option, or options conflict.
    """
    texts = {name: parameters.pop(name) for name in OPTIONS}
    return ScanRequest.from_options({name: text for name, text in texts.items() if text is not None})


def read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add every option of a read except the table, which is an argument. The command gets them as ``request``."""

    @wraps(command)
    def run(**parameters: Any) -> None:
        command(request=request_from_options(parameters), **parameters)

    for option in reversed(OPTIONS.values()):
        if option.name != "table":
            run = _read_option(option)(run)
    return run


def show_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for showing values. The command gets those that were given as keyword arguments."""

    @wraps(command)
    def run(**parameters: Any) -> None:
        texts = {name: parameters.pop(name) for name in SHOWING}
        given = {name: OPTIONS[name].parse(text) for name, text in texts.items() if text is not None}
        command(**parameters, **given)

    for name in reversed(SHOWING):
        run = _read_option(OPTIONS[name])(run)
    return run


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", default="keyed_state", shell_complete=complete_table)
@click.option(
    "--format", "style", type=click.Choice(["spark", "avro"]), default="spark", show_default=True, help="Schema format."
)
@read_options
@common_options(*SNAPSHOT, *OUTPUT)
def schema(options: CommonOptions, path: str, operator: str, request: ScanRequest, style: str) -> None:
    """Show the schema of a table.

    The schema is printed as Spark DDL or as Avro. TABLE is keyed_state (the default), timers, or the name of a state.

    Examples:
      statetool schema savepoint-1a2b orders
      statetool schema savepoint-1a2b orders keyed_state --format avro
    """
    from statetool.columns.text_schemas import avro_schema, ddl_lines

    columns = open_snapshot(path, options)[operator].plan(request).schema
    output = options.output
    if style == "avro":
        import json

        indent = None if output.is_json else 2
        output.text(*json.dumps(avro_schema(columns, name=request.table), indent=indent).split("\n"))
    elif output.is_json:
        output.record({"ddl": "\n".join(ddl_lines(columns))})
    else:
        output.text(*ddl_lines(columns))


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", default="keyed_state", shell_complete=complete_table)
@click.option(
    "-n",
    "--rows",
    "limit",
    type=click.IntRange(1, sys.maxsize),
    default=10,
    show_default=True,
    help="Number of rows.",
)
@read_options
@common_options(*SNAPSHOT, *OUTPUT)
def head(options: CommonOptions, path: str, operator: str, request: ScanRequest, limit: int) -> None:
    """Show the first rows of a table.

    TABLE is keyed_state (the default), timers, or the name of a state. Needs no Spark.

    Examples:
      statetool head savepoint-1a2b orders
      statetool head savepoint-1a2b orders timers -n 3
      statetool head savepoint-1a2b orders --keys '["customer-7"]' --json
    """
    from statetool.columns.python_values import rows_to_python
    from statetool.connectors.hints import bytes_hints
    from statetool.tables.rows import first_rows

    opened = open_snapshot(path, options, operators=[operator])[operator]
    rows = first_rows(opened.plan(request), limit).to_batches()
    options.output.rows([row for batch in rows for row in rows_to_python(batch)], has_units=False)
    echo_err(*bytes_hints(opened.inventory, opened.states, request.table, request.states))


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("operator", shell_complete=complete_operator)
@click.argument("table", shell_complete=complete_table)
@click.argument("target")
@click.option(
    "--format",
    "style",
    type=click.Choice(["parquet", "avro", "csv", "jsonl", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="Format of the exported table.",
)
@click.option("--by-key-group", is_flag=True, help="Partition by the column key_group.")
@click.option("--append", is_flag=True, help="Add the rows to an earlier export, with the column checkpoint_id.")
@read_options
@common_options(*SNAPSHOT, "on_spark", "threads", *OUTPUT)
def export(
    options: CommonOptions,
    path: str,
    operator: str,
    request: ScanRequest,
    target: str,
    style: str,
    by_key_group: bool,
    append: bool,
) -> None:
    """Export a table to files, Delta or Iceberg.

    TARGET is a new directory or, with --format iceberg, the name of a table: CATALOG.NAMESPACE.TABLE. Existing data is never overwritten. A failure
    leaves nothing, and a killed process no local TARGET, only a hidden directory beside it. Everything is written in this process, or with --spark on Spark.
    Without Spark, Delta needs the extra statetool[delta] and Iceberg statetool[iceberg], with a catalog in pyiceberg's configuration.

    Examples:
      statetool export savepoint-1a2b orders keyed_state s3://bucket/orders
      statetool export savepoint-1a2b orders timers timers --format csv
      statetool export savepoint-1a2b orders keyed_state lake --format delta
    """
    from statetool.api.export import export_request

    savepoint = open_snapshot(path, options, operators=[operator], spark=options.spark)
    if options.threads is not None:
        savepoint = savepoint.with_execution(replace(savepoint.execution, threads=options.threads))
    echo_err(f"exporting {operator} {request.table} to {target} as {style}")
    rows = export_request(
        savepoint[operator],
        request,
        target,
        style=style,
        by_key_group=by_key_group,
        append_as=savepoint.checkpoint_id if append else None,
    )
    options.output.record(
        {"operator": operator, "table": request.table, "target": target, "format": style, "rows": rows}
    )


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("operator", required=False, shell_complete=complete_operator)
@click.argument("table", required=False, shell_complete=complete_table)
@click.option("--keys", metavar="KEYS", help='Keys to count, as JSON: [1, "a", {"tuple": ["b", 2]}].')
@common_options(*SNAPSHOT, *OUTPUT)
def count(options: CommonOptions, path: str, operator: str | None, table: str | None, keys: str | None) -> None:
    """Count the rows of tables.

    Counts one table, all tables of OPERATOR, or all tables of the snapshot. States are not decoded.

    Examples:
      statetool count savepoint-1a2b
      statetool count savepoint-1a2b orders keyed_state
    """
    savepoint = open_snapshot(path, options, operators=[operator] if operator else ())
    operators = [savepoint[operator]] if operator else list(savepoint.operators.values())
    given = {} if keys is None else {"keys": OPTIONS["keys"].parse(keys)}
    rows = []
    for found in operators:
        for name in found.tables if table is None else [table]:
            rows.append({"operator": found.name, "table": name, "rows": found.count(name, **given)})
    options.output.rows(rows)
