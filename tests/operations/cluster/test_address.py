from __future__ import annotations

import pytest

from statetool.errors import OptionError
from statetool.operations.cluster.address import JobAddress

_ID = "435dddb4518382a338824d5965e56ae3"


@pytest.mark.parametrize(
    ("url", "server", "job"),
    [
        ("flink://host:8081/orders", "http://host:8081", "orders"),
        ("flink://host/orders", "http://host:8081", "orders"),
        ("flinks://host/orders/", "https://host:8081", "orders"),
        ("flinks://host:443/prod/flink/orders", "https://host:443/prod/flink", "orders"),
        ("flink://host:8081", "http://host:8081", ""),
        ("localhost:1", "http://localhost:1", ""),
        ("flink://[::1]:8081/orders", "http://[::1]:8081", "orders"),
        ("flink://host:8081/my job", "http://host:8081", "my job"),
        ("flink://host:8081/a%2Fb%3Fc#d", "http://host:8081", "a/b?c#d"),
        ("http://host:8081", "http://host:8081", ""),
        ("https://host/", "https://host", ""),
        (f"http://host:8081/#/job/running/{_ID}/overview", "http://host:8081", _ID),
        (f"https://host/prod/#/job/completed/{_ID}/checkpoints", "https://host/prod", _ID),
        (f"http://host:8082/#/job/{_ID}/overview", "http://host:8082", _ID),
        (f"http://host:8081/#/jobs/{_ID}", "http://host:8081", _ID),
        ("http://host:8081/#/overview", "http://host:8081", ""),
        (f"http://host:8081/jobs/{_ID}", "http://host:8081", _ID),
        (f"http://host:8081/v1/jobs/{_ID}/checkpoints", "http://host:8081/v1", _ID),
        ("http://host:8081/jobs/overview", "http://host:8081", ""),
    ],
)
def test_urls_of_jobs_and_servers(url: str, server: str, job: str) -> None:
    address = JobAddress.parse(url)
    assert address is not None
    assert (address.server, address.job, address.certain) == (server, job, True)
    assert (address.checkpoint, address.savepoint) == (None, None)


def test_one_name_after_the_host_may_be_a_file() -> None:
    address = JobAddress.parse("http://host:8081/orders?checkpoint=42")
    assert address is not None
    assert (address.job, address.checkpoint, address.certain) == ("orders", "42", False)


@pytest.mark.parametrize(
    "path",
    [
        "/data/savepoint-1",
        "file:///data/savepoint-1",
        "s3://bucket/jobs/1",
        "https://host/savepoints/savepoint-1",
        "https://host/savepoint-1/_metadata",
        "https://host/savepoint-1?X-Amz-Signature=abc",
        "flink",
    ],
)
def test_other_paths_are_files(path: str) -> None:
    assert JobAddress.parse(path) is None


def test_a_checkpoint_in_a_url_of_the_rest_api() -> None:
    address = JobAddress.parse(f"http://host:8081/jobs/{_ID}/checkpoints/details/42")
    assert address is not None
    assert (address.job, address.checkpoint) == (_ID, "42")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("flink://me:hunter2@host:8081/orders", "contains credentials"),
        ("http://hunter2@host:8081/orders", "contains credentials"),
        ("flink://host:hunter2/orders", "invalid host or port"),
        ("flink:///orders", "has no host"),
        ("flink://host/orders?token=hunter2", "unknown parameter 'token'"),
        ("flink://host/orders?checkpoint=newest", "neither an id nor 'latest'"),
        ("flink://host/orders?checkpoint=1&savepoint=2", "more than one snapshot"),
        (f"http://host/jobs/{_ID}/checkpoints/details/42?savepoint=latest", "names a checkpoint twice"),
    ],
)
def test_malformed_urls(url: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        JobAddress.parse(url)
    assert "hunter2" not in str(caught.value)


def test_a_context_of_the_kubeconfig() -> None:
    address = JobAddress.parse("k8s://prod/orders?context=east%2F1&checkpoint=42")
    assert address is not None
    assert (address.server, address.context, address.checkpoint) == ("k8s://prod/orders", "east/1", "42")
    with pytest.raises(OptionError, match="more than one context"):
        JobAddress.parse("k8s://prod/orders?context=a&context=b")
    with pytest.raises(OptionError, match="unknown parameter 'context'"):
        JobAddress.parse("flink://host/orders?context=a")
