"""Check the bytes of a source of keyed state, or of a split of operator state; runs in a task.

Unreadable key groups and undecodable elements are located individually.
"""

from __future__ import annotations

from dataclasses import replace

from statetool.analysis.verification.entry_check import ContentResult, ContentTask, EntryCheck
from statetool.analysis.verification.problems import Problem, problem_of, severity_of
from statetool.entries.form import EntryRequest, KeyGroupReader, halves
from statetool.errors import UNREAD, StatetoolError
from statetool.formats.compression import check_sums
from statetool.formats.operator_state import read_header_before
from statetool.io.open_files import keeping_open
from statetool.tables.kinds.elements import ElementSplit, element_rows


def check_contents(task: ContentTask) -> ContentResult:
    """Run one task. Each file is opened once."""
    with keeping_open():
        return _check_contents(task)


def _check_contents(task: ContentTask) -> ContentResult:
    if isinstance(task.part, ElementSplit):
        return _check_elements(task, task.part)
    check = EntryCheck(task, task.part)
    _check_entries(check, task.part)
    check.result.keys, check.result.keys_are_estimated = check.distinct.number, check.distinct.is_estimate
    if task.deep:
        for error in task.part.checksum_errors():
            check.add(error)
    return check.result


def _check_entries(check: EntryCheck, source: KeyGroupReader, state: str | None = None) -> None:
    """Check a source; if it cannot be read, check its halves, down to single key groups, and single states in those."""
    if check.full:
        return
    chosen = None if state is None else (state,)
    request = EntryRequest(states=chosen, reads_on=True, checks_order=check.task.deep)
    before, distinct = check.result.copy(), check.distinct.copy()
    try:
        header = source.header()
        check.start(header)
        for batch in source.batches(request):
            check.batch(batch if state is None else batch.of_state([m.name for m in header.states].index(state)))
            if check.full:
                return
    except StatetoolError as error:
        smaller = halves(source)
        states = _separable(source) if isinstance(error, UNREAD) and state is None and not smaller else ()
        if not smaller and not states:
            groups = list(source.group_sizes())
            check.lost(error.at(key_group=groups[0] if len(groups) == 1 else None), state=state)
            return
        check.result, check.distinct = before, distinct
        for half in smaller:
            _check_entries(check, half)
        for name in states:
            _check_entries(check, source, name)


def _separable(source: KeyGroupReader) -> tuple[str, ...]:
    """Return the states of a source that can be read separately, none if there is only one."""
    try:
        states = tuple(m.name for m in source.header().states)
    except StatetoolError:
        return ()
    return states if len(states) > 1 else ()


def _check_elements(task: ContentTask, split: ElementSplit) -> ContentResult:
    """Decode the elements of one operator state."""
    result = ContentResult([])
    (name,) = split.spec.states
    ranges = [(0, len(split.starts))]
    while ranges and len(result.problems) < task.most:
        first, stop = ranges.pop()
        elements = replace(split, starts=split.starts[first:stop], ends=split.ends[first:stop])
        try:
            result.elements += sum(n for n, _ in element_rows(elements))
        except StatetoolError as error:
            if stop - first == 1:
                result.problems.append(_element_problem(error, split, name))
            else:
                middle = (first + stop) // 2
                ranges += [(middle, stop), (first, middle)]
    if not result.problems:
        result.problems += _element_checksums(split, name)
    return result


def _element_problem(error: StatetoolError, split: ElementSplit, name: str) -> Problem:
    return problem_of(
        error,
        severity=severity_of(error),
        operator=split.spec.operator,
        subtask=split.subtask,
        state=name,
        file=split.file,
    )


def _element_checksums(split: ElementSplit, name: str) -> list[Problem]:
    try:
        with split.stream.open() as f:
            header = read_header_before(f.read_at(0, split.header_bytes), split.types, base=split.stream.start)
            if header.compressed and split.starts:
                start = min(split.starts)
                check_sums(f, start, max(split.ends) - start)
    except StatetoolError as error:
        return [_element_problem(error, split, name)]
    return []
