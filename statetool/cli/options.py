"""Options that several commands take."""

from __future__ import annotations

from typing import Any

import click

import statetool
from statetool.errors import OptionError


def _declare(context: click.Context, parameter: click.Parameter, files: tuple[str, ...]) -> None:
    """Declare before the command runs; bad files are our errors, with exit code 3."""
    if files:
        statetool.declare_from(*files)


output_option = click.option("--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
rebase_option = click.option(
    "--rebase", multiple=True, metavar="OLD=NEW", help="Where files of absolute paths are now."
)
declare_option: Any = click.option(
    "--declare",
    multiple=True,
    metavar="FILE",
    expose_value=False,
    callback=_declare,
    help="Avro schema of classes that the snapshot does not describe, or a folder of them.",
)


def rebase_pairs(rebase: tuple[str, ...]) -> dict[str, str]:
    """Return ``OLD=NEW`` arguments as a mapping.

    Raises
    ------
    OptionError
        One that is not of this form.
    """
    pairs = {}
    for pair in rebase:
        old, equals, new = pair.partition("=")
        if not equals:
            raise OptionError(f"--rebase {pair!r} is not OLD=NEW")
        pairs[old] = new
    return pairs
