"""SQL over the tables of snapshots, as a command and at a prompt."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command, CommandProcess
from statetool.cli.options import (
    OUTPUT,
    SNAPSHOT,
    CommonOptions,
    Count,
    common_options,
    file_option,
    open_snapshot,
    pairs,
)
from statetool.cli.output import echo_err, echo_marked, print_line
from statetool.cli.progress import no_progress
from statetool.cli.read.tables import show_options
from statetool.cli.resolve_path import is_snapshot
from statetool.errors import OptionError, StatetoolError, printable, several

if TYPE_CHECKING:
    import pyarrow as pa

    from statetool.tables.sql.engine import Engine

_HELP: Final = """\
Statements end with a semicolon.
  SHOW TABLES;              list tables
  DESCRIBE orders_timers;   list columns of a table
  .tables  .help  .quit
"""


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("query", required=False)
@click.option(
    "--attach", multiple=True, metavar="NAME=PATH", help="Make another snapshot a schema with this name (repeatable)."
)
@file_option("--to", "target", help="Write the result to a new .parquet, .csv or .jsonl file.")
@click.option(
    "-n",
    "--rows",
    "limit",
    type=Count(1),
    default=1000,
    show_default=True,
    help="Maximum number of rows in text output.",
)
@click.option("--memory", "memory_limit", metavar="SIZE", help="Memory of DuckDB, such as 2GB.  [default: 512MB]")
@show_options
@common_options(*SNAPSHOT, "threads", *OUTPUT, formats=("text", "json", "csv"))
def sql(
    options: CommonOptions,
    path: str,
    query: str | None,
    attach: tuple[str, ...],
    target: str | None,
    limit: int,
    memory_limit: str | None,
    **reading: Any,
) -> None:
    """Query tables with SQL, without Spark.

    QUERY is a statement in DuckDB's dialect. Without it, a prompt opens, or statements are read from stdin. Tables are called
    OPERATOR_keyed_state, OPERATOR_timers and OPERATOR_STATE. There are also operators, states, files, key_groups and in_flight. SHOW TABLES
    lists all. OPERATOR is the uid. Without a known uid, it is the name if that is unique, or the operator id. If PATH is a directory of snapshots, each is a schema, and the newest is the default.

    Examples:
      statetool sql savepoint-1a2b "SELECT count(*) FROM orders_keyed_state"
      statetool sql chk-42 "FROM orders_timers LIMIT 5" --to timers.parquet
      statetool sql chk-43 "SELECT count(*) FROM a.orders_total" --attach a=chk-42
    """
    from statetool.api.query import engine

    if click.get_current_context().find_object(CommandProcess) is not None:
        _import_dataset()
    if target is not None and query is None:
        raise OptionError("--to needs a query", hint="pass the query as an argument")
    opened = engine(_snapshots(path, attach, options), memory_limit=memory_limit, threads=options.threads, **reading)
    if query is not None:
        _show(opened.query(query), options, limit, target)
    elif sys.stdin.isatty():
        _prompt(opened, lambda statement: _show(opened.query(statement), options, limit, None))
    else:
        with no_progress():
            text = sys.stdin.read()
        for statement in _statements(text):
            _show(opened.query(statement), options, limit, None)


class _HiddenPandas:
    """A finder of modules for which pandas is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse pandas, and leave all other modules to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def _import_dataset() -> None:
    """Import ``pyarrow.dataset`` without pandas, in the process of a command.

    pyarrow imports pandas, if it is installed, to recognize objects of pandas. For a small table, that takes a third of the time of a query.
    pyarrow does not look for pandas again. Its ``to_pandas`` fails in this process from now on, so libraries must not call this.
    """
    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        importlib.import_module("pyarrow.dataset")
    finally:
        sys.meta_path.remove(hidden)


def _snapshots(path: str, attach: tuple[str, ...], options: CommonOptions) -> Any:
    """Return what to query: a catalog if the path is a directory of snapshots, else snapshots by schema name."""
    others = pairs(attach, "--attach NAME=PATH", "as in --attach before=chk-42")
    if options.latest or is_snapshot(path):
        savepoint = open_snapshot(path, options)
        if not others:
            return savepoint
        attached = {name: open_snapshot(other, options) for name, other in others.items()}
        if "snapshot" in attached:
            raise OptionError("--attach snapshot=...: the snapshot at PATH has this name", hint="choose another name")
        return {**attached, "snapshot": savepoint}
    if others:
        raise OptionError(f"{path} is a directory of snapshots", hint="pass one snapshot, or omit --attach")
    return statetool.catalog(
        None,
        path,
        uids=options.name_uid,
        rebase=options.rebase,
        declarations=options.declare,
        jars=options.jar,
        columns_from_plan=options.columns_from_plan,
        python=options.python or None,
        unsafe_pickle=options.unsafe_pickle,
    )


def _show(result: pa.RecordBatchReader | None, options: CommonOptions, limit: int, target: str | None) -> None:
    """Print a result, or write it to a file."""
    from statetool.tables.export.result_files import csv_lines, json_rows, with_distinct_names, write_result

    if result is None:
        return
    result = with_distinct_names(result)
    if target is not None:
        echo_err(f"{several(write_result(result, target), 'row')} written to {target}")
    elif options.output.form == "csv":
        for line in csv_lines(result):
            print_line(line)
    elif options.output.is_json:
        options.output.stream(row for batch in result for row in json_rows(batch))
    else:
        _show_text(result, options, limit)


def _show_text(result: pa.RecordBatchReader, options: CommonOptions, limit: int) -> None:
    from statetool.tables.export.result_files import plain_rows

    rows: list[dict[str, Any]] = []
    for batch in result:
        rows += plain_rows(batch.slice(0, limit + 1 - len(rows)))
        if len(rows) > limit:
            break
    options.output.rows(rows[:limit], columns=result.schema.names, has_units=False)
    if len(rows) > limit:
        echo_err(f"only the first {several(limit, 'row')}: pass -n for more, or -o csv for all")


def _statements(text: str) -> list[str]:
    """Return the statements of a text."""
    from statetool.tables.sql.duckdb_tables import require_duckdb

    duckdb = require_duckdb()
    try:
        return [s.query for s in duckdb.extract_statements(text)]
    except duckdb.Error as error:
        raise OptionError(" ".join(str(error).partition("\nLINE ")[0].split())) from error


def _prompt(engine: Engine, run: Callable[[str], None]) -> None:
    """Read statements at a prompt and run them. Errors do not end the prompt."""
    schema = f", default schema {engine.default}" if len(engine.snapshots) > 1 else ""
    print_line(
        f"{several(len(engine.names()), 'table')}{schema}. Statements end with a semicolon; .help lists commands."
    )
    for statement in _typed_statements(engine):
        try:
            run(statement)
        except StatetoolError as error:
            echo_marked("error", error)
        except KeyboardInterrupt:
            echo_err("interrupted")


def _typed_statements(engine: Engine) -> Iterator[str]:
    """Yield the statements that a user types, until the end of input or ``.quit``."""
    ask = _asker(engine)
    lines: list[str] = []
    while True:
        try:
            with no_progress():
                lines.append(ask("sql> " if not lines else "...> "))
        except EOFError:
            return
        except KeyboardInterrupt:
            lines.clear()
            continue
        text = "\n".join(lines).strip()
        if text in (".quit", ".exit"):
            return
        if text in (".help", ".tables") or not text:
            names = engine.names() if text == ".tables" else _HELP.splitlines() if text else ()
            for line in names:
                print_line(line)
            lines.clear()
        elif text.endswith(";"):
            lines.clear()
            yield text


def _asker(engine: Engine) -> Callable[[str], str]:
    """Return the function that reads a line: with completion if ``prompt_toolkit`` is installed."""
    try:
        from prompt_toolkit import PromptSession
    except ImportError:
        with suppress(ImportError):
            import readline  # noqa: F401  # arrow keys and history
        return input
    from statetool.cli.read.sql_completion import TableCompleter

    session: Any = PromptSession(completer=TableCompleter(engine), complete_while_typing=False)
    return lambda text: str(session.prompt(printable(text)))
