"""Verdicts about files that only operator state names: parts of file sinks, and pending records of write-ahead sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from statetool.compatibility.verdicts import Cause, CheckWarning, Level, OperatorVerdict, worst
from statetool.errors import NO_FINDING, StatetoolError, sentence
from statetool.io.listing import FileStats
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.verification.named_files import check_named_files
from statetool.verification.problems import Problem


def with_named_files(verdicts: Iterable[OperatorVerdict], old: Inventory) -> Iterator[OperatorVerdict]:
    """Yield verdicts that also say which files only state names, and which of them are missing."""
    find = FileStats()
    operators = {str(o.label): o for o in old.operators.values()}
    for verdict in verdicts:
        operator = operators.get(verdict.uid)
        yield verdict if operator is None else _judge(verdict, operator, old.metadata_file, find)


def _judge(
    verdict: OperatorVerdict, operator: OperatorInventory, metadata_file: str, find: FileStats
) -> OperatorVerdict:
    try:
        named, problems = check_named_files(operator, metadata_file, find)
    except NO_FINDING:
        raise
    except StatetoolError:
        return verdict  # state that cannot be read has its own reason
    causes = [
        _cause(p, Level.INCOMPATIBLE if p.severity == "error" else Level.AS_IS)
        for p in problems
        if p.file or not p.is_unknown
    ]
    causes += (
        Cause(level=Level.UNKNOWN, reason=f"Files that state {u.state} may name are not known: {sentence(u.reason)}")
        for u in named.unread
        if u.may_name_state
    )
    lost = [p for p in problems if p.severity == "warning" and p.state is None]
    limiting = [c for c in causes if not c.is_note]
    return replace(
        verdict,
        verdict=worst([verdict.verdict, *(c.level.verdict for c in limiting)]),
        reason=" ".join(dict.fromkeys(filter(None, (verdict.reason, *(c.reason for c in limiting))))),
        causes=(*verdict.causes, *causes),
        warnings=(*verdict.warnings, *(CheckWarning(kind="loses", message=sentence(p.problem)) for p in lost)),
    )


def _cause(problem: Problem, level: Level) -> Cause:
    """Return a cause, which is a note unless Flink would not restore."""
    where = f"{problem.file}: " if problem.file else ""
    return Cause(level=level, reason=where + sentence(problem.problem), is_note=level is Level.AS_IS)
