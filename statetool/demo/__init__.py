"""Two real savepoints of a small shop (Flink 2.3.0, RocksDB backend, canonical), and a tour of the first.

The job keeps orders, baskets, sessions, sales per day and reminders of a dozen customers. Amounts are in cents, times in UTC.
"""

from __future__ import annotations

import os

_FOLDER = os.path.dirname(__file__)
#: The shop on 2 March 2026 at 18:00.
SAVEPOINT = os.path.join(_FOLDER, "savepoint")
#: The same job a day later. Its Kafka sink has uncommitted transactions.
NEXT_DAY = os.path.join(_FOLDER, "next-day")
