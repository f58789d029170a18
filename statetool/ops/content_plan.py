"""Plan which bytes of a snapshot are checked: a task for each split of its keyed and operator state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from statetool.errors import SnapshotNotFoundError, StatetoolError
from statetool.formats.metadata import SubtaskState
from statetool.formats.metadata.handles import ChangelogHandle, IncrementalHandle, KeyGroupsHandle, StreamHandle
from statetool.formats.stream import Stream
from statetool.ops.channels import check_channels
from statetool.ops.entry_check import ContentTask
from statetool.ops.formulas import HashFormula, user_classes
from statetool.ops.problems import Problem, Severity, note, problem_of, severity_of
from statetool.ops.prove import prove_hashes
from statetool.ops.sources import keyed_splits
from statetool.plan.element_splits import plan_operator_state
from statetool.plan.keyed_splits import plan_database, plan_log, plan_part, plan_raw_timers
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import KeyedPart
from statetool.plan.splits import TableSpec
from statetool.types.options import ReadOptions

_MOST_OF_A_SPLIT: Final = 100
#: What a value is, not how it is shown: nothing is rounded, and what a table would refuse is still checked.
_EXACT: Final = ReadOptions(nanos="companion", decimals="string", ttl="raw")


class ContentPlanner:
    """Plans the checks of one operator's contents; what cannot be planned is a problem, unless it is among the ``known`` ones."""

    def __init__(
        self,
        operator: OperatorInventory,
        resolve: Callable[[StreamHandle], Stream | None],
        known: Sequence[Problem],
        deep: bool,
    ) -> None:
        self.operator = operator
        self.known = known
        self.resolve = resolve
        self.deep = deep
        self.problems: list[Problem] = []
        #: Why the hash codes of a user's classes were not found.
        self.unproved = ""

    def run(self) -> list[ContentTask]:
        tasks = [*self.keyed(), *self.raw_timers(), *(self.elements() if self.deep else [])]
        if self.deep:
            for subtask in self.operator.state.subtasks:
                self.problems += check_channels(subtask, self.resolve, self.operator.label)
        else:
            self.guarded(lambda: self.operator.operator_states)
        self.notes()
        return tasks

    def guarded(self, look: Callable[[], Any], subtask: int | None = None, *, severity: Severity = "error") -> Any:
        """Return what ``look`` gives, ``None`` where it raises, which becomes a problem."""
        try:
            return look()
        except SnapshotNotFoundError as error:
            # Files that are not there have been named already.
            if not any(p.severity == "error" for p in self.known):
                self.problems.append(problem_of(error, operator=self.operator.label, subtask=subtask))
        except NotImplementedError as error:
            if not isinstance(error, StatetoolError):
                raise
            self.problems.append(problem_of(error, severity="note", operator=self.operator.label, subtask=subtask))
        except StatetoolError as error:
            severity = severity_of(error, severity)
            self.problems.append(problem_of(error, severity=severity, operator=self.operator.label, subtask=subtask))
        return None

    def spec(self, table: str, states: tuple[str, ...]) -> TableSpec:
        return TableSpec(
            operator=self.operator.label,
            table="operator_state" if table == "operator_state" else "state",
            states=states,
            options=_EXACT,
            max_parallelism=self.operator.state.max_parallelism,
            types=self.operator.types,
            descriptions=self.descriptions(table),
        )

    def descriptions(self, table: str) -> tuple[tuple[bytes, int], ...]:
        """Return the headers that describe subclasses; where a header cannot be read, its own check says so."""
        try:
            return self.operator.operator_descriptions if table == "operator_state" else self.operator.descriptions
        except StatetoolError:
            return ()

    @cached_property
    def formula(self) -> HashFormula | None:
        """How the user's classes in a key hash, as the key groups of a sample prove; ``None`` where there are none, or no proof."""
        try:
            key = self.operator.key_serializer()
            if not user_classes(key):
                return None
            return prove_hashes(keyed_splits(self.operator), key, HashFormula(())).formula
        except StatetoolError as error:
            self.unproved = error.message
            return None

    def keyed(self) -> Iterator[ContentTask]:
        for subtask in self.operator.state.subtasks:
            for split in self.guarded(lambda s=subtask: self.subtask(s), subtask.index) or ():  # type: ignore[misc]
                yield ContentTask(split, self.deep, _MOST_OF_A_SPLIT, self.formula)

    def subtask(self, subtask: SubtaskState) -> list[Any]:
        """Plan the keyed state of one subtask."""
        operator, handle = self.operator, subtask.managed_keyed
        if isinstance(handle, IncrementalHandle):
            native = operator.native_part(subtask.index, handle)
            header = operator.native_header(native)
            return plan_database(native, self.spec("state", tuple(m.name for m in header.states)))
        if isinstance(handle, ChangelogHandle):
            (log,) = [p for p in operator.changelog_parts if p.subtask == subtask.index]
            states = tuple(m.name for m in operator.changelog_headers[subtask.index].states)
            return plan_log(operator, log, self.spec("state", states))
        if not isinstance(handle, KeyGroupsHandle):
            return []
        stream = self.resolve(handle.stream)
        if stream is None:
            return []
        part = KeyedPart(
            subtask=subtask.index, tag=handle.tag, start=handle.start, offsets=handle.offsets, stream=stream
        )
        states = tuple(m.name for m in operator.keyed_header(part).states)
        return plan_part(operator, part, self.spec("state", states))

    def raw_timers(self) -> Iterator[ContentTask]:
        planned = self.guarded(lambda: plan_raw_timers(self.operator, self.spec("timers", ()), groups=None))
        for split in planned or ():
            yield ContentTask(split, self.deep, _MOST_OF_A_SPLIT, self.formula)

    def elements(self) -> Iterator[ContentTask]:
        for name in self.guarded(lambda: self.operator.operator_states) or ():
            spec = self.spec("operator_state", (name,))
            planned = self.guarded(lambda spec=spec: plan_operator_state(self.operator, spec, one_copy=False))  # type: ignore[misc]
            for split in planned or ():
                yield ContentTask(split, self.deep, _MOST_OF_A_SPLIT)

    def notes(self) -> None:
        """Say what no check reaches."""
        label = self.operator.label
        if self.deep:
            for state in self.guarded(lambda: self.operator.states, severity="note") or ():
                if not state.readable:
                    self.problems.append(note(label, f"bytes that were not decoded: {state.reason}", state.name))
        timers = {p.subtask for p in self.guarded(lambda: self.operator.raw_parts, severity="note") or ()}
        if any(s.raw_keyed is not None and s.index not in timers for s in self.operator.state.subtasks):
            self.problems.append(note(label, "the contents of raw keyed state were not checked"))
        if any(s.raw_operator is not None for s in self.operator.state.subtasks):
            self.problems.append(note(label, "the contents of raw operator state were not checked"))
