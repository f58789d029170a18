"""Write a new snapshot from an existing one: copy, rescale, convert, change uids, drop operators and states.

The source snapshot is never changed, an existing target raises ``TargetExistsError``, and ``_metadata`` is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from statetool.api.execution import Execution
from statetool.api.savepoint import Savepoint
from statetool.api.write.options import KeyedWriteOptions, WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.streams.conversion import StateConversion
    from statetool.saving.uids import UidChange
    from statetool.saving.verbs.convert import ConvertPlan
    from statetool.saving.verbs.copies import SnapshotCopy
    from statetool.saving.verbs.drop import DropPlan
    from statetool.saving.verbs.rename import RenamePlan
    from statetool.saving.verbs.rescale import RescalePlan


def rescale(
    src: str | Savepoint,
    dst: str,
    max_parallelism: int | Mapping[str, int],
    *,
    parallelism: int | Mapping[str, int] | None = None,
    hashes: Mapping[str, str] | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    on_plan: Callable[[RescalePlan], object] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> RescalePlan:
    """Write a copy of a snapshot with another max parallelism. Values are not decoded.

    Each key moves to the key group that its hash code has at the new max parallelism, as ``KeyGroupRangeAssignment`` of Flink assigns it.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    max_parallelism
        One number for all operators, or ``{uid: number}`` by uid or operator id.
    parallelism
        Number of subtasks, in the same form. Defaults to the old parallelism, up to the new max parallelism.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:
        :mod:`statetool.types.conventions`).
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    on_plan
        Called with the plan before anything is written.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    RescalePlan
        The changes of each operator, with the hash formula of its keys, and ``refusals``.

    Warns
    -----
    UserWarning
        Some operators keep the max parallelism that changed ones had.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    OptionError, UnknownNameError
        Flink does not accept a number, or an operator does not exist.
    UnsupportedError
        Keys with an unknown hash code, in-flight records, or raw keyed state of user code. A dry run reports these in its plan.
    """
    from statetool.saving.verbs.rescale import plan_rescale

    options = KeyedWriteOptions.of(locals())
    inventory = options.open(src, dst)
    plan = plan_rescale(inventory, max_parallelism, parallelism=parallelism, hashes=hashes)
    if on_plan is not None:
        on_plan(plan)
    plan.warn()
    if not dry_run:
        plan.check()
    if not plan.refusals:
        options.write(inventory, dst, changes=plan.changes)
    return plan


def convert(
    src: str | Savepoint,
    dst: str,
    *,
    state_api: Literal["v1", "v2"] | None = None,
    format: Literal["same", "canonical", "native"] = "canonical",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    flink_version: str | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> ConvertPlan:
    """Write a snapshot as a self-contained savepoint: canonical, which RocksDB and the heap backend restore, or native.

    Incremental and full checkpoints, native savepoints and the heap backend's layout become canonical. Everything else is copied. In the
    native format, all keyed state is written in the files of the backend. RocksDB and ForSt restore them faster at the same parallelism.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    state_api
        ``"v1"`` writes asynchronous state of ForSt as keyed state that RocksDB and the heap backend restore, ``"v2"`` the opposite. By
        default, states stay what they are. For ``"v2"``, write a native savepoint of ForSt: no backend restores it from a canonical one by
        default.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    flink_version
        Flink release that reads the savepoint. Defaults to that of the snapshot, and is needed if no release exists that reads its
        metadata.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    ConvertPlan
        The conversion of each operator's keyed state.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnsupportedError, FormatError
        Some state cannot be read, or the native format of the backend cannot hold it.
    OptionError
        There is no such format.
    """
    from statetool.saving.forms import parse_form
    from statetool.saving.verbs.convert import plan_convert

    options = KeyedWriteOptions.of(locals())
    form = parse_form(format, backend)
    inventory = options.open(src, dst)
    conversions: Mapping[str, Mapping[str, StateConversion]] = {}
    if state_api is not None:
        from statetool.migration.state_api import api_conversions

        conversions = api_conversions(inventory, state_api)
    plan = plan_convert(inventory, conversions, form)
    plan.warn()
    options.write(inventory, dst, flink_version=flink_version, changes=plan.changes)
    return plan


def change_uids(
    src: str | Savepoint,
    dst: str,
    changes: Mapping[str, str],
    *,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[UidChange]:
    """Write a copy of a snapshot in which operators have other uids. All changes apply at once, so swaps and chains work.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    changes
        New uid by old uid, name or id prefix. Either may be the 32 hex digits of an operator id (``setUidHash``).
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    list of UidChange
        The changed operators.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        The operator does not exist, or two operators would get the same id.
    """
    from statetool.saving.uids import change_uids as changed
    from statetool.saving.uids import uid_changes

    options = WriteOptions.of(locals())
    inventory = options.open(src, dst)
    rows = uid_changes(inventory.metadata, changed(inventory.metadata, changes))
    options.write(inventory, dst, uids=changes)
    return rows


def drop(
    src: str | Savepoint,
    dst: str,
    operators: Iterable[str] = (),
    *,
    states: Mapping[str, Iterable[str]] | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> DropPlan:
    """Write a copy of a snapshot without some operators, or without some states of an operator.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    operators
        Operators to drop, by uid or operator id.
    states
        States to drop from other operators: ``{uid: [state, ...]}``.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    DropPlan
        The dropped operators and states.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        An operator or state does not exist, or nothing would be dropped.
    UnsupportedError, FormatError
        State of an operator that loses some of its states cannot be read.
    """
    from statetool.saving.verbs.drop import plan_drop

    options = KeyedWriteOptions.of(locals())
    inventory = options.open(src, dst)
    plan = plan_drop(inventory, operators, states or {})
    options.write(inventory, dst, changes=plan.changes, removed=plan.operators)
    return plan


def rename_states(
    src: str | Savepoint,
    dst: str,
    operator: str,
    names: Mapping[str, str],
    *,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> RenamePlan:
    """Write a copy of a snapshot in which states of an operator have other names. Everything else keeps its bytes.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    operator
        The operator, by uid or operator id.
    names
        New names by old names. All apply at once, so states can swap their names.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    RenamePlan
        The renamed states.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        The operator or a state does not exist, nothing is renamed, or two states would have one name.
    UnsupportedError, FormatError
        State of the operator cannot be read.
    """
    from statetool.saving.verbs.rename import plan_rename

    options = KeyedWriteOptions.of(locals())
    inventory = options.open(src, dst)
    plan = plan_rename(inventory, operator, names)
    options.write(inventory, dst, changes=plan.changes)
    return plan


def copy(
    source: str,
    target: str,
    *,
    threads: int | None = None,
    compare: bool = False,
    dry_run: bool = False,
    take_over: bool = False,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> SnapshotCopy:
    """Copy a snapshot of any kind to a self-contained snapshot. State keeps its bytes, but for the paths of files that only it names.

    Parameters
    ----------
    source
        Directory of the snapshot, or its metadata file.
    target
        Directory of the copy, which must not exist yet: a local path or any URI that fsspec can write to.
    threads
        Threads of this process without a session, by default one per core.
    compare
        Read every copied file back and compare it with the original.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    spark
        Session to run on. Without one, threads of this process are used.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    progress
        Called with the number of bytes of each copied file (not on Spark).

    Returns
    -------
    SnapshotCopy
        The copied files.

    Raises
    ------
    TargetExistsError
        The target is not empty, or another write to it may still be running.
    SnapshotNotFoundError
        The snapshot, or a file that it needs, does not exist.
    FormatError
        The metadata is damaged, a file is shorter than the metadata says, or a copy differs.

    Warns
    -----
    UserWarning
        Files that only state names do not exist, or are not known.
    """
    from statetool.saving.verbs.copies import Copying

    options = WriteOptions(rebase=rebase, take_over=take_over)
    copying = Copying(options.open(source, target), target)
    if dry_run:
        return copying.plan
    return copying.run(Execution(spark, threads, progress).runner(), compare=compare, take_over=take_over)
