"""Reads beside a job that takes a checkpoint each second, or in four times the duration of a read, and retains one.

``tests/perf/live_bench.py`` does 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.flink.standalone.reads import BACKENDS, WAYS, read_newest, start_job
from tests.support.flink.versions import flink_versions
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
_EACH = 25
#: Reads of each way to see how fast this machine is now.
_TRIALS = 3


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run with the requested releases, by default with the newest."""
    metafunc.parametrize("cluster", flink_versions(metafunc, DEFAULT_VERSIONS[:1]), indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(request.param, tmp_path_factory.mktemp("cluster"), retained=1) as running:
        yield running


@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_beside_a_job_that_retains_one_checkpoint(cluster: StandaloneCluster, backend: str) -> None:
    job = start_job(cluster, backend)
    slowest_s = max(seconds for way in WAYS for seconds in read_newest(cluster, job, way, _TRIALS).seconds)
    if slowest_s > 1 / 4:  # on a busy machine, each checkpoint exists for longer
        cluster.cancel(job)
        job = start_job(cluster, backend, period_s=4 * slowest_s)
    first = cluster.history(job)["counts"]["completed"]
    reads = {way: read_newest(cluster, job, way, _EACH) for way in WAYS}
    assert [error for found in reads.values() for error in found.errors] == []
    assert sum(found.later for found in reads.values()) <= 1, reads  # 1 % of 100
    # The job went on: reads took place beside new checkpoints.
    assert cluster.history(job)["counts"]["completed"] > first
    cluster.cancel(job)
