"""Standalone clusters of Flink 1.20 and 2.3: jobs by name, prefix and id, savepoints, jobs that end and fail, the HistoryServer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError, UnknownNameError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.operations.advice.live_job import LiveJob
from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.flink.versions import flink_versions, release_of
from tests.support.metrics import Metrics
from tests.support.spark.data_sources import data_sources
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
#: The oldest release whose REST API is supported, and those that all tests run with.
VERSIONS = (*DEFAULT_VERSIONS, "1.13.6")
#: Checkpoints that jobs keep: each for five seconds, in which a busy machine also reads one.
RETAINED = 10
#: Keys of each job.
KEYS = 500
OFTEN = {
    "execution_checkpointing_interval": "500 ms",
    "execution_checkpointing_externalized__checkpoint__retention": "RETAIN_ON_CANCELLATION",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test once per release."""
    if "cluster" in metafunc.fixturenames:
        metafunc.parametrize("cluster", flink_versions(metafunc, VERSIONS), indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(request.param, tmp_path_factory.mktemp("cluster"), retained=RETAINED) as running:
        yield running


@pytest.fixture(scope="module")
def orders(cluster: StandaloneCluster) -> str:
    """Return the id of a job that checkpoints often, and whose checkpoints have all keys."""
    job = cluster.submit("orders", **OFTEN)
    wait_for_all_keys(cluster, job)
    return job


def wait_for_all_keys(cluster: StandaloneCluster, job: str) -> None:
    """Wait for a checkpoint with all keys. A job that starts on a busy machine takes others before."""
    cluster.wait_until(job, "RUNNING")
    cluster.wait("all keys", lambda: _key_count(f"flink://127.0.0.1:{cluster.port}/{job}") == KEYS)


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    return done


def counts(path: str) -> dict[int, int]:
    rows = statetool.load(path)["counts"].to_arrow().to_pylist()
    return {row["key"]: row["count"] for row in rows}


def _key_count(path: str) -> int:
    try:
        return len(counts(path))
    except StatetoolError:  # no checkpoint yet, or it was deleted
        return 0


def test_no_job(tmp_path: Path, cluster: StandaloneCluster) -> None:
    with pytest.raises(UnknownNameError, match="no job"):
        statetool.load(f"flink://127.0.0.1:{cluster.port}/nothing")


def test_a_job_by_name_prefix_id_and_web_page(cluster: StandaloneCluster, orders: str) -> None:
    base = f"flink://127.0.0.1:{cluster.port}"
    for url in (f"{base}/orders", f"{base}/{orders[:6]}", f"{base}/{orders}", f"{cluster.url}/orders"):
        savepoint = statetool.load(url)
        assert f"{orders}/chk-" in savepoint.path
        assert savepoint["counts"].states.keys() == {"count"}
    assert statetool.load(f"{cluster.url}/#/job/running/{orders}/overview").checkpoint_id is not None


def test_commands_read_a_job_that_deletes_its_checkpoints(cluster: StandaloneCluster, orders: str) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    first, reads = cluster.wait_for_checkpoint(orders), 0
    while reads < 20 or cluster.wait_for_checkpoint(orders) <= first + RETAINED:
        assert len(run("head", url, "counts", "keyed_state", "-n", "3").stdout.splitlines()) == 4
        reads += 1


def test_two_jobs_of_one_name(cluster: StandaloneCluster) -> None:
    jobs = [cluster.submit("twice"), cluster.submit("twice")]
    for job in jobs:
        cluster.wait_until(job, "RUNNING")
    url = f"flink://127.0.0.1:{cluster.port}/twice"
    with pytest.raises(OptionError, match="2 jobs") as several:
        _opened(url)
    assert all(job in str(several.value) for job in jobs)
    cluster.cancel(jobs[0])
    with pytest.raises(SnapshotNotFoundError, match="no completed checkpoint"):
        statetool.load(url)
    if release_of(cluster.version) < (1, 17):
        assert "needs 1.17. run: statetool savepoint" in run("checkpoint", url, code=3).stderr
        cluster.cancel(jobs[1])
        return
    path = run("checkpoint", url).stdout.strip()
    assert f"{jobs[1]}/chk-1" in path
    cluster.wait("the checkpoint", lambda: _opened(url) == path)
    cluster.cancel(jobs[1])


@pytest.mark.parametrize("format", ["canonical", "native"])
def test_a_savepoint_is_taken_and_opened(cluster: StandaloneCluster, orders: str, tmp_path: Path, format: str) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    dry = json.loads(run("savepoint", url, "--to", str(tmp_path), "--dry-run", "--json").stdout)
    assert dry["request"] == f"POST {cluster.url}/jobs/{orders}/savepoints"
    assert list(tmp_path.iterdir()) == []
    request = ["savepoint", url, "--to", tmp_path.as_uri()]
    if release_of(cluster.version) >= (1, 15):
        request += ["--format", format]
    else:  # it has one format
        assert "needs 1.15. remove --format" in run(*request, "--format", format, code=3).stderr
    shown = json.loads(run(*request, "--open", "--json").stdout)["operators"]
    assert "Counts" in {operator["name"] for operator in shown}
    path = run(*request).stdout.strip()
    before = counts(path)
    assert len(before) == 500
    assert cluster.state(orders) == "RUNNING"
    # Flink's answers are up to three seconds old.
    cluster.wait("the savepoint", lambda: _opened(f"{url}?savepoint=latest") == path)
    newest = statetool.load(f"{url}?savepoint=latest")
    assert counts(f"{url}?savepoint={newest.checkpoint_id}") == before
    cluster.wait("a later checkpoint", lambda: statetool.load(url).checkpoint_id > newest.checkpoint_id)
    after = counts(url)
    assert all(after[key] >= before[key] for key in before)
    assert after != before


def test_a_job_is_stopped_with_a_savepoint_that_it_restores(cluster: StandaloneCluster, tmp_path: Path) -> None:
    job = cluster.submit("stopped", **OFTEN)
    wait_for_all_keys(cluster, job)
    url = f"flink://127.0.0.1:{cluster.port}/stopped"
    path = run("savepoint", url, "--to", tmp_path.as_uri(), "--stop").stdout.strip()
    cluster.wait_until(job, "FINISHED")
    assert len(counts(path)) == 500
    with pytest.raises(SnapshotNotFoundError):  # checkpoints are deleted, or older than the savepoint
        statetool.load(url)
    assert "has ended" in run("savepoint", url, "--to", tmp_path.as_uri(), code=3).stderr
    again = cluster.submit("restored", execution_state__recovery_path=path, execution_savepoint_path=path)
    cluster.wait_until(again, "RUNNING")
    with pytest.raises(SnapshotNotFoundError, match=f"open .*{Path(path).name}, from which it was restored"):
        statetool.load(f"flink://127.0.0.1:{cluster.port}/restored")
    cluster.cancel(again)


def test_jobs_that_finish_fail_and_decline_checkpoints(cluster: StandaloneCluster, orders: str) -> None:
    finished = cluster.submit("finished", "finish")
    failed = cluster.submit("failed", "fail", restart__strategy_type="none", restart__strategy="none")
    declining = cluster.submit("declining", "decline", **OFTEN)
    try:
        cluster.wait_until(finished, "FINISHED")
        cluster.wait_until(failed, "FAILED")
        # The number of failed checkpoints also has those that failed before they began. Flink remembers no reason for them.
        cluster.wait("a failed checkpoint", lambda: cluster.history(declining)["latest"]["failed"])
        tree = json.loads(run("jobs", cluster.url, "--json").stdout)
        states = {job["job_id"]: job["state"] for job in tree["jobs"]}
        assert (states[finished], states[failed], states[orders]) == ("FINISHED", "FAILED", "RUNNING")
        assert {c["job_name"] for c in tree["failed"] if c["job_id"] == declining} == {"declining"}
        assert all(c["reason"] for c in tree["failed"])
        row = next(job for job in tree["jobs"] if job["job_id"] == orders)
        assert row["checkpoint_path"].endswith(f"{orders}/chk-{row['checkpoint_id']}")
        for name in ("finished", "failed", "declining"):
            with pytest.raises(SnapshotNotFoundError, match="no completed checkpoint"):
                statetool.load(f"flink://127.0.0.1:{cluster.port}/{name}")
    finally:  # later tests ask for all running jobs, and expect that each has a checkpoint
        cluster.cancel(declining)


def test_the_history_server(cluster: StandaloneCluster) -> None:
    job = cluster.submit("archived", **OFTEN)
    cluster.wait_until(job, "RUNNING")
    cluster.wait_for_checkpoint(job)
    cluster.cancel(job)
    url = cluster.start_history_server(1)
    path = cluster.wait("the job", lambda: _opened(f"{url}/#/job/{job}/overview"))
    assert f"{job}/chk-" in path
    tree = json.loads(run("jobs", url, "--json").stdout)
    (row,) = (row for row in tree["jobs"] if row["name"] == "archived")
    assert (row["state"], row["checkpoint_path"]) == ("CANCELED", path)


def test_metrics_follow_a_job(cluster: StandaloneCluster, orders: str) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    before = Metrics(run("metrics", url, "--read", "keyed", "--name-uid", "counts").stdout)
    labels = {"job_id": orders, "job_name": "orders"}
    assert before.value("job_readable", **labels) == 1
    keyed = {**labels, "operator": "counts", "scope": "keyed", "state": "count"}
    assert before.value("state_entries", **keyed) == before.value("state_keys", **keyed) == 500
    assert before.value("operator_max_parallelism", operator="counts") == 16
    read = statetool.load(url)
    cluster.wait("a later checkpoint", lambda: statetool.load(url).checkpoint_id > read.checkpoint_id)
    after = Metrics(run("metrics", url).stdout)
    assert after.value("checkpoint_id") > before.value("checkpoint_id")
    assert after.value("checkpoint_timestamp_seconds") > before.value("checkpoint_timestamp_seconds")
    # All running jobs of the cluster, and the same by their directory.
    jobs = Metrics(run("metrics", cluster.url).stdout).values("checkpoint_id", "job_id")
    assert (orders,) in jobs
    assert (orders,) in Metrics(run("metrics", str(cluster.checkpoints)).stdout).values("checkpoint_id", "job_id")


def test_advice_and_directories_by_url(cluster: StandaloneCluster, orders: str) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    advice = {row["topic"]: row for row in json.loads(run("advise", url, "--json").stdout)}
    assert "0.5 s" in advice["interval"]["now"]
    interval = "execution.checkpointing.interval"
    settings = LiveJob.open(url, job_needed=True).configuration().values
    assert (settings[interval], settings["rest.port"]) == ("500 ms", str(cluster.port))
    assert interval not in LiveJob.open(cluster.url, job_needed=False).configuration().values
    directory = "execution.checkpointing.dir"
    assert settings[directory].removeprefix("file:").lstrip("/") == str(cluster.checkpoints).lstrip("/")
    assert directory not in {finding.key for finding in statetool.lint(url)}
    chain = statetool.chain(url)
    assert {checkpoint.job for checkpoint in chain.checkpoints} == {orders}
    assert statetool.orphans(url) == []


@pytest.mark.since(1, 15)
def test_every_command_reads_a_job(cluster: StandaloneCluster, orders: str, tmp_path: Path) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    counts, uids = ("Counts", "keyed_state"), ("--name-uid", "counts")
    commands: tuple[tuple[tuple[str, ...], str], ...] = (
        (("info", url), f"{orders}/chk-"),
        (("ls", url), "Counts"),
        (("states", url), "count"),
        (("files", url), "Counts"),
        (("schema", url, *counts), "count"),
        (("head", url, *counts, "-n", "1"), "count"),
        (("count", url), "500"),
        (("sql", url, "SELECT count(*) AS n FROM counts_keyed_state"), "500"),
        (("stats", url), "Counts"),
        (("check", url, "--flink", "2.3"), "2 of 2 states"),
        (("check", url, url, *uids), "The job restores"),
        (("diff", url, f"{url}?checkpoint=latest", *uids), "compared states"),
        (("verify", url), "500 entries of keyed state"),
        (("chain", url), f"{orders}/chk-"),
        (("advise", url), "settings need no change"),
        (("metrics", url), "statetool_checkpoint_id"),
        (("sources", "list", url), "number-sequence-source"),
        (("sources", "show", url), "Sequence Source"),
        (("sinks", "list", url), "nothing found"),
        (("copy", url, str(tmp_path / "copy")), "metadata_file"),
        (("convert", url, str(tmp_path / "canonical")), "rewritten"),
        (("export", url, *counts, str(tmp_path / "counts.parquet")), "500"),
        (("report", url, "--target", str(tmp_path / "report.html")), "no problems found"),
    )
    for command, part in commands:
        done = CliRunner().invoke(cli, command, prog_name="statetool")
        assert done.exit_code in ((0, 1) if command[0] == "diff" else (0,)), (command, done.output)
        assert part in done.output, (command, done.output)
    page = (tmp_path / "report.html").read_text()
    assert f"{orders}/chk-" in page
    assert "Counts" in page
    assert "browse needs a terminal" in run("browse", url, code=2).stderr


def test_operators_have_the_names_of_the_job(cluster: StandaloneCluster, orders: str) -> None:
    url = f"flink://127.0.0.1:{cluster.port}/orders"
    names = {"Source: Sequence Source", "Counts", "Filter"}
    operators = json.loads(run("info", url, "--json").stdout)["operators"]
    assert {operator["name"] for operator in operators} == names
    labels = Metrics(run("metrics", cluster.url).stdout).values("operator_parallelism", "job_name", "operator_name")
    assert {name for job, name in labels if job == "orders"} == names


def test_operators_without_a_uid_have_the_names_of_the_plan(cluster: StandaloneCluster) -> None:
    expected = {
        "sql": {"Source: orders[1]", "GroupAggregate[3]", "Calc[4]", "a sink"},
        "chains": {"Source: numbers", "a -> b", "even (2)", "last, even", "nowhere", "odd", "keyed", "nothing"},
    }
    if release_of(cluster.version) < (1, 15):  # SQL operators have longer names, and the plan does not show forks
        scan = "TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[id, amount])"
        aggregate = "GroupAggregate(groupBy=[id], select=[id, SUM(amount) AS EXPR$1])"
        calc = "Calc(select=[id, EXPR$1], where=[(EXPR$1 <> 7:BIGINT)])"
        expected["sql"] = {f"Source: {scan}", aggregate, calc, "a sink"}
        chain = "Source: numbers -> a -> b -> (even (2) -> last, even -> nowhere, odd)"
        expected["chains"] = {chain, "keyed", "nothing", ""}
    for plan, names in expected.items():
        job = cluster.submit(plan, plan, "PlannedJobs", **OFTEN)
        cluster.wait_until(job, "RUNNING")
        cluster.wait_for_checkpoint(job)
        operators = statetool.load(f"flink://127.0.0.1:{cluster.port}/{plan}").operators.values()
        found = {operator.inventory.label.name for operator in operators}
        assert {"a sink" if "totals" in name else name for name in found} == names
        if plan == "sql" and release_of(cluster.version) >= (1, 15):
            assert_tables_are_named(cluster, f"flink://127.0.0.1:{cluster.port}/{plan}")
        cluster.cancel(job)


def assert_tables_are_named(cluster: StandaloneCluster, url: str) -> None:
    """Check the names of the tables in SQL, of one checkpoint and of a catalog."""
    table = "groupaggregate_3_accstate"

    def rows() -> Any:
        return json.loads(run("sql", url, f"SELECT count(*) AS n FROM {table}", "--json").stdout)[0]["n"]

    assert cluster.wait("rows of the table", rows) > 0
    catalog = statetool.catalog(None, url)
    assert table in catalog[list(catalog)[-1]].tables


def test_operators_with_a_uid_have_the_names_that_remain(cluster: StandaloneCluster) -> None:
    job = cluster.submit("uids", "uids", "PlannedJobs", **OFTEN)
    cluster.wait_until(job, "RUNNING")
    cluster.wait_for_checkpoint(job)
    savepoint = statetool.load(f"flink://127.0.0.1:{cluster.port}/uids", uids=["one-uid", "other-uid"])
    ids = {name: operator_id_for_uid(f"{name}-uid") for name in ("numbers", "slow", "keyed", "one", "other")}
    names = {label.operator_id: label.name for label in savepoint.inventory.labels}
    release, possible = release_of(cluster.version), savepoint.inventory.possible_names
    # Before 1.15, the plan has no trees. Since 2.0, the metadata stores names.
    expected = {"slow": release >= (1, 15), "one": release >= (2, 0), "other": release >= (2, 0)}
    assert {name: names[ids[name]] for name in expected} == {
        name: name if has else "" for name, has in expected.items()
    }
    if (1, 15) <= release < (2, 0):
        assert possible == {ids[name]: ("one", "other") for name in ("one", "other")}
        with pytest.raises(UnknownNameError, match=f"it is one of .*{ids['other']}"):
            savepoint["other"]
    else:
        assert possible == {}
    cluster.cancel(job)


def test_a_slow_stream_is_told_how_many_checkpoints_to_keep(cluster: StandaloneCluster, orders: str) -> None:
    streaming = pytest.importorskip("statetool.spark.source.streaming")
    options = {"path": str(cluster.checkpoints / orders), "operatorUid": "counts", "uids": "counts"}
    stream = streaming.CheckpointStream(
        streaming.CheckpointTable.of({**options, "startingCheckpoint": "latest", "failOnDataLoss": "false"})
    )
    start = stream.initialOffset()
    end = stream.latestOffset(start, None)
    newest = end["checkpoint"]
    assert stream.partitions(start, end)
    cluster.wait("more checkpoints", lambda: cluster.wait_for_checkpoint(orders) > newest + RETAINED)
    kept = f"{RETAINED}|{RETAINED + 1}"  # one may not be deleted yet
    with pytest.warns(
        UserWarning, match=rf"it keeps ({kept}) checkpoints.*set execution.checkpointing.num-retained: \d"
    ):
        stream.latestOffset(end, None)


def _opened(url: str) -> Any:
    try:
        return statetool.load(url).path
    except (UnknownNameError, SnapshotNotFoundError):
        return None


@pytest.mark.since(1, 17)
@data_sources
def test_spark_reads_one_checkpoint_of_a_job(cluster: StandaloneCluster, spark: Any, tmp_path: Path) -> None:
    job = cluster.submit("on-spark")
    cluster.wait_until(job, "RUNNING")
    url = f"flink://127.0.0.1:{cluster.port}/on-spark"

    def with_all_keys() -> str:
        path = run("checkpoint", url).stdout.strip()
        return path if _key_count(path) == KEYS else ""

    first = cluster.wait("a checkpoint with all keys", with_all_keys)
    cluster.wait("the checkpoint", lambda: _opened(url) == first)
    statetool.register(spark)
    frame = spark.read.format("flink-state").option("operatorUid", "counts").load(url)
    rows = sorted(map(tuple, frame.collect()))
    assert len(rows) == 500
    second = run("checkpoint", url).stdout.strip()
    cluster.wait("the checkpoint", lambda: _opened(url) == second)
    assert counts(url) != dict(rows)
    assert sorted(map(tuple, frame.collect())) == rows
    states = spark.read.format("flink-state-metadata").option("table", "states").load(url)
    assert "count" in {row.name for row in states.collect()}
    assert len(statetool.catalog(spark, url)) == 2
    following = spark.readStream.format("flink-state").options(operatorUid="counts", mode="full").load(url)
    query = following.writeStream.format("memory").queryName("live").option("checkpointLocation", str(tmp_path))
    query.trigger(availableNow=True).start().awaitTermination()
    assert {tuple(row)[1] for row in spark.table("live").groupBy("checkpoint_id").count().collect()} == {500}
    cluster.cancel(job)
