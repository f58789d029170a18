"""Run of a check: for each state, Flink's resolution of its serializers, and values that the classes of the new job read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from statetool.compatibility.classes.job_classes import jars_of
from statetool.compatibility.classes.trial import NewClasses, difference_of
from statetool.compatibility.running.flink_jars import FlinkJars
from statetool.compatibility.running.machine import Answer, Machine, RunEndedError
from statetool.compatibility.running.questions import Asked, Place, is_same_kryo, questions
from statetool.compatibility.running.results import Judge, Ran, is_decided
from statetool.compatibility.running.samples import Sample
from statetool.compatibility.running.summary import RunOptions, RunSummary, StateRead
from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, combine
from statetool.errors import StatetoolError, UnknownSerializerError, several
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory

if TYPE_CHECKING:
    from statetool.compatibility.states import Job

#: JVMs that the classes may end before the other states are not run.
_MOST_ENDS: Final = 3
_OLD_JAR: Final = "Pass the jar of the old job with --jar-a."


@dataclass(slots=True)
class Runner:
    """One JVM for all states of a check. Close it."""

    options: RunOptions
    flink: FlinkJars
    classes: NewClasses
    #: No snapshot shows the serializers of the new job.
    is_assumed: bool
    _machine: Machine
    _ends: int = 0
    _seconds: float = 0.0
    _read: list[StateRead] = field(default_factory=list)

    @classmethod
    def of(cls, options: RunOptions, flink: FlinkJars, classes: NewClasses, *, is_assumed: bool) -> Runner:
        """Return a runner. The JVM starts at the first state."""
        return cls(
            options,
            flink,
            classes,
            is_assumed,
            Machine(flink, jars_of(classes.new.source), jars_of(classes.old.source)),
        )

    def close(self) -> None:
        """End the JVM."""
        self._machine.close()

    def summary(self) -> RunSummary:
        """Return what was read."""
        return RunSummary(
            flink=self.flink.release,
            java=self._machine.java,
            sample=self.options.sample,
            seconds=self._seconds,
            states=tuple(self._read),
        )

    def results(self, old: OperatorInventory, new: OperatorInventory, job: Job) -> dict[Place, Ran]:
        """Return the results of the states of an operator that depend on classes of the job, and of its keys, which have the name ``""``."""
        started = time.monotonic()
        try:
            return dict(self._results(old.as_described(), new, job))
        finally:
            self._seconds += time.monotonic() - started

    def _results(self, old: OperatorInventory, new: OperatorInventory, job: Job) -> Iterator[tuple[Place, Ran]]:
        judge = Judge(release=self.flink.release, backend=job.backend, is_gone=self.classes.is_gone)
        native = any(not stored.canonical and not stored.database for stored in old.keyed.managed)
        of_keys: list[Ran] = []
        for asked in questions(old, new, job, self.options.sample, is_assumed=self.is_assumed):
            if self._ends >= _MOST_ENDS:
                return
            try:
                answer = self._machine.ask(asked.question)
            except RunEndedError as error:
                self._ends += 1
                resolution = Resolution.because(Level.UNKNOWN, f"{judge.with_flink}: {error.message}.")
                yield asked.place, Ran(resolution, decides=False)
                continue
            is_whole = isinstance(asked.sample, Sample) and asked.sample.is_whole
            self._read.append(StateRead(str(old.label), asked.place[1], answer.entries, is_whole))
            yield asked.place, self._of_state(asked, answer, judge, unframed=native and asked.place[0] == "keyed")
            of_keys += self._of_keys(asked, answer, judge)
        if of_keys:
            # One state is enough to try keys: they have the same serializer in all of them.
            decides = any(ran.decides for ran in of_keys)
            yield ("keyed", ""), Ran(combine(ran.resolution for ran in of_keys), decides, of_keys[0].read)

    def _of_state(self, asked: Asked, answer: Answer, judge: Judge, *, unframed: bool) -> Ran:
        """Return the result of a state, apart from the keys of its entries."""
        found = list(judge.resolutions([f for f in answer.findings if f.role != "key"], unframed=unframed))
        if isinstance(asked.sample, StatetoolError):
            text = (
                f"{judge.with_flink}: its values were not read, because they cannot be found: {asked.sample.message}."
            )
            found.append(Resolution.note(text, asked.sample.hint))
            return Ran(combine(found), decides=False)
        read = [_read(judge, answer, asked.sample)]
        changed, uncompared = self._compared(asked, answer)
        if changed:
            text = f"{judge.with_flink}: the new job writes other values: {changed}."
            read.append(Resolution.because(Level.AS_IS, text, None, CheckWarning(kind="may_change", message=text)))
        if self.classes.old.source is None and answer.entries:
            text = (
                f"{judge.with_flink}: without the classes of the old job, only bytes and decoded values were compared."
            )
            read.append(Resolution.note(text, _OLD_JAR))
        if uncompared:
            text = f"{judge.with_flink}: whether the values that it reads are the same is unknown: {uncompared}."
            remedy = "" if self.classes.old.source is not None else _OLD_JAR
            warning = CheckWarning(kind="may_change", message=f"{text} {remedy}".rstrip())
            read.append(Resolution.because(Level.AS_IS, text, remedy, warning))
        return Ran(combine(found), is_decided(answer.findings), combine(read))

    def _of_keys(self, asked: Asked, answer: Answer, judge: Judge) -> Iterator[Ran]:
        findings = [f for f in answer.findings if f.role == "key"]
        if not findings or isinstance(asked.sample, StatetoolError):
            return
        tried = any(f.kind == "keys" for f in findings) or not asked.sample.entries
        read = _read(judge, answer, asked.sample)
        yield Ran(combine(judge.resolutions(findings, unframed=False)), tried and is_decided(findings), read)

    def _compared(self, asked: Asked, answer: Answer) -> tuple[str, str]:
        """Compare values that the new job writes with other bytes: return a difference, and why some cannot be compared."""
        uncompared = next((f.text for f in answer.findings if f.kind == "uncompared"), "")
        for role, before, after in answer.rewritten:
            if role in ("key", "namespace"):
                continue
            old, new = asked.pairs[role]
            if before == after and is_same_kryo(old, new) and self.classes.old.source is not None:
                continue  # The classes of the old job could not be asked, which is told.
            try:
                _check_decoded(old, new)
                changed = difference_of(old, before, new, after)
            except StatetoolError as error:
                if before != after or not is_same_kryo(old, new):
                    uncompared = uncompared or error.message
                continue
            if changed:
                return changed, ""
        return "", uncompared


def _check_decoded(*serializers: Serializer) -> None:
    """Raise an error if values of a serializer stay bytes."""
    for part in (p for s in serializers for p in all_parts(s)):
        is_bytes = part.needs_frame and not part.children()
        if is_bytes or (isinstance(part, KryoSerializer) and part.is_java_serialized):
            raise UnknownSerializerError(f"statetool does not decode {part.type_name}")


def _read(judge: Judge, answer: Answer, sample: Sample) -> Resolution:
    count = several(answer.entries, "entry", "entries")
    text = f"{judge.with_flink}: it takes the new serializers, and reads and writes {'all ' if sample.is_whole else ''}{count}."
    return Resolution.because(Level.AS_IS, text)
