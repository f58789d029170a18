"""What real Flink restored of each verb's native output (``tests/support/flink/verb_matrix.tsv``)."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from statetool.api.write.verbs.table import VERBS
from tests.support.flink.verb_cases import CASES
from tests.support.flink.verb_matrix import RELEASES, STEPS, jobs_of, rows

#: A writer writes new state, and no verb has its format.
_BOOTSTRAP: Final = "bootstrap"


def test_flink_restored_what_each_verb_with_a_format_writes() -> None:
    """In each release, backend and API of the state, and in each step."""
    declared = {name for name, verb in VERBS.items() if "format" in {field.name for field in fields(verb)}}
    assert {*CASES} == declared | {_BOOTSTRAP}
    found = [(r.release, r.state, r.backend, r.verb, r.step) for r in rows()]
    assert len(set(found)) == len(found)
    wanted = {
        (release, *job, verb, step.name)
        for release in RELEASES
        for job in jobs_of(release)
        for verb in CASES
        for step in STEPS
    }
    assert set(found) == wanted
    assert [row for row in rows() if not row.is_restored] == []
