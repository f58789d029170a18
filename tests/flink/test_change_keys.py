"""Savepoints with changed keys restore, and jobs find every value, window and timer by the new keys.

``python -m tests.support.flink.key_changes`` makes all changes in all forms and releases.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flink.key_changes import CHANGES, wrong_after
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full

#: Changes of each kind of type, state, window and timer.
_SOME = {
    name: CHANGES[changes][name]
    for name, changes in {
        "by-tuple": "expressions",
        "by-pojo": "composites",
        "with-ttl": "casts",
        "collections-by-string": "composites",
        "timers": "rows",
        "win-session-reduce": "casts",
    }.items()
}


@pytest.mark.in_turn(0)  # how keys are written depends on the form, and their key groups on their type
@pytest.mark.case("{form}")
@pytest.mark.parametrize("form", ["rocksdb", "heap", "native"])
def test_state_is_found_by_new_keys(flink: FlinkMachine, corpus: Path, tmp_path: Path, form: str) -> None:
    wrong = wrong_after(flink, corpus, tmp_path, form, _SOME)
    assert {name: of for name, of in wrong.items() if of} == {}
    assert len(wrong) == len(_SOME) + 1
