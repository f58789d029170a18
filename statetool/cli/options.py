"""Options that commands share, collected in one object, and the snapshots, sessions and requests made from them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

import statetool
from statetool.api.write.options import CopyOptions
from statetool.api.write.verbs.base import MATCH
from statetool.cli.completion import complete_operator
from statetool.cli.group import COMMON, SectionOption
from statetool.cli.output import Output, echo_err, echo_marked
from statetool.cli.progress import expect, progress
from statetool.cli.resolve_path import add_choices, is_snapshot, newest_snapshot, retention_of, was_deleted
from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError
from statetool.operations.cluster.paths import operator_names
from statetool.operations.cluster.paths import resolve_path as resolve_url
from statetool.snapshot.parsed import handing_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.api.start_options import StartOptions

#: Maximum number of snapshots that may be deleted while a command reads the newest.
_MOST_DELETED: Final = 5
#: Reads that take less than this many seconds are not compared with the retention of the job.
_LEAST_CHECKED_S: Final = 1.0


class Count(click.IntRange):
    """A number of rows from a minimum on. Help does not show the largest number that the machine counts to."""

    def __init__(self, least: int) -> None:
        super().__init__(min=least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, unless it is too large for a count."""
        number = super().convert(value, param, ctx)
        if number > sys.maxsize:
            self.fail(f"{number} is more than {sys.maxsize}.", param, ctx)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions(CopyOptions):
    """Values of the options that commands share.

    Options that a command does not have keep the defaults. ``chosen`` collects the snapshots that ``--latest`` or the URL of a job chose,
    and ``jobs`` these URLs. ``writes``: the command writes a snapshot, and this is no dry run.
    """

    latest: bool = False
    rebase: Mapping[str, str] = field(default_factory=dict)
    uids: tuple[str, ...] = ()
    name_uid: tuple[str, ...] = ()
    declare: tuple[str, ...] = ()
    jar: tuple[str, ...] = ()
    columns_from_plan: str | None = None
    python: Mapping[str, str] = field(default_factory=dict)
    unsafe_pickle: bool = False
    writes: bool = False
    on_spark: bool = False
    threads: int | None = None
    output: Output = field(default_factory=Output)
    chosen: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> CommonOptions:
        """Return the options from the parameters that click parsed.

        Raises
        ------
        OptionError
            ``--rebase`` or ``--python`` is malformed.
        """
        values = {**parameters, "writes": parameters.get("dry_run") is False}
        if "rebase" in values:
            values["rebase"] = pairs(values["rebase"], "--rebase OLD=NEW")
        if "python" in values:
            hint = "as in count=LONG, items=ListState(STRING), sizes='MapState(STRING, LONG)'"
            values["python"] = pairs(values["python"], "--python STATE=TYPE", hint)
        if "output" in values:
            form = "json" if values.pop("json") else values["output"]
            values["output"] = Output(form, wide=values.pop("wide"))
        return cls(**values)

    @property
    def write_arguments(self) -> dict[str, Any]:
        """Arguments for a function that writes a new snapshot."""
        return {f.name: getattr(self, f.name) for f in fields(CopyOptions)}

    @property
    def spark(self) -> SparkSession | None:
        """The session for ``--spark``, started if needed. ``None`` without ``--spark``."""
        if not self.on_spark:
            return None
        from statetool.spark.session import local_session

        session: SparkSession = local_session()
        return session


def open_snapshot(
    path: str, options: CommonOptions, *, operators: Sequence[str] = (), spark: SparkSession | None = None
) -> statetool.Savepoint:
    """Open a snapshot.

    Parameters
    ----------
    operators
        The operators that the command reads, for an estimate of its progress. By default all.

    Raises
    ------
    OptionError
        An option is malformed.
    UnknownNameError
        The snapshot has no operator with a given uid.
    SnapshotNotFoundError
        The snapshot does not exist. The error names snapshots below the path.
    """
    (savepoint,) = open_snapshots([path], options, operators=operators, spark=spark)
    return savepoint


def open_snapshots(
    paths: Sequence[str],
    options: CommonOptions,
    *,
    operators: Sequence[str] = (),
    spark: SparkSession | None = None,
    jars: Sequence[tuple[str, ...]] = (),
    plans: Sequence[str | None] = (),
) -> list[statetool.Savepoint]:
    """Open several snapshots like :func:`open_snapshot`. ``--name-uid`` may name an operator that exists in only one of them.

    Parameters
    ----------
    jars
        The jars of each snapshot's job. Snapshots without any have those of ``--jar``. Uids are looked for in all.
    plans
        The compiled plan of each snapshot's job. Snapshots without one have that of ``--columns-from-plan``.
    """
    from statetool.formats.operator_id import operator_id_for_uid

    if len({plan is None for plan in plans}) > 1 and options.columns_from_plan is None:
        raise OptionError(
            "columns are matched by the compiled plans of both jobs",
            hint="pass --columns-from-plan-a FILE and --columns-from-plan-b FILE",
        )
    of_each = [*jars, *[()] * (len(paths) - len(jars))]
    plan_of_each = [*plans, *[None] * (len(paths) - len(plans))]
    savepoints = [
        _load(
            path,
            replace(options, jar=own or options.jar, columns_from_plan=plan or options.columns_from_plan),
            spark,
        )
        for path, own, plan in zip(paths, of_each, plan_of_each, strict=False)
    ]
    all_jars = dict.fromkeys((*options.jar, *(jar for own in jars for jar in own)))
    ids = [{o.operator_id for o in savepoint.operators.values()} for savepoint in savepoints]
    named_savepoints = []
    for savepoint, own in zip(savepoints, ids, strict=True):
        uids = [
            uid
            for uid in options.name_uid
            if operator_id_for_uid(uid) in own or not any(operator_id_for_uid(uid) in i for i in ids)
        ]
        uids += _uids_from_files(savepoint, (*options.uids, *all_jars))
        named_savepoints.append(savepoint.with_uids(uids) if uids else savepoint)
        expect(partial(_expected_bytes, named_savepoints[-1], operators, writes=options.writes))
    return named_savepoints


def load_snapshot(path: str, options: CommonOptions) -> statetool.Savepoint:
    """Open exactly this snapshot, with the given types."""
    return statetool.load(
        path,
        rebase=options.rebase,
        declarations=options.declare,
        jars=options.jar,
        columns_from_plan=options.columns_from_plan,
        python=options.python or None,
        unsafe_pickle=options.unsafe_pickle,
    )


def resolve_path(path: str, options: CommonOptions) -> str:
    """Return the path, or with ``--latest`` the newest complete snapshot below it. For the URL of a job, return the path of its snapshot."""
    resolved = resolve_url(path, tuple(options.rebase.items()))
    if resolved != path:
        options.chosen.append(resolved)
        options.jobs.append(path)
        return resolved
    if not options.latest or is_snapshot(path):
        return path
    options.chosen.append(newest_snapshot(path, options.rebase))
    return options.chosen[-1]


def _load(path: str, options: CommonOptions, spark: SparkSession | None) -> statetool.Savepoint:
    from statetool.api.load import name_operators

    given, path = path, resolve_path(path, options)
    try:
        savepoint = name_operators(load_snapshot(path, options), partial(operator_names, given))
    except SnapshotNotFoundError as error:
        raise add_choices(error, path, options.rebase) from error
    return savepoint if spark is None else savepoint.with_session(spark)


def _expected_bytes(savepoint: statetool.Savepoint, operators: Sequence[str], *, writes: bool) -> int:
    """Return the approximate number of bytes that a command reads and writes."""
    operators = [savepoint.inventory.existing_name(name) for name in operators]
    rows = savepoint.metadata_rows("operators")
    size: int = sum(r.state_bytes for r in [r for r in rows if r.operator in operators] or rows)
    return 2 * size if writes else size


def _uids_from_files(savepoint: statetool.Savepoint, files: tuple[str, ...]) -> list[str]:
    unnamed = [o.operator_id for o in savepoint.operators.values() if not o.uid]
    return [uid for file in files for uid in statetool.uids_in(file, unnamed)] if unnamed and files else []


def file_option(*names: str, help: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option for a file that the command writes. The name of a format, such as that of ``--output``, is none of a file."""
    return click.option(*names, metavar="FILE", help=help, callback=_file_to_write, **more)


def _file_to_write(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and value.lower() in _FORMATS:
        output = next((p for p in context.command.params if "--output" in p.opts), None)
        known = output is not None and isinstance(output.type, click.Choice) and value in output.type.choices
        chosen = f"--output {value} chooses the format" if known else "this command writes no other format"
        raise OptionError(
            f"{'/'.join(parameter.opts)} {value}: {value!r} is the name of a format, not of a file",
            hint=f"{chosen}; a file of this name is ./{value}",
        )
    return value


def _show_tracebacks(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().params["debug"] = True


def _print_json_schema(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from statetool.cli.json_schema import json_schema_text

        root = context.find_root().command_path
        Output().text(*json_schema_text(context.command_path.removeprefix(f"{root} ")).split("\n"))
        context.exit()


_option: Final = partial(click.option, cls=SectionOption, section=COMMON)


def _copy_option(declared: Field[Any]) -> Callable[..., Any]:
    """Return the decorator of a declared option of the new snapshot."""
    least = declared.metadata.get("least")
    kind = None if least is None else click.IntRange(min=least)
    is_flag, help = declared.default is False, declared.metadata["help"]
    return _option(f"--{declared.name.replace('_', '-')}", type=kind, is_flag=is_flag, help=help)


#: The decorator of each common option, in the order of ``--help``. Except for ``debug``, the names are those of :class:`CommonOptions`.
_OPTIONS: Final[dict[str, Callable[..., Any]]] = {
    "latest": _option("--latest", is_flag=True, help="Use the newest complete snapshot in the directory."),
    "rebase": _option(
        "--rebase", multiple=True, metavar="OLD=NEW", help="Replace the prefix OLD of stored file paths by NEW."
    ),
    "uids": _option(
        "--uids", multiple=True, metavar="FILE", help="Find uids in a job jar, its source, a compiled plan or a list."
    ),
    "name_uid": _option(
        "--name-uid", multiple=True, metavar="UID", help="Uid of an operator whose uid the snapshot does not store."
    ),
    "declare": _option(
        "--declare",
        multiple=True,
        metavar="FILE",
        help="Classes that the snapshot does not describe: JSON of statetool declare, an Avro schema or a folder of schemas.",
    ),
    "jar": _option(
        "--jar",
        multiple=True,
        metavar="FILE",
        help="The job's jar, for classes that the snapshot does not describe and for uids. Runs none of its code.",
    ),
    "columns_from_plan": _option(
        "--columns-from-plan", metavar="FILE", help="Name SQL columns by the job's compiled plan (COMPILE PLAN)."
    ),
    "python": _option(
        "--python",
        multiple=True,
        metavar="[OPERATOR.]STATE=TYPE",
        help="Type of a PyFlink state, as in its descriptor: LONG (one value), ListState(STRING),"
        " MapState(STRING, ROW(id: LONG)).",
    ),
    "unsafe_pickle": _option(
        "--unsafe-pickle", is_flag=True, help="Unpickle Python states, which runs any code they contain."
    ),
    **{f.name: _copy_option(f) for f in fields(CopyOptions)},
    "on_spark": _option("--spark", "on_spark", is_flag=True, help="Run on Spark instead of in this process."),
    "threads": _option(
        "--threads", type=click.IntRange(min=1), help="Threads of this process.  [default: one per core]"
    ),
    "json": _option("--json", is_flag=True, help="Same as --output json."),
    "json_schema": _option(
        "--json-schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_json_schema,
        help="Print the JSON Schema of the JSON output.",
    ),
    "wide": _option("--wide", is_flag=True, help="Do not cut rows to the width of the terminal."),
    "debug": _option(
        "--debug", is_flag=True, expose_value=False, callback=_show_tracebacks, help="Show tracebacks of errors."
    ),
}
_ORDER: Final = (*list(_OPTIONS)[:-4], "output", *list(_OPTIONS)[-4:])
#: Options that run without the command.
_EAGER: Final = {"json_schema", "debug"}
#: Names of formats, which users pass as a file by mistake.
_FORMATS: Final = frozenset({"text", "json", "jsonl", "csv", "html", "parquet", "avro", "orc", "delta", "iceberg"})
#: Names of options for :func:`common_options`.
OUTPUT: Final = ("output", "json", "json_schema", "wide")
SNAPSHOT: Final = (
    "latest",
    "rebase",
    "uids",
    "name_uid",
    "declare",
    "jar",
    "columns_from_plan",
    "python",
    "unsafe_pickle",
)
WRITE: Final = ("latest", "rebase", "declare", "jar", *(f.name for f in fields(CopyOptions)), *OUTPUT)


def common_options(
    *names: str, formats: tuple[str, ...] = ("text", "json")
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add common options to a command, which gets them as its first argument, a :class:`CommonOptions`.

    The command shows its progress unless it prints JSON. If Flink deletes the snapshot that ``--latest`` chose while it is read, the
    command runs again with the next one.

    Parameters
    ----------
    names
        Fields of :class:`CommonOptions`. ``--debug`` is always added.
    formats
        Values of ``--output``.
    """
    output = _option(
        "-o", "--output", type=click.Choice(formats), default="text", show_default=True, help="Output format."
    )
    decorators = _OPTIONS | {"output": output}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**parameters: Any) -> None:
            options = CommonOptions.from_parameters(
                {name: parameters.pop(name) for name in names if name not in _EAGER}
            )
            name = click.get_current_context().info_name or ""
            with nullcontext() if options.output.is_json else progress(name):
                _run_on_latest(handing_over()(partial(command, **parameters)), options)

        decorated: Callable[..., None] = run
        for name in reversed(_ORDER):
            if name in names or name == "debug":
                decorated = decorators[name](decorated)
        return decorated

    return decorate


def _run_on_latest(command: Callable[[CommonOptions], None], options: CommonOptions) -> None:
    for deleted in range(_MOST_DELETED - 1):
        tried = replace(options, chosen=[], jobs=[])
        start = time.monotonic()
        try:
            command(tried)
            if not deleted:
                _check_retention(tried.jobs, time.monotonic() - start)
            return
        except SnapshotNotFoundError as error:
            gone = [path for path in tried.chosen if was_deleted(path)]
            if options.output.has_printed or not gone:
                raise
            echo_err(f"{error.message}; reading the next one")
            if not deleted:
                echo_err(f"to read the first one, set execution.checkpointing.num-retained to {retention_of(gone[0])}")
    command(options)


def _check_retention(jobs: Sequence[str], read_s: float) -> None:
    """Warn if the command took longer than a job keeps a checkpoint."""
    if not jobs or read_s < _LEAST_CHECKED_S:
        return
    from statetool.operations.cluster.retention import retention_advice

    for url in dict.fromkeys(jobs):
        with suppress(StatetoolError):  # the command has succeeded
            if (advice := retention_advice(url, read_s)) is not None:
                echo_marked("warning", advice)


def operator_option(help: str, *name: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--uid``, passed to the command as ``name``, by default ``uid``."""
    return click.option("--uid", *name, shell_complete=complete_operator, help=help, **more)


def flink_option(of: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``--flink``, by default the release of the snapshot ``of``."""
    return click.option(
        "--flink",
        "flink_version",
        metavar="RELEASE",
        help=f"Flink release of the new job, such as 2.3.  [default: that of {of}]",
    )


def backend_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--backend``."""
    help = "State backend of the new job.  [default: that of B]"
    return click.option("--backend", type=click.Choice(["heap", "rocksdb", "forst"]), help=help)(command)


def match_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--match``."""
    return click.option(*MATCH["flag"].split(" ")[:1], metavar=MATCH["flag"].split(" ")[1], help=MATCH["help"])(command)


def start_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how the new job is started, as one parameter ``start``."""

    @wraps(command)
    def run(
        *args: Any,
        config: str | None,
        parallelism: int | None,
        max_parallelism: int | None,
        claim_mode: Any,
        allow_non_restored: bool,
        last_state: bool,
        map_uids: tuple[str, ...],
        graph: str | None,
        **given: Any,
    ) -> None:
        start: StartOptions = {
            "config": config,
            "parallelism": parallelism,
            "max_parallelism": max_parallelism,
            "claim_mode": claim_mode,
            "allow_non_restored": allow_non_restored or None,
            "last_state": last_state,
            "map_uids": pairs(map_uids, "OLD=NEW"),
            "graph": graph,
        }
        command(*args, start=start, **given)

    decorated: Callable[..., None] = run
    for option in reversed(_START):
        decorated = option(decorated)
    return decorated


_START: Final = (
    click.option("--config", metavar="FILE|URL", help="Flink configuration of the new job."),
    click.option("--parallelism", type=click.IntRange(min=1), help="Parallelism of the new job.  [default: that of B]"),
    click.option(
        "--max-parallelism",
        type=click.IntRange(min=1),
        help="Max parallelism that the new job sets.  [default: that of B]",
    ),
    click.option("--claim-mode", type=click.Choice(["claim", "no_claim", "legacy"]), help="Claim mode of the restore."),
    click.option("--allow-non-restored", is_flag=True, help="State that the new job does not have may be left out."),
    click.option("--last-state", is_flag=True, help="The job starts from its high-availability data."),
    click.option(
        "--map", "map_uids", multiple=True, metavar="OLD=NEW", help="Uid or id of an operator, and that in the new job."
    ),
    click.option("--graph", metavar="FILE|URL", help="Job graph of the new job: /jobs/<id>/plan."),
)


def jar_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--jar-a`` and ``--jar-b``."""
    a = click.option(
        "--jar-a",
        multiple=True,
        metavar="FILE",
        help="Jar of the job that wrote the snapshot.  [default: that of --jar]",
    )
    b = click.option(
        "--jar-b",
        multiple=True,
        metavar="FILE",
        help="Jar of the new job: reads all values with its classes, as Flink does.",
    )
    return a(b(command))


def sql_plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--columns-from-plan-a`` and ``--columns-from-plan-b``."""
    a = click.option(
        "--columns-from-plan-a",
        "plan_a",
        metavar="FILE",
        help="Compiled plan of the SQL job that wrote the snapshot, to match columns by name.",
    )
    b = click.option("--columns-from-plan-b", "plan_b", metavar="FILE", help="Compiled plan of the new SQL job.")
    return a(b(command))


def json_values(given: Sequence[str]) -> dict[str, Any]:
    """Parse the values of ``--fill``.

    Raises
    ------
    OptionError
        A value is not ``FIELD=JSON``.
    """
    values: dict[str, Any] = {}
    for name, text in pairs(given, "--fill FIELD=JSON", "as in --fill orders.totals.value.count=0").items():
        try:
            values[name] = json.loads(text)
        except ValueError as e:
            raise OptionError(f"--fill {name}={text}: not valid JSON", hint="quote text as in '\"EUR\"'") from e
    return values


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
