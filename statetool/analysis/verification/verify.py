"""Verify a snapshot: the handles of its metadata, its keyed state and, with ``deep``, every value to its last byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from statetool.analysis.verification.lost_timers import lost_timers
from statetool.analysis.verification.problems import Problem, Severity, group_missing, note, problem_of
from statetool.analysis.verification.structure import StructureCheck
from statetool.errors import FormatError, several
from statetool.formats.metadata.properties import read_properties, trailing_bytes
from statetool.io import files
from statetool.io.deletion import check_deletion
from statetool.io.listing import FileStats, FoundFile
from statetool.io.open_files import keeping_open
from statetool.io.threads import in_threads
from statetool.snapshot.inventory import Inventory

if TYPE_CHECKING:
    import pandas as pd

    from statetool.analysis.verification.entry_check import ContentResult, ContentTask

    Each: TypeAlias = Callable[[Callable[[ContentTask], ContentResult], Sequence[ContentTask]], Iterable[ContentResult]]

MOST_PROBLEMS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Problems of a snapshot, and counts of the checked parts.

    ``streams`` counts the handles that were resolved, ``entries`` the entries of keyed state that were read, ``elements`` (read with
    ``deep`` only) the elements of operator state; broadcast state counts for each subtask's copy. ``keys`` counts the keys of operators
    whose key group was computed from their hash code, estimated if a task reads more than a million; those of timers that RocksDB's
    backend keeps on the heap count separately. ``named_files`` counts the files that only operator state names. ``truncated``: there are
    more problems. ``allow_unread``: state that could not be read is accepted.
    ``renderer`` returns HTML for notebooks.
    """

    problems: tuple[Problem, ...]
    operators: int
    streams: int
    entries: int
    keys: int
    elements: int
    deep: bool
    truncated: bool
    allow_unread: bool = False
    named_files: int = 0
    keys_are_estimated: bool = False
    renderer: Callable[[Verification], str] | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str | None:
        return None if self.renderer is None else self.renderer(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per problem; the columns are the fields of :class:`~statetool.analysis.verification.problems.Problem`.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        from statetool.columns.to_pandas import pandas_frame
        from statetool.tables.metadata import records_table

        return pandas_frame(records_table(Problem, list(self.problems)))

    @property
    def ok(self) -> bool:
        """Return True if there is no error and all keyed and operator state was read; other warnings and notes do not count."""
        errors = any(p.severity == "error" for p in self.problems)
        return not errors and (self.allow_unread or not self.unread)

    @property
    def unread(self) -> int:
        """Return the number of pieces of keyed or operator state that could not be read."""
        return sum(p.unread for p in self.problems)


class _Contents:
    """Combined results of all tasks."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.entries = 0
        self.keys = 0
        self.keys_are_estimated = False
        self.elements = 0
        #: By operator, a part that could not be read because a file does not exist.
        self.missing: dict[str, Problem] = {}
        #: By operator, the key type whose hash code is unknown.
        self.unknown_hashes: dict[str, str] = {}

    def add(self, task: ContentTask, result: ContentResult) -> None:
        self.problems += result.problems
        if result.missing is not None:
            self.missing.setdefault(task.operator, result.missing)
        self.entries += result.entries
        self.keys += result.keys
        self.keys_are_estimated |= result.keys_are_estimated
        self.elements += result.elements
        if result.unknown_hash:
            self.unknown_hashes[task.operator] = result.unknown_hash


def verify_inventory(
    inventory: Inventory,
    each: Each = in_threads,
    *,
    deep: bool = False,
    most: int = MOST_PROBLEMS,
    allow_unread: bool = False,
) -> Verification:
    """Verify a snapshot; the parameters are those of :func:`statetool.verify`.

    ``each`` runs a function for each task, in local threads or in tasks of a cluster.

    Raises
    ------
    CheckpointDeletedError
        The snapshot was deleted during the check, so missing files do not indicate damage.
    """
    with keeping_open():
        return _verify(inventory, each, deep=deep, most=most, allow_unread=allow_unread)


def _verify(inventory: Inventory, each: Each, *, deep: bool, most: int, allow_unread: bool) -> Verification:
    from statetool.analysis.verification.contents import check_contents

    plan = _Plan(inventory, deep)
    problems = plan.problems
    contents = _Contents()
    results = each(check_contents, plan.tasks)
    for task, result in zip(plan.tasks, results, strict=True):
        contents.add(task, result)
        if len(contents.problems) >= most:
            break
    truncated = len(contents.problems) >= most
    if any(p.severity == "error" for p in (*problems, *contents.problems)):
        check_deletion(inventory.metadata_file if inventory.published else "")
    problems += contents.problems
    reported = {p.operator for p in problems if p.is_missing_file}  # by the check of handles, each file once
    problems += (problem for operator, problem in contents.missing.items() if operator not in reported)
    for operator, reason in sorted(contents.unknown_hashes.items()):
        unproved = plan.unproved.get(operator)
        words = f"key groups were not checked, because the hash code is unknown: {reason}"
        problems.append(note(operator, f"{words}; {unproved}" if unproved else words))
    problems = group_missing(problems, inventory.metadata, inventory.metadata_file)
    return Verification(
        problems=tuple(_drop_repetitions(sorted(problems, key=_order))[:most]),
        operators=len(inventory.operators),
        streams=plan.streams,
        entries=contents.entries,
        keys=contents.keys,
        elements=contents.elements,
        deep=deep,
        truncated=truncated or len(problems) > most,
        allow_unread=allow_unread,
        named_files=plan.named_files,
        keys_are_estimated=contents.keys_are_estimated,
    )


class _Plan:
    """Problems visible in the metadata, and the tasks that check contents."""

    def __init__(self, inventory: Inventory, deep: bool) -> None:
        from statetool.analysis.verification.content_plan import ContentPlanner
        from statetool.analysis.verification.named_files import check_named_files

        found_files: dict[str, FoundFile | None] = {}
        stats = FileStats()

        def find(uri: str) -> FoundFile | None:
            place = files.canonical(uri)
            if place not in found_files:
                found_files[place] = stats(place)
            return found_files[place]

        self.problems: list[Problem] = []
        self.tasks: list[ContentTask] = []
        self.streams = 0
        self.named_files = 0
        #: By operator, why no hash formula of its keys was proved.
        self.unproved: dict[str, str] = {}
        inventory.list_folders()
        properties = None
        try:
            properties = read_properties(inventory.metadata.properties)
        except FormatError as error:
            self.problems.append(problem_of(error, file=inventory.metadata_file))
        if trailing := trailing_bytes(inventory.metadata.properties):
            words = f"{several(trailing, 'byte')} follow the end of the metadata, which Flink ignores"
            self.problems.append(problem_of(FormatError(words), severity="warning", file=inventory.metadata_file))
        for operator in inventory.operators.values():
            check = StructureCheck(operator, inventory.resolve, find)
            self.problems += check.run()
            self.streams += check.streams
            planner = ContentPlanner(operator, inventory.resolve, check.problems, deep)
            self.tasks += planner.run()
            self.problems += planner.problems
            named, problems = check_named_files(operator, inventory.metadata_file, find)
            self.problems += problems
            self.named_files += len(named.files)
            self.unproved[operator.label] = planner.unproved
        self.problems += lost_timers(inventory.operators.values(), properties)


def _order(problem: Problem) -> tuple[int, str, int, str, int, str]:
    severities: tuple[Severity, ...] = ("error", "warning", "note")
    return (
        severities.index(problem.severity),
        problem.operator or "",
        -1 if problem.subtask is None else problem.subtask,
        problem.file or "",
        problem.offset or 0,
        problem.problem,
    )


def _drop_repetitions(problems: Iterable[Problem]) -> list[Problem]:
    """Remove repeated problems. If a problem stands for others, also merge those that differ only in location, and count them."""
    firsts: dict[Any, Problem] = {}
    counts: dict[Any, int] = {}
    for problem in problems:
        words = problem.problem.partition(" [")[0]
        identity = (problem.operator, problem.state, words) if _stands_for_others(problem) else problem
        firsts.setdefault(identity, problem)
        counts[identity] = counts.get(identity, 0) + 1
    return [
        replace(p, problem=f"{p.problem} ({several(counts[identity], 'time')})")
        if _stands_for_others(p) and counts[identity] > 1
        else p
        for identity, p in firsts.items()
    ]


def _stands_for_others(problem: Problem) -> bool:
    """Return True if a problem reports something that was not read or not checked."""
    return problem.severity == "note" or problem.unread
