"""Options that several commands take."""

from __future__ import annotations

import click

from statetool.errors import OptionError

output_option = click.option("--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
rebase_option = click.option(
    "--rebase", multiple=True, metavar="OLD=NEW", help="Where files of absolute paths are now."
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
