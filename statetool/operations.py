"""What makes a new snapshot of an old one: rescale, convert, other uids, dropped operators and states.

Nothing is changed in place; an existing target is refused; ``_metadata`` appears last, when all else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from statetool.api import Savepoint, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.ops.convert import ConvertPlan
    from statetool.ops.drop import DropPlan
    from statetool.ops.jobs import Runner
    from statetool.ops.rescale import RescalePlan
    from statetool.ops.uids import UidChange
    from statetool.plan.inventory import Inventory


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
    progress: Callable[[int], object] | None = None,
    on_plan: Callable[[RescalePlan], object] | None = None,
) -> RescalePlan:
    """Write a copy of a snapshot with another max parallelism; values pass through undecoded.

    Parameters
    ----------
    src
        The snapshot's path, or an open one (:func:`statetool.load` takes what may have to be said of its types).
    dst
        Directory of the new savepoint.
    max_parallelism
        For all operators, or ``{uid: number}``; operators are named by uid or operator id.
    parallelism
        Number of subtasks, likewise; by default it stays, at most the new max parallelism.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` for classes whose ``hashCode()`` the keys do not prove
        (:mod:`statetool.ops.formulas` lists the words).
    spark
        Session to run on; threads of this process without.
    uids, rebase
        As in :func:`statetool.load`.
    checkpoint_id
        Id of the new snapshot, by default the old one's.
    dry_run
        Only plan.
    progress
        Called with numbers of bytes as they are done (not on Spark).
    on_plan
        Called with the plan before anything is written.

    Returns
    -------
    RescalePlan
        What was done to each operator, and how its keys were hashed.

    Raises
    ------
    TargetExistsError
        ``dst`` is there.
    UnsupportedError
        Keys whose hash code is not known, records in flight, an operator's own raw keyed state. (A dry run tells in its plan.)
    OptionError, UnknownNameError, FormatError
    """
    from statetool.ops.rescale import plan_rescale, run_rescale

    inventory = _opened(src, uids, rebase)
    _check_target(dst, dry_run)
    plan = plan_rescale(inventory, max_parallelism, parallelism=parallelism, hashes=hashes)
    if on_plan is not None:
        on_plan(plan)
    if not dry_run:
        run_rescale(inventory, dst, plan, _runner(spark, progress), checkpoint_id=checkpoint_id)
    return plan


def convert(
    src: str | Savepoint,
    dst: str,
    *,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
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
        ``dst`` is there.
    UnsupportedError, FormatError
        State that cannot be read.
    """
    from statetool.ops.convert import plan_convert, run_convert

    inventory = _opened(src, (), rebase)
    _check_target(dst, dry_run)
    plan = plan_convert(inventory)
    if not dry_run:
        run_convert(inventory, dst, plan, _runner(spark, progress), checkpoint_id=checkpoint_id)
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
        ``dst`` is there.
    UnknownNameError, OptionError
        No such operator, or two operators would get the same id.
    """
    from statetool.ops.rewrite import rewrite_snapshot
    from statetool.ops.uids import change_uids as changed
    from statetool.ops.uids import uid_changes

    inventory = _opened(src, (), rebase)
    _check_target(dst, dry_run)
    rows = uid_changes(inventory.metadata, changed(inventory.metadata, changes))
    if not dry_run:
        rewrite_snapshot(
            inventory,
            dst,
            {},
            _runner(spark, progress),
            change=lambda metadata: changed(metadata, changes),
            checkpoint_id=checkpoint_id,
        )
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
        ``dst`` is there.
    UnknownNameError, OptionError, UnsupportedError, FormatError
    """
    from statetool.ops.drop import plan_drop, run_drop

    inventory = _opened(src, (), rebase)
    _check_target(dst, dry_run)
    plan = plan_drop(inventory, operators, states or {})
    if not dry_run:
        run_drop(inventory, dst, plan, _runner(spark, progress), checkpoint_id=checkpoint_id)
    return plan


def _check_target(dst: str, dry_run: bool) -> None:
    from statetool.write.publish import Publication

    if not dry_run:
        Publication.check(dst)


def _opened(src: str | Savepoint, uids: Iterable[str], rebase: Mapping[str, str] | None) -> Inventory:
    if isinstance(src, Savepoint):
        return src.inventory.with_uids(uids) if uids else src.inventory
    return load(src, uids=uids, rebase=rebase).inventory


def _runner(spark: SparkSession | None, progress: Callable[[int], object] | None) -> Runner:
    if spark is not None:
        from statetool.ops.on_spark import SparkRunner

        return SparkRunner(spark)
    from statetool.ops.jobs import LocalRunner

    return LocalRunner(progress=progress)
