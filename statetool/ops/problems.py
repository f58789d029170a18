"""What is wrong with a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from statetool.errors import StatetoolError, UnknownSerializerError, UnsupportedError

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding.

    ``error``: Flink would fail to restore it, or restore something wrong. ``warning``: unusual, though
    Flink can restore it. ``note``: could not
    be checked, and why. ``offset`` counts bytes from the start of ``file`` (``problem`` says where it counts otherwise).
    """

    severity: Severity
    operator: str | None
    subtask: int | None
    state: str | None
    file: str | None
    offset: int | None
    problem: str


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
    return Problem(
        severity=severity,
        operator=where.operator or operator,
        subtask=subtask,
        state=where.state or state,
        file=where.file or file,
        offset=where.offset,
        problem=f"{error.message} [{inside}]" if inside else error.message,
    )


def severity_of(error: StatetoolError, otherwise: Severity = "error") -> Severity:
    """Return how bad an error is: nothing is known to be wrong where nothing can be known."""
    return "note" if isinstance(error, UnknownSerializerError | UnsupportedError) else otherwise


def note(operator: str, words: str, state: str | None = None) -> Problem:
    """Return what could not be checked as a problem."""
    return Problem(severity="note", operator=operator, subtask=None, state=state, file=None, offset=None, problem=words)
