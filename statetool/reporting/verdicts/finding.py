"""Findings: the blocks of a verdict, and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: ``unknown``: something was not read or cannot be decided, so it is neither a problem nor fine.
Severity = Literal["error", "unknown", "warning", "difference", "advice", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a verdict.

    Attributes
    ----------
    where
        Location, from the outside in: ``("operator orders", "state total", "value.amount")``. Empty for the whole snapshot.
    what
        The finding, in one or more sentences.
    why
        Reason or consequence; may be empty.
    details
        Labels and values, such as ``("before", "1")`` and ``("file", "s3://bucket/sp/_metadata")``. A value is never shortened.
    remedy
        The action to take, as a sentence; may be empty.
    command
        The exact command line that carries out the remedy; may be empty.
    page
        URL of the documentation; may be empty.
    """

    severity: Severity
    where: tuple[str, ...]
    what: str
    why: str = ""
    details: tuple[tuple[str, str], ...] = ()
    remedy: str = ""
    command: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All findings of a verdict, worst first, a summary of everything that is fine, and the conditions under which it holds."""

    findings: tuple[Finding, ...]
    summary: str
    conditions: tuple[str, ...] = ()
