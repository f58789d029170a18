"""What the release of a job decides, and what it leaves open."""

from __future__ import annotations

import csv

import pytest

from statetool.compatibility.releases import ttl_may_switch
from tests.support.flink.sql_changes import RESULTS


@pytest.mark.parametrize(
    ("releases", "backends", "expected"),
    [
        (("1.20",), ["heap", "rocksdb"], False),
        (("2.0",), ["rocksdb"], False),
        (("2.1",), ["rocksdb"], True),
        (("2.1",), ["heap"], False),
        (("2.2",), ["heap", "rocksdb"], True),
        (("2.0",), ["heap", "rocksdb"], False),
        (("2.1",), ["heap", "rocksdb"], None),  # the backend decides
        (("2.0", "2.1", "2.2", "2.3"), ["rocksdb"], None),  # the release decides
        (("1.20",), ["forst"], False),
        (("2.1",), ["forst"], None),  # not tried
        (("2.3",), ["forst"], None),
        ((), ["rocksdb"], None),
    ],
)
def test_where_values_get_or_lose_their_time_to_live(
    releases: tuple[str, ...], backends: list[str], expected: bool | None
) -> None:
    assert ttl_may_switch(releases, backends) is expected


def test_it_is_what_flink_did_with_sql_queries() -> None:
    """Where Flink does not migrate, it gave other results or failed, unless the savepoint was converted."""
    with RESULTS.open(newline="") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if r["pair"] == "options: TTL added"]
    for row in rows:
        release, backend = row["flink"].rpartition(".")[0], "heap" if row["backend"] == "hashmap" else row["backend"]
        assert ttl_may_switch((release,), [backend]) is (row["flink_says"] == "same")
    assert len(rows) >= 5
