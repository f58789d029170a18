"""Results of a run as resolutions: what Flink and the classes of the new job did with a state, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statetool.compatibility.running.machine import RunFinding
from statetool.compatibility.verdicts import RUN, CheckWarning, Level, Remedy, Resolution, combine

#: Parts of an entry whose bytes or equality find it.
_LOOKED_UP: Final = ("key", "namespace", "map key")
_NO_MIGRATION: Final = ("key", "namespace")
_ALL_JARS: Final = "Pass all jars of the new job with --jar-b."
_KEEP_HASH: Final = "Keep the method hashCode() of the key as it was."
_KEEP_EQUALS: Final = "Give the class equals() and hashCode() by its fields."


#: The remedy if a run did not decide.
_TRY: Final = Remedy("Restore a copy of the job from this snapshot to find out.")
#: The resolution of a run without findings.
NOTHING: Final = Resolution(Level.AS_IS)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run says about one state, or about the keys of an operator. ``decides``: every part of it was read."""

    resolution: Resolution
    decides: bool
    #: What was read, as the reason of a verdict that the run decides, with a warning if values cannot be compared.
    read: Resolution = NOTHING

    def apply(self, ruled: Resolution) -> Resolution:
        """Return the resolution of the rules together with that of the run, which replaces what only a run tells."""
        if ruled.level == Level.INCOMPATIBLE:
            return ruled
        decided = {c.text for c in ruled.causes if c.by_run} if self.decides else set()
        if not decided:
            causes = tuple(replace(c, remedy=_TRY) if c.remedy == RUN else c for c in ruled.causes)
            return combine([replace(ruled, causes=causes), self._besides(ruled.warnings)])
        causes = tuple(c for c in ruled.causes if c.text not in decided)
        warnings = tuple(w for w in ruled.warnings if not (w.in_reason and ": ".join((*w.path, w.message)) in decided))
        level = max((c.level for c in causes), default=Level.AS_IS)
        return combine([Resolution(level, causes, warnings), self.read, self._besides(warnings)])

    def settle(self, ruled: Resolution) -> Resolution:
        """Return the resolution of the rules without what the run decides, whose findings are told elsewhere."""
        return replace(self, resolution=NOTHING).apply(ruled)

    def _besides(self, known: Iterable[CheckWarning]) -> Resolution:
        """Return the resolution without warnings of a kind that the rules give already, because they compare the same values."""
        kinds = {w.kind for w in known}
        repeated = {w.message for w in self.resolution.warnings if w.kind in kinds}
        return Resolution(
            self.resolution.level,
            tuple(c for c in self.resolution.causes if c.reason not in repeated),
            tuple(w for w in self.resolution.warnings if w.message not in repeated),
        )


#: The result of what was not run.
NOT_RUN: Final = Ran(NOTHING, decides=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Turns findings of a run into resolutions.

    Attributes
    ----------
    release
        The Flink that ran.
    backend
        The backend of the new job: what reads objects again, or bytes.
    is_gone
        Whether the old job has a class that the new one lacks.
    """

    release: str
    backend: Literal["heap", "rocksdb", "forst", "unknown"]
    is_gone: Callable[[str], bool]

    @property
    def with_flink(self) -> str:
        """The beginning of each text."""
        return f"Run with Flink {self.release}"

    def resolutions(self, findings: Iterable[RunFinding], *, unframed: bool) -> Iterator[Resolution]:
        """Yield a resolution for each finding."""
        findings = list(findings)
        migrating = {f.role for f in findings if f.kind == "resolved" and f.text == "after_migration"}
        for finding in findings:
            yield from self._resolution(finding, migrates=finding.role in migrating, unframed=unframed)

    def _resolution(self, f: RunFinding, *, migrates: bool, unframed: bool) -> Iterator[Resolution]:
        with_flink = self.with_flink
        if f.missing:
            yield self._missing(f, with_flink)
        elif f.kind == "resolved":
            if f.text == "incompatible" or (f.text == "after_migration" and f.role in _NO_MIGRATION):
                text = f"{with_flink}: it refuses the new serializer of the {f.role}."
                yield Resolution.because(Level.INCOMPATIBLE, text, _CHANGE)
            elif f.text == "after_migration":
                yield Resolution.because(Level.AFTER_MIGRATION, f"{with_flink}: it migrates the {f.role}.")
        elif f.kind in _FAILURES:
            if f.kind == "unwritten" and not migrates:
                text = f"{with_flink}: a {f.role} that was read cannot be written again: {f.text}."
                yield _warn("later", text)
            else:
                yield Resolution.because(
                    Level.INCOMPATIBLE, f"{with_flink}: {_FAILURES[f.kind].format(f.role)}: {f.text}.", _CHANGE
                )
        elif f.kind == "replaced":
            text = f"{with_flink}: it refuses the new serializer of the {f.role}, {f.text}."
            yield Resolution.because(Level.INCOMPATIBLE, text, _CHANGE)
        elif f.kind == "assumed":
            text = f"{with_flink}: the new job is taken to give the {f.role} the serializer that it had. A snapshot of the new job (B) shows it."
            yield Resolution.note(text, "")
        elif f.kind == "new_snapshot":
            yield Resolution.note(
                f"{with_flink}: the serializer of the new job cannot be created, so its {f.role} was not tried: {f.text}.",
                _ALL_JARS,
            )
        elif f.kind == "left":
            level = Level.INCOMPATIBLE if unframed else Level.AS_IS
            yield _warn("may_change", f"{with_flink}: {f.text}.", level=level)
        elif f.kind == "changed":
            yield _warn("may_change", f"{with_flink}: the classes of the new job read other values: {f.text}.")
        elif f.kind == "hash":
            yield _warn("loses", f"{with_flink}: the new job does not find some keys: {f.text}.", _KEEP_HASH)
        elif f.kind == "equals" and self.backend != "rocksdb":
            text = f"{with_flink}: a {f.role} that is read twice is not equal to itself, so the heap backend does not find it: {f.text}."
            yield _warn("loses", text, _KEEP_EQUALS)
        elif f.kind == "rewritten" and f.role in _LOOKED_UP and self.backend != "heap":
            text = f"{with_flink}: the new job writes a {f.role} with other bytes, so RocksDB does not find the old ones: {f.text}."
            yield _warn("loses", text)

    def _missing(self, f: RunFinding, with_flink: str) -> Resolution:
        if self.is_gone(f.missing):
            text = f"The new job does not have the class {f.missing}."
            return Resolution.because(
                Level.INCOMPATIBLE,
                text,
                f"Keep {f.missing} in the job's jar, or pass the jar that has it with another --jar-b.",
            )
        text = f"{with_flink}: its {f.role} was not tried: {f.text}."
        return Resolution.note(text, _ALL_JARS if f.missing != "?" else "")


_CHANGE: Final = "Keep the former class and serializer, or drop the state."
_FAILURES: Final = {
    "old_snapshot": "the serializer snapshot of the {0} cannot be read",
    "unresolved": "the new serializer of the {0} cannot be compared",
    "unread": "a {0} cannot be read with the new classes",
    "unwritten": "a {0} cannot be migrated",
    "identity": "hashCode() or equals() of a {0} fails",
}


def _warn(
    kind: Literal["loses", "may_change", "later"], text: str, remedy: str = "", level: Level = Level.AS_IS
) -> Resolution:
    warning = CheckWarning(kind=kind, message=text)
    return Resolution.because(level, text, remedy, *([warning] if level == Level.AS_IS else []))


def is_decided(findings: Sequence[RunFinding]) -> bool:
    """Return True if nothing kept the run from an answer."""
    return not any(f.missing or f.kind == "new_snapshot" for f in findings)
