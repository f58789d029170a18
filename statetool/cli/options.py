"""Options that several commands take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_META = "statetool.types"


def _keep(context: click.Context, parameter: click.Parameter, given: Any) -> None:
    if given:
        context.meta.setdefault(_META, {})[parameter.name] = given


def opened(
    path: str, rebase: tuple[str, ...], *, uids: tuple[str, ...] = (), spark: SparkSession | None = None
) -> statetool.Savepoint:
    """Open a snapshot with what the running command was told of types, places and names.

    Raises
    ------
    OptionError
        An option that is not of its form.
    """
    return statetool.load(path, spark=spark, uids=uids, rebase=rebase_pairs(rebase), **type_arguments())


def type_arguments() -> dict[str, Any]:
    """Return what the running command was told of types, as arguments of :func:`statetool.load`.

    Raises
    ------
    OptionError
        ``--python`` that is not of the form STATE=TYPE.
    """
    given: dict[str, Any] = dict(click.get_current_context().meta.get(_META, {}))
    if "python" in given:
        states = {}
        for text in given["python"]:
            state, equals, kinds = text.partition("=")
            if not equals:
                raise OptionError(
                    f"--python {text!r} is not STATE=TYPE",
                    hint="as in count=LONG, items=ListState(STRING), sizes='MapState(STRING, LONG)'",
                )
            states[state] = kinds
        given["python"] = states
    return given


output_option = click.option("--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
rebase_option = click.option(
    "--rebase", multiple=True, metavar="OLD=NEW", help="Where files of absolute paths are now."
)
declare_option: Any = click.option(
    "--declare",
    "declarations",
    multiple=True,
    metavar="FILE",
    expose_value=False,
    callback=_keep,
    help="Avro schema of classes that the snapshot does not describe, or a folder of them.",
)
_TYPE_OPTIONS: Any = (
    declare_option,
    click.option(
        "--python",
        multiple=True,
        metavar="[OPERATOR.]STATE=TYPE",
        expose_value=False,
        callback=_keep,
        help="What a state of a PyFlink job holds, as its descriptor says: LONG (one value), ListState(STRING),"
        " MapState(STRING, ROW(id: LONG)).",
    ),
    click.option(
        "--unsafe-pickle",
        is_flag=True,
        expose_value=False,
        callback=_keep,
        help="Load pickles of Python states, which runs what they say.",
    ),
)


def type_options(command: Any) -> Any:
    """Add what tells a snapshot's types."""
    for option in reversed(_TYPE_OPTIONS):
        command = option(command)
    return command


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
