"""Analysis of whole snapshots: damage, compatibility with a job, growth. Heavy packages are imported at first use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.api.job_classes import classes_of, new_job_classes
from statetool.api.load import inventory_of
from statetool.api.savepoint import Savepoint
from statetool.api.start_options import StartOptions, restore_options, run_options
from statetool.errors import OptionError
from statetool.saving.uids import with_ids_of
from statetool.tables.request import list_options
from statetool.types.options import name_list, whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.analysis.statistics.records import GrowthRow
    from statetool.analysis.verification.verify import Verification
    from statetool.compatibility.verdicts import Check
    from statetool.reporting.openmetrics.collect import Read


def verify(
    src: str | Savepoint,
    *,
    deep: bool = False,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    threads: int | None = None,
    max_problems: int = 1000,
    allow_unread: bool = False,
) -> Verification:
    """Check that a snapshot is complete and undamaged.

    The checks:

    * Every handle resolves, and lengths match.
    * Each key group exists exactly once.
    * Offsets are valid, and every entry can be parsed.
    * Every key is in the key group of its hash code. If ``hashCode()`` is user code, statetool uses a formula that a sample of the keys
      proves, and a key in another key group is a warning.

    Memory use does not grow with the size of the state. A changed letter or digit inside a value cannot be detected where Flink writes no
    checksum.

    Parameters
    ----------
    src
        The snapshot's path, or an open one.
    deep
        Also decode every value to its last byte, and compare checksums.
    spark, threads
        Check the contents in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.
    uids
        Uids of operators, for snapshots before Flink 2.0, which store only hashes of uids.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    max_problems
        Stop after about this many problems.
    allow_unread
        Accept keyed or operator state that cannot be read (serializers that statetool does not know). Otherwise a snapshot with
        such state is not ``ok``.

    Raises
    ------
    SnapshotNotFoundError
        The snapshot does not exist.
    FormatError
        The metadata is damaged.
    """
    from statetool.analysis.verification.verify import verify_inventory

    limit = whole_number("max_problems", max_problems, least=1)
    inventory, each = inventory_of(src, uids, rebase), Execution(spark, threads).map
    verification = verify_inventory(inventory, each, deep=deep, most=limit, allow_unread=allow_unread)
    return replace(verification, renderer=partial(_verification_html, a=inventory.path))


def _verification_html(verification: Verification, *, a: str) -> str:
    from statetool.reporting.verdicts.notebook import verification_html

    return verification_html(verification, a=a)


@list_options(StartOptions, {"last_state": False})
def check(
    a: str | Savepoint,
    b: str | Savepoint | None = None,
    *,
    flink_version: str | None = None,
    backend: Literal["heap", "rocksdb", "forst"] | None = None,
    jars: Iterable[str | os.PathLike[str]] = (),
    other_jars: Iterable[str | os.PathLike[str]] | None = None,
    match: str | Mapping[str, str] | None = None,
    run: bool = False,
    flink_home: str | os.PathLike[str] | None = None,
    sample: int | None = 1000,
    all_files: bool = False,
    **start: Unpack[StartOptions],
) -> Check:
    """Check whether a job would restore from a snapshot, and return the verdict.

    Follows the restore step by step, from the files of the snapshot to the first checkpoint of the new job.
    Only headers are read. For states with POJOs the values are read too, unless they are stored in RocksDB databases. With ``other_jars``,
    all values of POJOs and Kryo classes are read with the classes of the new job, as Flink reads them.

    Parameters
    ----------
    a
        The snapshot to restore.
    b
        A snapshot of the new job: start the job empty and take a savepoint. State that the job registers later, and subclasses that it has
        not seen yet, are unchecked or unknown.
    flink_version
        The Flink release that restores, such as ``"2.3"``. Defaults to the releases that can have written ``b``. Without ``b``,
        only support by this release is checked.
    backend
        The state backend of the new job. Defaults to the backend of ``b``. If ``b`` does not determine it, the check covers all backends.
    jars
        The jars of the job that wrote ``a``, as for :func:`load`. Defaults to those with which ``a`` was opened.
    other_jars
        The jars of the new job. Defaults to those with which ``b`` was opened. Without ``b``, the new job has the states of ``a`` with the
        classes of these jars.
    match
        Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator
        (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``. The verdict is then on a copy
        of ``a`` with the new ids, which you have to write (:func:`change_uids`): Flink does not find state under another id.
    run
        Run the classes in ``other_jars`` with Flink, in a JVM (JDK 11 or later) with your rights: they read the serializers and values of
        ``a``, and write, hash and compare them.
    flink_home
        The folder of the Flink that runs them. Defaults to ``FLINK_HOME``, then to the installed package apache-flink-libraries.
    sample
        Number of values per state that they read; ``None`` for all.
    all_files
        Look for each file of ``a``, also if that takes more than a few requests to an object store. By default, ``check`` then looks for three
        of them, and for the others only if one of these is missing.
    config
        The Flink configuration of the new job: a file, or the URL of a job or JobManager.
    parallelism, max_parallelism
        Those of the new job. Default to those of ``b``.
    claim_mode
        ``claim``, ``no_claim`` or ``legacy``. Defaults to the mode in ``config``.
    allow_non_restored
        State that the new job does not have is left out (``--allowNonRestoredState``). Defaults to the setting in ``config``.
    last_state
        The job starts from its high-availability data (``upgradeMode: last-state``).
    map_uids
        ``{old: new}``: uids or ids of operators, and those that they have in the new job (``setUidHash``).
    graph
        The job graph of the new job: a file with the answer of ``/jobs/<id>/plan``, or the URL of the job.

    Returns
    -------
    Check
        ``verdict`` is ``fully``, ``after_migration`` (Flink converts values when it restores or reads them), ``unknown`` or ``not``.
        ``operators`` and their ``states`` each have a verdict, a reason and a remedy. ``warnings`` list losses and possible changes
        despite a successful restore, and failures after it. ``steps`` are the steps of the restore, and ``assumptions`` what the check takes
        for granted. ``run`` says what was run. ``renamed`` lists the operators that have another id in the copy that the verdict is on.
        ``ok`` summarizes the result.

    Raises
    ------
    OptionError
        Neither ``b`` nor ``flink_version`` nor ``other_jars`` was given, an option is not valid, or an operator has no unique match.
    MissingDependencyError, UnsupportedError
        The classes are to be run, and Java or Flink's jars are missing, or Java cannot run them.
    FormatError
        A header is damaged. An operator with undamaged state that statetool cannot read is ``unknown`` instead.
    """
    from statetool.compatibility.check import check_inventories
    from statetool.saving.uids import uid_changes

    old, new = inventory_of(a), None if b is None else inventory_of(b)
    if old_classes := classes_of(name_list("jars", jars)):
        old = old.with_types(replace(old.types, source=old_classes))
    copy = with_ids_of(old, new, match)
    new_classes = new_job_classes(other_jars, new)
    renderer = partial(_check_html, a=old.path, b="B" if new is None else new.path)
    options = replace(restore_options(**start), run=run_options(run, flink_home, sample), all_files=all_files)
    if copy is not old and options.map_uids:
        raise OptionError("both a match and a map of uids say which ids are new", hint="leave out --map (map_uids=)")
    checked = check_inventories(copy, new, flink_version, backend, new_classes, options)
    return replace(checked, renderer=renderer, renamed=tuple(uid_changes(old.metadata, copy.metadata)))


def _check_html(check: Check, *, a: str, b: str) -> str:
    from statetool.reporting.verdicts.notebook import check_html

    return check_html(check, a=a, b=b)


def growth(root: str, *, rebase: Mapping[str, str] | None = None, threads: int | None = None) -> list[GrowthRow]:
    """Measure every complete snapshot below a directory, and the growth from each to the next of its job.

    Parameters
    ----------
    root
        A directory with checkpoints: a local path or any URI that fsspec can list. Or the URL of a job, for the
        directory of its checkpoints.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    threads
        Threads of this process, by default one per core.

    Raises
    ------
    SnapshotNotFoundError
        There is no complete snapshot below it.
    FormatError, DecodeError
        Bytes are damaged.
    """
    from statetool.analysis.statistics.growth import growth_rows

    return growth_rows(root, tuple((rebase or {}).items()), Execution(threads=threads).map)


def metrics(
    path: str,
    *,
    read: Iterable[Read] = (),
    ends: Mapping[str, int | str] | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    threads: int | None = None,
) -> str:
    """Return the sizes of state as metrics, in the OpenMetrics text format.

    By default only the metadata is read.

    Parameters
    ----------
    path
        A snapshot, a directory of checkpoints, a directory with those of several jobs, or the URL of a job or JobManager. For a directory or
        JobManager, the newest checkpoint of each job is described.
    read
        State to read as well. ``keyed``: bytes, entries, keys, largest value and timers of keyed state. ``connectors``: splits and
        uncommitted transactions of sources and sinks.
    ends
        End offsets, as for :meth:`Operator.lag`, for the lag of sources.
    uids
        Uids of operators, for snapshots before Flink 2.0, which store only hashes of uids.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    threads
        Threads that read keyed state, by default one per core.

    Raises
    ------
    OptionError
        ``read`` has an unknown name.
    SnapshotNotFoundError
        There is no snapshot.
    FormatError, DecodeError
        Bytes are damaged.
    """
    from statetool.connectors.edits.positions import positions_in
    from statetool.reporting.openmetrics.collect import READS
    from statetool.reporting.openmetrics.exporter import Exporter
    from statetool.reporting.openmetrics.targets import targets_of

    chosen = name_list("read", read)
    if unknown := [name for name in chosen if name not in READS]:
        raise OptionError(f"read={unknown[0]!r} is not valid", hint=f"pass {' or '.join(map(repr, READS))}")
    given = None if ends is None else positions_in(ends)
    exporter = Exporter(
        targets_of(path, tuple((rebase or {}).items())),
        lambda snapshot: inventory_of(snapshot, uids, rebase),
        [name for name in READS if name in chosen or (name == "connectors" and given is not None)],
        None if given is None else lambda source: given,
        Execution(threads=threads).map,
    )
    if errors := exporter.refresh():
        raise errors[0]
    return exporter.text
