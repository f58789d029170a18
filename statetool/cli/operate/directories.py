"""Commands on directories of snapshots."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options
from statetool.cli.output import Output, echo_err
from statetool.cli.snapshot_list import print_records
from statetool.errors import OptionError, several

if TYPE_CHECKING:
    from statetool.operations.directories.cleanup import CleanUp

_CHECKPOINT_COLUMNS = (
    "path", "checkpoint_id", "time", "files", "total_bytes", "new_bytes", "reused_bytes", "reuse", "freed_files", "freed_bytes",
)  # fmt: skip


_AGE = click.option(
    "--min-age", "--older-than", default="7d", show_default=True, help="Minimum age of files: 7d, 12h, 30m, 0s."
)
_RETAINED = click.option(
    "--retained", multiple=True, metavar="DIR", help="Another directory whose snapshots are retained."
)
_CLUSTER = click.option(
    "--cluster", metavar="URL", help="With --delete: refuse if a running job of flink://host:8081 uses ROOT."
)


@click.command(cls=Command)
@click.argument("root", shell_complete=complete_path)
@click.option("--files", "with_files", is_flag=True, help="List every file, and the checkpoints that need it.")
@click.option("--delete", metavar="ID", help="Move a checkpoint, by its id or path, to a trash folder in ROOT.")
@_AGE
@_RETAINED
@_CLUSTER
@common_options("rebase", *OUTPUT)
def chain(
    options: CommonOptions,
    root: str,
    with_files: bool,
    delete: str | None,
    min_age: str,
    retained: tuple[str, ...],
    cluster: str | None,
) -> None:
    """Show which files retained checkpoints share.

    ROOT is the directory of a job's checkpoints, or the URL of a job. For each checkpoint, shows how many bytes its deletion
    would free.

    With --delete, moves a checkpoint of a job that has ended to a trash folder, with all files that only it needs.
    statetool refuses this if a file in ROOT is younger than --older-than.

    Examples:
      statetool chain s3://bucket/checkpoints/1a2b
      statetool chain flink://jobmanager:8081/orders
      statetool chain s3://bucket/cp/1a2b --delete 17 --older-than 1d
    """
    if delete is not None:
        done = statetool.delete_checkpoint(
            root, delete, min_age=min_age, retained=retained, cluster=cluster, rebase=options.rebase
        )
        _print_clean_up(done, root, options.output)
        return
    found = statetool.chain(root, rebase=options.rebase)
    output = options.output
    if output.is_json:
        output.record(
            {
                "checkpoints": [asdict(c) for c in found.checkpoints],
                "files": [asdict(f) for f in found.files],
                "unreadable": [{"path": path, "problem": problem} for path, problem in found.unreadable],
            }
        )
        return
    print_records(found.checkpoints, output, _CHECKPOINT_COLUMNS)
    output.text("")
    output.record(
        {
            "checkpoints": len(found.checkpoints),
            "files": len(found.files),
            "needed_bytes": sum(f.needed_bytes for f in found.files),
            "shared_files": sum(f.references > 1 for f in found.files),
            "missing_files": sum(f.size_bytes is None for f in found.files),
        }
    )
    if with_files and found.files:
        output.text("")
        output.rows(found.files)
    echo_err(*(f"{path}: {problem}" for path, problem in found.unreadable))


@click.command(cls=Command)
@click.argument("root", shell_complete=complete_path)
@_AGE
@_RETAINED
@click.option("--ignore-unreadable", is_flag=True, help="Continue if the metadata of some snapshot cannot be read.")
@click.option("--delete", is_flag=True, help="Move the files to a trash folder in ROOT.")
@_CLUSTER
@click.option("--restore", metavar="TRASH", help="Move the files of a trash folder back.")
@common_options("rebase", *OUTPUT)
def orphans(
    options: CommonOptions,
    root: str,
    min_age: str,
    retained: tuple[str, ...],
    ignore_unreadable: bool,
    delete: bool,
    cluster: str | None,
    restore: str | None,
) -> None:
    """Find files that no retained snapshot needs.

    ROOT is a directory of checkpoints, or the URL of a job for the directory of its checkpoints. Deletes nothing without
    --delete.

    With --delete, moves the files to a trash folder in ROOT. statetool refuses this if a file in ROOT is younger than
    --older-than, because a job may still write there. Name all directories with snapshots that may need files in ROOT
    with --retained.

    Exits 1 if there are orphans that were not moved.

    Examples:
      statetool orphans s3://bucket/checkpoints --older-than 30d
      statetool orphans s3://bucket/cp/1a2b --delete --retained s3://bucket/sp
      statetool orphans s3://bucket/cp/1a2b --restore 20260131T120000Z-0123abcd
    """
    if restore is not None:
        _restore(root, restore, options.output)
        return
    if delete:
        if ignore_unreadable:
            raise OptionError(
                "--delete needs all metadata, so it cannot be combined with --ignore-unreadable",
                hint="repair or remove the unreadable snapshot",
            )
        done = statetool.delete_orphans(
            root, min_age=min_age, retained=retained, cluster=cluster, rebase=options.rebase
        )
        _print_clean_up(done, root, options.output)
        return
    rows = statetool.orphans(
        root, min_age=min_age, retained=retained, ignore_unreadable=ignore_unreadable, rebase=options.rebase
    )
    print_records(rows, options.output, ("path", "size_bytes", "time", "reason"))
    if rows:
        size = sum(r.size_bytes for r in rows)
        echo_err(f"{several(len(rows), 'file')} with {several(size, 'byte')}; nothing was deleted")
        sys.exit(1)


def _restore(root: str, trash_id: str, output: Output) -> None:
    rows = statetool.restore_deleted(root, trash_id)
    print_records(rows, output, ("path", "size_bytes", "time"))
    echo_err(f"{several(len(rows), 'file')} restored")


def _print_clean_up(done: CleanUp, root: str, output: Output) -> None:
    """Print the moved files. Exit with 1 if some files were kept."""
    echo_err(f"read the snapshots in {', '.join(done.directories)}")
    print_records(done.moved, output, ("path", "size_bytes", "time", "reason"))
    if done.moved:
        size = sum(row.size_bytes for row in done.moved)
        echo_err(
            f"{several(len(done.moved), 'file')} with {several(size, 'byte')} moved to {done.folder}",
            f"to restore them, run: statetool orphans {root} --restore {done.trash_id}",
        )
    else:
        echo_err("nothing to delete")
    if done.kept:
        echo_err(*(f"kept: {row.path} ({row.reason})" for row in done.kept))
        sys.exit(1)
