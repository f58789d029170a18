"""Results of a check: resolutions of serializers, and verdicts on states, operators and the whole snapshot."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal

from statetool.compatibility.step_verdicts import Assumption, StepVerdict
from statetool.types.operators import display_name, operator_name

if TYPE_CHECKING:
    import pandas as pd

    from statetool.compatibility.running.summary import RunSummary
    from statetool.saving.uids import UidChange

Verdict = Literal["fully", "after_migration", "unknown", "not"]


class Level(IntEnum):
    """Compatibility of a new serializer with the values of an old one, best first. The worst part determines the whole."""

    AS_IS = 0
    RECONFIGURED = 1
    AFTER_MIGRATION = 2
    UNKNOWN = 3
    INCOMPATIBLE = 4

    @property
    def verdict(self) -> Verdict:
        """The verdict on a restore at this level."""
        return _VERDICTS[self]


_VERDICTS: Final[dict[Level, Verdict]] = {
    Level.AS_IS: "fully",
    Level.RECONFIGURED: "fully",
    Level.AFTER_MIGRATION: "after_migration",
    Level.UNKNOWN: "unknown",
    Level.INCOMPATIBLE: "not",
}
_ORDER: Final[tuple[Verdict, ...]] = ("fully", "after_migration", "unknown", "not")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict, ``fully`` if there is none."""
    return max(verdicts, key=_ORDER.index, default="fully")


#: The reason of an operator that only the new job has.
STARTS_EMPTY: Final = "New in the job: it starts empty."


class Placeholder(str):
    """An argument of a suggested command that is replaced with a path of the user's command line, or that the user replaces."""


#: The snapshot that is checked, the snapshot of the new job, and a new snapshot.
A: Final = Placeholder("A")
B: Final = Placeholder("B")
NEW: Final = Placeholder("NEW")


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action that helps: a sentence, and the arguments of the statetool command that carries it out, if there is one.

    ``migrates``: the command shows the steps of a migration. Whether the migration helps is known only with its plan. ``otherwise`` is a
    sentence for the case that it does not. ``is_final``: leaving the state out is no other way.
    """

    text: str
    command: tuple[str, ...] = ()
    migrates: bool = False
    otherwise: str = ""
    is_final: bool = False

    def __str__(self) -> str:
        text = f"{self.otherwise} {self.text}".lstrip()
        return f"{text} Run: {shlex.join(('statetool', *self.command))}" if self.command else text


def migration_remedy(text: str, otherwise: str = "") -> Remedy:
    """Return the remedy to migrate values to the types of the new job."""
    return Remedy(text, ("migrate", A, NEW, "--to", B, "--dry-run"), migrates=True, otherwise=otherwise)


#: The remedy for what only a run of the new job's classes decides.
RUN: Final = Remedy("Let Flink and the classes of the new job decide.", ("check", A, B, "--run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWarning:
    """A warning about a restore that succeeds but ``loses`` values or ``may_change`` them, or after which the job fails ``later``.

    ``path`` has the steps inside the type. ``in_reason``: the reason of the verdict says the same.
    """

    kind: Literal["loses", "may_change", "later"]
    message: str
    path: tuple[str, ...] = ()
    remedy: Remedy | None = None
    in_reason: bool = False

    @property
    def text(self) -> str:
        """The message, after the steps inside the type, and the remedy."""
        message = ": ".join((*self.path, self.message))
        return message if self.remedy is None else f"{message} {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason for a verdict, with the steps inside the type and the remedy.

    ``is_note``: the cause does not limit the verdict. It names something that the check did not compare. ``by_run``: a run of the new job's
    classes decides it.
    """

    level: Level
    reason: str
    remedy: Remedy | None = None
    path: tuple[str, ...] = ()
    is_note: bool = False
    by_run: bool = False

    @property
    def text(self) -> str:
        """The reason, after the steps inside the type."""
        return ": ".join((*self.path, self.reason))


@dataclass(frozen=True, slots=True)
class Resolution:
    """Compatibility of a new serializer with the values of an old one. ``causes`` are all reasons, also those of better levels."""

    level: Level
    causes: tuple[Cause, ...] = ()
    warnings: tuple[CheckWarning, ...] = ()

    @classmethod
    def because(
        cls, level: Level, reason: str, remedy: Remedy | str | None = None, *warnings: CheckWarning
    ) -> Resolution:
        """Return a resolution with one cause."""
        action = (Remedy(remedy) if remedy else None) if isinstance(remedy, str) else remedy
        return cls(level, (Cause(level=level, reason=reason, remedy=action),), warnings)

    @classmethod
    def by_run(cls, reason: str, *warnings: CheckWarning, remedy: Remedy | None = None) -> Resolution:
        """Return the resolution of what only a run of the new job's classes decides."""
        cause = Cause(level=Level.UNKNOWN, reason=reason, remedy=RUN if remedy is None else remedy, by_run=True)
        return cls(Level.UNKNOWN, (cause,), warnings)

    @classmethod
    def note(cls, text: str, remedy: str, *, by_run: bool = False) -> Resolution:
        """Return a resolution that says what was not compared, and neither limits the verdict nor warns."""
        cause = Cause(level=Level.AS_IS, reason=text, remedy=Remedy(remedy), is_note=True, by_run=by_run)
        return cls(Level.AS_IS, (cause,))

    @property
    def reason(self) -> str:
        """The reasons for the level."""
        return " ".join(dict.fromkeys(c.text for c in self.causes if c.level == self.level))

    @property
    def remedy(self) -> str:
        """The remedies of these reasons."""
        remedies = (c.remedy for c in self.causes if c.level == self.level)
        return " ".join(dict.fromkeys(str(r) for r in remedies if r is not None))

    def inside(self, step: str) -> Resolution:
        """Return the same resolution, with a step prepended to the paths of its causes and its warnings."""
        causes = tuple(replace(c, path=(step, *c.path)) for c in self.causes)
        return Resolution(self.level, causes, tuple(replace(w, path=(step, *w.path)) for w in self.warnings))

    def as_refused(self, remedy: Remedy, reason: str = "") -> Resolution:
        """Return the resolution for values that Flink does not migrate. ``reason`` is used if no cause is known."""
        refused = (Level.AFTER_MIGRATION, Level.INCOMPATIBLE)
        causes = [replace(c, level=Level.INCOMPATIBLE, remedy=remedy) if c.level in refused else c for c in self.causes]
        if all(c.level != Level.INCOMPATIBLE for c in causes):
            causes.append(Cause(level=Level.INCOMPATIBLE, reason=reason, remedy=remedy))
        return Resolution(Level.INCOMPATIBLE, tuple(causes), self.warnings)


def combine(resolutions: Iterable[Resolution]) -> Resolution:
    """Combine the resolutions of parts: the worst level, all causes, and all warnings."""
    resolutions = list(resolutions)
    level = max((p.level for p in resolutions), default=Level.AS_IS)
    causes = dict.fromkeys(c for p in resolutions for c in p.causes)
    return Resolution(level, tuple(causes), tuple(dict.fromkeys(w for p in resolutions for w in p.warnings)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVerdict:
    """Restore verdict on one state. ``reason`` is the reason if it is not restored, ``remedy`` the action to take."""

    name: str
    verdict: Verdict
    reason: str
    remedy: str
    causes: tuple[Cause, ...] = ()
    warnings: tuple[CheckWarning, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {"name": self.name, **_judgment(self), "warnings": _warnings(self.warnings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorVerdict:
    """Restore verdict on one operator: the worst verdict on itself and its states. ``uid`` is its id if no uid is known.

    ``is_new``: only the new job has it.
    """

    uid: str
    operator_name: str = field(init=False)
    verdict: Verdict
    reason: str
    remedy: str
    causes: tuple[Cause, ...] = ()
    states: tuple[StateVerdict, ...] = ()
    warnings: tuple[CheckWarning, ...] = ()
    is_new: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator_name", operator_name(self.uid))

    @property
    def named_reason(self) -> str:
        """The reason after the name of the operator, that of its states if the operator itself has none."""
        states = [f"{s.name}: {s.reason}" for s in self.states if s.verdict == self.verdict]
        return f"{display_name(self.uid)}: {self.reason or ' '.join(states)}"

    def record(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        states = [s.record() for s in self.states]
        return {
            "uid": self.uid,
            "operator_name": self.operator_name,
            **_judgment(self),
            "states": states,
            "warnings": _warnings(self.warnings),
        }


def _judgment(verdict: StateVerdict | OperatorVerdict) -> dict[str, str]:
    return {"verdict": verdict.verdict, "reason": verdict.reason, "remedy": verdict.remedy}


def _warnings(warnings: Iterable[CheckWarning]) -> list[dict[str, str]]:
    return [{"kind": w.kind, "text": w.text} for w in warnings]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The verdict on an operator, or on one of its states."""

    operator: str
    state: str | None
    verdict: str
    reason: str
    remedy: str
    warnings: str


def _verdict_rows(operator: OperatorVerdict) -> Iterator[VerdictRow]:
    judgments: tuple[OperatorVerdict | StateVerdict, ...] = (operator, *operator.states)
    for judged in judgments:
        yield VerdictRow(
            operator=operator.uid,
            state=judged.name if isinstance(judged, StateVerdict) else None,
            verdict=judged.verdict,
            reason=judged.reason,
            remedy=judged.remedy,
            warnings=" ".join(w.text for w in judged.warnings),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of checking whether a snapshot can be restored into a job.

    ``causes`` and ``snapshot_warnings`` are those that concern the whole snapshot. ``steps`` are the verdicts on the steps of the restore, in
    Flink's order. ``run`` says what was run, if the classes of the new job were. ``renamed`` are the operators that have another id in the copy
    that the verdict is on: the snapshot itself has their state under ids that the job does not have. ``renderer`` returns HTML for notebooks.
    """

    verdict: Verdict
    reason: str
    operators: tuple[OperatorVerdict, ...] = ()
    causes: tuple[Cause, ...] = ()
    snapshot_warnings: tuple[CheckWarning, ...] = ()
    steps: tuple[StepVerdict, ...] = ()
    run: RunSummary | None = None
    renamed: tuple[UidChange, ...] = ()
    renderer: Callable[[Check], str] | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str | None:
        return None if self.renderer is None else self.renderer(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per operator and per state: ``operator``, ``state``, ``verdict``, ``reason``, ``remedy``, ``warnings``.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        from statetool.columns.to_pandas import pandas_frame
        from statetool.tables.metadata import records_table

        return pandas_frame(records_table(VerdictRow, [row for o in self.operators for row in _verdict_rows(o)]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems after a successful restore, with operator and state: values that are lost or may change, and later failures."""
        texts = [f"snapshot: {w.kind}: {w.text}" for w in self.snapshot_warnings]
        texts += [f"{o.uid}: {w.kind}: {w.text}" for o in self.operators for w in o.warnings]
        texts += [f"{o.uid}.{s.name}: {w.kind}: {w.text}" for o in self.operators for s in o.states for w in s.warnings]
        return tuple(texts)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Facts that the check does not know and takes for granted, each with the option that proves it."""
        return tuple({a.text: a for step in self.steps for a in step.assumptions}.values())

    @property
    def ok(self) -> bool:
        """Whether the snapshot is restored, fully or after migration, and nothing is lost, may change, or fails later."""
        return self.verdict in ("fully", "after_migration") and not self.warnings

    def record(self) -> dict[str, Any]:
        """Return the result as a JSON object, described by ``statetool check --json-schema``."""
        operators = [o.record() for o in self.operators]
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "operators": operators,
            "warnings": list(self.warnings),
            "steps": [step.record() for step in self.steps],
            "run": None if self.run is None else self.run.record(),
            "renamed": [asdict(change) for change in self.renamed],
        }
