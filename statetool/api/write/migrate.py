"""Give states the types of a new job: plan the migration, then write a new savepoint.

The source snapshot is never changed, an existing target raises ``TargetExistsError``, and ``_metadata`` is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.load import inventory_of
from statetool.api.savepoint import Savepoint
from statetool.api.write.options import KeyedWriteOptions, WriteOptions
from statetool.api.write.verbs import migrate as verbs
from statetool.errors import OptionError
from statetool.saving.uids import changes_of_match, with_ids_of
from statetool.types.options import whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.migration.keys import KeyRequest
    from statetool.migration.plan import MigrationPlan
    from statetool.serializers.core.base import Serializer
    from statetool.snapshot.inventory import Inventory


def plan_migration(
    src: str | Savepoint, to: str | Savepoint, *, match: str | Mapping[str, str] | None = None
) -> MigrationPlan:
    """Plan the migration of a snapshot's states to the types in a savepoint of the new job.

    States whose values Flink can read without a migration stay unchanged. Fields are matched by name.

    Parameters
    ----------
    src
        The snapshot: its path, or an open one.
    to
        A savepoint of the new job. Its state may be empty, but must be registered.
    match
        Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator
        (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.

    Returns
    -------
    MigrationPlan
        ``rows`` has one row per step. It shows whether you must accept the step (it loses values, or may change or reject some) or
        correct the plan. ``accepting(names)`` and ``renaming({new: old})`` return changed plans, and :func:`write_plan` writes JSON.

    Raises
    ------
    FormatError, UnknownSerializerError
        A header cannot be read.
    """
    from statetool.migration.plan import plan_migration as plan_inventories

    new_job = inventory_of(to)
    return plan_inventories(with_ids_of(inventory_of(src), new_job, match), new_job)


def try_plan(plan: MigrationPlan, src: str | Savepoint, *, match: Mapping[str, str] | None = None) -> MigrationPlan:
    """Convert some values of each state of a plan, and return the plan with the failures. Nothing is written.

    Reads up to 64 MiB of each operator.

    Parameters
    ----------
    match
        New uids or ids by old ones, if the plan has new ones.

    Raises
    ------
    FormatError
        A value is damaged.
    """
    from statetool.migration.trial import try_conversions

    return try_conversions(plan, with_ids_of(inventory_of(src), None, match))


def write_plan(plan: MigrationPlan, path: str) -> None:
    """Write a plan as JSON into a new file, in which you can correct it before :func:`read_plan`.

    Raises
    ------
    TargetExistsError
        The file already exists.
    """
    from statetool.io.json_text import write_json
    from statetool.migration.text import plan_record

    write_json(path, plan_record(plan))


def read_plan(path: str, src: str | Savepoint) -> MigrationPlan:
    """Read a plan for a snapshot and derive its steps again.

    Parameters
    ----------
    path
        A file that :func:`write_plan` wrote: a local path or any URI that fsspec can open.
    src
        The snapshot that the plan is for: its path, or an open one.

    Raises
    ------
    OptionError, FormatError
        The file is not a valid plan.
    UnknownNameError
        The snapshot does not have an operator or a state of the plan.
    """
    return _read_plan(path, inventory_of(src))


def migrate(
    src: str | Savepoint,
    dst: str,
    *,
    to: str | Savepoint | None = None,
    plan: str | MigrationPlan | None = None,
    match: str | Mapping[str, str] | None = None,
    accept: Iterable[str] = (),
    renames: Mapping[str, str] | None = None,
    last_access_ms: int | None = None,
    fills: Mapping[str, Any] | None = None,
    flink_version: str | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    on_plan: Callable[[MigrationPlan], object] | None = None,
    on_staged: Callable[[], object] | None = None,
    keys: Mapping[str, str] | None = None,
    key_types: Mapping[str, str | Serializer] | None = None,
    on_conflict: Mapping[str, str] | None = None,
    merges: Mapping[str, str] | None = None,
    newest: Mapping[str, str] | None = None,
    hashes: Mapping[str, str] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> MigrationPlan:
    """Write a copy of a snapshot whose states have the types of a new job. Everything else keeps its bytes.

    POJOs, Kryo classes, rows, tuples and Avro records are migrated field by field, by name, including lists, maps, enums and numbers.
    You must accept by name each step that would lose a value, or may change or reject one. Namespaces do not change, and keys only if you
    pass ``keys`` or ``key_types``, or if the compiled plans have a ``GROUP BY`` with fewer columns or in another order. Accumulators of
    groups that become one are then merged.
    The columns of SQL rows have no names. If both snapshots were opened with the compiled plan of their job (``columns_from_plan=``), they
    are matched by the names of the plans, and a computed column by its expression. You must then give the value of each new column.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    to
        A savepoint of the new job. Either this or ``plan``.
    plan
        A plan, or its file (see :func:`write_plan`).
    match
        Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator
        (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.
    accept
        Names of steps, from the plan's ``rows``.
    renames
        Old field names by new ones: ``{"orders.totals.value.city": "town"}``.
    last_access_ms
        Last access of values that get a time to live, in epoch milliseconds.
    fills
        Values of added fields, as in JSON: ``{"orders.totals.value.count": 0}``.
    flink_version
        Flink release that will read it. Defaults to the metadata version of the new job.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    on_plan
        Called with the plan before anything is written.
    on_staged
        Called before the savepoint is published, not in a dry run. Meanwhile ``dst`` opens as the new savepoint in this thread, and in no
        other. If the function raises an error, nothing is published.
    keys
        New keys of operators, as SQL expressions (of DuckDB) of the old ``key`` and of the states of the key: ``{uid: "key % 100"}``. All
        keyed states, windows and timers of the operator follow, into the key groups of their new keys.
    key_types
        New types of keys by uid: a SQL type such as ``BIGINT``, or one of ``statetool.flink``. Without an expression, keys keep their
        values. By default, the type of the new job, or the one that follows from the expression.
    on_conflict
        What to do if old keys meet under one new key, by kind of state (``value``, ``list``, ``map``, ``reducing``, ``aggregating``,
        ``timers``): ``{"list": "merge", "value": "keep-newest"}``. By default, and for kinds that are not given, it is an error.
        ``"merge"`` joins lists, and unites maps without equal keys, and timers. Other kinds need ``merges``. ``"keep-newest"`` takes the
        value with the latest access, or the one that ``newest`` chooses, for maps by key of the map.
    merges
        Associative SQL expressions that merge two values ``a`` and ``b``: ``{"orders.total": "a + b"}``. Values are merged in no particular
        order.
    newest
        SQL expressions of ``value`` that are greatest for the newest value: ``{"orders.last": "value.time"}``.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` for classes of new keys (words: :mod:`statetool.types.conventions`).
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
    MigrationPlan
        The plan that was, or in a dry run would be, carried out.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnsupportedError
        A step is impossible, or was not accepted. Nothing was written. (A dry run reports this in its plan instead.)
    EncodeError
        The new type cannot hold a value exactly. The error names the value's key.
    """
    options, chosen = KeyedWriteOptions.of(locals()), verbs.Migrate.of(locals())
    base = options.open(src, dst)
    base = with_ids_of(base, None if to is None else inventory_of(to), match)
    migration = _prepare(base, options, dst, chosen, _key_request(chosen))
    if on_plan is not None:
        on_plan(migration)
    _warn_of_kept(migration)
    if not dry_run:
        migration.check()
    if not migration.is_open:
        release = flink_version or release_of(migration, base)
        options.write(base, dst, flink_version=release, prove=on_staged, changes=migration.changes)
    return migration


def catch_up(
    migrated: str | Savepoint,
    before: str | Savepoint,
    after: str | Savepoint,
    dst: str,
    *,
    to: str | Savepoint | None = None,
    plan: str | MigrationPlan | None = None,
    match: str | Mapping[str, str] | None = None,
    accept: Iterable[str] = (),
    renames: Mapping[str, str] | None = None,
    last_access_ms: int | None = None,
    fills: Mapping[str, Any] | None = None,
    flink_version: str | None = None,
    format: Literal["same", "canonical", "native"] = "canonical",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    on_plan: Callable[[MigrationPlan], object] | None = None,
    on_staged: Callable[[], object] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> MigrationPlan:
    """Migrate a savepoint by converting only what changed since an earlier savepoint that was already migrated.

    The result is the one of ``migrate(after, dst, ...)``. Keyed state that did not change between ``before`` and ``after`` is taken from
    ``migrated``. Everything else is taken from ``after``: operator state, other operators, metadata and the checkpoint id. The result can
    be ``migrated`` in the next call. The plan and the choices are those of the call of :func:`migrate` that wrote ``migrated``.

    Parameters
    ----------
    migrated
        Result of :func:`migrate` for ``before``, or of an earlier call, with the same plan: its path, or an open one.
    before
        A savepoint of the job: its path, or an open one.
    after
        A newer savepoint of the same job.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    to
        A savepoint of the new job. Either this or ``plan``.
    plan
        A plan, or its file (see :func:`write_plan`).
    match
        Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator
        (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.
    accept
        Names of steps, from the plan's ``rows``.
    renames
        Old field names by new ones: ``{"orders.totals.value.city": "town"}``.
    last_access_ms
        Last access of values that get a time to live, in epoch milliseconds.
    fills
        Values of added fields, as in JSON: ``{"orders.totals.value.count": 0}``.
    flink_version
        Flink release that will read it. Defaults to the metadata version of the new job.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    on_plan
        Called with the plan before anything is written.
    on_staged
        Called before the savepoint is published, not in a dry run. Meanwhile ``dst`` opens as the new savepoint in this thread, and in no
        other. If the function raises an error, nothing is published.
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
    MigrationPlan
        The plan that was, or in a dry run would be, carried out.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    OptionError
        ``before`` is not older than ``after``.
    UnsupportedError
        The savepoints differ in operators, max parallelism, states or serializers, ``migrated`` does not prove that it is the result of
        this plan for ``before``, or a step is impossible or was not accepted. Nothing was written.
    EncodeError
        The new type cannot hold a value exactly. The error names the value's key.
    """
    from statetool.saving.catch_up import plan_catch_up

    options = KeyedWriteOptions.of(locals())
    base, first, done = (options.open(snapshot, dst) for snapshot in (after, before, migrated))
    if match is not None:
        changes_of_ids = changes_of_match(base, None if to is None else inventory_of(to), match)
        base, first = (with_ids_of(snapshot, None, changes_of_ids) for snapshot in (base, first))
    migration = _prepare(base, options, dst, verbs.MigrationChoices.of(locals())).for_catching_up()
    if on_plan is not None:
        on_plan(migration)
    changes = plan_catch_up(migration.changes, first, base, done)
    if not dry_run:
        migration.check()
    if not migration.is_open:
        release = flink_version or release_of(migration, base)
        options.write(base, dst, flink_version=release, prove=on_staged, changes=changes)
    return migration


def _key_request(chosen: verbs.Migrate) -> KeyRequest:
    """Return the changes of keys among the user's choices."""
    from statetool.migration.keys import KeyRequest

    given = {f.name: getattr(chosen, f.name) or {} for f in fields(KeyRequest)}
    request = KeyRequest(**given)
    request.check()
    return request


def _warn_of_kept(plan: MigrationPlan) -> None:
    from statetool.migration.keys import warn_of_kept

    warn_of_kept(plan.keys)


def _prepare(
    base: Inventory,
    options: WriteOptions,
    dst: str,
    chosen: verbs.MigrationChoices,
    request: KeyRequest | None = None,
) -> MigrationPlan:
    """Return the plan of a migration with the user's choices, after a check of the target."""
    new_job = None if chosen.to is None else inventory_of(chosen.to)
    if new_job is not None:
        options.check_target(new_job, dst)
    plan = _plan(base, new_job, chosen.plan, request).renaming(chosen.renames or {}).filling(chosen.fills or {})
    if chosen.last_access_ms is not None:
        plan = plan.with_last_access(whole_number("last_access_ms", chosen.last_access_ms, least=0))
    return plan.accepting(tuple(chosen.accept))


def _plan(
    base: Inventory, new_job: Inventory | None, plan: str | MigrationPlan | None, request: KeyRequest | None
) -> MigrationPlan:
    from statetool.migration.keys import plan_keys
    from statetool.migration.plan import MigrationPlan
    from statetool.migration.plan import plan_migration as plan_inventories

    rekeys = request is not None and bool(request.keys or request.key_types)
    if (new_job is not None and plan is not None) or (new_job is None and plan is None and not rekeys):
        raise OptionError(
            "a migration needs either a snapshot of the new job or a plan",
            hint="pass --to JOB or --plan FILE (in Python: to=, plan=), or change keys with --key or --key-type",
        )
    keys = () if request is None or not rekeys else plan_keys(base, new_job, request)
    if new_job is not None:
        return plan_inventories(base, new_job, keys=keys)
    if plan is None:
        return MigrationPlan(states=(), metadata_version=base.metadata.version, keys=keys)
    return replace(_read_plan(plan, base) if isinstance(plan, str) else plan, keys=keys)


def _read_plan(path: str, base: Inventory) -> MigrationPlan:
    from statetool.io.json_text import read_json
    from statetool.migration.text import read_plan as parse_plan

    return parse_plan(read_json(path), base)


def release_of(plan: MigrationPlan, base: Inventory) -> str | None:
    """Return the last release with the new job's metadata version, ``None`` if the old job has the same version."""
    from statetool.saving.versions import RELEASES

    if plan.metadata_version == base.metadata.version:
        return None
    return next((r for r, (version, _) in reversed(RELEASES.items()) if version == plan.metadata_version), None)
