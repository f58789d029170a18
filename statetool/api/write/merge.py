"""Combine operators of several snapshots in a new one, split a snapshot in two, and move states between operators.

No function changes a source snapshot, an existing target raises ``TargetExistsError``, and ``_metadata`` is written last.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from statetool.api.load import inventory_of
from statetool.api.savepoint import Savepoint
from statetool.api.write.options import KeyedWriteOptions
from statetool.errors import StatetoolError, warn
from statetool.io import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.verbs.merge import MergePlan, SplitPlan


def graft(
    src: str | Savepoint,
    other: str | Savepoint,
    dst: str,
    operators: Mapping[str, str | None] | Iterable[str],
    *,
    max_parallelism: int | None = None,
    hashes: Mapping[str, str] | None = None,
    flink_version: str | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> MergePlan:
    """Write a copy of a snapshot with operators of another one. Values are not decoded.

    The operators keep their states, timers and operator state. Their bytes stay the same if their max parallelism does.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    other
        The snapshot with the operators to add: its path, or one that :func:`statetool.load` opened.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    operators
        Operators of ``other``, or ``{operator: new uid}`` (``None`` keeps the uid).
    max_parallelism
        Max parallelism of the added operators. By default each keeps its own.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:
        :mod:`statetool.types.conventions`).
    flink_version
        Flink release that will read the new snapshot. By default one that reads ``src``.
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
    MergePlan
        The operators of the new snapshot.

    Warns
    -----
    UserWarning
        An added operator has a max parallelism that no other operator has.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        An operator does not exist, or ``src`` already has its uid.
    UnsupportedError
        In-flight records, serializers that the release does not have, or keys with an unknown hash code.
    """
    from statetool.saving.verbs.merge import plan_graft

    options = KeyedWriteOptions.of(locals())
    inventory, others = options.open(src, dst), options.open(other, dst)
    names = operators if isinstance(operators, Mapping) else dict.fromkeys(operators)
    plan = plan_graft(inventory, others, names, max_parallelism=max_parallelism, hashes=hashes)
    plan.warn()
    options.write(inventory, dst, flink_version=flink_version, changes=plan.changes)
    return plan


def merge(
    first: str | Savepoint,
    second: str | Savepoint,
    dst: str,
    *,
    max_parallelism: int | None = None,
    hashes: Mapping[str, str] | None = None,
    flink_version: str | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> MergePlan:
    """Merge two snapshots into one. Operators that both have get the keys of both, which must be disjoint.

    Parameters
    ----------
    first
        The first snapshot: its path, or one that :func:`statetool.load` opened.
    second
        The second snapshot, in the same form.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    max_parallelism
        Max parallelism of operators that only ``second`` has. By default each keeps its own. Operators of both keep that of ``first``.
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:
        :mod:`statetool.types.conventions`).
    flink_version
        Flink release that will read the new snapshot. By default one that reads ``first``.
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
    MergePlan
        The operators of the new snapshot.

    Warns
    -----
    UserWarning
        An added operator has a max parallelism that no other operator has.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnsupportedError
        Both have state of the same keys (the error names them), or the same operator has operator state, coordinator state, other types
        or raw state in both. In-flight records, serializers that the release does not have, or keys with an unknown hash code.
    """
    from statetool.saving.verbs.merge import plan_merge

    options = KeyedWriteOptions.of(locals())
    inventory, other = options.open(first, dst), options.open(second, dst)
    plan = plan_merge(inventory, other, max_parallelism=max_parallelism, hashes=hashes)
    plan.warn()
    options.write(inventory, dst, flink_version=flink_version, changes=plan.changes)
    return plan


def split(
    src: str | Savepoint,
    first: str,
    second: str,
    operators: Iterable[str],
    *,
    both: Iterable[str] = (),
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> SplitPlan:
    """Split a snapshot into those of two jobs. State keeps its bytes.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    first
        A new directory for the savepoint of the first job.
    second
        The same for the second job. It is published when the first one is staged and proved. If the last steps for the first one fail then,
        the second one stays, and the error or a warning says so.
    operators
        Operators of the second job, by uid or operator id. All others belong to the first.
    both
        Operators that both jobs get.
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
    SplitPlan
        The operators of both savepoints.

    Raises
    ------
    TargetExistsError
        A target exists, or another write to it may still be running.
    UnknownNameError, OptionError
        An operator does not exist, or a savepoint would have no operator.
    UnsupportedError
        The snapshot has in-flight records.
    """
    from statetool.saving.overlap import check_different
    from statetool.saving.verbs.merge import plan_split

    options = KeyedWriteOptions.of(locals())
    inventory = inventory_of(src, options.uids, options.rebase)
    check_different(first, second)
    for target in (first, second):
        options.check_target(inventory, target)
    plan = plan_split(inventory, operators, tuple(both))

    #: What happened to the second savepoint, for an error or interrupt of the first one.
    outcome: list[str] = []

    def write_second() -> None:
        try:
            options.write(inventory, second, removed=plan.removed(plan.second))
        except KeyboardInterrupt as interrupt:
            outcome.append(str(interrupt))
            raise
        if not dry_run:
            outcome.append(f"{second} is complete: remove it before you run the command again{_removal(second)}")

    if dry_run:
        write_second()
    try:
        # The second is published when the first is staged: only a failure of the last call for the first one leaves the second one alone.
        options.write(inventory, first, prove=write_second, removed=plan.removed(plan.first))
    except (StatetoolError, KeyboardInterrupt) as error:
        raise _with_outcome(error, outcome) from error.__cause__
    except BaseException:
        for words in outcome:
            with contextlib.suppress(UserWarning):  # a filter that turns warnings into errors must not hide the error
                warn(words, stacklevel=2)
        raise
    return plan


def _removal(directory: str) -> str:
    """Return the command that removes a local directory, for the end of a sentence."""
    return f", with rm -r {shlex.quote(files.local_path(directory))}" if files.is_local(directory) else ""


def _with_outcome(error: StatetoolError | KeyboardInterrupt, outcome: Sequence[str]) -> BaseException:
    """Return the error or interrupt of a write that also says what happened to another one."""
    for words in outcome:
        if isinstance(error, KeyboardInterrupt):
            return KeyboardInterrupt(f"{error}; {words}")
        error.hint = f"{error.hint}; {words}" if error.hint else words
    return error


def move_state(
    src: str | Savepoint,
    dst: str,
    source: str,
    target: str,
    states: Mapping[str, str | None] | Iterable[str],
    *,
    hashes: Mapping[str, str] | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    backend: Literal["rocksdb", "forst", "heap"] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> MergePlan:
    """Write a copy of a snapshot in which keyed states belong to another operator with the same key type.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    source
        The operator that has the states.
    target
        The operator that gets them.
    states
        States (or timer queues) of ``source``, or ``{state: new name}`` (``None`` keeps the name).
    hashes
        ``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:
        :mod:`statetool.types.conventions`).
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
    MergePlan
        The operators of the new snapshot.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError
        An operator or state does not exist, or ``target`` has a state with the name.
    UnsupportedError
        A state is not keyed, or the operators have different key types.
    """
    from statetool.saving.verbs.merge import plan_move_state

    options = KeyedWriteOptions.of(locals())
    inventory = options.open(src, dst)
    names = states if isinstance(states, Mapping) else dict.fromkeys(states)
    plan = plan_move_state(inventory, source, target, names, hashes=hashes)
    options.write(inventory, dst, changes=plan.changes)
    return plan
