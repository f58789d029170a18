"""Commands on directories of snapshots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import click

import statetool
from statetool.cli.options import output_option, rebase_option, rebase_pairs
from statetool.cli.output import Output
from statetool.errors import several

_SNAPSHOT_COLUMNS = (
    "path", "kind", "format", "checkpoint_id", "metadata_version", "time", "own_bytes", "shared_bytes", "complete", "newest",
)  # fmt: skip
_CHECKPOINT_COLUMNS = (
    "path", "checkpoint_id", "time", "files", "total_bytes", "new_bytes", "reused_bytes", "reuse", "freed_files", "freed_bytes",
)  # fmt: skip


def print_snapshots(root: str, rebase: tuple[str, ...], form: str) -> None:
    """Print every snapshot below a directory."""
    rows = statetool.list_snapshots(root, rebase=rebase_pairs(rebase))
    _print(rows, form, _SNAPSHOT_COLUMNS)
    if form == "text":
        for row in rows:
            if not row.complete:
                Output.say(f"{row.path}: {row.problem}")


@click.command()
@output_option
@rebase_option
@click.option("--files", "with_files", is_flag=True, help="Name every file, and the checkpoints that need it.")
@click.argument("root")
def chain(root: str, rebase: tuple[str, ...], form: str, with_files: bool) -> None:
    """Show what the retained checkpoints below ROOT share, and what deleting each would free."""
    retained = statetool.chain(root, rebase=rebase_pairs(rebase))
    if form == "json":
        Output(form).record(
            {
                "checkpoints": [asdict(c) for c in retained.checkpoints],
                "files": [asdict(f) for f in retained.files],
                "unreadable": [{"path": path, "problem": problem} for path, problem in retained.unreadable],
            }
        )
        return
    _print(retained.checkpoints, form, _CHECKPOINT_COLUMNS)
    Output(form).text("")
    Output(form).record(
        {
            "checkpoints": len(retained.checkpoints),
            "files": len(retained.files),
            "needed_bytes": sum(f.needed_bytes for f in retained.files),
            "shared_files": sum(f.references > 1 for f in retained.files),
            "missing_files": sum(f.size_bytes is None for f in retained.files),
        }
    )
    if with_files and retained.files:
        Output(form).text("")
        Output(form).rows(retained.files)
    for path, problem in retained.unreadable:
        Output.say(f"{path}: {problem}")


@click.command()
@output_option
@rebase_option
@click.option("--min-age", default="7d", show_default=True, help="Leave out younger files: 7d, 12h, 30m, 0s.")
@click.option("--retained", multiple=True, metavar="DIR", help="Another directory whose snapshots count.")
@click.option("--ignore-unreadable", is_flag=True, help="Judge though some metadata cannot be read.")
@click.argument("root")
def orphans(
    root: str, rebase: tuple[str, ...], form: str, min_age: str, retained: tuple[str, ...], ignore_unreadable: bool
) -> None:
    """Report files below ROOT that no retained metadata names; deletes nothing. Exit code 1 if there are any."""
    rows = statetool.orphans(
        root, min_age=min_age, retained=retained, ignore_unreadable=ignore_unreadable, rebase=rebase_pairs(rebase)
    )
    _print(rows, form, ("path", "size_bytes", "time", "reason"))
    if rows:
        Output.say(
            f"{several(len(rows), 'file')} with {several(sum(r.size_bytes for r in rows), 'byte')}; nothing was deleted"
        )
        sys.exit(1)


def _print(rows: Sequence[Any], form: str, columns: Sequence[str]) -> None:
    """Print records. Text output shows times in ISO 8601."""
    if form == "json":
        Output(form).rows(rows)
        return
    Output(form).rows([{**asdict(r), "time": _time(r.modified_ms)} for r in rows], columns=columns)


def _time(modified_ms: int | None) -> str | None:
    if modified_ms is None:
        return None
    return datetime.fromtimestamp(modified_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
