"""Commands about sources and sinks: show their state, and write copies of a snapshot with changed offsets, splits or transactions."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import statetool
from statetool.cli.completion import complete_operator, complete_path
from statetool.cli.options import finding_options, given_options, opened, output_option, pairs, type_options
from statetool.cli.output import Output
from statetool.cli.rewrite import rewriting, say_done
from statetool.cli.verdicts import show_source_checks
from statetool.errors import FormatError, OptionError, several

if TYPE_CHECKING:
    from statetool.connectors.commit_ids import CommitIdRow
    from statetool.connectors.conversion import ConvertedConsumer, ConvertedSource
    from statetool.connectors.edits import EditedSource

_SOURCE_COLUMNS = (
    "operator", "connector", "held", "assigned", "unassigned", "finished", "backlog", "backlog_inferred_from", "problems", "note",
)  # fmt: skip
_SPLIT_COLUMNS = ("operator", "subtask", "split_id", "source", "partition", "start", "position", "stop", "marker")
_KNOWN_COLUMNS = ("operator", "split_id", "status", "source", "partition", "position", "stop", "marker")
_LAG_COLUMNS = ("split_id", "subtask", "position", "end", "lag", "spread", "time_spread_ms", "note")
_SINK_COLUMNS = ("operator", "connector", "role", "pending", "open", "oldest_checkpoint", "finished_subtasks", "note")
_PENDING_COLUMNS = ("operator", "name", "status", "subtask", "checkpoint_id", "age_ms", "verdict")
_COMMIT_COLUMNS = ("operator", "connector", "checkpoint_id", "highest_known", "message")
_LOST_COLUMNS = ("operator", "name", "status", "subtask", "checkpoint_id", "file")
#: The first equals sign ends the name.
_EQUALS = "a split whose id has an equals sign is named in a file: --offsets, columns split, position"
_CHANGE_COLUMNS = ("split_id", "place", "subtask", "change", "before", "after")


def _reading(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options and arguments of all read-only commands."""
    for decorator in (
        output_option,
        finding_options,
        type_options,
        click.option("--uid", "only", shell_complete=complete_operator, help="Only this operator, by uid or id."),
        click.argument("path", shell_complete=complete_path),
    ):
        command = decorator(command)
    return command


def _rows(path: str, rebase: tuple[str, ...], only: str | None, table: str) -> list[Any]:
    from statetool.connectors.tables import connector_rows

    savepoint = opened(path, rebase)
    if only is None:
        return savepoint.connector_rows(table)
    # A committer with nothing to commit is recognized only through its writer, so all operators are read.
    operators = savepoint.inventory.operators.values() if table == "sinks" else [savepoint[only].inventory]
    return [r for r in connector_rows(table, operators) if r.operator == savepoint[only].name]


@click.group()
def sources() -> None:
    """What sources keep: positions of their splits, and their enumerators."""


@sources.command("list")
@_reading
@click.option("--ends", metavar="CSV", help="What is written next: topic, partition, offset; or split, position.")
@click.option("--behind", type=click.IntRange(min=0), help="How far before its end a split is backlog (with --ends).")
@click.option("--last-source", type=click.IntRange(min=0), help="Index of the last source of a hybrid one, from 0 on.")
def list_sources(
    path: str,
    rebase: tuple[str, ...],
    only: str | None,
    form: str,
    ends: str | None,
    behind: int | None,
    last_source: int | None,
) -> None:
    """List the sources of a snapshot, and which of them were behind, as far as that can be inferred."""
    from statetool.connectors.backlog import BacklogRules, source_rows

    savepoint = opened(path, rebase)
    operators = [savepoint[only].inventory] if only else savepoint.inventory.operators.values()
    rules = BacklogRules(ends=None if ends is None else _from_csv(ends), behind=behind, last_source=last_source)
    Output(form).rows(source_rows(operators, rules), columns=_SOURCE_COLUMNS)


@sources.command()
@_reading
@click.option("--enumerator", is_flag=True, help="What the enumerators keep, not the readers.")
def show(path: str, rebase: tuple[str, ...], only: str | None, form: str, enumerator: bool) -> None:
    """Show the splits of sources, and where they are."""
    table, columns = ("enumerators", _KNOWN_COLUMNS) if enumerator else ("source_splits", _SPLIT_COLUMNS)
    rows = _rows(path, rebase, only, table)
    Output(form).rows(rows, columns=columns)
    if unread := [r for r in rows if getattr(r, "undecoded", None) is not None]:
        Output.say(f"no connector reads {several(len(unread), 'split')}: --output json shows the bytes")


@sources.command()
@_reading
def check(path: str, rebase: tuple[str, ...], only: str | None, form: str) -> None:
    """Compare readers with enumerators: splits held twice, by none, unknown.

    Exits 1 if there are such, or if a source cannot be checked because no connector reads it.
    """
    rows = _rows(path, rebase, only, "source_checks")
    if form == "json":
        Output(form).rows(rows)
    show_source_checks(rows, [r.operator for r in _rows(path, rebase, only, "sources")], form)
    if any(r.is_problem for r in rows):
        sys.exit(1)


@sources.command()
@_reading
@click.option("--ends", metavar="CSV", help="What is written next: topic, partition, offset; or split, position.")
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Ask Kafka for its ends (needs statetool[kafka]).")
@click.option(
    "--kafka", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of kafka-python: security_protocol=SSL."
)
def lag(
    path: str,
    rebase: tuple[str, ...],
    only: str | None,
    form: str,
    ends: str | None,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """Show how far a source is behind: behind the ends that a file says, or that Kafka has."""
    from statetool.connectors.kafka_ends import kafka_ends
    from statetool.connectors.lag import lag_rows
    from statetool.connectors.sources import source_of

    if (ends is None) == (bootstrap_servers is None):
        raise OptionError("one of --ends and --bootstrap-servers is needed", hint="where the ends come from")
    savepoint = opened(path, rebase)
    operators = [savepoint[only].inventory] if only else savepoint.inventory.operators.values()
    candidates = [source for operator in operators if (source := source_of(operator)) is not None]
    if len(candidates) != 1:
        raise OptionError(f"there are {len(candidates)} sources", hint="say which with --uid")
    if bootstrap_servers is None:
        if settings:
            raise OptionError("--kafka does nothing for --ends", hint="leave it out, or ask Kafka: --bootstrap-servers")
        next_positions: dict[str, Any] = _from_csv(ends or "")
    else:
        typed_settings = {name: _setting(value) for name, value in pairs(settings, "--kafka NAME=VALUE").items()}
        next_positions = kafka_ends(candidates[0], bootstrap_servers, typed_settings)
    rows = lag_rows(candidates[0], next_positions)
    Output(form).rows(rows, columns=_LAG_COLUMNS)
    behind = [r.lag for r in rows if r.lag is not None]
    if behind:
        Output.say(
            f"{sum(behind):,} behind in all, {min(behind):,} to {max(behind):,} of {several(len(behind), 'split')}"
        )


def _setting(value: str) -> Any:
    """Return a setting as kafka-python expects it, with numbers, booleans and None converted from text."""
    words = {"true": True, "false": False, "none": None}
    return int(value) if value.isascii() and value.isdigit() else words.get(value.lower(), value)


def _editing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options and arguments of all commands that change a source."""
    connector = click.option("--connector", help="Name of the connector, where the bytes do not tell it.")
    uid = click.option(
        "--uid", required=True, shell_complete=complete_operator, help="The source, by uid or operator id."
    )
    return rewriting(uid(connector(command)))


def _edit(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    uid: str,
    connector: str | None,
    **wanted: Any,
) -> None:
    savepoint = opened(source, rebase)
    plan: EditedSource = statetool.edit_source(
        savepoint,
        target,
        uid,
        connector=connector,
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        take_over=take_over,
        **wanted,
    )
    Output(form).rows(plan.changes, columns=_CHANGE_COLUMNS)
    for finding in plan.checks:
        if finding.is_problem:
            Output.say(f"afterwards: {finding.split_id or finding.operator}: {finding.message}")
    say_done(target, dry_run)


@sources.command("set")
@_editing
@click.argument("positions", nargs=-1, metavar="SPLIT=POSITION...")
@click.option("--offsets", metavar="CSV", help="File with columns topic, partition, offset, or split, position.")
@click.option("--to", metavar="WORD", help="The same for all splits: earliest, latest, committed, timestamp=MS.")
@click.option(
    "--upgrade-enumerator", is_flag=True, help="Write enumerator state in a version that stores positions, if need be."
)
def set_positions(
    positions: tuple[str, ...], offsets: str | None, to: str | None, upgrade_enumerator: bool, **common: Any
) -> None:
    """Write SRC to DST with other positions of a source: orders:3=1234 reads record 1234 of partition 3 next."""
    named = {**(_from_csv(offsets) if offsets else {}), **pairs(positions, "SPLIT=POSITION", _EQUALS)}
    if not named and to is None:
        raise OptionError("nothing to do", hint="give SPLIT=POSITION, --offsets FILE or --to WORD")
    _edit(**common, positions=named, to=to, upgrade_enumerator=upgrade_enumerator)


@sources.command()
@_editing
@click.argument("splits", nargs=-1, required=True, metavar="SPLIT...")
def remove(splits: tuple[str, ...], **common: Any) -> None:
    """Write SRC to DST without some splits of a source, in readers and enumerator."""
    _edit(**common, remove=splits)


@sources.command()
@_editing
@click.argument("splits", nargs=-1, required=True, metavar="SPLIT=POSITION...")
def add(splits: tuple[str, ...], **common: Any) -> None:
    """Write SRC to DST with more splits of a source: orders:7=0."""
    _edit(**common, add=pairs(splits, "SPLIT=POSITION"))


@sources.command("convert")
@rewriting
@click.option("--uid", required=True, shell_complete=complete_operator, help="The source, by uid or operator id.")
@click.option(
    "--to",
    type=click.Choice(["kafka-source", "flink-kafka-consumer"]),
    default="kafka-source",
    show_default=True,
    help="What it becomes: KafkaSource, or the consumer before it (Flink 1.x).",
)
@click.option("--enumerator-version", type=int, default=1, show_default=True, help="1: every release reads it; 2, 3.")
def convert_kafka(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    uid: str,
    to: str,
    enumerator_version: int,
) -> None:
    """Write SRC to DST with the state of FlinkKafkaConsumer as that of KafkaSource under the same uid, or the other way round."""
    savepoint = opened(source, rebase)
    common: dict[str, Any] = {"checkpoint_id": checkpoint_id, "dry_run": dry_run, "take_over": take_over}
    plan: ConvertedConsumer | ConvertedSource
    if to == "flink-kafka-consumer":
        if "enumerator_version" in given_options():
            raise OptionError("--enumerator-version does nothing for a consumer, which has none", hint="leave it out")
        plan = statetool.convert_source(savepoint, target, uid, **common)
    else:
        plan = statetool.convert_consumer(savepoint, target, uid, enumerator_version=enumerator_version, **common)
    Output(form).rows(plan.changes, columns=_CHANGE_COLUMNS)
    say_done(target, dry_run)


@click.group()
def sinks() -> None:
    """What sinks keep: transactions and files that are not committed."""


@sinks.command("list")
@_reading
def list_sinks(path: str, rebase: tuple[str, ...], only: str | None, form: str) -> None:
    """List the operators of sinks."""
    Output(form).rows(_rows(path, rebase, only, "sinks"), columns=_SINK_COLUMNS)
    _warn_of_commit_ids(opened(path, rebase), only)


@sinks.command()
@_reading
def committed(path: str, rebase: tuple[str, ...], only: str | None, form: str) -> None:
    """Show the checkpoint ids that sinks of table formats commit by.

    Iceberg and Paimon drop commits of ids that the table has already. A job counts on from the id of the snapshot. Exits 1 if that is
    below an id that is waiting to be committed, or if nothing tells: then write the snapshot with a higher --checkpoint-id.
    """
    rows = _commit_ids(opened(path, rebase), only)
    Output(form).rows(rows, columns=_COMMIT_COLUMNS)
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
            Output.say(f"warning: {row.operator}: {row.message}")


@sinks.command()
@_reading
@click.option("--timeout", help="How long transactions stay open outside (transaction.timeout.ms): 15m, 1h, 900s.")
@click.option("--commands", is_flag=True, help="Print command lines of Kafka's own tools.")
def pending(
    path: str, rebase: tuple[str, ...], only: str | None, form: str, timeout: str | None, commands: bool
) -> None:
    """Show what is not committed, and what becomes of it on restore.

    Exits 1 if something has expired, or if state of a sink cannot be read: what it holds is unknown then.
    """
    from statetool.connectors.pending import pending_rows
    from statetool.connectors.tables import sinks_and_unknown
    from statetool.directories.orphans import age_seconds
    from statetool.io.listing import stat

    savepoint = opened(path, rebase)
    label = None if only is None else savepoint[only].name
    metadata_file = stat(savepoint.inventory.metadata_file)
    snapshot_ms = None if metadata_file is None else metadata_file.modified_ms
    limit = None if timeout is None else int(age_seconds(timeout) * 1000)
    all_sinks = sinks_and_unknown(savepoint.inventory.operators.values())
    operators = [s for s in all_sinks if label in (None, s.label)]
    now = int(time.time() * 1000)
    rows = [r for s in operators for r in pending_rows(s, now_ms=now, snapshot_ms=snapshot_ms, timeout_ms=limit)]
    Output(form).rows(rows, columns=_PENDING_COLUMNS)
    if commands and form == "text":
        Output.text(*dict.fromkeys(line for r in rows if r.commands for line in r.commands.split("\n")))
        Output.say("no tool of Kafka's commits a transaction from outside: only a job that is restored does")
    for sink in operators:
        finished = sum(s.finished for s in sink.operator.state.subtasks)
        if finished and sink.state.pending:
            Output.say(
                f"{sink.label}: {several(finished, 'subtask')} had finished; not committed: {len(sink.state.pending):,}"
            )
    _warn_of_commit_ids(savepoint, only)
    if undecoded := sum(not r.is_decoded for r in rows):
        Output.say(f"{several(undecoded, 'row')} of state that cannot be read: what it holds, if anything, is unknown")
    if undecoded or any(r.verdict == "has_expired" for r in rows):
        sys.exit(1)


@sinks.command()
@rewriting
@click.option(
    "--uid", required=True, shell_complete=complete_operator, help="The operator that holds them, by uid or id."
)
@click.option("--lose", "names", multiple=True, required=True, metavar="NAME", help="What is lost, by its name.")
def forget(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    uid: str,
    names: tuple[str, ...],
) -> None:
    """Write SRC to DST without some transactions or files of a sink: what they hold is lost."""
    savepoint = opened(source, rebase)
    lost = statetool.forget_transactions(
        savepoint, target, uid, names, checkpoint_id=checkpoint_id, dry_run=dry_run, take_over=take_over
    )
    Output(form).rows(lost, columns=_LOST_COLUMNS)
    Output.say(f"lost: {several(len(lost), 'transaction or file', 'transactions or files')}")
    say_done(target, dry_run)


def _from_csv(path: str) -> dict[str, str]:
    from statetool.connectors.positions import positions_of

    try:
        with open(path, newline="", encoding="utf-8") as f:
            return positions_of(csv.DictReader(f))
    except (UnicodeDecodeError, csv.Error) as e:
        raise FormatError(f"{path} is no CSV in UTF-8: {e}") from e
