"""Give states the types of a new job: plan it, then write a new savepoint.

Nothing is changed in place; an existing target is refused; ``_metadata`` appears last, when all else is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from statetool.api.rewrite import check_target, opened, write_changed
from statetool.api.savepoint import Savepoint, load
from statetool.errors import FormatError, OptionError, TargetExistsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.migration.plan import MigrationPlan


def plan_migration(src: str | Savepoint, to: str | Savepoint) -> MigrationPlan:
    """Plan how the states of a snapshot get the types that they have in a savepoint of the new job.

    States whose values Flink reads as they are stay unchanged. Fields are matched by name.

    Parameters
    ----------
    to
        A savepoint of the new job: its state may be empty, but must be registered.

    Returns
    -------
    MigrationPlan
        ``rows``: one for each step, which says whether to accept it (it loses values, may change or refuse some) or correct the plan.
        ``accepting(names)`` and ``renaming({new: old})`` return other plans, :func:`write_plan` writes it as JSON.

    Raises
    ------
    FormatError, UnknownSerializerError
        A header that cannot be read.
    """
    from statetool.migration.plan import plan_migration as planned

    old, new = (load(s) if isinstance(s, str) else s for s in (src, to))
    return planned(old.inventory, new.inventory)


def write_plan(plan: MigrationPlan, path: str) -> None:
    """Write a plan as JSON into a new file.

    Raises
    ------
    TargetExistsError
        The file is there.
    """
    from statetool.migration.text import plan_record

    try:
        with open(path, "x", encoding="utf-8") as f:
            f.write(json.dumps(plan_record(plan), indent=2, ensure_ascii=False) + "\n")
    except FileExistsError as e:
        raise TargetExistsError(f"{path} is there already", hint="name a new file") from e


def read_plan(path: str, src: str | Savepoint) -> MigrationPlan:
    """Read a plan for a snapshot and derive its steps anew.

    Raises
    ------
    OptionError, FormatError
        It is not a plan.
    UnknownNameError
        The snapshot does not have an operator or a state of it.
    """
    from statetool.io.files import InputFile
    from statetool.migration.plan import read_plan as parsed

    with InputFile(path) as f:
        raw = bytes(f.read_at(0, f.size))
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path} is no JSON: {e}") from e
    return parsed(document, (load(src) if isinstance(src, str) else src).inventory)


def migrate(
    src: str | Savepoint,
    dst: str,
    *,
    to: str | Savepoint | None = None,
    plan: str | MigrationPlan | None = None,
    accept: Iterable[str] = (),
    renames: Mapping[str, str] | None = None,
    flink_version: str | None = None,
    spark: SparkSession | None = None,
    rebase: Mapping[str, str] | None = None,
    checkpoint_id: int | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    progress: Callable[[int], object] | None = None,
    on_plan: Callable[[MigrationPlan], object] | None = None,
) -> MigrationPlan:
    """Write a copy of a snapshot whose states have the types of a new job; all other bytes stay.

    POJOs, Kryo's classes, rows, tuples and Avro records go field by field, by name; lists, maps, enums and numbers follow. What would lose
    a value, or may change or refuse one, has to be accepted by name. Keys and namespaces stay.

    Parameters
    ----------
    to, plan
        A savepoint of the new job, or a plan (or the file of one, :func:`write_plan`): one of the two.
    accept
        Names of steps, as the plan's ``rows`` have them.
    renames
        Old names of fields by the new ones: ``{"orders.totals.value.city": "town"}``.
    flink_version
        Release that is to read it; by default the metadata has the version of the new job's.
    spark, rebase, checkpoint_id, dry_run, take_over, progress, on_plan
        As in :func:`statetool.rescale`.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may be going on.
    UnsupportedError
        A step cannot be done, or was not accepted; nothing was written. (A dry run tells in its plan.)
    EncodeError
        A value that the new type cannot hold exactly; names its key.
    """
    base = Savepoint(opened(src, (), rebase))
    new = load(to) if isinstance(to, str) else to
    for source in (base, new):
        if source is not None:
            check_target(source.inventory, dst, dry_run=dry_run, take_over=take_over)
    migration = _planned(base, new, plan).renaming(renames or {}).accepting(tuple(accept))
    if on_plan is not None:
        on_plan(migration)
    if not dry_run:
        migration.check()
        version = flink_version or _release(migration, base)
        changes = migration.changes
        write_changed(
            base.inventory, dst, spark, progress, checkpoint_id, take_over, flink_version=version, changes=changes
        )
    return migration


def _planned(base: Savepoint, to: str | Savepoint | None, plan: str | MigrationPlan | None) -> MigrationPlan:
    if (to is None) == (plan is None):
        raise OptionError("a migration needs either a snapshot of the new job or a plan", hint="give to= or plan=")
    if to is not None:
        return plan_migration(base, to)
    assert plan is not None
    return read_plan(plan, base) if isinstance(plan, str) else plan


def _release(plan: MigrationPlan, base: Savepoint) -> str | None:
    """Return the last release with the metadata of the new job, ``None`` where that is the old one's."""
    from statetool.saving.versions import RELEASES

    if plan.metadata_version == base.metadata_version:
        return None
    return next((r for r, (version, _) in reversed(RELEASES.items()) if version == plan.metadata_version), None)
