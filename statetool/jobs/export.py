"""Export a table of a snapshot with Spark to Parquet, Avro, JSON lines, or a Delta or Iceberg table.

As a job::

    spark-submit --py-files statetool.zip export.py PATH --uid UID --table keyed_state \\
        --format parquet --output DIR

``statetool.zip`` is the output of :mod:`statetool.jobs.package`, or the wheel renamed to ``.zip``. The workers need its dependencies.
Each task reads one split and writes one file; Spark's committer publishes them. For all other commands use :mod:`statetool.jobs.run`.
If statetool is installed, run ``python -m statetool.jobs.export`` with the same arguments to export on this machine.
Exit codes: 0 success, 2 usage error, 3 unreadable input.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

import statetool
from statetool.cli.output import echo_err, print_line
from statetool.cli.progress import progress
from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest
from statetool.io.glibc import claim_process
from statetool.spark.session import local_session
from statetool.spark.write.export import STYLES, export_table
from statetool.tables.request import OPTIONS, ScanRequest


def main(arguments: Sequence[str]) -> int:
    """Run the job and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="export.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", help="directory or metadata file of the snapshot")
    parser.add_argument("--uid", dest="operator", required=True, help="uid or operator id")
    parser.add_argument("--format", dest="style", choices=STYLES, default="parquet")
    parser.add_argument("--output", "--target", dest="target", required=True, help="a directory; for iceberg a table")
    parser.add_argument("--by-key-group", action="store_true", help="partition by key_group")
    parser.add_argument("--append", action="store_true", help="add to other checkpoints, with the column checkpoint_id")
    for option in OPTIONS.values():
        kind: dict[str, Any] = {"choices": option.words} if option.kind == "word" else {}
        if option.kind == "flag":
            kind = {"action": "store_const", "const": "true"}
        parser.add_argument(f"--{option.name.replace('_', '-')}", dest=option.name, help=option.help, **kind)
    parser.add_argument(
        "--name-uid", action="append", default=[], help="name an operator that the snapshot knows by id only"
    )
    parser.add_argument("--rebase", action="append", default=[], metavar="OLD=NEW", help="where moved files are now")
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = re.findall(r"--[\w-]+", parser.format_usage())
        parser.error(f"no option {unknown[0]!r}. {suggest(unknown[0], known)}")
    texts = {name: text for name in OPTIONS if (text := getattr(parsed, name)) is not None}
    try:
        rows = _export(parsed, ScanRequest.from_options(texts))
    except StatetoolError as error:
        echo_err(f"error: {error}")
        return 2 if isinstance(error, OptionError | UnknownNameError) else 3
    print_line(f"{rows} rows in {parsed.target}")
    return 0


def _export(parsed: argparse.Namespace, request: ScanRequest) -> int:
    moved = [pair.partition("=") for pair in parsed.rebase]
    if incomplete := [old for old, equals, _ in moved if not equals]:
        raise OptionError(f"--rebase {incomplete[0]!r} is not OLD=NEW")
    rebase = {old: new for old, _, new in moved}
    savepoint = statetool.load(parsed.path, uids=parsed.name_uid, rebase=rebase)
    savepoint = savepoint.with_session(local_session(name="statetool export"))
    with progress("export"):
        return export_table(
            savepoint[parsed.operator], request, parsed.target,
            style=parsed.style, by_key_group=parsed.by_key_group, append_as=savepoint.checkpoint_id if parsed.append else None,
        )  # fmt: skip


if __name__ == "__main__":
    claim_process()
    sys.exit(main(sys.argv[1:]))
