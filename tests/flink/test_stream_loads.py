"""Jobs with the sinks of Doris and StarRocks: a restored rewritten savepoint commits each transaction once, without those that were forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.connectors.commands import run
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.servers.stream_loads import Doris, StarRocks, StreamLoads, run_server
from tools.maven import maven_jars

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
#: Job, server, and connector of the writers' state, by set of jars. StarRocks' writers have an empty state.
DATABASES: dict[str, tuple[str, type[StreamLoads], str]] = {
    "doris": ("DorisJob", Doris, "doris-sink"),
    "starrocks": ("StarRocksJob", StarRocks, "unknown"),
}


@pytest.fixture(scope="module", params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def loading_flink(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    jobs = HERE / "support" / "flink"
    sources = (jobs / "stream_loads", jobs / f"{database}_jobs")
    machine = FlinkMachine("1.20.5", tmp_path_factory.mktemp(database), sources, jars=maven_jars(database))
    yield machine
    machine.close()


@pytest.mark.parametrize(("forgotten", "parallelism"), [(0, 3), (1, 1)])
def test_each_transaction_is_committed_once(
    forgotten: int, parallelism: int, database: str, loading_flink: FlinkMachine, tmp_path: Path
) -> None:
    name, server, of_writers = DATABASES[database]
    loads = server()

    def job(uid: str, **more: Any) -> dict[str, Any]:
        return loading_flink.call("class", **{"class": name}, server=loads.address, uid=uid, **more)

    with run_server(loads):
        taken = job("out", parallelism=2, commits=2, savepoint=str(tmp_path / "taken"))["savepoint"]
        committed, pending = loads.names("committed"), loads.names("prepared")
        assert (len(committed), len(pending)) == (2, 2)

        rescaled, renamed, smaller = (str(tmp_path / folder) for folder in ("rescaled", "renamed", "smaller"))
        before, after = (["out", "Sink Committer: out"], ["to", "Sink Committer: to"])
        statetool.rescale(statetool.load(taken).with_uids(before), rescaled, 64)
        statetool.change_uids(rescaled, renamed, dict(zip(before, after, strict=True)), uids=before)
        listed = run("sinks", "list", renamed, *(word for uid in after for word in ("--name-uid", uid)))
        assert {(s["connector"], s["operator"], s["role"], s["undecoded"]) for s in listed} == {
            (of_writers, "to", "writer", 0),
            (f"{database}-sink", after[1], "committer", 0),
        }
        assert {r["name"] for r in run("sinks", "pending", renamed)} == pending

        lost, path = set(sorted(pending)[:forgotten]), renamed
        if lost:
            statetool.drop_transactions(renamed, smaller, after[1], lost, uids=after)
            path = smaller
        commits = len(committed | pending) - len(lost) + parallelism
        job("to", parallelism=parallelism, commits=commits, snapshot=path)
        assert loads.names("committed") >= (committed | pending) - lost
        assert loads.names("prepared") == lost
        assert loads.commits == dict.fromkeys(loads.names("committed"), 1)
        # What was forgotten is lost, and nothing else.
        numbers = sorted(map(int, loads.rows(loads.names("committed") | lost)))
    assert numbers == [*range(len(numbers))]
    assert len(numbers) > 150


@pytest.mark.parametrize("database", ["starrocks"], indirect=True)
def test_the_sink_of_starrocks_cannot_restore_its_labels(loading_flink: FlinkMachine, tmp_path: Path) -> None:
    loads = StarRocks()
    request = {"class": "StarRocksJob", "uid": "out", "parallelism": 2, "labels": "true"}
    with run_server(loads):
        request["server"] = loads.address
        taken = loading_flink.call("class", **request, commits=2, savepoint=str(tmp_path / "taken"))["savepoint"]
        listed = run("sinks", "list", taken)
        assert {(s["connector"], s["role"], s["undecoded"]) for s in listed} == {
            ("starrocks-sink", "writer", 0),
            ("starrocks-sink", "committer", 0),
        }
        # The savepoint is that of Flink.
        with pytest.raises(FlinkRefusedError, match="StarrocksSnapshotState cannot be cast to class"):
            loading_flink.call("class", **request, commits=7, snapshot=taken)
