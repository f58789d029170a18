"""Commands on directories of snapshots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options
from statetool.cli.output import Output, echo_err
from statetool.errors import several

_SNAPSHOT_COLUMNS = (
    "path", "kind", "format", "checkpoint_id", "metadata_version", "time", "own_bytes", "shared_bytes", "complete", "newest",
)  # fmt: skip
_CHECKPOINT_COLUMNS = (
    "path", "checkpoint_id", "time", "files", "total_bytes", "new_bytes", "reused_bytes", "reuse", "freed_files", "freed_bytes",
)  # fmt: skip


def print_snapshots(root: str, options: CommonOptions) -> None:
    """Print every snapshot below a directory."""
    rows = statetool.list_snapshots(root, rebase=options.rebase)
    _print(rows, options.output, _SNAPSHOT_COLUMNS)
    if not options.output.is_json:
        echo_err(*(f"{row.path}: {row.problem}" for row in rows if not row.complete))


@click.command(cls=Command)
@click.argument("root", shell_complete=complete_path)
@click.option("--files", "with_files", is_flag=True, help="List every file, and the checkpoints that need it.")
@common_options("rebase", *OUTPUT)
def chain(options: CommonOptions, root: str, with_files: bool) -> None:
    """Show which files retained checkpoints share.

    ROOT is the directory of a job's checkpoints, or the URL of a job. For each checkpoint, shows how many bytes its deletion
    would free.

    Examples:
      statetool chain s3://bucket/checkpoints/1a2b
      statetool chain flink://jobmanager:8081/orders
    """
    retained = statetool.chain(root, rebase=options.rebase)
    output = options.output
    if output.is_json:
        output.record(
            {
                "checkpoints": [asdict(c) for c in retained.checkpoints],
                "files": [asdict(f) for f in retained.files],
                "unreadable": [{"path": path, "problem": problem} for path, problem in retained.unreadable],
            }
        )
        return
    _print(retained.checkpoints, output, _CHECKPOINT_COLUMNS)
    output.text("")
    output.record(
        {
            "checkpoints": len(retained.checkpoints),
            "files": len(retained.files),
            "needed_bytes": sum(f.needed_bytes for f in retained.files),
            "shared_files": sum(f.references > 1 for f in retained.files),
            "missing_files": sum(f.size_bytes is None for f in retained.files),
        }
    )
    if with_files and retained.files:
        output.text("")
        output.rows(retained.files)
    echo_err(*(f"{path}: {problem}" for path, problem in retained.unreadable))


@click.command(cls=Command)
@click.argument("root", shell_complete=complete_path)
@click.option("--min-age", default="7d", show_default=True, help="Minimum age of files: 7d, 12h, 30m, 0s.")
@click.option("--retained", multiple=True, metavar="DIR", help="Another directory whose snapshots are retained.")
@click.option("--ignore-unreadable", is_flag=True, help="Continue if the metadata of some snapshot cannot be read.")
@common_options("rebase", *OUTPUT)
def orphans(
    options: CommonOptions, root: str, min_age: str, retained: tuple[str, ...], ignore_unreadable: bool
) -> None:
    """Find files that no retained snapshot needs.

    ROOT is a directory of checkpoints, or the URL of a job for the directory of its checkpoints. Deletes nothing.

    Exits 1 if there are orphans.

    Examples:
      statetool orphans s3://bucket/checkpoints --min-age 30d
    """
    rows = statetool.orphans(
        root, min_age=min_age, retained=retained, ignore_unreadable=ignore_unreadable, rebase=options.rebase
    )
    _print(rows, options.output, ("path", "size_bytes", "time", "reason"))
    if rows:
        size = sum(r.size_bytes for r in rows)
        echo_err(f"{several(len(rows), 'file')} with {several(size, 'byte')}; nothing was deleted")
        sys.exit(1)


def _print(rows: Sequence[Any], output: Output, columns: Sequence[str]) -> None:
    """Print records. Text output shows times in ISO 8601."""
    if output.is_json:
        output.rows(rows)
        return
    output.rows([{**asdict(r), "time": _time(r.modified_ms)} for r in rows], columns=columns)


def _time(modified_ms: int | None) -> str | None:
    if modified_ms is None:
        return None
    return datetime.fromtimestamp(modified_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
