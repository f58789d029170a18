"""All pairs of SQL queries that real Flink judges."""

from __future__ import annotations

from typing import Final

from tests.support.flink.sql_join_queries import JOIN_PAIRS, POSITION_PAIRS
from tests.support.flink.sql_queries import FIRST_PAIRS, Pair
from tests.support.flink.sql_rank_queries import RANK_PAIRS

PAIRS: Final[tuple[Pair, ...]] = (*FIRST_PAIRS, *JOIN_PAIRS, *RANK_PAIRS, *POSITION_PAIRS)
