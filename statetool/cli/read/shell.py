"""A Python prompt for one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import click

import statetool
from statetool.api.execution import Execution
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import echo_err, print_line
from statetool.cli.progress import no_progress
from statetool.errors import printable, several

_BANNER = """\
{path}: checkpoint {checkpoint_id}, {operators}
  sp         the snapshot:     sp["{operator}"].to_arrow(), sp["{operator}"].table("{table}").show()
  spark      a Spark session:  spark.sql("SHOW VIEWS").show(), spark.sql("SELECT * FROM {view}").show()
             It starts when first used, and makes every table of the snapshot a view.
  statetool  the package:      help(statetool.SavepointWriter)
"""


class LazySession:
    """A Spark session that starts when an attribute is first accessed."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._session: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._session is None:
            self._session = self._start()
        return getattr(self._session, name)


class _Shell:
    """The names at the prompt: ``sp``, ``spark``, ``statetool``."""

    def __init__(self, savepoint: statetool.Savepoint) -> None:
        self.spark = LazySession(self._start)
        # Passing the session to load() would start it.
        self.sp = savepoint.with_execution(Execution(cast("Any", self.spark)))
        self.names: dict[str, Any] = {"sp": self.sp, "spark": self.spark, "statetool": statetool}

    def _start(self) -> Any:
        from statetool.spark.session import local_session

        echo_err("starting Spark ...")
        session = local_session(name="statetool shell")
        session.sparkContext.setLogLevel("ERROR")
        self.spark._session = self.names["spark"] = session
        self.sp.register("sp")
        return session

    def banner(self) -> str:
        operator = next((o for o in self.sp.operators.values() if o.tables), None)
        name, table = (operator.name, operator.tables[0]) if operator else ("uid", "keyed_state")
        view = "".join(c if c.isalnum() and c.isascii() else "_" for c in f"sp_{name}_{table}").lower()
        return _BANNER.format(
            path=printable(self.sp.path),
            checkpoint_id=self.sp.checkpoint_id,
            operators=several(len(self.sp.operators), "operator"),
            operator=printable(name),
            table=printable(table),
            view=view,
        )


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT)
def shell(options: CommonOptions, path: str) -> None:
    """Open a snapshot at a Python prompt.

    Uses IPython if it is installed. Spark starts when it is first used.

    Examples:
      statetool shell s3://bucket/savepoint-1a2b
    """
    prompt = _Shell(open_snapshot(path, options))
    with no_progress():
        _read_input(prompt)


def _read_input(prompt: _Shell) -> None:
    """Run the prompt until the end of input."""
    if sys.stdin.isatty():
        try:
            from IPython import start_ipython
        except ImportError:
            pass
        else:
            for line in prompt.banner().split("\n"):
                print_line(line)
            start_ipython(argv=["--no-banner"], user_ns=prompt.names)
            return
        import readline  # noqa: F401  # arrow keys and history at the prompt
    import code

    code.interact(prompt.banner(), local=prompt.names, exitmsg="")
