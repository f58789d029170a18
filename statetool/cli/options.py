"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

import statetool
from statetool.cli.output import WIDE, Output, has_printed
from statetool.cli.progress import expect, progress
from statetool.cli.resolve_path import naming_choices, newest_is_deleted, newest_snapshot
from statetool.errors import OptionError, SnapshotNotFoundError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.uid_search import uids_in
from statetool.tables.option_text import Option
from statetool.tables.request import OPTIONS, ScanRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = "statetool.types"
_FINDING = "statetool.finding"
_READING = "statetool.reading"
#: Maximum number of snapshots that may be deleted while a command reads the newest.
_MOST_DELETED: Final = 5


def _keeper(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return an option callback that stores its value under ``key`` in the context of the running command."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            context.meta.setdefault(key, {})[parameter.name] = value

    return keep


_keep = _keeper(_TYPES)


def opened(path: str, rebase: tuple[str, ...], *, spark: SparkSession | None = None) -> statetool.Savepoint:
    """Open a snapshot with the running command's options for types, locations and names.

    Raises
    ------
    OptionError
        An option is malformed.
    UnknownNameError
        The snapshot has no operator with a given uid.
    SnapshotNotFoundError
        The snapshot does not exist. The error names snapshots below the path.
    """
    (savepoint,) = opened_together([path], rebase, spark=spark)
    return savepoint


def opened_together(
    paths: Sequence[str], rebase: tuple[str, ...], *, spark: SparkSession | None = None
) -> list[statetool.Savepoint]:
    """Open several snapshots like :func:`opened`. ``--name-uid`` may name an operator that exists in only one of them."""
    finding = click.get_current_context().meta.get(_FINDING, {})
    savepoints = [_loaded(path, rebase_pairs(rebase), spark) for path in paths]
    uids = finding.get("name_uid", ())
    ids = [{o.operator_id for o in savepoint.operators.values()} for savepoint in savepoints]
    opened_savepoints = []
    for savepoint, own in zip(savepoints, ids, strict=True):
        names = [n for n in uids if operator_id_for_uid(n) in own or not any(operator_id_for_uid(n) in i for i in ids)]
        names += _uids_from_files(savepoint, finding.get("uids", ()))
        opened_savepoints.append(savepoint.with_uids(names) if names else savepoint)
        expect(partial(_expected_bytes, opened_savepoints[-1]))
    return opened_savepoints


def _loaded(path: str, rebase: dict[str, str], spark: SparkSession | None) -> statetool.Savepoint:
    if latest_wanted():
        path = newest_snapshot(path, rebase)
    try:
        savepoint = statetool.load(path, rebase=rebase, **type_arguments())
        return savepoint if spark is None else savepoint.with_session(spark)
    except SnapshotNotFoundError as error:
        raise naming_choices(error, path, rebase) from error


def _expected_bytes(savepoint: statetool.Savepoint) -> int:
    """Return the approximate number of bytes that the running command reads and writes."""
    arguments = click.get_current_context().params
    names = (arguments.get("operator"), arguments.get("only"), *arguments.get("operators", ()))
    operators = {savepoint.inventory.existing_name(name) for name in names if name}
    rows = savepoint.metadata_rows("operators")
    size: int = sum(r.state_bytes for r in [r for r in rows if r.operator in operators] or rows)
    return 2 * size if "target" in arguments and not arguments.get("dry_run") else size


def _uids_from_files(savepoint: statetool.Savepoint, files: tuple[str, ...]) -> list[str]:
    unnamed = [o.operator_id for o in savepoint.operators.values() if not o.uid]
    return [uid for file in files for uid in uids_in(file, unnamed)] if unnamed else []


def type_arguments() -> dict[str, Any]:
    """Return the running command's options for types as arguments of :func:`statetool.load`.

    Raises
    ------
    OptionError
        ``--python`` is not of the form STATE=TYPE.
    """
    arguments: dict[str, Any] = dict(click.get_current_context().meta.get(_TYPES, {}))
    if "python" in arguments:
        hint = "as in count=LONG, items=ListState(STRING), sizes='MapState(STRING, LONG)'"
        arguments["python"] = pairs(arguments["python"], "--python STATE=TYPE", hint)
    return arguments


_JSON = "statetool.json"


def _set(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    return lambda context, _, value: context.meta.__setitem__(name, value)


def showing_progress(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command show its progress, unless it prints JSON."""

    @wraps(command)
    def run(**params: Any) -> None:
        with progress(click.get_current_context().info_name or "") if params.get("form") != "json" else nullcontext():
            command(**params)

    return run


def output_of(*forms: str) -> Callable[[Any], Any]:
    """Add ``--output``, one of ``forms``, passed to a command as ``form``. The command shows its progress unless it prints JSON."""

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
                callback=lambda context, _, value: "json" if context.meta[_JSON] else value,
            ),
        ):
            command = option(command)
        return command

    return add


output_option: Final = output_of("text", "json")


def given_options() -> dict[str, str]:
    """Return the options given on the command line, as written there, by parameter name."""
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


take_over_option: Any = click.option(
    "--take-over", is_flag=True, help="Take DST over from another write, which may still run."
)


def spark_option(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--spark``, passed to a command as ``on_spark``."""
    return click.option("--spark", "on_spark", is_flag=True, help=what)


def session(on_spark: bool) -> SparkSession | None:
    """Return the session for a command with ``--spark``, and start one if needed. Return ``None`` without ``--spark``."""
    if not on_spark:
        return None
    from statetool.spark.session import local_session

    spark: SparkSession = local_session()
    return spark


def latest_option(command: Any) -> Any:
    """Add ``--latest``. If Flink deletes the newest snapshot while it is read, the command reads the next one."""
    option = click.option(
        "--latest",
        is_flag=True,
        expose_value=False,
        callback=_keeper(_FINDING),
        help="Of a directory of snapshots take the newest that is complete.",
    )
    return option(_reading_the_next(command))


def _reading_the_next(command: Any) -> Any:
    @wraps(command)
    def run(**params: Any) -> None:
        for _ in range(_MOST_DELETED - 1):
            try:
                command(**params)
                return
            except SnapshotNotFoundError as error:
                if has_printed() or not newest_is_deleted():
                    raise
                Output.say(f"{error.message}; reading the next one")
        command(**params)

    return run


def finding_options(command: Any) -> Any:
    """Add options for the location of a snapshot and the uids of its operators."""
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
    """Return True if ``--latest`` was given to the running command."""
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
_PLAN_OPTION: Any = click.option(
    "--columns-from-plan",
    metavar="FILE",
    expose_value=False,
    callback=_keep,
    help="Name SQL columns by the job's compiled plan (COMPILE PLAN).",
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
    """Add options that declare a snapshot's types."""
    for option in reversed(_TYPE_OPTIONS):
        command = option(command)
    return command


def plan_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--columns-from-plan``."""
    decorated: Callable[..., None] = _PLAN_OPTION(command)
    return decorated


def _reading_option(option: Option) -> Any:
    """Return the command line option for an option of a read. Its value stays text, which :class:`ScanRequest` parses."""
    shown: dict[str, Any] = {"is_flag": True} if option.kind == "flag" else {"metavar": option.kind.upper()}
    if option.kind == "word":
        shown = {"type": click.Choice(option.words)}
    default = "" if option.default in (None, False, ()) else f" [default: {option.default}]"
    name = f"--{option.name.replace('_', '-')}"
    return click.option(
        name, option.name, expose_value=False, callback=_keep_reading, help=f"{option.help}{default}", **shown
    )


def _keep_reading(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and value is not False:
        context.meta.setdefault(_READING, {})[parameter.name] = "true" if value is True else value


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add every option of a read except the table."""
    for option in reversed(OPTIONS.values()):
        if option.name != "table":
            command = _reading_option(option)(command)
    return command


def asked_for(table: str) -> ScanRequest:
    """Return the running command's request for a table of an operator.

    Raises
    ------
    OptionError
        A text is not valid for its option, or options conflict.
    """
    return ScanRequest.from_options({"table": table, **click.get_current_context().meta.get(_READING, {})})


def pairs(arguments: Sequence[str], what: str, hint: str = "") -> dict[str, str]:
    """Split arguments ``NAME=VALUE`` at the first equals sign, because values such as ``timestamp=`` may contain more.

    Parameters
    ----------
    what
        The form of each argument, for messages: ``--uid UID=N``.

    Raises
    ------
    OptionError
        An argument is not of this form, or a name occurs twice.
    """
    values: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise OptionError(f"{argument!r} is not {what}", hint=hint)
        if name in values:
            raise OptionError(f"{what}: {name!r} is given twice")
        values[name] = value
    return values


def rebase_pairs(rebase: tuple[str, ...]) -> dict[str, str]:
    """Return ``OLD=NEW`` arguments as a mapping; errors as for :func:`pairs`."""
    return pairs(rebase, "--rebase OLD=NEW")
