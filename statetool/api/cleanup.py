"""Delete orphans and checkpoints, and restore them. Files are moved to a trash folder in the same directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from statetool.errors import OptionError
from statetool.operations.cluster.address import JobAddress
from statetool.operations.directories.orphans import DEFAULT_MIN_AGE

if TYPE_CHECKING:
    from statetool.operations.directories.cleanup import CleanUp
    from statetool.operations.directories.trash import TrashedFile


def delete_orphans(
    root: str,
    *,
    min_age: str | float = DEFAULT_MIN_AGE,
    retained: Iterable[str] = (),
    cluster: str | None = None,
    rebase: Mapping[str, str] | None = None,
) -> CleanUp:
    """Move state files that no retained metadata references to a trash folder below ``root/.statetool-trash``.

    statetool reads all metadata below ``root``, and the operator state that names files. If ``root`` is the directory of one job, it also reads
    that of the jobs beside it, which may have restored its snapshots. Other files than state files are never moved, and neither are those in
    ``taskowned``, which belong to operators.

    Parameters
    ----------
    root
        A directory of checkpoints: a local path or any URI that fsspec can list and write to.
    min_age
        All files below ``root`` must be older than this, metadata included: at least ``"1h"``. Otherwise a job may still write there.
    retained
        Further directories with snapshots that may need files below ``root``: savepoints, and jobs that restored one of its snapshots.
    cluster
        URL of a cluster, such as ``flink://host:8081``. A running job that uses ``root`` refuses the clean-up.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.

    Returns
    -------
    CleanUp
        The moved files, and the trash folder.

    Raises
    ------
    DirectoryInUseError
        A job may be writing to the directory, or to one beside it whose needs are unknown.
    FormatError
        Some metadata cannot be read.
    SnapshotNotFoundError
        A directory does not exist or cannot be listed, or contains no snapshots.
    OptionError
        The age is not valid or too low, the directory is part of a snapshot, or the file system reports no times.
    WriteFailedError
        The file system refuses to move a file. Files that were moved before can be restored.
    """
    from statetool.operations.directories.cleanup import move_orphans

    _check_cluster(cluster, root, rebase)
    return move_orphans(root, min_age=min_age, retained=retained, rebase=rebase)


def delete_checkpoint(
    root: str,
    checkpoint: str | int,
    *,
    min_age: str | float = DEFAULT_MIN_AGE,
    retained: Iterable[str] = (),
    cluster: str | None = None,
    rebase: Mapping[str, str] | None = None,
) -> CleanUp:
    """Move a retained checkpoint, with all files that only it needs, to a trash folder below ``root/.statetool-trash``.

    Parameters
    ----------
    root
        A directory of checkpoints: a local path or any URI that fsspec can list and write to.
    checkpoint
        Its id, the name of its directory, or its path. The newest complete one of a job cannot be deleted.
    min_age
        All files below ``root`` must be older than this, metadata included: at least ``"1h"``. Otherwise a job may still write there.
    retained
        Further directories with snapshots that may need files below ``root``: savepoints, and jobs that restored one of its snapshots.
    cluster
        URL of a cluster, such as ``flink://host:8081``. A running job that uses ``root`` refuses the clean-up.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.

    Returns
    -------
    CleanUp
        The moved files, and the trash folder.

    Raises
    ------
    UnknownNameError, OptionError
        There is no such checkpoint, several have the id, or it is the newest complete one.
    DirectoryInUseError
        A job may be writing to the directory, or to one beside it whose needs are unknown.
    FormatError, SnapshotNotFoundError
        Some metadata cannot be read, or a directory does not exist, cannot be listed or contains no snapshots.
    WriteFailedError
        The file system refuses to move a file. Files that were moved before can be restored.
    """
    from statetool.operations.directories import cleanup

    _check_cluster(cluster, root, rebase)
    return cleanup.delete_checkpoint(root, str(checkpoint), min_age=min_age, retained=retained, rebase=rebase)


def restore_deleted(root: str, trash_id: str) -> list[TrashedFile]:
    """Move the files of a trash folder back to their places, ``_metadata`` last.

    Parameters
    ----------
    root
        The directory that was cleaned up.
    trash_id
        Name of the trash folder: ``CleanUp.trash_id``.

    Returns
    -------
    list of TrashedFile
        The restored files.

    Raises
    ------
    UnknownNameError
        The directory has no such trash folder.
    TargetExistsError
        Other files have taken some of the places. All others are restored.
    FormatError
        The manifest of the folder is damaged.
    """
    from statetool.operations.directories.cleanup import restore_trash

    return restore_trash(root, trash_id)


def _check_cluster(cluster: str | None, root: str, rebase: Mapping[str, str] | None) -> None:
    if JobAddress.parse(root) is not None:
        raise OptionError(
            f"{root} is the URL of a job, which may need every file",
            hint="stop the job, and pass the directory of its checkpoints: a path, s3://..., hdfs://...",
        )
    if cluster is not None:
        from statetool.operations.cluster.writers import check_writers

        check_writers(cluster, root, tuple((rebase or {}).items()))
