"""What real Flink restored of each verb's native output (``tests/support/flink/verb_matrix.tsv``)."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from statetool.api.write.verbs.table import VERBS
from tests.support.flink.verb_cases import CARRYING, CASES
from tests.support.flink.verb_matrix import STEPS, jobs_of, rows

#: A writer writes new state, and no verb has its format.
_BOOTSTRAP: Final = "bootstrap"
#: Restores of the savepoint and of two checkpoints after it.
_CHAIN: Final = frozenset({"savepoint", "checkpoint, up", "checkpoint, down"})
#: Restores that were tried.
_TRIED: Final = {"1.20.5": {step.name for step in STEPS}, "2.3.0": _CHAIN}


def test_flink_restored_what_each_verb_with_a_format_writes() -> None:
    declared = {name for name, verb in VERBS.items() if "format" in {field.name for field in fields(verb)}}
    assert {*CASES} == declared | CARRYING | {_BOOTSTRAP}
    found = [(r.release, r.state, r.backend, r.verb, r.step) for r in rows()]
    assert len(set(found)) == len(found)
    wanted = {
        (release, *job, verb, step)
        for release, steps in _TRIED.items()
        for job in jobs_of(release)
        for verb in CASES
        for step in steps
    }
    assert set(found) >= wanted
    assert [row for row in rows() if not row.is_restored] == []
