"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

import statetool
from statetool.cli.output import WIDE
from statetool.cli.places import naming_choices, newest_snapshot
from statetool.cli.progress import expect, progress
from statetool.errors import OptionError, SnapshotNotFoundError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.tables.option_text import Option
from statetool.tables.request import OPTIONS, ScanRequest
from statetool.uids import uids_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_META = "statetool.types"
_FINDING = "statetool.finding"
_READING = "statetool.reading"


def _keeper(place: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, parameter: click.Parameter, given: Any) -> None:
        if given:
            context.meta.setdefault(place, {})[parameter.name] = given

    return keep


_keep = _keeper(_META)


def opened(path: str, rebase: tuple[str, ...], *, spark: SparkSession | None = None) -> statetool.Savepoint:
    """Open a snapshot with what the running command was told of types, places and names.

    Raises
    ------
    OptionError
        An option that is not of its form.
    UnknownNameError
        The uid of an operator that the snapshot does not have.
    SnapshotNotFoundError
        There is none; where there are some below, they are named.
    """
    (savepoint,) = opened_together([path], rebase, spark=spark)
    return savepoint


def opened_together(
    paths: Sequence[str], rebase: tuple[str, ...], *, spark: SparkSession | None = None
) -> list[statetool.Savepoint]:
    """Open snapshots as :func:`opened` does; a uid may be of an operator that only one of them has."""
    finding = click.get_current_context().meta.get(_FINDING, {})
    savepoints = [_loaded(path, rebase_pairs(rebase), spark) for path in paths]
    given = finding.get("name_uid", ())
    ids = [{o.operator_id for o in savepoint.operators.values()} for savepoint in savepoints]
    named = []
    for savepoint, own in zip(savepoints, ids, strict=True):
        names = [n for n in given if operator_id_for_uid(n) in own or not any(operator_id_for_uid(n) in i for i in ids)]
        names += _names_found(savepoint, finding.get("uids", ()))
        named.append(savepoint.with_uids(names) if names else savepoint)
        expect(partial(_bytes_of, named[-1]))
    return named


def _loaded(path: str, rebase: dict[str, str], spark: SparkSession | None) -> statetool.Savepoint:
    if latest_wanted():
        path = newest_snapshot(path, rebase)
    try:
        savepoint = statetool.load(path, rebase=rebase, **type_arguments())
        return savepoint if spark is None else savepoint.with_session(spark)
    except SnapshotNotFoundError as error:
        raise naming_choices(error, path, rebase) from error


def _bytes_of(savepoint: statetool.Savepoint) -> int:
    """Return how many bytes the running command reads and writes, about."""
    given = click.get_current_context().params
    only = {given.get("operator"), given.get("only"), *given.get("operators", ())}
    rows = savepoint.metadata_rows("operators")
    size: int = sum(r.state_bytes for r in [r for r in rows if r.operator in only] or rows)
    return 2 * size if "target" in given and not given.get("dry_run") else size


def _names_found(savepoint: statetool.Savepoint, named_in: tuple[str, ...]) -> list[str]:
    unnamed = [o.operator_id for o in savepoint.operators.values() if not o.uid]
    return [uid for file in named_in for uid in uids_in(file, unnamed)] if unnamed else []


def type_arguments() -> dict[str, Any]:
    """Return what the running command was told of types, as arguments of :func:`statetool.load`.

    Raises
    ------
    OptionError
        ``--python`` that is not of the form STATE=TYPE.
    """
    given: dict[str, Any] = dict(click.get_current_context().meta.get(_META, {}))
    if "python" in given:
        hint = "as in count=LONG, items=ListState(STRING), sizes='MapState(STRING, LONG)'"
        given["python"] = pairs(given["python"], "--python STATE=TYPE", hint)
    return given


_JSON = "statetool.json"


def _set(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    return lambda context, _, given: context.meta.__setitem__(name, given)


def showing_progress(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command show how far it is, unless what it prints is JSON."""

    @wraps(command)
    def run(**given: Any) -> None:
        with progress(click.get_current_context().info_name or "") if given.get("form") != "json" else nullcontext():
            command(**given)

    return run


def output_of(*forms: str) -> Callable[[Any], Any]:
    """Add how a command prints what it finds, one of ``forms``, which it gets as ``form``; in text it shows how far it is."""

    def add(command: Any) -> Any:
        command = showing_progress(command)
        for option in (
            click.option(
                "--wide", is_flag=True, expose_value=False, callback=_set(WIDE), help="Rows wider than the terminal."
            ),
            click.option(
                "--json",
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_set(_JSON),
                help="As --output json.",
            ),
            click.option(
                "-o",
                "--output",
                "form",
                type=click.Choice(forms),
                default="text",
                show_default=True,
                callback=lambda context, _, given: "json" if context.meta[_JSON] else given,
            ),
        ):
            command = option(command)
        return command

    return add


output_option: Final = output_of("text", "json")


def given_options() -> dict[str, str]:
    """Return the options that the running command was given: by name, as they are written."""
    context = click.get_current_context()
    return {
        option.name: max(option.opts, key=len)
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name is not None
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }


rebase_option = click.option(
    "--rebase", multiple=True, metavar="OLD=NEW", help="Where files of absolute paths are now."
)


def spark_option(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--spark``, which a command gets as ``on_spark``."""
    return click.option("--spark", "on_spark", is_flag=True, help=what)


def session(on_spark: bool) -> SparkSession | None:
    """Return the session that a command with ``--spark`` runs on, made if there is none."""
    if not on_spark:
        return None
    from statetool.spark.session import local_session

    found: SparkSession = local_session()
    return found


latest_option: Any = click.option(
    "--latest",
    is_flag=True,
    expose_value=False,
    callback=_keeper(_FINDING),
    help="Of a directory of snapshots take the newest that is complete.",
)


def finding_options(command: Any) -> Any:
    """Add where a snapshot is, and what names its operators."""
    for option in (
        click.option(
            "--uids",
            multiple=True,
            metavar="FILE",
            expose_value=False,
            callback=_keeper(_FINDING),
            help="Name operators by what FILE has of their uids: the job's jar, its source, a compiled plan, a list.",
        ),
        click.option(
            "--name-uid",
            multiple=True,
            metavar="UID",
            expose_value=False,
            callback=_keeper(_FINDING),
            help="Name an operator that the snapshot knows by id only.",
        ),
        latest_option,
        rebase_option,
    ):
        command = option(command)
    return command


def latest_wanted() -> bool:
    """Tell whether the running command was asked for the newest snapshot."""
    return bool(click.get_current_context().meta.get(_FINDING, {}).get("latest"))


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


def _reading_option(option: Option) -> Any:
    """Return the option of a command for one of a read; its value stays text, which :class:`ScanRequest` parses."""
    shown: dict[str, Any] = {"is_flag": True} if option.kind == "flag" else {"metavar": option.kind.upper()}
    if option.kind == "word":
        shown = {"type": click.Choice(option.words)}
    default = "" if option.default in (None, False, ()) else f" [default: {option.default}]"
    name = f"--{option.name.replace('_', '-')}"
    return click.option(
        name, option.name, expose_value=False, callback=_keep_reading, help=f"{option.help}{default}", **shown
    )


def _keep_reading(context: click.Context, parameter: click.Parameter, given: Any) -> None:
    if given is not None and given is not False:
        context.meta.setdefault(_READING, {})[parameter.name] = "true" if given is True else given


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add every option of a read but the table."""
    for option in reversed(OPTIONS.values()):
        if option.name != "table":
            command = _reading_option(option)(command)
    return command


def asked_for(table: str) -> ScanRequest:
    """Return what the running command asks for of an operator.

    Raises
    ------
    OptionError
        A text that is not one of its kind, or options that do not go together.
    """
    return ScanRequest.from_options({"table": table, **click.get_current_context().meta.get(_READING, {})})


def pairs(given: Sequence[str], what: str, hint: str = "") -> dict[str, str]:
    """Split arguments ``NAME=VALUE`` at the first equals sign: a value may have more of them, as ``timestamp=`` has.

    Parameters
    ----------
    what
        What each is, for messages: ``--uid UID=N``.

    Raises
    ------
    OptionError
        One that is not of this form, or a name that comes twice.
    """
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise OptionError(f"{one!r} is not {what}", hint=hint)
        if name in found:
            raise OptionError(f"{what}: {name!r} is given twice")
        found[name] = value
    return found


def rebase_pairs(rebase: tuple[str, ...]) -> dict[str, str]:
    """Return ``OLD=NEW`` arguments as a mapping; errors as of :func:`pairs`."""
    return pairs(rebase, "--rebase OLD=NEW")
