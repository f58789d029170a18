"""What makes a new snapshot of an old one: rescale, convert, other uids, dropped operators and states.

Nothing is changed in place; an existing target is refused; ``_metadata`` appears last, when all else is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from statetool.api import Savepoint
from statetool.plan.inventory import Inventory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.ops.jobs import Runner
    from statetool.ops.rescale import RescalePlan


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
) -> RescalePlan:
    """Write a copy of a snapshot with another max parallelism; values pass through undecoded.

    Parameters
    ----------
    src
        The snapshot's path, or an open one.
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

    Returns
    -------
    RescalePlan
        What was done to each operator, and how its keys were hashed.

    Raises
    ------
    TargetExistsError
        ``dst`` is there.
    UnsupportedError
        Keys whose hash code is not known, records in flight, raw keyed state.
    OptionError, UnknownNameError, FormatError
    """
    from statetool.ops.rescale import plan_rescale, run_rescale
    from statetool.write.publish import Publication

    inventory = _opened(src, uids, rebase)
    if not dry_run:
        Publication.check(dst)
    plan = plan_rescale(inventory, max_parallelism, parallelism=parallelism, hashes=hashes)
    if not dry_run:
        run_rescale(inventory, dst, plan, _runner(spark, progress), checkpoint_id=checkpoint_id)
    return plan


def _opened(src: str | Savepoint, uids: Iterable[str], rebase: Mapping[str, str] | None) -> Inventory:
    if isinstance(src, Savepoint):
        return src.inventory.with_uids(uids) if uids else src.inventory
    return Inventory(src, rebase=tuple((rebase or {}).items()), uids=tuple(uids))


def _runner(spark: SparkSession | None, progress: Callable[[int], object] | None) -> Runner:
    from statetool.ops.jobs import LocalRunner

    return LocalRunner(progress=progress)
