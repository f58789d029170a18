"""Make a new snapshot of an old one: copy, rescale, convert, change uids, drop operators and states.

Nothing is changed in place; an existing target is refused; ``_metadata`` appears last, when all else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from statetool.api.execution import runner_of
from statetool.api.savepoint import Savepoint, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.convert import ConvertPlan
    from statetool.saving.copies import SnapshotCopy
    from statetool.saving.drop import DropPlan
    from statetool.saving.rescale import RescalePlan
    from statetool.saving.uids import UidChange
    from statetool.snapshot.inventory import Inventory


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
    """Write a copy of a snapshot with another max parallelism; values pass through undecoded.

    Parameters
    ----------
    src, dst
        The snapshot's path, or an open one (:func:`statetool.load` takes declarations of its types); directory of the new savepoint.
    max_parallelism
        For all operators, or ``{uid: number}``; operators are named by uid or operator id.
    parallelism
        Number of subtasks, likewise; by default it stays, at most the new max parallelism.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` where keys do not prove their ``hashCode()`` (words: :mod:`statetool.hashing.formulas`).
    spark
        Session to run on; threads of this process without.
    uids, rebase
        As in :func:`statetool.load`.
    checkpoint_id
        Id of the new snapshot, by default the old one's.
    dry_run
        Only plan, without writing: what would be done to each operator, and how its keys hash.
    take_over
        Take the target over from another write that may still run: whichever publishes first succeeds, the other fails. Without it, statetool
        takes over only from a write whose process on this machine ended, or that began 24 hours ago on another machine.
    progress, on_plan
        Called with numbers of bytes as they are done (not on Spark), and with the plan before anything is written.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may be going on.
    UnsupportedError
        Keys whose hash code is not known, records in flight, an operator's own raw keyed state. (A dry run tells in its plan.)
    """
    from statetool.saving.rescale import plan_rescale

    inventory = opened(src, uids, rebase)
    check_target(inventory, dst, dry_run=dry_run, take_over=take_over)
    plan = plan_rescale(inventory, max_parallelism, parallelism=parallelism, hashes=hashes)
    if on_plan is not None:
        on_plan(plan)
    if not dry_run:
        plan.check()
        write_changed(inventory, dst, spark, progress, checkpoint_id, take_over, changes=plan.changes)
    return plan


def convert(
    src: str | Savepoint,
    dst: str,
    *,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> ConvertPlan:
    """Write a snapshot as a self-contained canonical savepoint, which any state backend restores.

    Incremental and full checkpoints, native savepoints and the heap backend's own layout become canonical; all else is copied.
    Parameters as in :func:`rescale`.

    Returns
    -------
    ConvertPlan
        What was done to the keyed state of each operator.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may be going on.
    UnsupportedError, FormatError
        State that cannot be read.
    """
    from statetool.saving.convert import plan_convert

    inventory = opened(src, (), rebase)
    check_target(inventory, dst, dry_run=dry_run, take_over=take_over)
    plan = plan_convert(inventory)
    if not dry_run:
        write_changed(inventory, dst, spark, progress, checkpoint_id, take_over, changes=plan.changes)
    return plan


def change_uids(
    src: str | Savepoint,
    dst: str,
    changes: Mapping[str, str],
    *,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> list[UidChange]:
    """Write a copy of a snapshot in which operators have other uids; swaps and chains happen at once.

    Parameters
    ----------
    changes
        New uid by old one; either may be the 32 hex digits of an operator id (``setUidHash``).

    Returns
    -------
    list of UidChange
        What was changed.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may be going on.
    UnknownNameError, OptionError
        No such operator, or two operators would get the same id.
    """
    from statetool.saving.uids import change_uids as changed
    from statetool.saving.uids import uid_changes

    inventory = opened(src, (), rebase)
    check_target(inventory, dst, dry_run=dry_run, take_over=take_over)
    rows = uid_changes(inventory.metadata, changed(inventory.metadata, changes))
    if not dry_run:
        write_changed(inventory, dst, spark, progress, checkpoint_id, take_over, uids=changes)
    return rows


def drop(
    src: str | Savepoint,
    dst: str,
    operators: Iterable[str] = (),
    *,
    states: Mapping[str, Iterable[str]] | None = None,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
) -> DropPlan:
    """Write a copy of a snapshot without some operators, or without some states of an operator.

    Parameters
    ----------
    operators
        Operators to leave out, by uid or operator id.
    states
        ``{uid: [state, ...]}`` of operators that stay.

    Returns
    -------
    DropPlan
        What was left out.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may be going on.
    UnknownNameError, OptionError, UnsupportedError, FormatError
    """
    from statetool.saving.drop import plan_drop

    inventory = opened(src, (), rebase)
    check_target(inventory, dst, dry_run=dry_run, take_over=take_over)
    plan = plan_drop(inventory, operators, states or {})
    if not dry_run:
        changes, removed = plan.changes, plan.operators
        write_changed(inventory, dst, spark, progress, checkpoint_id, take_over, changes=changes, removed=removed)
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
    """Copy a snapshot of any kind, so that the copy needs nothing of the original; the state's bytes stay as they are.

    Parameters
    ----------
    source
        Directory of the snapshot, or its metadata file.
    target
        Directory of the copy, which must not exist: a local path or any URI that fsspec can write to.
    dry_run
        Plan only; writes nothing.
    take_over
        As in :func:`rescale`.
    rebase
        ``{old prefix: new prefix}`` for files that absolute paths no longer reach.
    spark
        Copy in tasks of a cluster; otherwise in ``threads`` of this process (one a core by default).
    compare
        Read every copied file back and compare it with the original.
    progress
        Called with the bytes of each file that was copied.

    Raises
    ------
    TargetExistsError
        The target holds something, or another write to it may be going on.
    SnapshotNotFoundError
        The snapshot, or a file that it needs, is not there.
    FormatError
        Its metadata is damaged, a file is shorter than it says, or a copy differs.
    """
    from statetool.saving.copies import Copying

    inventory = opened(source, (), rebase)
    check_target(inventory, target, dry_run=False, take_over=take_over)
    copying = Copying(inventory, target)
    if dry_run:
        return copying.plan
    return copying.run(runner_of(spark, progress, threads), compare=compare, take_over=take_over)


def check_target(base: Inventory, dst: str, *, dry_run: bool, take_over: bool) -> None:
    """Refuse a target inside the snapshot ``base``; unless nothing is written, also one that exists. Nothing of the state is read."""
    from statetool.saving.overlap import check_outside
    from statetool.saving.publish import Publication

    if not dry_run:
        Publication.check(dst, take_over=take_over)
    check_outside(dst, base)


def opened(src: str | Savepoint, uids: Iterable[str], rebase: Mapping[str, str] | None) -> Inventory:
    """Return the inventory of a snapshot, given by its path or open."""
    if isinstance(src, Savepoint):
        return src.inventory.with_uids(uids) if uids else src.inventory
    return load(src, uids=uids, rebase=rebase).inventory


def write_changed(
    base: Inventory,
    dst: str,
    spark: SparkSession | None,
    progress: Callable[[int], object] | None,
    checkpoint_id: int | None,
    take_over: bool,
    *,
    flink_version: str | None = None,
    **composition: Any,
) -> None:
    """Write a snapshot for a release, by default with the metadata version of its base; ``composition`` says what becomes of it."""
    from statetool.saving.compose import write_composition
    from statetool.saving.composition import Composition
    from statetool.saving.versions import parse_release

    planned = Composition(base=base, checkpoint_id=checkpoint_id, **composition)
    release = parse_release(flink_version, default=base.metadata.version)
    write_composition(planned, dst, release, runner_of(spark, progress), take_over=take_over)
