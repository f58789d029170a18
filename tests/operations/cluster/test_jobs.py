"""URLs of jobs as snapshots, with recorded answers of Flink 1.20 and 2.3."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import ConnectionFailedError, FormatError, OptionError, SnapshotNotFoundError, UnknownNameError
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster import snapshots
from statetool.operations.cluster.paths import is_job, is_server, resolve_path
from tests.support.corpora.archives import HERE, unpack
from tests.support.servers.flink_rest import RELEASES, FlinkRest, flink_rest
from tests.support.zoo import ZOO


@pytest.fixture(params=RELEASES)
def rest(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkRest]:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    with flink_rest(request.param, tmp_path) as running:
        yield running


def newest(rest: FlinkRest) -> Path:
    """Create the newest checkpoint of the orders, which is the demo's savepoint."""
    path = rest.checkpoint_path("orders", rest.history("orders")["latest"]["completed"]["id"])
    shutil.copytree(ZOO, path)
    return path


def test_a_job_by_name_id_and_prefix(rest: FlinkRest) -> None:
    path, number = newest(rest), rest.jobs["orders"]
    base = rest.host
    urls = [f"flink://{base}/{job}" for job in ("orders", number, number[:4], number[:9].upper())]
    urls += [f"http://{base}/orders", f"http://{base}/#/job/running/{number}/overview", f"http://{base}/jobs/{number}"]
    for url in urls:
        assert resolve_path(url) == f"file:{path}"
        assert is_job(url)
    savepoint = statetool.load(urls[0])
    assert savepoint.path == f"file:{path}"
    assert savepoint.operators.keys() == statetool.load(ZOO).operators.keys()


def test_a_job_is_asked_once_per_load(rest: FlinkRest) -> None:
    newest(rest)
    savepoint = statetool.load(f"flink://{rest.host}/orders")
    asked = len(rest.requests)
    assert asked == 2
    assert savepoint["timers"].to_arrow().num_rows
    assert len(rest.requests) == asked


def test_operators_without_names_get_those_of_the_job_graph(rest: FlinkRest) -> None:
    path = rest.checkpoint_path("orders", rest.history("orders")["latest"]["completed"]["id"])
    unpack(HERE / "corpus" / "connectors.tar.xz", rest.folder / "corpus")
    shutil.copytree(rest.folder / "corpus" / "v1_20_5-flink-kafka-consumer" / "snapshot", path)
    ids = [operator.operator_id for operator in statetool.load(str(path)).operators.values()]
    ids.reverse()  # the stateful one first
    tree = rest.answers[f"GET /jobs/{rest.jobs['orders']}"][-1][1]
    vertices = {ids[0]: "GroupAggregate[4] -> Calc[5]", "0" * 32: "stateless"}
    tree["vertices"] = [{"id": number, "name": name, "parallelism": 1} for number, name in vertices.items()]
    url = f"flink://{rest.host}/orders"
    savepoint = statetool.load(url)
    names = {operator.operator_id: operator.inventory.label.name for operator in savepoint.operators.values()}
    assert names == {**dict.fromkeys(ids, ""), ids[0]: "GroupAggregate[4]"}
    assert savepoint["GroupAggregate[4]"].operator_id == ids[0]
    assert savepoint.with_uids([])["GroupAggregate[4]"].operator_id == ids[0]
    for command in ("info", "states", "check"):
        more = ("--flink", "1.20") if command == "check" else ()
        done = CliRunner().invoke(cli, [command, url, *more, "--json"])
        assert "GroupAggregate[4]" in done.stdout, done.output
    # Without the JobManager's answer, they have no names.
    del rest.answers[f"GET /jobs/{rest.jobs['orders']}"]
    assert {operator.inventory.label.name for operator in statetool.load(url).operators.values()} == {""}


def test_chosen_checkpoints_and_savepoints(rest: FlinkRest) -> None:
    path = newest(rest)
    history = rest.history("orders")
    savepoint = history["latest"]["savepoint"]
    place = rest.folder / "savepoints" / savepoint["external_path"].rpartition("/")[2]
    shutil.copytree(ZOO, place)
    base = f"flink://{rest.host}/orders"
    number = path.name.removeprefix("chk-")
    assert resolve_path(f"{base}?checkpoint={number}") == resolve_path(f"{base}?checkpoint=latest") == f"file:{path}"
    for chosen in (f"savepoint={savepoint['id']}", "savepoint=latest"):
        assert resolve_path(f"{base}?{chosen}") == f"file:{place}"
    with pytest.raises(UnknownNameError, match=f"which is a savepoint: use \\?savepoint={savepoint['id']}"):
        resolve_path(f"{base}?checkpoint={savepoint['id']}")
    deleted = next(c["id"] for c in history["history"] if c.get("discarded"))
    with pytest.raises(
        SnapshotNotFoundError, match=f"checkpoint {deleted} of 'orders' .* was deleted by Flink"
    ) as gone:
        resolve_path(f"{base}?checkpoint={deleted}")
    assert f"checkpoint {number}" in gone.value.hint
    assert "execution.checkpointing.num-retained" in gone.value.hint
    with pytest.raises(
        UnknownNameError, match=f"does not know checkpoint 99999 .*it knows .*checkpoint {number}.*num-retained"
    ):
        resolve_path(f"{base}?checkpoint=99999")
    running = next(c["id"] for c in history["history"] if c["status"] == "IN_PROGRESS")
    with pytest.raises(SnapshotNotFoundError, match=f"checkpoint {running} .* is not complete"):
        resolve_path(f"{base}?checkpoint={running}")


def test_names_that_match_no_or_several_jobs(rest: FlinkRest) -> None:
    base = f"flink://{rest.host}"
    with pytest.raises(
        UnknownNameError,
        match=r"no job 'order'. did you mean orders\? its jobs are: .*twice.*\(run: statetool jobs http.*\)",
    ) as one:
        statetool.load(f"{base}/order")
    assert all(name in str(one.value) for name in ("orders", "finished", "declining"))
    with pytest.raises(OptionError, match=r"2 jobs of .* match 'twice'") as two:
        statetool.load(f"{base}/twice")
    assert rest.jobs["twice"] in str(two.value)
    assert rest.jobs["other"] in str(two.value)
    (example,) = re.findall(r"as in (http\S+)", str(two.value))
    with pytest.raises(
        SnapshotNotFoundError, match="'twice'"
    ):  # the URL names one of them, which has no checkpoint here
        statetool.load(example)
    with pytest.raises(OptionError, match="has several jobs: "):
        statetool.load(base)
    (overview,) = rest.answers["GET /jobs/overview"]
    overview[1]["jobs"] = [j for j in overview[1]["jobs"] if j["jid"] in (rest.jobs["orders"], rest.jobs["finished"])]
    newest(rest)
    assert statetool.load(base).checkpoint_id == statetool.load(ZOO).checkpoint_id
    overview[1]["jobs"] = []
    with pytest.raises(UnknownNameError, match="has no jobs"):
        statetool.load(base)


def test_of_jobs_with_one_name_the_one_that_runs_is_meant(rest: FlinkRest) -> None:
    path = newest(rest)
    for job in rest.answers["GET /jobs/overview"][0][1]["jobs"]:
        if job["jid"] == rest.jobs["canceled"]:
            job["name"] = "orders"
    assert resolve_path(f"flink://{rest.host}/orders") == f"file:{path}"


def test_jobs_without_a_completed_checkpoint(rest: FlinkRest) -> None:
    with pytest.raises(
        SnapshotNotFoundError, match=r"no completed checkpoint \(0 in progress, 0 failed\)\. run: statetool checkpoint"
    ):
        statetool.load(f"flink://{rest.host}/{rest.jobs['twice']}")
    with pytest.raises(
        SnapshotNotFoundError, match=r"[57] failed; the last failure: (FailoverRegion|Checkpoint Coord)"
    ):
        statetool.load(f"flink://{rest.host}/declining")
    with pytest.raises(SnapshotNotFoundError, match="no completed savepoint"):
        statetool.load(f"flink://{rest.host}/declining?savepoint=latest")
    with pytest.raises(SnapshotNotFoundError) as ended:
        statetool.load(f"flink://{rest.host}/finished")
    assert "statetool checkpoint" not in str(ended.value)


def test_a_restored_job_names_the_snapshot_that_it_began_with(rest: FlinkRest) -> None:
    job = f"GET /jobs/{rest.jobs['twice']}/checkpoints"
    rest.answers[job][0][1]["latest"]["restored"] = {"id": 3, "external_path": "s3://bucket/savepoint-1"}
    with pytest.raises(SnapshotNotFoundError, match="open s3://bucket/savepoint-1, from which it was restored"):
        statetool.load(f"flink://{rest.host}/{rest.jobs['twice']}")


def test_checkpoints_in_memory_have_no_path(rest: FlinkRest) -> None:
    for checkpoint in (rest.history("orders")["latest"]["completed"], *rest.history("orders")["history"]):
        checkpoint["external_path"] = "<checkpoint-not-externally-addressable>"
    with pytest.raises(SnapshotNotFoundError, match="in the JobManager's memory"):
        statetool.load(f"flink://{rest.host}/orders")


def test_a_server_cannot_lead_to_another_server(rest: FlinkRest) -> None:
    for checkpoint in rest.history("orders")["history"]:
        checkpoint["external_path"] = "http://127.0.0.1:1/orders"
    with pytest.raises(FormatError, match="which statetool does not open"):
        statetool.load(f"flink://{rest.host}/orders")
    with pytest.raises(FormatError, match="which is not a path of files"):
        statetool.load(f"flink://{rest.host}/orders", rebase={"/old": "http://127.0.0.1:1/x"})


def test_a_path_of_another_machine(rest: FlinkRest) -> None:
    path = newest(rest)
    path.parent.rename(rest.folder / "mounted")
    with pytest.raises(SnapshotNotFoundError, match=f"chk-.* which {rest.url} names, does not exist here.*--rebase"):
        statetool.load(f"flink://{rest.host}/orders")
    savepoint = statetool.load(f"flink://{rest.host}/orders", rebase={f"file:{path.parent}": f"{rest.folder}/mounted"})
    assert savepoint.path == f"{rest.folder}/mounted/{path.name}"


@pytest.fixture
def waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for another checkpoint for as long as a busy machine needs to ask for it."""
    monkeypatch.setattr(snapshots, "_PATIENCE_S", 600.0)


@pytest.mark.usefixtures("waits_longer")
def test_a_checkpoint_that_was_deleted_meanwhile_is_replaced_by_the_next(rest: FlinkRest) -> None:
    name = f"GET /jobs/{rest.jobs['orders']}/checkpoints"
    path = newest(rest)
    ((status, after),) = rest.answers[name]
    before = json.loads(json.dumps(after).replace(path.name, "chk-0"))
    rest.answers[name].insert(0, [status, before])
    assert resolve_path(f"flink://{rest.host}/orders") == f"file:{path}"


@pytest.mark.usefixtures("waits_longer")
def test_the_server_names_a_deleted_checkpoint_for_a_while(rest: FlinkRest) -> None:
    name = f"GET /jobs/{rest.jobs['orders']}/checkpoints"
    path = newest(rest)
    ((status, after),) = rest.answers[name]
    before = json.loads(json.dumps(after).replace('"discarded": false', '"discarded": true'))
    rest.answers[name][:0] = [[status, before], [status, before]]
    assert resolve_path(f"flink://{rest.host}/orders") == f"file:{path}"


def test_a_job_that_was_stopped_does_not_show_an_older_checkpoint(tmp_path: Path) -> None:
    with flink_rest("2.3", tmp_path, part="history") as rest:
        path, savepoint = newest(rest), rest.history("orders")["latest"]["savepoint"]
        place = rest.folder / "savepoints" / savepoint["external_path"].rpartition("/")[2]
        shutil.copytree(ZOO, place)
        base = f"flink://{rest.host}/orders"
        with pytest.raises(SnapshotNotFoundError, match=f"ended with savepoint {savepoint['id']}, newer than"):
            statetool.load(base)
        assert resolve_path(f"{base}?savepoint=latest") == f"file:{place}"
        assert resolve_path(f"{base}?checkpoint=latest") == f"file:{path}"
        # The JobManager's history of such a job never names the path of that savepoint.
        history = rest.history("orders")
        history["latest"]["savepoint"] = None
        (stopping,) = (c for c in history["history"] if c["id"] == savepoint["id"])
        stopping["status"] = "IN_PROGRESS"
        for url in (base, f"{base}?savepoint=latest"):
            with pytest.raises(SnapshotNotFoundError, match=f"savepoint {savepoint['id']}"):
                statetool.load(url)


def test_the_history_server(tmp_path: Path) -> None:
    for release in RELEASES:
        with flink_rest(release, tmp_path / release, part="history") as rest:
            path = rest.checkpoint_path("canceled", rest.history("canceled")["latest"]["completed"]["id"])
            shutil.copytree(ZOO, path)
            assert resolve_path(f"{rest.url}/#/job/{rest.jobs['canceled']}/overview") == f"file:{path}"


def test_a_web_server_with_a_snapshot_is_not_a_job(rest: FlinkRest) -> None:
    rest.first = lambda method, path, headers: (404, b"<html>", {})
    assert resolve_path(f"{rest.url}/savepoint-1") == f"{rest.url}/savepoint-1"
    assert not is_job(f"{rest.url}/savepoint-1")
    with pytest.raises(ConnectionFailedError, match="is not Flink's REST API"):
        resolve_path(f"flink://{rest.host}/savepoint-1")
    assert is_server(rest.url)
    assert not is_server(ZOO)


def test_unexpected_answers(rest: FlinkRest) -> None:
    rest.answers[f"GET /jobs/{rest.jobs['orders']}/checkpoints"] = [[200, {"counts": {}, "latest": {}, "history": []}]]
    with pytest.raises(statetool.StatetoolError, match="an unexpected answer of Flink's REST API"):
        statetool.load(f"flink://{rest.host}/orders")
    rest.answers["GET /jobs/overview"] = [[200, {"jobs": [{"jid": "1"}]}]]
    with pytest.raises(statetool.StatetoolError, match="an unexpected answer of Flink's REST API"):
        statetool.load(f"flink://{rest.host}/orders")


def test_checkpointing_is_not_enabled(rest: FlinkRest) -> None:
    errors = {"errors": ["org.apache.flink.runtime.rest.handler.RestHandlerException: Checkpointing is not enabled."]}
    rest.answers[f"GET /jobs/{rest.jobs['orders']}/checkpoints"] = [[404, errors]]
    with pytest.raises(SnapshotNotFoundError, match="no completed checkpoint"):
        statetool.load(f"flink://{rest.host}/orders")


def test_a_catalog_and_a_comparison_of_a_job(rest: FlinkRest) -> None:
    newest(rest)
    url = f"flink://{rest.host}/orders"
    assert len(statetool.catalog(None, url)) == 1
    with pytest.raises(OptionError, match="names one snapshot"):
        statetool.catalog(None, f"{url}?checkpoint=latest")
    assert statetool.load(ZOO).diff(url).equal
    assert statetool.check(ZOO, url).reason == statetool.check(ZOO, ZOO).reason
