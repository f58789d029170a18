"""A rescaled and changed savepoint of a delta join: Flink looks up the rows that waited, and joins them."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.snapshot.views import DELTA_JOIN_QUEUE
from tests.support.corpora.archives import unpack
from tests.support.flink.delta_job import PACKED, delta_machine, run_job

pytestmark = pytest.mark.full


def test_rows_that_waited_are_joined(tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / "2.3.0"
    rescaled, changed = str(tmp_path / "rescaled"), str(tmp_path / "changed")
    statetool.rescale(str(folder), rescaled, 96, parallelism=3, uids=["5_delta-join"], format="canonical")
    rows = statetool.load(rescaled)["5_delta-join"].to_arrow(DELTA_JOIN_QUEUE, keys=[("süd",)]).to_pylist()
    (at,) = (r["list_index"] for r in rows if r["value"]["f0"]["value"]["f0"] == 5)
    statetool.set_values(rescaled, changed, "5_delta-join", ("süd",), {f"{DELTA_JOIN_QUEUE}[{at}].f0.value.f2": 55})
    waiting = statetool.load(changed)["5_delta-join"].to_arrow("waiting", keys=[("süd",)]).to_pylist()
    assert [r["left"]["f2"] for r in waiting if r["left"]] == [20, 55]
    machine = delta_machine("2.3.0", tmp_path)
    try:
        request = {
            "snapshot": changed,
            "parallelism": 3,
            "max_parallelism": 96,
            "backend": "hashmap",
            "answering": True,
        }
        answer = run_job(machine, 5, **request)
    finally:
        machine.close()
    assert answer["sent"] == [], "the sources have sent all rows before"
    # The row of the shop waited as well: for it, Flink looks up the orders outside, where the fifth is as it was.
    expected = ["1 north 10 Oslo", "2 süd 20 Bern", "3 north 30 Oslo", "5 süd 50 Bern", "5 süd 55 Bern"]
    assert answer["joined"] == expected
