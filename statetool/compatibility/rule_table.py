"""The table of all rules of a restore (``rules.tsv``): those that ``check`` follows, and those that it does not check."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRule:
    """One rule of a restore.

    Attributes
    ----------
    step
        Name of the step that has the rule, or would have it.
    condition, flink
        When it applies, and what Flink does: outcome, class and releases.
    verdict
        What ``check`` says, or should say.
    inputs
        What decides: A and B (the snapshots), JA and JB (the jars), PLAN, CONF (``--config``), OPT (options of ``check``), EXT (an external
        system), REST (a running cluster), CR (a custom resource).
    test
        The test of the rule; empty if it is not checked.
    reason
        Why it is not checked; empty if it is.
    """

    id: str
    step: str
    condition: str
    flink: str
    verdict: str
    inputs: str
    remedy: str
    test: str
    reason: str

    @property
    def checked(self) -> str:
        """Return the name of the test, or why the rule is not checked."""
        return f"`{self.test.rpartition('::')[2]}`" if self.test else f"not checked: {self.reason}"


@cache
def restore_rules() -> tuple[RestoreRule, ...]:
    """Return all rules, in the order of the table."""
    text = (resources.files(__package__) / "rules.tsv").read_text(encoding="utf-8")
    return tuple(RestoreRule(**row) for row in csv.DictReader(text.splitlines(), delimiter="\t", restval=""))
