"""Write a copy of a snapshot without the state of some keys, with that of some keys only, or with a sample of all keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.savepoint import Savepoint
from statetool.api.write.options import KeyedWriteOptions
from statetool.api.write.verbs import erase as verbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.verbs.erase import ErasePlan, Proof
    from statetool.saving.verbs.sample import SamplePlan
    from statetool.tables.keys.text import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The result of :func:`erase` or :func:`keep`.

    Attributes
    ----------
    plan
        Removed entries by operator and state, and other places that may contain the data.
    source, target
        The metadata files. ``target`` is ``None`` after a dry run.
    proof
        The result of reading the new snapshot again before it was published, ``None`` after a dry run.
    finished_at
        Time of the proof, or of the plan in a dry run.
    """

    plan: ErasePlan
    source: str
    source_checkpoint_id: int
    target: str | None
    proof: Proof | None
    finished_at: datetime

    def report(self) -> dict[str, Any]:
        """Return the report for an auditor as JSON values. It contains the condition if one was given, but no key.

        Given keys have numbers from 1, in the order in which they were given.
        """
        plan = self.plan
        return {
            "verb": plan.verb,
            "finished_at": self.finished_at.isoformat(timespec="seconds"),
            "source": self.source,
            "source_checkpoint_id": self.source_checkpoint_id,
            "target": self.target,
            "requested_keys": None if plan.keys is None else len(plan.keys),
            "missing_keys": None if plan.keys is None else len(plan.missing_keys),
            "keys": None
            if plan.keys is None
            else [{"number": k.number, "found_in": list(k.found_in)} for k in plan.keys],
            "where": plan.where,
            "entries": plan.entries,
            "size_bytes": plan.size_bytes,
            "erased": [asdict(row) for row in plan.erased],
            "operators": [asdict(row) for row in plan.operators],
            "proof": None if self.proof is None else asdict(self.proof),
            "copies": [asdict(row) for row in plan.copies],
        }


def erase(
    src: str | Savepoint,
    dst: str,
    keys: Iterable[Key] | None = None,
    *,
    where: str | None = None,
    operators: Iterable[str] = (),
    root: str | None = None,
    allow_missing: bool = False,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    on_plan: Callable[[ErasePlan], object] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Erasure:
    """Write a copy of a snapshot without the states, timers and windows of some keys. Everything else keeps its bytes.

    The new snapshot is read again before it is published: it has no entry of these keys. In-flight data, operator state and other snapshots are not changed.
    The result lists them (``plan.copies``).

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    keys
        Keys as plain values, as for :meth:`Operator.keyed_state`. Each operator is searched for the keys that have the type of its keys.
    where
        Instead of keys, a SQL condition on the columns of ``keyed_state``, which DuckDB evaluates (extra ``sql``): ``key``, and the states
        without a namespace. States that a key does not have are null. A condition that is null is not fulfilled: :func:`erase` leaves the
        key, and :func:`keep` removes it. A condition that names ``window`` (a struct of ``start`` and ``end``) or ``window_end`` chooses
        windows instead of keys; it may also name ``key``. Functions whose result changes, such as ``random()`` and ``now()``, are errors.
    operators
        Uids or operator ids. By default all operators with keyed state whose key type fits.
    root
        Directory in which to look for other snapshots that may contain the keys. Defaults to the directory that contains the snapshot, if
        the snapshot is named like a checkpoint or savepoint of Flink.
    allow_missing
        Go on without keys that no operator has, or if no key fulfills the condition. Files of RocksDB may have old versions of missing
        keys, which are removed too.
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
    Erasure
        The removed entries, the proof, and the places that may still contain the data.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    MissingKeyError
        No operator has one of the keys, or no key fulfills the condition.
    OptionError, EncodeError, UnknownNameError
        No operator can have the keys, operators have one of them as keys of different types, a given operator has keys of another type, or
        the condition is not valid.
    UnsupportedError
        The keys of an operator cannot be decoded, or raw keyed state of user code may contain the keys.
    MissingDependencyError
        A condition was given, and DuckDB is not installed.
    """
    return _write_chosen(verbs.Erase.of(locals()), KeyedWriteOptions.of(locals()))


def keep(
    src: str | Savepoint,
    dst: str,
    keys: Iterable[Key] | None = None,
    *,
    where: str | None = None,
    operators: Iterable[str] = (),
    root: str | None = None,
    allow_missing: bool = False,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    on_plan: Callable[[ErasePlan], object] | None = None,
    allow_empty: bool = False,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Erasure:
    """Write a copy of a snapshot in which operators have state of some keys only: the opposite of :func:`erase`, with the same errors.

    Operators with keys of another type stay unchanged.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    keys
        Keys as plain values, as for :meth:`Operator.keyed_state`. Each operator is searched for the keys that have the type of its keys.
    where
        Instead of keys, a SQL condition on the columns of ``keyed_state``, which DuckDB evaluates (extra ``sql``): ``key``, and the states
        without a namespace. States that a key does not have are null. A condition that is null is not fulfilled: :func:`erase` leaves the
        key, and :func:`keep` removes it. A condition that names ``window`` (a struct of ``start`` and ``end``) or ``window_end`` chooses
        windows instead of keys; it may also name ``key``. Functions whose result changes, such as ``random()`` and ``now()``, are errors.
    operators
        Uids or operator ids. By default all operators with keyed state whose key type fits.
    root
        Directory in which to look for other snapshots that may contain the keys. Defaults to the directory that contains the snapshot, if
        the snapshot is named like a checkpoint or savepoint of Flink.
    allow_missing
        Go on without keys that no operator has, or if no key fulfills the condition. Files of RocksDB may have old versions of missing
        keys, which are removed too.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    backend
        The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.
    on_plan
        Called with the plan before anything is written.
    allow_empty
        Leave operators without any key, if they have none of the keys. Otherwise this is an error (:class:`MissingKeyError`).
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
    Erasure
        The removed entries, the proof, and the places that may still contain the data.
    """
    return _write_chosen(verbs.Keep.of(locals()), KeyedWriteOptions.of(locals()))


def _write_chosen(given: verbs.Erase, options: KeyedWriteOptions) -> Erasure:
    from statetool.saving.verbs.erase import plan_erase, prove
    from statetool.saving.verbs.key_choice import Allowed, KeyChoice

    choice = KeyChoice.of(given.keys, given.where, keep=isinstance(given, verbs.Keep))
    allowed = Allowed(missing=given.allow_missing, empty=isinstance(given, verbs.Keep) and given.allow_empty)
    inventory = options.open(given.src, given.dst)
    plan = plan_erase(
        inventory,
        choice,
        list(given.operators),
        options.execution.map,
        root=given.root,
        allowed=allowed,
        target=options.form,
    )
    if given.on_plan is not None:
        given.on_plan(plan)
    done = Erasure(
        plan=plan,
        source=inventory.metadata_file,
        source_checkpoint_id=inventory.metadata.checkpoint_id,
        target=None,
        proof=None,
        finished_at=datetime.now(timezone.utc),
    )

    def prove_staged() -> None:
        nonlocal done
        staged = inventory.at(given.dst)
        proof = prove(staged, plan, options.execution.map)
        done = replace(done, target=staged.metadata_file, proof=proof, finished_at=datetime.now(timezone.utc))

    options.write(inventory, given.dst, prove=prove_staged, changes=plan.changes)
    return done


def sample(
    src: str | Savepoint,
    dst: str,
    *,
    keys: str | int | float | None = None,
    key_groups: str | Iterable[int] | None = None,
    seed: int = 0,
    operators: Iterable[str] = (),
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> SamplePlan:
    """Write a small copy of a snapshot, which the job restores: some keys with all their states, timers and windows.

    Operator state, such as offsets of sources, and operators without keyed state stay complete.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    keys
        ``"1%"``, a share such as 0.01, or a number of keys per operator. Operators with keys of the same type share their keys.
    key_groups
        Instead of keys, all keys of these key groups: ``"0-3"``, or numbers. Only these key groups are read.
    seed
        Selects one of many samples. Equal seeds select equal keys.
    operators
        Uids or operator ids of the operators to sample, by default all with keyed state. Others stay complete.
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
    SamplePlan
        The sampled operators, with their numbers of keys and entries (not in a dry run).

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    OptionError, UnknownNameError
        The size of the sample is not valid, or an operator does not exist or has no keyed state.
    UnsupportedError
        Keys of an operator cannot be decoded (``key_groups`` does not need it), or raw keyed state of user code.
    """
    from statetool.saving.verbs.sample import SampleSize, measure_sample, plan_sample

    options = KeyedWriteOptions.of(locals())
    size = SampleSize.of(keys, key_groups)
    inventory = options.open(src, dst)
    plan = plan_sample(inventory, size, list(operators), options.execution.map, seed=seed, target=options.form)

    def measure() -> None:
        nonlocal plan
        plan = replace(plan, operators=measure_sample(inventory.at(dst), plan, options.execution.map))

    options.write(inventory, dst, prove=measure, changes=plan.changes)
    return plan
