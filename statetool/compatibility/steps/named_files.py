"""Rule of files that only operator state names: parts of file sinks, and pending records of write-ahead sinks."""

from __future__ import annotations

from collections.abc import Iterator

from statetool.analysis.verification.named_files import check_named_files
from statetool.analysis.verification.problems import Problem
from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, is_unknown, loses, note, refuses
from statetool.errors import NO_FINDING, StatetoolError, sentence
from statetool.io.listing import FileStats
from statetool.snapshot.operator import OperatorInventory


def find_named_files(restore: Restore) -> Iterator[Result]:
    """X11: files exist that only the state of a sink names, which the restored sink opens (``GenericWriteAheadSink``, ``FileSink``)."""
    find = FileStats()
    for operator in (p.old for p in restore.pairs):
        try:
            named, problems = check_named_files(operator, restore.old.metadata_file, find)
        except NO_FINDING:
            raise
        except StatetoolError:
            continue  # the step of operator state says what cannot be read
        for problem in problems:
            yield from _result(problem, operator)
        for unread in named.unread:
            if unread.may_name_state:
                text = f"Files that state {unread.state} may name are not known: {sentence(unread.reason)}"
                yield is_unknown("X11", text, operator=operator)


def _result(problem: Problem, operator: OperatorInventory) -> Iterator[Result]:
    text = (f"{problem.file}: " if problem.file else "") + sentence(problem.problem)
    if problem.severity == "error" and (problem.file or not problem.is_unknown):
        yield refuses("X11", text, operator=operator)
    elif problem.severity == "warning" and problem.state is None:
        yield loses("X11", text, operator=operator)
    elif problem.file or not problem.is_unknown:
        yield note("X11", text, operator=operator)
    else:
        words = f"files that only the state of {operator.label.display} names exist: {problem.problem}"
        yield Assumption(rule="X11", text=words, option="statetool sinks check")
