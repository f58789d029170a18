"""Commands that list the contents of a snapshot's metadata: operators, tables, states and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import Output, echo_err
from statetool.cli.resolve_path import is_snapshot
from statetool.errors import several
from statetool.operations.cluster.paths import is_server
from statetool.types.operators import display_name, operator_fields

if TYPE_CHECKING:
    import statetool
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo

_INFO_COLUMNS: Final = ("operator", "parallelism", "max_parallelism", "subtasks", "state_bytes")
_STATE_COLUMNS: Final = (
    "operator", "name", "scope", "kind", "key_type", "namespace_type", "value_type", "ttl", "readable",
)  # fmt: skip


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT, *OUTPUT)
def info(options: CommonOptions, path: str) -> None:
    """Show a snapshot's id, format version and operators.

    Also shows the sources that were behind, if their state says so.

    Examples:
      statetool info s3://bucket/savepoint-1a2b
      statetool info s3://bucket/checkpoints/1a2b --latest --json
    """
    print_info(open_snapshot(path, options), options)


def print_info(savepoint: statetool.Savepoint, options: CommonOptions) -> None:
    """Print a snapshot's id, format version, operators and sources that were behind."""
    operators = savepoint.metadata_rows("operators")
    backlogs = _backlogs(savepoint) if any(o.coordinator_bytes for o in operators) else []
    output = options.output
    summary = {
        "path": savepoint.path,
        "checkpoint_id": savepoint.checkpoint_id,
        "metadata_version": savepoint.metadata_version,
        "operators": len(operators),
        "state_bytes": sum(o.state_bytes for o in operators),
    }
    if output.is_json:
        rows = {"operators": [asdict(o) for o in operators], "backlog": [asdict(b) for b in backlogs]}
        output.record(summary | rows)
        return
    output.record(summary)
    output.text("")
    output.rows(operators, columns=_INFO_COLUMNS)
    if backlogs:
        output.text("")
        output.rows(backlogs)
    if unnamed := [o for o in operators if not o.uid and o.state_bytes]:
        output.text("")
        _print_unnamed(savepoint, unnamed, output)


def _backlogs(savepoint: statetool.Savepoint) -> list[Any]:
    from statetool.connectors.backlog import backlog_rows

    return list(backlog_rows(savepoint.inventory.operators.values()))


def _print_unnamed(savepoint: statetool.Savepoint, unnamed: Sequence[OperatorRow], output: Output) -> None:
    """Show operators without a uid with their states, which distinguish them. The headers of other operators are not read."""
    inventories = {o.state.operator_id: o for o in savepoint.inventory.operators.values()}
    names = {o.operator_id: ", ".join(s.name for s in inventories[o.operator_id].states) for o in unnamed}
    possible = savepoint.inventory.possible_names
    output.rows(
        [
            {"without_uid": o.operator, "states": names[o.operator_id] or None}
            | ({"name_is_one_of": ", ".join(possible.get(o.operator_id, ())) or None} if possible else {})
            for o in unnamed
        ]
    )
    echo_err("name an operator with --name-uid UID, or pass a job jar, its source or a compiled plan with --uids FILE")


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT, *OUTPUT)
def ls(options: CommonOptions, path: str) -> None:
    """List tables of a snapshot, or snapshots in a directory.

    For the URL of a JobManager, lists its jobs.

    Examples:
      statetool ls s3://bucket/savepoint-1a2b
      statetool ls s3://bucket/checkpoints
      statetool ls flink://jobmanager:8081
    """
    if is_server(path):
        from statetool.cli.job_list import print_jobs

        print_jobs(path, options)
        return
    if not options.latest and not is_snapshot(path):
        from statetool.cli.snapshot_list import print_snapshots

        print_snapshots(path, options)
        return
    savepoint = open_snapshot(path, options)
    rows = [{**operator_fields(o.inventory.label), "table": t} for o in savepoint.operators.values() for t in o.tables]
    options.output.rows(rows, columns=("operator", "table"))
    _report_unlisted(savepoint.metadata_rows("states"))


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT, *OUTPUT)
def states(options: CommonOptions, path: str) -> None:
    """List states with their types.

    Examples:
      statetool states s3://bucket/savepoint-1a2b --wide
    """
    rows = open_snapshot(path, options).metadata_rows("states")
    options.output.rows(rows, columns=_STATE_COLUMNS)
    if undeclared := [s for s in rows if s.readable and s.reason]:
        first = undeclared[0]
        echo_err(
            f"{several(len(undeclared), 'state')} can be decoded further; {display_name(first.operator)}.{first.name}: {first.reason}"
        )
    _report_unlisted(rows)


def _report_unlisted(rows: Sequence[StateInfo]) -> None:
    """Report the operators whose keyed or operator state could not be listed."""
    for row in rows:
        if row.kind == "unread":
            echo_err(f"{display_name(row.operator)}: its {row.scope} state is not listed: {row.reason}")


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT, *OUTPUT)
def files(options: CommonOptions, path: str) -> None:
    """List the files and inline bytes that hold state.

    Examples:
      statetool files s3://bucket/checkpoints/1a2b/chk-7 --json
    """
    options.output.rows(open_snapshot(path, options).metadata_rows("files"))
