"""The list of a server's jobs with their checkpoints."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from statetool.cli.output import utc_time

if TYPE_CHECKING:
    from statetool.cli.options import CommonOptions

_JOB_COLUMNS: Final = (
    "job_id", "name", "state", "uptime", "checkpoint_id", "time", "duration_ms", "bytes", "failed", "path",
)  # fmt: skip
_FAILED_COLUMNS: Final = ("job_name", "failed_id", "kind", "time", "reason")
_SAVEPOINT_COLUMNS: Final = ("job_name", "savepoint_id", "time", "state_bytes", "path")


def print_jobs(url: str, options: CommonOptions) -> None:
    """Print the jobs of a server, or one job, with their checkpoints."""
    from statetool.operations.cluster.overview import read_overview

    overview, output = read_overview(url), options.output
    if output.is_json:
        output.record(asdict(overview))
        return
    output.rows(
        [
            {
                **asdict(job),
                "uptime": _uptime(job.duration_ms),
                "time": utc_time(job.checkpoint_ms),
                "duration_ms": job.checkpoint_duration_ms,
                "bytes": job.checkpoint_bytes,
                "path": job.checkpoint_path,
            }
            for job in overview.jobs
        ],
        columns=_JOB_COLUMNS,
    )
    if overview.failed:
        output.text("")
        rows = [asdict(c) | {"failed_id": c.checkpoint_id, "time": utc_time(c.triggered_ms)} for c in overview.failed]
        output.rows(rows, columns=_FAILED_COLUMNS)
    if kept := [c for c in overview.savepoints if not c.deleted]:
        output.text("")
        rows = [asdict(c) | {"savepoint_id": c.checkpoint_id, "time": utc_time(c.triggered_ms)} for c in kept]
        output.rows(rows, columns=_SAVEPOINT_COLUMNS, whole=["path"])


def _uptime(milliseconds: int) -> str:
    try:
        return str(timedelta(seconds=milliseconds // 1000))
    except OverflowError:
        return f"{milliseconds} ms"
