"""Plan the content checks of a snapshot: a task per split of its keyed and operator state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from statetool.analysis.verification.channels import check_channels
from statetool.analysis.verification.entry_check import EXACT, ContentTask
from statetool.analysis.verification.problems import Problem, Severity, note, problem_of, reading_failed
from statetool.entries.form import MEMORY_BYTES, TARGET_BYTES, KeyedContext, KeyGroupReader, StoredState
from statetool.errors import NO_FINDING, SnapshotNotFoundError, StatetoolError, UnknownSerializerError
from statetool.formats.metadata.handles import StreamHandle
from statetool.formats.stream import Stream
from statetool.java.hashing.formulas import HashFormula, user_classes
from statetool.java.hashing.prove import prove_hashes
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.element_splits import plan_elements
from statetool.tables.kinds.elements import ElementSplit
from statetool.tables.kinds.kind import TableSpec
from statetool.tables.kinds.registry import ELEMENTS

_MOST_PROBLEMS_OF_A_TASK: Final = 100


class ContentPlanner:
    """Planner of one operator's content checks.

    Content that cannot be planned is a problem; a missing file is one only if ``known`` has no error.
    """

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
        #: Why no hash formula of the user's classes was proved.
        self.unproved = ""

    def run(self) -> list[ContentTask]:
        tasks = list(self.keyed())
        if not tasks:
            # Headers are read together with the entries after them. Without entries, Flink still reads the headers.
            self.guarded(lambda: self.operator.keyed_states)
        tasks += self.elements() if self.deep else ()
        if self.deep:
            for subtask in self.operator.state.subtasks:
                self.problems += check_channels(subtask, self.resolve, self.operator.label)
        else:
            self.guarded(lambda: self.operator.operator_states)
        self.notes()
        return tasks

    def guarded(self, look: Callable[[], Any], subtask: int | None = None, *, severity: Severity = "error") -> Any:
        """Return the result of ``look``; if it raises, add the error to the problems and return ``None``."""
        try:
            return look()
        except NO_FINDING:
            raise
        except SnapshotNotFoundError as error:
            # The structure check has already reported missing files.
            if not any(p.severity == "error" for p in self.known):
                self.problems.append(problem_of(error, operator=self.operator.label, subtask=subtask))
        except StatetoolError as error:
            place: dict[str, Any] = {"operator": self.operator.label, "subtask": subtask}
            problem = (
                reading_failed(error, **place) if severity == "error" else problem_of(error, severity=severity, **place)
            )
            self.problems.append(problem)
        return None

    @cached_property
    def formula(self) -> HashFormula | None:
        """Return the hash formula of the user's classes in a key, proved on a sample of keys; ``None`` without such classes or a proof."""
        try:
            key = self.operator.keyed.needed_key()
            if not user_classes(key):
                return None
            return prove_hashes(self.operator.keyed.sources(), key, HashFormula(())).formula
        except NO_FINDING:
            raise
        except StatetoolError as error:
            self.unproved = error.message
            return None

    def context(self) -> KeyedContext:
        """Return the context of the operator's entries; if a header cannot be read, the check of its entries reports it."""
        try:
            return self.operator.keyed.context
        except StatetoolError:
            state = self.operator.state
            return KeyedContext(
                operator=self.operator.label, max_parallelism=state.max_parallelism, types=self.operator.types
            )

    def keyed(self) -> Iterator[ContentTask]:
        keyed = self.operator.keyed
        managed = self.guarded(lambda: keyed.managed) or ()
        if managed:
            keyed.expect_files()
        for stored in (*managed, *(self.guarded(lambda: keyed.raw_timers) or ())):
            for source in self.guarded(lambda s=stored: self.sources(s), stored.place.subtask) or ():  # type: ignore[misc]
                yield self.task(source, self.formula)

    def sources(self, stored: StoredState) -> list[KeyGroupReader]:
        return list(stored.sources(self.context(), groups=None, target_bytes=TARGET_BYTES))

    def task(self, part: KeyGroupReader | ElementSplit, formula: HashFormula | None = None) -> ContentTask:
        return ContentTask(part, self.operator.label, self.deep, _MOST_PROBLEMS_OF_A_TASK, formula)

    def elements(self) -> Iterator[ContentTask]:
        for name in self.guarded(lambda: self.operator.operator_states) or ():
            for split in self.guarded(lambda n=name: self.element_splits(n)) or ():  # type: ignore[misc]
                yield self.task(split)

    def element_splits(self, name: str) -> list[ElementSplit]:
        spec = TableSpec(
            operator=self.operator.label,
            states=(name,),
            options=EXACT,
            schema=b"",
            memory_bytes=MEMORY_BYTES,
        )
        return plan_elements(self.operator, spec, ELEMENTS, one_copy=False)

    def unknown_serializers(self) -> Iterator[tuple[str, OpaqueSerializer]]:
        """Yield the unknown serializers of states and keys, each with the name of a state."""
        metas = [*(m for _, m in self.operator.listed_keyed.values()), *self.operator.listed_elements.values()]
        serializers = [(m.name, s) for m in metas for s in m.serializers.values()]
        serializers += [(m.name, h.key) for h, m in self.operator.listed_keyed.values()]
        for name, serializer in serializers:
            if isinstance(serializer, OpaqueSerializer) and serializer.proxy_bytes is not None:
                yield name, serializer

    def notes(self) -> None:
        """Add a note about state that no check covers."""
        label = self.operator.label
        for name, unknown in self.unknown_serializers():
            error = UnknownSerializerError(f"its values are bytes of a type that is not known: {unknown.reason}")
            self.problems.append(reading_failed(error, operator=label, state=name))
        if self.deep:
            for state in self.guarded(lambda: self.operator.states, severity="note") or ():
                if not state.readable and state.kind != "unread":
                    self.problems.append(note(label, f"bytes that were not decoded: {state.reason}", state.name))
        if self.guarded(lambda: self.operator.keyed.own_raw_subtasks, severity="note"):
            self.problems.append(note(label, "the contents of raw keyed state were not checked"))
        if any(s.raw_operator is not None for s in self.operator.state.subtasks):
            self.problems.append(note(label, "the contents of raw operator state were not checked"))
