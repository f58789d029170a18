"""Run a statetool command on a cluster: stats, diff, rescale, convert, verify, copy, report or any other, with its options.

As a job::

    spark-submit --py-files statetool.zip run.py diff BEFORE AFTER --uid orders

For ``statetool.zip`` see :mod:`statetool.jobs.export`. Commands that can run on Spark do so, as if ``--spark`` was passed.
Output and exit codes are those of the command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from statetool.cli.main import cli
from statetool.io.glibc import claim_process


def main(arguments: Sequence[str]) -> None:
    """Run a command and end the program with its exit code."""
    command = cli.get_command(click.Context(cli), arguments[0]) if arguments else None
    on_spark = command is not None and any("--spark" in parameter.opts for parameter in command.params)
    with_spark = [arguments[0], "--spark", *arguments[1:]] if on_spark else list(arguments)
    cli.main(with_spark, prog_name="run.py")


if __name__ == "__main__":
    claim_process()
    main(sys.argv[1:])
