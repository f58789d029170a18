"""Steps of a restore as a table in HTML."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.compatibility.step_verdicts import StepVerdict
from statetool.html.markup import Html, table


def steps_table(steps: Iterable[StepVerdict]) -> Html:
    """Return the steps of a restore with their verdicts, and why they are not relevant, assumed or have findings."""
    return table(("step", "verdict", "reason"), map(_row, steps))


def _row(step: StepVerdict) -> tuple[str, str, str]:
    rules = sorted({f.rule for f in step.findings})
    reasons = [
        step.reason,
        *(f"assumed: {a.text}" for a in step.assumptions),
        f"rules {', '.join(rules)}" if rules else "",
    ]
    return step.step.replace("_", " "), step.status.replace("_", " "), "; ".join(filter(None, reasons))
