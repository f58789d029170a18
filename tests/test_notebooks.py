"""The notebooks are executed: they print their stored outputs, which contain the expected numbers."""

from __future__ import annotations

import nbformat
import pytest

from tests.support.notebooks import NOTEBOOKS, executed, printed

#: Expected text in the outputs of each notebook, stored and new.
EXPECTED = {
    "a-first-state": ["{'EUR': 0.25}", "2027-01-15 08:00:00+00:00", "ValueStateDescriptor<Long> countState", "True"],
    "compare-two-savepoints": ["difference by-short", "timers.registered: +0 -1 ~1", "by-short.v: +0 -88 ~0"],
    "correct-a-value": ["[('with-ttl', 'plain', '2', '1700000080000', '7')]", "895 entries, 221 keys", "fully"],
    "follow-checkpoints": ["chk-3 3 True newest", "1 4\n2 9\n3 14", "{('registered', 'added'): 10}"],
    "open-a-savepoint": [
        "operators: 19",
        "tables: 56",
        "state bytes: 103705",
        "key groups of timers: 128, not empty: 14",
        "keys: 14",
        "timers: {'event': 62, 'processing': 88}",
    ],
    "sources-and-sinks": ["orders-0 reader 1042 -> 900", "orders-out-1-2  received", "958.0"],
    "what-is-large": ["29589", "'order-17'", "subtask 0 of 4 would hold 1.77 of the mean", "332 values have an age"],
    "who-is-this-key": ["('timers', 'timers'): 12", "key group 68 of 128, subtask 1 of 3", "pass the job's jar"],
}
PLOTS = {"open-a-savepoint": 1, "what-is-large": 1}


def test_every_notebook_is_checked() -> None:
    assert {p.stem for p in NOTEBOOKS.glob("*.ipynb")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_notebook_is_stored_with_what_it_is_about(name: str) -> None:
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    shown = "".join(printed(stored))
    for words in EXPECTED[name]:
        assert words in shown
    outputs = [o for c in stored.cells if c.cell_type == "code" for o in c.outputs]
    assert sum("image/png" in o.get("data", {}) for o in outputs) == PLOTS.get(name, 0)
    assert not any(o.output_type == "error" or "/tmp/" in str(o) for o in outputs)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_notebook_prints_what_is_stored(name: str) -> None:
    path = NOTEBOOKS / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    assert printed(executed(path)) == printed(stored), "run python -m tests.support.notebooks"
