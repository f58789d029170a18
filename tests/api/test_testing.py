"""The fixture that samples snapshots for tests of jobs."""

from __future__ import annotations

from collections.abc import Callable

import statetool
from statetool.testing import sample as sample
from tests.support.zoo import ZOO


def test_equal_calls_share_a_sample(sample: Callable[..., statetool.Savepoint]) -> None:
    small = sample(ZOO, keys=2, operators=["timers"])
    assert small["timers"].to_arrow().num_rows == 2
    assert sample(ZOO, operators=["timers"], keys=2) is small
    assert sample(ZOO)["timers"].to_arrow().num_rows == 14
