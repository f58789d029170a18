"""The fixture that samples snapshots for tests of jobs."""

from __future__ import annotations

from collections.abc import Callable

import statetool
from statetool.demo import SAVEPOINT
from statetool.testing import sample as sample


def test_equal_calls_share_a_sample(sample: Callable[..., statetool.Savepoint]) -> None:
    small = sample(SAVEPOINT, keys=2, operators=["timers"])
    assert small["timers"].to_arrow().num_rows == 2
    assert sample(SAVEPOINT, operators=["timers"], keys=2) is small
    assert sample(SAVEPOINT)["timers"].to_arrow().num_rows == 14
