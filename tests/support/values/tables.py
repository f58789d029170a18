"""Tables from which tests write savepoints."""

from __future__ import annotations

import pyarrow as pa

MONEY = pa.map_(pa.string(), pa.float64())


def accounts() -> pa.Table:
    return pa.table(
        {
            "id": [1, 2, 3, -5],
            "count": [10, None, 30, 7],
            "name": ["a", None, "ü\U0001f600\u4e00", ""],
            "tags": [["x", "y"], [], None, ["z"]],
            "balances": pa.array([[("e", 1.5), ("f", None)], None, [], [("g", 2.0)]], type=MONEY),
        }
    )
