"""The command line: its commands, and exit codes for errors.

Exit codes: 0 success, 1 problems found or state that could not be read, 2 usage error, 3 unreadable input or output that cannot be written,
130 interrupted.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

import statetool
from statetool.cli.commands import COMMANDS, WORDS
from statetool.cli.group import CommandProcess, LazyGroup
from statetool.cli.output import echo_err, echo_marked, print_traceback, use_escapes, wrap_words
from statetool.errors import (
    MissingDependencyError,
    MissingKeyError,
    OptionError,
    StatetoolError,
    TargetExistsError,
    UnknownNameError,
)
from statetool.io.glibc import claim_process

#: The shells' exit code for Ctrl-C: 128 plus the number of the signal.
_INTERRUPTED: Final = 130
#: In narrower terminals, click would print help as wide as this.
_LEAST_HELP: Final = 50
#: Commands that go on until they are stopped.
_LASTING: Final = frozenset({"browse", "mcp", "metrics", "serve", "shell", "sql"})
#: Commands that write files, or have Flink write them.
_WRITES: Final = {*COMMANDS["Write"], "report", "savepoint", "checkpoint"}


class _Commands(LazyGroup):
    """Turns statetool's errors into messages and exit codes."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        if (columns := shutil.get_terminal_size().columns) < _LEAST_HELP:
            more.setdefault("terminal_width", columns)
        with _printable_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings(), _printable_usage():
                warnings.showwarning = lambda message, *_, **__: echo_marked("warning", message)
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except StatetoolError as error:
            if ctx.params.get("debug"):
                raise
            echo_marked("error", error)
            echo_err(*_choices(error))
            ctx.exit(_exit_code(error))
        except KeyboardInterrupt as interrupt:
            echo_err(str(interrupt) or "interrupted")
            ctx.exit(_INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The reader of stdout has closed it, so the success of a write is not known. Prevent flushing at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(1 if ctx.invoked_subcommand in _WRITES else 0)
            if ctx.params.get("debug"):
                raise
            echo_marked("error", error)
            ctx.exit(3)
        except Exception as error:
            if ctx.params.get("debug") or not _is_spark_error(error):
                raise
            echo_marked("error", f"Spark failed: {str(error).strip().splitlines()[0]} (add --debug for the full error)")
            ctx.exit(3)


def _choices(error: StatetoolError) -> tuple[str, ...]:
    from statetool.cli.resolve_path import SnapshotChoicesError

    return error.choices if isinstance(error, SnapshotChoicesError) else ()


@contextmanager
def _printable_usage() -> Iterator[None]:
    """Escape the parts of the command line in click's errors, which a script may have taken from a snapshot or from file names.

    At a terminal, the errors are wrapped between words.
    """
    try:
        yield
    except click.ClickException as error:
        lines = wrap_words(f"Error: {error.format_message()}", sys.stderr)
        error.format_message = lambda: "\n".join(lines).removeprefix("Error: ")  # type: ignore[method-assign]
        raise


def _is_spark_error(error: Exception) -> bool:
    """Return True if Spark raised an error, such as a division by zero in a user's expression."""
    return any(kind.__module__.startswith("pyspark.errors") for kind in type(error).__mro__)


@click.group(cls=_Commands, sections=COMMANDS, words=WORDS, context_settings={"help_option_names": ["--help", "-h"]})
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.option("--clusters", metavar="FILE", help="File with credentials of Flink clusters (docs: options).")
@click.version_option(statetool.__version__)
@click.pass_context
def cli(context: click.Context, debug: bool, clusters: str | None) -> None:
    """Inspect, check and edit Apache Flink savepoints and checkpoints.

    statetool needs no Flink and no job jar. It never changes an existing snapshot: commands that write take a source
    (SRC) and a new directory (DST).

    PATH and SRC name a savepoint or checkpoint by its directory or its file _metadata: a local path, or a URI such as
    s3://bucket/savepoint-1a2b. With --latest, pass a directory of snapshots, and statetool uses the newest complete
    one. flink://host:8081/JOB is the newest checkpoint of a running job. OPERATOR is a uid, a name or an operator id.

    Examples:
      statetool ls s3://bucket/savepoint-1a2b
      statetool head s3://bucket/savepoint-1a2b orders keyed_state
      statetool check s3://bucket/savepoint-1a2b --flink 2.3
    """
    use_escapes()
    if context.invoked_subcommand not in _LASTING:
        from statetool.operations.cluster.deadlines import one_deadline

        context.with_resource(one_deadline())
    if clusters is not None:
        from statetool.operations.cluster.clusters import using_clusters

        context.with_resource(using_clusters(clusters))


def _exit_code(error: StatetoolError) -> int:
    if isinstance(error, MissingKeyError):
        return 1
    return 2 if isinstance(error, OptionError | UnknownNameError | TargetExistsError) else 3


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
    claim_process()
    sys.excepthook = print_traceback
    # At its end the process returns all memory at once, so the objects of a large snapshot need not be freed one by one.
    atexit.register(gc.freeze)
    try:
        cli(obj=CommandProcess())
    except MissingDependencyError as error:
        echo_marked("error", error)
        sys.exit(3)
