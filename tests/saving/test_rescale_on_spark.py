"""Rewrites in Spark tasks: the same bytes as in threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import FormatError
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import file_rows
from tests.support.checks.corpus_check import Case
from tests.support.snapshots.stored import stream_bytes, streams

pytestmark = pytest.mark.full
SETTING = "spark.statetool.localBytes"


@pytest.fixture
def in_tasks(spark: Any) -> Iterator[Any]:
    """Yield the session, with a driver that writes nothing itself."""
    spark.conf.set(SETTING, "0")
    yield spark
    spark.conf.unset(SETTING)


def test_spark_writes_what_threads_write(in_tasks: Any, corpus: Path, tmp_path: Path) -> None:
    source = str(Case(corpus / "v2_3_0-hashmap-canonical-compressed").metadata.parent)
    wanted = {"timers": 300, "collections-by-string": 64, "op-lists": 2}
    statetool.rescale(source, str(tmp_path / "here"), wanted, parallelism=2)
    statetool.rescale(source, str(tmp_path / "there"), wanted, parallelism=2, spark=in_tasks)
    here, there = Inventory(str(tmp_path / "here")), Inventory(str(tmp_path / "there"))
    assert len(here.operators) > 10
    for name, operator in here.operators.items():
        assert stream_bytes(operator) == stream_bytes(there.operators[name])
        assert operator.state.max_parallelism == there.operators[name].state.max_parallelism
    assert {p.name for p in (tmp_path / "there").iterdir()} == {
        Path(r.path).name for o in there.operators.values() for r in file_rows(o)
    } | {"_metadata"}


def test_errors_of_tasks_are_ours_and_leave_nothing(in_tasks: Any, corpus: Path, tmp_path: Path) -> None:
    statetool.convert(str(Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent), str(tmp_path / "damaged"))
    operator = Inventory(str(tmp_path / "damaged")).operators["orders"]
    part = streams(operator)[0]
    offset = part.stream.start + max(part.handle.offsets)
    raw = bytearray(Path(part.stream.file).read_bytes())
    raw[offset + 6] ^= 0x15
    Path(part.stream.file).write_bytes(raw)
    with pytest.raises(FormatError, match=r"key group.*operator orders"):
        statetool.rescale(str(tmp_path / "damaged"), str(tmp_path / "new"), {"orders": 300}, spark=in_tasks)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["hashmap-canonical-compressed", "rocksdb-native"])
def test_spark_erases_and_sets_what_threads_do(in_tasks: Any, corpus: Path, tmp_path: Path, kind: str) -> None:
    source = str(Case(corpus / f"v2_3_0-{kind}").metadata.parent)
    here = statetool.erase(source, str(tmp_path / "here"), ["timer-3", 4])
    there = statetool.erase(source, str(tmp_path / "there"), ["timer-3", 4], spark=in_tasks)
    assert here.plan.erased == there.plan.erased
    chosen: dict[str, Any] = {"where": "registered % 2 = 1", "operators": ["timers"]}
    by_threads = statetool.erase(source, str(tmp_path / "here-where"), **chosen)
    by_tasks = statetool.erase(source, str(tmp_path / "there-where"), **chosen, spark=in_tasks)
    assert by_threads.plan.erased == by_tasks.plan.erased != ()
    old, new = Inventory(str(tmp_path / "here")), Inventory(str(tmp_path / "there"))
    for name in ("timers", "with-ttl"):
        assert stream_bytes(old.operators[name]) == stream_bytes(new.operators[name])
