"""Tables of sources and sinks as DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import statetool


def test_tables_of_sources_and_sinks_are_data_frames(spark: Any, connector_cases: Path, tmp_path: Path) -> None:
    savepoint = statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot"), spark=spark)
    splits = savepoint["orders"].source_splits()
    behind = splits.where("source = 'orders'").selectExpr("sum(CAST(position AS BIGINT)) AS total").collect()
    assert behind[0].total == 1042 + 17 + 377
    assert savepoint["orders"].enumerator().where("status = 'unassigned'").count() == 2
    assert [r.held for r in savepoint.sources().collect()] == [8]
    assert savepoint.source_checks().where("is_problem").count() == 0
    sinks = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"), spark=spark)
    assert sinks["Sink Committer: out"].transactions().where("checkpoint_id = 1").count() == 2
    assert {(r.role, r.pending) for r in sinks.sinks().collect()} == {("writer", 0), ("committer", 4)}
    # Written on Spark as well: there is only one pipeline.
    statetool.edit_source(savepoint, str(tmp_path / "new"), "orders", positions={"orders:0": 1}, spark=spark)
    new = statetool.load(str(tmp_path / "new"))
    assert {r.split_id: r.position for r in new.connector_rows("source_splits")}["orders-0"] == "1"
