"""Lists of snapshots and of files, with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import statetool
from statetool.cli.output import Output, echo_err, utc_time

if TYPE_CHECKING:
    from statetool.cli.options import CommonOptions

_SNAPSHOT_COLUMNS: Final = (
    "path", "kind", "format", "checkpoint_id", "metadata_version", "time", "own_bytes", "shared_bytes", "complete", "newest",
)  # fmt: skip


def print_snapshots(root: str, options: CommonOptions) -> None:
    """Print every snapshot below a directory."""
    rows = statetool.list_snapshots(root, rebase=options.rebase)
    print_records(rows, options.output, _SNAPSHOT_COLUMNS)
    if not options.output.is_json:
        echo_err(*(f"{row.path}: {row.problem}" for row in rows if not row.complete))


def print_records(rows: Sequence[Any], output: Output, columns: Sequence[str]) -> None:
    """Print records. Text output shows times in ISO 8601."""
    if output.is_json:
        output.rows(rows)
        return
    output.rows([{**asdict(r), "time": utc_time(r.modified_ms)} for r in rows], columns=columns)
