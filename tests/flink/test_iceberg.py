"""A job that writes with all sinks of Iceberg: rewritten savepoints are restored, and each row is in its table once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.connectors.commands import run
from tests.support.connectors.lake_cases import ALL_SINKS, all_sinks_machine
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
#: Uid of the committer of each table.
COMMITTERS = {
    "plain": "{}-plain-committer",
    "v2": "Sink Committer: {}-v2",
    "forgotten": "Sink Committer: {}-forgotten",
    "even": "Sink Committer: {}-dynamic--sink",
    "odd": "Sink Committer: {}-dynamic--sink",
}


@pytest.fixture(scope="module", params=ALL_SINKS)
def iceberg_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = all_sinks_machine(request.param, tmp_path_factory.mktemp("iceberg"))
    yield machine
    machine.close()


def uids(prefix: str) -> list[str]:
    return [*dict.fromkeys(uid.format(prefix) for uid in COMMITTERS.values())]


def test_each_row_is_committed_once(iceberg_flink: FlinkMachine, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"

    def job(uid: str, **more: Any) -> dict[str, Any]:
        return iceberg_flink.call("class", **{"class": "IcebergJob"}, warehouse=str(warehouse), uid=uid, **more)

    def outcomes(path: str, prefix: str, table: str, code: int = 0) -> list[str]:
        at = ("--uid", COMMITTERS[table].format(prefix), "--iceberg", warehouse / "shop" / table)
        return [r["outcome"] for r in run("sinks", "check", path, *at, code=code)]

    first = job("a", parallelism=2, savepoint=str(tmp_path / "taken"))
    taken = statetool.load(first["savepoint"]).with_uids(uids("a"))
    rewritten, lost = rewrite(taken, tmp_path)
    for table in COMMITTERS:
        assert outcomes(taken.path, "a", table) == ["will_commit"]
        assert outcomes(rewritten, "b", table) == ([] if table == "forgotten" else ["will_commit"])

    rows = job("b", parallelism=1, snapshot=rewritten)["rows"]
    for table, start, step in (("plain", 0, 1), ("v2", 0, 1), ("even", 0, 2), ("odd", 1, 2)):
        assert rows[table] == [*range(start, start + step * len(rows[table]), step)]
        assert len(rows[table]) > len(first["rows"][table]) > 0
        assert outcomes(rewritten, "b", table) == ["is_committed"]
    # What was forgotten is lost, and nothing else.
    begin = len(first["rows"]["forgotten"])
    assert lost > 0
    assert rows["forgotten"] == [n for n in rows["v2"] if not begin <= n < begin + lost]
    assert rows["forgotten"][-1] == rows["v2"][-1]

    # The sink before Sink V2 does not find commits under another uid. Their manifests are deleted, so a restore fails.
    assert outcomes(taken.path, "a", "v2") == ["is_committed"]
    assert outcomes(taken.path, "a", "plain", code=1) == ["may_double"]
    with pytest.raises(FlinkRefusedError, match=r"metadata/[0-9a-f-]+\.avro"):
        job("a", parallelism=1, snapshot=taken.path)


def rewrite(taken: statetool.Savepoint, tmp_path: Path) -> tuple[str, int]:
    """Give the operators another max parallelism and the committers other uids, and drop one commit. Return the number of its rows."""
    # Iceberg sets 1 for operators that are never parallel, and Flink restores them with no other number.
    parallel = [uid for uid, operator in taken.operators.items() if operator.max_parallelism > 1]
    assert COMMITTERS["v2"].format("a") in parallel
    statetool.rescale(taken, str(tmp_path / "rescaled"), dict.fromkeys(parallel, 64))
    changes = dict(zip(uids("a"), uids("b"), strict=True))
    statetool.change_uids(str(tmp_path / "rescaled"), str(tmp_path / "uids"), changes, uids=uids("a"))
    renamed = statetool.load(str(tmp_path / "uids")).with_uids(uids("b"))
    sink = COMMITTERS["forgotten"].format("b")
    (commit,) = renamed[sink].transactions().to_pylist()
    statetool.drop_transactions(renamed, str(tmp_path / "forgotten"), sink, [commit["name"]])
    (manifests,) = json.loads(commit["details"])["manifests"]
    return str(tmp_path / "forgotten"), manifests["data"]["added_rows_count"]
