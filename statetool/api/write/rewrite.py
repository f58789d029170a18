"""Write a new snapshot from an existing one: copy, rescale, convert, change uids, drop operators and states.

The source snapshot is never changed, an existing target raises ``TargetExistsError``, and ``_metadata`` is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.execution import Execution
from statetool.api.load import inventory_of
from statetool.api.savepoint import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.streams.conversion import StateConversion
    from statetool.saving.uids import UidChange
    from statetool.saving.verbs.convert import ConvertPlan
    from statetool.saving.verbs.copies import SnapshotCopy
    from statetool.saving.verbs.drop import DropPlan
    from statetool.saving.verbs.rename import RenamePlan
    from statetool.saving.verbs.rescale import RescalePlan
    from statetool.snapshot.inventory import Inventory


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Options that all functions share that write a changed copy of a snapshot.

    Attributes
    ----------
    uids, rebase
        As for :func:`statetool.load`, if the snapshot is given as a path.
    checkpoint_id
        Checkpoint id of the new snapshot, by default that of the old one.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running; see :func:`statetool.rescale`.
    execution
        Where the streams are written.
    """

    uids: Iterable[str] = ()
    rebase: Mapping[str, str] | None = None
    checkpoint_id: int | None = None
    dry_run: bool = False
    take_over: bool = False
    execution: Execution = field(default_factory=Execution)

    def open(self, src: str | Savepoint, dst: str) -> Inventory:
        """Return the inventory of a snapshot that is to be written to a target; errors as for :meth:`check_target`."""
        inventory = inventory_of(src, self.uids, self.rebase)
        self.check_target(inventory, dst)
        return inventory

    def check_target(self, base: Inventory, dst: str) -> None:
        """Check a target before any state is read.

        Raises
        ------
        OptionError
            The target is inside the snapshot ``base``.
        TargetExistsError
            The target exists, or another write to it may still be running.
        """
        from statetool.saving.overlap import check_outside
        from statetool.saving.publish import Publication

        Publication.check(dst, take_over=self.take_over)
        check_outside(dst, base)

    def write(
        self,
        base: Inventory,
        dst: str,
        *,
        flink_version: str | None = None,
        prove: Callable[[], object] | None = None,
        **composition: Any,
    ) -> None:
        """Write a changed copy. A dry run does the same, except for writing it and ``prove``.

        Parameters
        ----------
        flink_version
            Release that will read it. By default, the metadata version of the base stays.
        prove
            Called before the copy is published, while ``dst`` opens as the copy in this thread. If it raises an error, nothing is published.
        composition
            The changes: arguments of :class:`statetool.saving.composition.Composition`.
        """
        from statetool.saving.compose import rehearse_composition, write_composition
        from statetool.saving.composition import Composition
        from statetool.saving.versions import parse_release

        planned = Composition(base=base, checkpoint_id=self.checkpoint_id, **composition)
        release = parse_release(flink_version, default=base.metadata.version)
        runner = self.execution.runner()
        if self.dry_run:
            rehearse_composition(planned, dst, release, runner, take_over=self.take_over)
        else:
            write_composition(planned, dst, release, runner, take_over=self.take_over, prove=prove)


def rescale(
    src: str | Savepoint,
    dst: str,
    max_parallelism: int | Mapping[str, int],
    *,
    parallelism: int | Mapping[str, int] | None = None,
    hashes: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
    on_plan: Callable[[RescalePlan], object] | None = None,
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
        ``{Java class: "Objects.hash(a, b)"}`` if keys do not prove their ``hashCode()`` (words: :mod:`statetool.types.conventions`).
    spark
        Session to run on. Without one, threads of this process are used.
    uids, rebase
        As for :func:`statetool.load`.
    checkpoint_id
        Checkpoint id of the new snapshot, by default that of the old one.
    dry_run
        Only plan, without writing: the changes to each operator, and the hash formula of its keys.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    progress
        Called with the number of bytes processed (not on Spark).
    on_plan
        Called with the plan before anything is written.

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

    options = RewriteOptions(uids, rebase, checkpoint_id, dry_run, take_over, Execution(spark, progress=progress))
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
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
    state_api: Literal["v1", "v2"] | None = None,
    format: Literal["canonical", "native"] = "canonical",
    backend: Literal["rocksdb"] | None = None,
) -> ConvertPlan:
    """Write a snapshot as a self-contained savepoint: canonical, which RocksDB and the heap backend restore, or native.

    Incremental and full checkpoints, native savepoints and the heap backend's layout become canonical. Everything else is copied. In the
    native format, all keyed state is written as databases, which the backend restores faster.

    Parameters
    ----------
    format
        ``"native"`` writes the files of a backend.
    backend
        The backend that restores a native savepoint. The job must keep its timers in it, as is the default.
    state_api
        ``"v1"`` writes asynchronous state of ForSt as keyed state that RocksDB and the heap backend restore, ``"v2"`` the opposite. By default,
        states stay what they are.
    src, dst, spark, uids, rebase, checkpoint_id, dry_run, take_over, progress
        As for :func:`statetool.rescale`.

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
    from statetool.saving.composition import parse_form
    from statetool.saving.verbs.convert import plan_convert

    form = parse_form(format, backend)

    options = RewriteOptions(uids, rebase, checkpoint_id, dry_run, take_over, Execution(spark, progress=progress))
    inventory = options.open(src, dst)
    conversions: Mapping[str, Mapping[str, StateConversion]] = {}
    if state_api is not None:
        from statetool.migration.state_api import api_conversions

        conversions = api_conversions(inventory, state_api)
    plan = plan_convert(inventory, conversions, form)
    options.write(inventory, dst, changes=plan.changes)
    return plan


def change_uids(
    src: str | Savepoint,
    dst: str,
    changes: Mapping[str, str],
    *,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> list[UidChange]:
    """Write a copy of a snapshot in which operators have other uids. All changes apply at once, so swaps and chains work.

    Parameters
    ----------
    src, dst
        As for :func:`statetool.rescale`.
    changes
        New uid by old uid, name or id prefix. Either may be the 32 hex digits of an operator id (``setUidHash``).
    spark, uids, rebase, checkpoint_id, dry_run, take_over, progress
        As for :func:`statetool.rescale`.

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

    options = RewriteOptions(uids, rebase, checkpoint_id, dry_run, take_over, Execution(spark, progress=progress))
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
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> DropPlan:
    """Write a copy of a snapshot without some operators, or without some states of an operator.

    Parameters
    ----------
    src, dst
        As for :func:`statetool.rescale`.
    operators
        Operators to drop, by uid or operator id.
    states
        States to drop from other operators: ``{uid: [state, ...]}``.
    spark, uids, rebase, checkpoint_id, dry_run, take_over, progress
        As for :func:`statetool.rescale`.

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

    options = RewriteOptions(uids, rebase, checkpoint_id, dry_run, take_over, Execution(spark, progress=progress))
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
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> RenamePlan:
    """Write a copy of a snapshot in which states of an operator have other names. Everything else keeps its bytes.

    Parameters
    ----------
    src, dst
        As for :func:`statetool.rescale`.
    operator
        The operator, by uid or operator id.
    names
        New names by old names. All apply at once, so states can swap their names.
    spark, uids, rebase, checkpoint_id, dry_run, take_over, progress
        As for :func:`statetool.rescale`.

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

    options = RewriteOptions(uids, rebase, checkpoint_id, dry_run, take_over, Execution(spark, progress=progress))
    inventory = options.open(src, dst)
    plan = plan_rename(inventory, operator, names)
    options.write(inventory, dst, changes=plan.changes)
    return plan


def copy(
    source: str,
    target: str,
    *,
    dry_run: bool = False,
    take_over: bool = False,
    rebase: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    threads: int | None = None,
    compare: bool = False,
    progress: Callable[[int], object] | None = None,
) -> SnapshotCopy:
    """Copy a snapshot of any kind to a self-contained snapshot. State keeps its bytes, but for the paths of files that only it names.

    Parameters
    ----------
    source
        Directory of the snapshot, or its metadata file.
    target
        Directory of the copy, which must not exist yet: a local path or any URI that fsspec can write to.
    dry_run
        Only plan, without writing.
    take_over
        As for :func:`rescale`.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    spark, threads
        Copy in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.
    compare
        Read every copied file back and compare it with the original.
    progress
        Called with the number of bytes of each copied file.

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

    options = RewriteOptions(rebase=rebase, take_over=take_over, execution=Execution(spark, threads, progress))
    copying = Copying(options.open(source, target), target)
    if dry_run:
        return copying.plan
    return copying.run(options.execution.runner(), compare=compare, take_over=take_over)
