"""Commands on sources and sinks: inspect their state, and change offsets, splits and transactions in a copy of the snapshot."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.api.write.verbs import connectors as verbs
from statetool.cli.completion import complete_path
from statetool.cli.group import CommandGroup
from statetool.cli.options import (
    OUTPUT,
    SNAPSHOT,
    WRITE,
    CommonOptions,
    common_options,
    open_snapshot,
    operator_option,
    pairs,
)
from statetool.cli.output import echo_err, echo_marked
from statetool.cli.verb import report_target, run_verb, verb_options
from statetool.cli.verdicts import show_source_checks
from statetool.errors import FormatError, OptionError, several

if TYPE_CHECKING:
    from statetool.connectors.commit_ids import CommitIdRow
    from statetool.connectors.edits.edits import EditedSource
    from statetool.connectors.sources import Source
    from statetool.snapshot.operator import OperatorInventory

_SOURCE_COLUMNS = (
    "operator", "connector", "held", "assigned", "unassigned", "finished", "backlog", "backlog_inferred_from", "problems", "note",
)  # fmt: skip
_SPLIT_COLUMNS = ("operator", "subtask", "split_id", "source", "partition", "start", "position", "stop", "marker")
_KNOWN_COLUMNS = ("operator", "split_id", "status", "source", "partition", "position", "stop", "marker")
_LAG_COLUMNS = ("split_id", "subtask", "position", "end", "lag", "spread", "time_spread_ms", "note")
_SCHEMA_COLUMNS = ("operator", "kind", "table", "version", "primary_key", "partition_key", "columns")
_SINK_COLUMNS = ("operator", "connector", "role", "pending", "open", "oldest_checkpoint", "finished_subtasks", "note")
_PENDING_COLUMNS = ("operator", "name", "status", "subtask", "checkpoint_id", "age_ms", "verdict")
_COMMIT_COLUMNS = ("operator", "connector", "checkpoint_id", "highest_known", "message")
_TABLE_COMMIT_COLUMNS = ("operator", "name", "checkpoint_id", "highest_committed", "outcome", "message")
_LOST_COLUMNS = ("operator", "name", "status", "subtask", "checkpoint_id", "file")
_ENDS_HELP: Final = "CSV file of end offsets: topic,partition,offset or split,position."
_CHANGE_COLUMNS = ("split_id", "place", "subtask", "change", "before", "after")


def _read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument and options of commands that read a snapshot."""
    uid = operator_option("Operator to show, by uid, name or operator id.", "only")
    return uid(common_options(*SNAPSHOT, *OUTPUT)(command))


_path_argument: Final = click.argument("path", shell_complete=complete_path)
_ends_option: Final = click.option("--ends", metavar="CSV", help=_ENDS_HELP)


def end_offset_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--ends``, ``--bootstrap-servers`` and ``--kafka``, for :func:`end_offsets`."""
    servers = click.option(
        "--bootstrap-servers",
        metavar="HOST:PORT,...",
        help="Kafka servers to ask for end offsets (needs the extra statetool[kafka]).",
    )
    settings = click.option(
        "--kafka",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting of kafka-python, such as security_protocol=SSL.",
    )
    return _ends_option(servers(settings(command)))


def end_offsets(
    ends: str | None, bootstrap_servers: str | None, settings: tuple[str, ...]
) -> Callable[[Source], Mapping[str, Any] | None] | None:
    """Return a function that reads the current end offsets of a source, ``None`` without the options.

    The function returns ``None`` for a source that is not Kafka's, if Kafka is asked.

    Raises
    ------
    OptionError
        The options contradict each other.
    """
    from statetool.connectors.outside.kafka_ends import kafka_ends, reads_kafka

    if ends is not None and bootstrap_servers is not None:
        raise OptionError(
            "end offsets come from one place", hint="pass either --ends FILE or --bootstrap-servers HOST:PORT"
        )
    if bootstrap_servers is None:
        if settings:
            without = "with --ends" if ends is not None else "without --bootstrap-servers"
            raise OptionError(f"--kafka cannot be used {without}", hint="add --bootstrap-servers HOST:PORT")
        return None if ends is None else lambda source: _from_csv(ends)
    typed = _settings(settings, "--kafka")
    return lambda source: kafka_ends(source, bootstrap_servers, typed) if reads_kafka(source) else None


def _open(path: str, options: CommonOptions, only: str | None) -> statetool.Savepoint:
    return open_snapshot(path, options, operators=() if only is None else [only])


def _operators(savepoint: statetool.Savepoint, only: str | None) -> list[OperatorInventory]:
    """Return the operator of ``--uid``, by default all operators."""
    return list(savepoint.inventory.operators.values()) if only is None else [savepoint[only].inventory]


def _rows(savepoint: statetool.Savepoint, only: str | None, table: str) -> list[Any]:
    from statetool.connectors.tables import connector_rows

    if only is None:
        return savepoint.connector_rows(table)
    # A committer with nothing to commit is recognized only through its writer, so all operators are read.
    operators = _operators(savepoint, None if table == "sinks" else only)
    return [r for r in connector_rows(table, operators) if r.operator == savepoint[only].name]


@click.group(cls=CommandGroup)
def sources() -> None:
    """Inspect and change offsets and splits of sources.

    SPLIT is a split id as statetool sources show prints it. The split of a Kafka source may also be written
    TOPIC:PARTITION.

    Examples:
      statetool sources show savepoint-1a2b --uid orders
      statetool sources set savepoint-1a2b corrected --uid orders orders:3=1234
    """


@sources.command("list")
@_path_argument
@_ends_option
@click.option("--behind", type=click.IntRange(min=0), help="Lag above which a split counts as backlog (with --ends).")
@click.option("--last-source", type=click.IntRange(min=0), help="Index of the last source of a hybrid source, from 0.")
@_read_options
def list_sources(
    options: CommonOptions,
    path: str,
    only: str | None,
    ends: str | None,
    behind: int | None,
    last_source: int | None,
) -> None:
    """List sources, their splits and their backlog.

    Shows the backlog if the state or end offsets (--ends) tell.

    Examples:
      statetool sources list savepoint-1a2b
    """
    from statetool.connectors.backlog import BacklogRules, source_rows

    operators = _operators(_open(path, options, only), only)
    rules = BacklogRules(ends=None if ends is None else _from_csv(ends), behind=behind, last_source=last_source)
    options.output.rows(source_rows(operators, rules), columns=_SOURCE_COLUMNS)


@sources.command()
@_path_argument
@click.option("--enumerator", is_flag=True, help="Show the splits of enumerators instead of readers.")
@_read_options
def show(options: CommonOptions, path: str, only: str | None, enumerator: bool) -> None:
    """Show the splits of sources and their positions.

    Examples:
      statetool sources show savepoint-1a2b --uid orders
    """
    table, columns = ("enumerators", _KNOWN_COLUMNS) if enumerator else ("source_splits", _SPLIT_COLUMNS)
    rows = _rows(_open(path, options, only), only, table)
    options.output.rows(rows, columns=columns)
    if undecoded := [r for r in rows if getattr(r, "undecoded", None) is not None]:
        echo_err(f"{several(len(undecoded), 'split')} of unknown connectors not decoded (--json shows the bytes)")


@sources.command()
@_path_argument
@_read_options
def check(options: CommonOptions, path: str, only: str | None) -> None:
    """Check that readers and enumerators agree on splits.

    Finds splits that several readers hold, that no reader holds, or that the enumerator does not know.

    Exits 1 if there are such splits, or if no connector can decode a source.

    Examples:
      statetool sources check savepoint-1a2b
    """
    savepoint = _open(path, options, only)
    rows = _rows(savepoint, only, "source_checks")
    if options.output.is_json:
        options.output.rows(rows)
    show_source_checks(rows, [r.operator for r in _rows(savepoint, only, "sources")], options.output.form)
    if any(r.is_problem for r in rows):
        sys.exit(1)


@sources.command()
@_path_argument
@_read_options
def schemas(options: CommonOptions, path: str, only: str | None) -> None:
    """Show the table schemas of CDC pipelines.

    Shows the schema versions that the schema operator of a pipeline keeps: as the pipeline reads a table (original), and
    as it writes the table (evolved).

    Examples:
      statetool sources schemas savepoint-1a2b
    """
    from statetool.connectors.layouts.pipeline_schemas import table_schema_rows

    operators = _operators(_open(path, options, only), only)
    options.output.rows(table_schema_rows(operators, required=only is not None), columns=_SCHEMA_COLUMNS)


@sources.command()
@_path_argument
@end_offset_options
@_read_options
def lag(
    options: CommonOptions,
    path: str,
    only: str | None,
    ends: str | None,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """Show the lag of a source per split.

    End offsets come from a file (--ends) or from Kafka (--bootstrap-servers).

    Examples:
      statetool sources lag savepoint-1a2b --bootstrap-servers kafka:9092
      statetool sources lag savepoint-1a2b --uid orders --ends ends.csv
    """
    from statetool.connectors.lag import lag_rows
    from statetool.connectors.sources import source_of

    offsets = end_offsets(ends, bootstrap_servers, settings)
    if offsets is None:
        raise OptionError("the lag needs end offsets", hint="pass --ends FILE or --bootstrap-servers HOST:PORT")
    operators = _operators(_open(path, options, only), only)
    candidates = [source for operator in operators if (source := source_of(operator)) is not None]
    if len(candidates) != 1:
        raise OptionError(f"the snapshot has {several(len(candidates), 'source')}", hint="choose one with --uid UID")
    next_positions = offsets(candidates[0])
    if next_positions is None:
        raise OptionError(
            f"source {candidates[0].label!r} is {candidates[0].name}, not Kafka's",
            hint="pass the end offsets as a file",
        )
    rows = lag_rows(candidates[0], next_positions)
    options.output.rows(rows, columns=_LAG_COLUMNS)
    lags = [r.lag for r in rows if r.lag is not None]
    if lags:
        echo_err(f"total lag {sum(lags):,} in {several(len(lags), 'split')}, {min(lags):,} to {max(lags):,} per split")


def _settings(given: tuple[str, ...], option: str) -> dict[str, Any]:
    """Return settings as kafka-python expects them, with numbers, booleans and None converted from text."""
    words = {"true": True, "false": False, "none": None}
    return {
        name: int(value) if value.isascii() and value.isdigit() else words.get(value.lower(), value)
        for name, value in pairs(given, f"{option} NAME=VALUE").items()
    }


#: Parameters of all commands that change a source.
_EDIT: Final = ("src", "dst", "uid", "connector")


def _edit(given: verbs.EditSource, options: CommonOptions, **made: Any) -> None:
    plan: EditedSource = run_verb(given, options, reading=[given.uid], **made)
    options.output.rows(plan.changes, columns=_CHANGE_COLUMNS)
    for finding in plan.checks:
        if finding.is_problem:
            echo_err(f"after the change: {finding.split_id or finding.operator}: {finding.message}")
    report_target(given.dst, options)


@sources.command("set")
@verb_options(verbs.EditSource, only=(*_EDIT, "positions", "offsets", "to", "upgrade_enumerator"))
@common_options(*WRITE)
def set_positions(options: CommonOptions, given: verbs.EditSource) -> None:
    """Change the positions of splits.

    Writes a changed copy of SRC to DST. orders:3=1234 means that the job next reads offset 1234 of partition 3 of topic
    orders.

    Examples:
      statetool sources set savepoint-1a2b corrected --uid orders orders:3=1234
      statetool sources set savepoint-1a2b corrected --uid orders --to earliest
    """
    positions = {**(_from_csv(given.offsets) if given.offsets else {}), **(given.positions or {})}
    if not positions and given.to is None:
        raise OptionError("nothing to do", hint="pass SPLIT=POSITION, --offsets FILE or --to WORD")
    _edit(given, options, positions=positions)


@sources.command()
@verb_options(verbs.EditSource, only=(*_EDIT, "remove"))
@common_options(*WRITE)
def remove(options: CommonOptions, given: verbs.EditSource) -> None:
    """Remove splits from a source.

    Writes a copy of SRC to DST in which neither readers nor enumerator have the splits.

    Examples:
      statetool sources remove savepoint-1a2b smaller --uid orders orders:7
    """
    _edit(given, options)


@sources.command()
@verb_options(verbs.EditSource, only=(*_EDIT, "add"))
@common_options(*WRITE)
def add(options: CommonOptions, given: verbs.EditSource) -> None:
    """Add splits to a source.

    Writes a copy of SRC with the new splits to DST.

    Examples:
      statetool sources add savepoint-1a2b larger --uid orders orders:7=0
    """
    _edit(given, options)


@sources.command("convert")
@verb_options(verbs.ToKafkaSource)
@common_options(*WRITE)
def convert_kafka(options: CommonOptions, given: verbs.ToKafkaSource) -> None:
    """Convert FlinkKafkaConsumer to KafkaSource.

    Writes a copy of SRC to DST. The new source has the same uid and resumes at the same offsets.

    Examples:
      statetool sources convert savepoint-1a2b converted --uid orders
    """
    plan = run_verb(given, options, reading=[given.uid])
    options.output.rows(plan.changes, columns=_CHANGE_COLUMNS)
    report_target(given.dst, options)


@click.group(cls=CommandGroup)
def sinks() -> None:
    """Inspect and drop uncommitted transactions of sinks.

    Examples:
      statetool sinks pending savepoint-1a2b --timeout 15m
    """


@sinks.command("list")
@_path_argument
@_read_options
def list_sinks(options: CommonOptions, path: str, only: str | None) -> None:
    """List the operators of sinks.

    Examples:
      statetool sinks list savepoint-1a2b
    """
    savepoint = _open(path, options, only)
    options.output.rows(_rows(savepoint, only, "sinks"), columns=_SINK_COLUMNS)
    _warn_of_commit_ids(savepoint, only)


@sinks.command()
@_path_argument
@_read_options
def committed(options: CommonOptions, path: str, only: str | None) -> None:
    """Show checkpoint ids of sinks that commit to tables.

    Iceberg ignores a commit if the table already has its checkpoint id. A restored job counts on from the id of the
    snapshot.

    Exits 1 if the id of the snapshot is lower than that of an uncommitted transaction, or if ids are unknown. In that
    case, write a copy with a higher --checkpoint-id.

    Examples:
      statetool sinks committed savepoint-1a2b
    """
    rows = _commit_ids(_open(path, options, only), only)
    options.output.rows(rows, columns=_COMMIT_COLUMNS)
    if any(r.is_problem for r in rows):
        sys.exit(1)


@sinks.command("check")
@_path_argument
@click.option("--paimon", metavar="TABLE", help="Folder of the Paimon table that the job writes.")
@click.option("--iceberg", metavar="TABLE", help="Folder or metadata file of the Iceberg table.")
@click.option("--delta", metavar="TABLE", help="Folder of the Delta table.")
@click.option("--kafka", metavar="HOST:PORT,...", help="Brokers of Kafka (needs the extra statetool[kafka]).")
@click.option(
    "--kafka-setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of kafka-python, such as security_protocol=SSL.",
)
@click.option(
    "--jdbc",
    metavar="URL",
    help="PostgreSQL, MySQL or MariaDB of JDBC's exactly-once sink (needs the extra statetool[jdbc]).",
)
@_read_options
def check_sinks(
    options: CommonOptions,
    path: str,
    only: str | None,
    paimon: str | None,
    iceberg: str | None,
    delta: str | None,
    kafka: str | None,
    settings: tuple[str, ...],
    jdbc: str | None,
) -> None:
    """Compare uncommitted transactions with their target.

    The target is a table, Kafka or a database. Shows which transactions are already committed, which a restore commits,
    and which it drops. Without an option, shows whether the open and uncommitted files of file sinks still exist.

    Exits 1 if a restore drops a transaction, may commit it twice or leaves it prepared in a database,
    if it fails because a file is gone, or if this is unknown.

    A password in --jdbc is visible to other users of the machine. PGPASSWORD and MYSQL_PWD are read too.

    Examples:
      statetool sinks check savepoint-1a2b
      statetool sinks check savepoint-1a2b --paimon s3://warehouse/shop.db/orders
      statetool sinks check savepoint-1a2b --iceberg s3://warehouse/shop/orders
      statetool sinks check savepoint-1a2b --delta s3://lake/orders
      statetool sinks check savepoint-1a2b --kafka broker-1:9092
      statetool sinks check savepoint-1a2b --jdbc postgresql://flink@db:5432/shop
    """
    from statetool.connectors.outside.commit_checks import commit_check_rows

    savepoint = _open(path, options, only)
    rows = commit_check_rows(
        savepoint.inventory.operators.values(),
        paimon=paimon,
        iceberg=iceberg,
        delta=delta,
        kafka=kafka,
        kafka_settings=_settings(settings, "--kafka-setting"),
        jdbc=jdbc,
    )
    label = None if only is None else savepoint[only].name
    rows = [r for r in rows if label in (None, r.operator)]
    options.output.rows(rows, columns=_TABLE_COMMIT_COLUMNS, whole=["name"])
    if any(r.is_problem for r in rows):
        sys.exit(1)


def _commit_ids(savepoint: statetool.Savepoint, only: str | None) -> list[CommitIdRow]:
    from statetool.connectors.commit_ids import commit_id_rows

    label = None if only is None else savepoint[only].name
    rows = commit_id_rows(savepoint.inventory.operators.values(), savepoint.checkpoint_id)
    return [r for r in rows if label in (None, r.operator)]


def _warn_of_commit_ids(savepoint: statetool.Savepoint, only: str | None) -> None:
    for row in _commit_ids(savepoint, only):
        if row.commits_by_id and row.is_problem:
            echo_marked("warning", f"{row.operator}: {row.message}")


@sinks.command()
@_path_argument
@click.option("--timeout", help="Kafka's transaction.timeout.ms of the sink: 15m, 1h, 900s.")
@click.option("--commands", is_flag=True, help="Print commands for the tools of Kafka and Doris.")
@_read_options
def pending(options: CommonOptions, path: str, only: str | None, timeout: str | None, commands: bool) -> None:
    """Show uncommitted transactions, and their fate on restore.

    Exits 1 if a transaction has expired, or if state of a sink could not be decoded.

    Examples:
      statetool sinks pending savepoint-1a2b --timeout 15m
    """
    from statetool.connectors.pending import pending_rows
    from statetool.connectors.tables import sinks_and_unknown
    from statetool.io.listing import stat
    from statetool.operations.directories.orphans import age_seconds

    savepoint = _open(path, options, only)
    label = None if only is None else savepoint[only].name
    metadata_file = stat(savepoint.inventory.metadata_file)
    snapshot_ms = None if metadata_file is None else metadata_file.modified_ms
    limit = None if timeout is None else int(age_seconds(timeout) * 1000)
    all_sinks = sinks_and_unknown(savepoint.inventory.operators.values())
    operators = [s for s in all_sinks if label in (None, s.label)]
    now = int(time.time() * 1000)
    rows = [r for s in operators for r in pending_rows(s, now_ms=now, snapshot_ms=snapshot_ms, timeout_ms=limit)]
    output = options.output
    output.rows(rows, columns=_PENDING_COLUMNS, whole=["name"])
    if commands and not output.is_json:
        lines = dict.fromkeys(line for r in rows if r.commands for line in r.commands.split("\n"))
        output.text(*lines)
        if any(line.startswith("kafka-") for line in lines):
            echo_err("Kafka's tools can only abort transactions; to commit them, restore the job")
    for sink in operators:
        finished = sum(s.finished for s in sink.operator.state.subtasks)
        if finished and sink.state.pending:
            echo_err(
                f"{sink.label}: {several(finished, 'subtask')} had finished; not committed: {len(sink.state.pending):,}"
            )
    _warn_of_commit_ids(savepoint, only)
    if undecoded := sum(not r.is_decoded for r in rows):
        echo_err(f"{several(undecoded, 'row')} not decoded: their transactions, if any, are unknown")
    if undecoded or any(r.verdict == "has_expired" for r in rows):
        sys.exit(1)


@sinks.command()
@verb_options(verbs.DropTransactions)
@common_options(*WRITE)
def forget(options: CommonOptions, given: verbs.DropTransactions) -> None:
    """Drop uncommitted transactions or files of a sink.

    Writes a copy of SRC without them to DST. Their records are lost. Part files that a file sink has open can be dropped too.

    Examples:
      statetool sinks forget savepoint-1a2b cleaned --uid sink --lose tx-7-1
    """
    lost = run_verb(given, options, reading=[given.uid])
    options.output.rows(lost, columns=_LOST_COLUMNS, whole=["name"])
    echo_err(f"lost: {several(len(lost), 'transaction or file', 'transactions or files')}")
    report_target(given.dst, options)


def _from_csv(path: str) -> dict[str, str]:
    from statetool.connectors.edits.positions import positions_of

    try:
        with open(path, newline="", encoding="utf-8") as f:
            return positions_of(csv.DictReader(f))
    except OSError as e:
        raise FormatError(f"{path} cannot be read: {e.strerror}", hint="check the path of the CSV file") from e
    except (UnicodeDecodeError, csv.Error) as e:
        raise FormatError(f"{path} is not a valid UTF-8 CSV file: {e}") from e
