"""Verify a snapshot: from the handles of its metadata to, if wished, the last byte of every value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import FormatError
from statetool.formats.metadata.properties import read_properties
from statetool.io import files
from statetool.io.listing import FoundFile, stat
from statetool.ops.lost_timers import lost_timers
from statetool.ops.problems import Problem, Severity, note, problem_of
from statetool.ops.structure import StructureCheck
from statetool.plan.inventory import Inventory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.ops.entry_check import ContentResult, ContentTask

MOST_PROBLEMS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found, and how much was looked at.

    ``streams`` counts handles that were resolved, ``entries`` those of keyed state and elements of operator state that were
    walked, ``keys`` those whose key group was computed from their hash code. ``truncated``: there are more problems.
    """

    problems: tuple[Problem, ...]
    operators: int
    streams: int
    entries: int
    keys: int
    deep: bool
    truncated: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; warnings and notes are no errors."""
        return not any(p.severity == "error" for p in self.problems)


def verify_inventory(
    inventory: Inventory,
    *,
    deep: bool = False,
    spark: SparkSession | None = None,
    threads: int | None = None,
    most: int = MOST_PROBLEMS,
) -> Verification:
    """Check that a snapshot is whole; parameters as of :func:`statetool.verify`."""
    from statetool.ops.content_plan import ContentPlanner

    known: dict[str, FoundFile | None] = {}

    def find(uri: str) -> FoundFile | None:
        place = files.canonical(uri)
        if place not in known:
            known[place] = stat(place)
        return known[place]

    problems: list[Problem] = []
    properties = None
    try:
        properties = read_properties(inventory.metadata.properties)
    except FormatError as error:
        problems.append(problem_of(error, file=inventory.metadata_file))
    tasks: list[ContentTask] = []
    streams = 0
    unproved: dict[str, str] = {}
    for operator in inventory.operators.values():
        check = StructureCheck(operator, inventory.resolve, find)
        problems += check.run()
        streams += check.streams
        planner = ContentPlanner(operator, inventory.resolve, check.problems, deep)
        tasks += planner.run()
        planner.guarded(lambda planner=planner: planner.problems.extend(lost_timers(planner.operator, properties)))  # type: ignore[misc]
        problems += planner.problems
        unproved[operator.label] = planner.unproved
    counted = entries = keys = 0
    unknown: dict[str, str] = {}
    for task, result in _results(tasks, spark, threads):
        problems += result.problems
        entries += result.entries
        keys += result.keys
        if result.unknown_hash:
            unknown[task.split.spec.operator] = result.unknown_hash
        counted += len(result.problems)
        if counted >= most:
            break
    problems += [
        note(
            operator,
            f"whether keys lie in their key groups was not checked: the hash code is not known of {reason}"
            + (f"; {unproved[operator]}" if unproved.get(operator) else ""),
        )
        for operator, reason in sorted(unknown.items())
    ]
    return Verification(
        problems=tuple(_once(sorted(problems, key=_place))[:most]),
        operators=len(inventory.operators),
        streams=streams,
        entries=entries,
        keys=keys,
        deep=deep,
        truncated=len(problems) > most or counted >= most,
    )


def _place(problem: Problem) -> tuple[int, str, int, str, int, str]:
    order: tuple[Severity, ...] = ("error", "warning", "note")
    return (
        order.index(problem.severity),
        problem.operator or "",
        -1 if problem.subtask is None else problem.subtask,
        problem.file or "",
        problem.offset or 0,
        problem.problem,
    )


def _once(problems: Iterable[Problem]) -> list[Problem]:
    """Leave out repetitions; of notes, what differs in the place alone too, so that the first place stands for all."""
    kept: dict[Any, Problem] = {}
    counts: dict[Any, int] = {}
    for problem in problems:
        words = problem.problem.partition(" [")[0]
        same = (problem.operator, problem.state, words) if problem.severity == "note" else problem
        kept.setdefault(same, problem)
        counts[same] = counts.get(same, 0) + 1
    return [
        replace(p, problem=f"{p.problem} ({counts[same]} times)") if p.severity == "note" and counts[same] > 1 else p
        for same, p in kept.items()
    ]


def _results(
    tasks: list[ContentTask], spark: SparkSession | None, threads: int | None
) -> Iterator[tuple[ContentTask, ContentResult]]:
    if not tasks:
        return
    from statetool.ops.contents import check_contents

    if spark is not None:
        from statetool.spark.tasks import run_tasks

        yield from zip(tasks, run_tasks(spark, check_contents, tasks), strict=True)
        return
    # No more than a few tasks wait with their results, whatever their number.
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        waiting = {}
        for task in tasks:
            waiting[pool.submit(check_contents, task)] = task
            if len(waiting) >= 2 * pool._max_workers:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        for future in list(waiting):
            yield waiting[future], future.result()
