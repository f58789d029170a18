"""The problems of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from statetool.errors import UNREAD, StatetoolError

Severity = Literal["error", "warning", "note"]
_NOT_READ: Final = "not read, so nothing is known of it: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem.

    ``error``: Flink would fail to restore it, or restore something wrong. ``warning``: unusual, though Flink can restore it.
    ``note``: could not be checked, and why. ``offset`` counts bytes from the start of ``file``, unless ``problem`` says otherwise.
    """

    severity: Severity
    operator: str | None
    subtask: int | None
    state: str | None
    file: str | None
    offset: int | None
    problem: str

    @property
    def unread(self) -> bool:
        """Whether keyed or operator state was not read at all."""
        return self.severity == "warning" and self.problem.startswith(_NOT_READ)


def problem_of(
    error: StatetoolError,
    *,
    severity: Severity = "error",
    operator: str | None = None,
    subtask: int | None = None,
    state: str | None = None,
    file: str | None = None,
) -> Problem:
    """Return an error as a problem; the place that the error itself knows comes first."""
    where = error.where
    places = (("key group", where.key_group), ("type", where.type_path), ("region", where.region))
    inside = ", ".join(f"{name} {value}" for name, value in places if value is not None)
    text = f"{error.message} [{inside}]" if inside else error.message
    return Problem(
        severity=severity,
        operator=where.operator or operator,
        subtask=subtask,
        state=where.state or state,
        file=where.file or file,
        offset=where.offset,
        problem=f"{text}. {error.hint}" if error.hint else text,
    )


def reading_failed(error: StatetoolError, **place: Any) -> Problem:
    """Return why keyed or operator state could not be read: a warning for errors of :data:`UNREAD`, else an error."""
    if not isinstance(error, UNREAD):
        return problem_of(error, **place)
    problem = problem_of(error, severity="warning", **place)
    return replace(problem, problem=_NOT_READ + problem.problem)


def severity_of(error: StatetoolError, otherwise: Severity = "error") -> Severity:
    """Return ``note`` for errors of :data:`UNREAD`, else ``otherwise``."""
    return "note" if isinstance(error, UNREAD) else otherwise


def note(operator: str, words: str, state: str | None = None) -> Problem:
    """Return a note on what could not be checked."""
    return Problem(severity="note", operator=operator, subtask=None, state=state, file=None, offset=None, problem=words)
