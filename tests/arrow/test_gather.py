"""Records become the same streams however they are cut into batches; attempts that lose leave nothing."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from statetool.arrow.bootstrap import KeyedBootstrap, OperatorPlan, Table, plan_operator
from statetool.arrow.gather import SubtaskStream, write_streams
from statetool.arrow.records import RECORDS, SORTED_BY, table_records
from statetool.errors import EncodeError
from statetool.io import files, targets
from statetool.write.declare import StateType
from statetool.write.publish import Publication, Staging


def planned(table: pa.Table, *, long: bool = False, max_parallelism: int = 8) -> OperatorPlan:
    states = {"l": StateType(kind="list", element="STRING")} if long else None
    bootstrap = KeyedBootstrap(data=table, key=("k",), states=states, long=long)
    tables = [(bootstrap, Table(schema=table.schema))]
    return plan_operator("op", tables, parallelism=2, max_parallelism=max_parallelism, inline_bytes=0)


def sorted_records(plan: OperatorPlan) -> pa.RecordBatch:
    batches = [r for data, recipe in plan.keyed_tables for b in data.to_batches() for r in table_records(recipe, b)]
    whole = pa.Table.from_batches(batches, schema=RECORDS)
    return whole.sort_by([(name, "ascending") for name in SORTED_BY]).combine_chunks().to_batches()[0]


def streams(plan: OperatorPlan, batches: list[pa.RecordBatch], staging: Staging) -> list[SubtaskStream]:
    assert plan.keyed is not None
    return [stream for _, stream in write_streams([(0, plan.keyed)], staging, batches)]


def content(stream: SubtaskStream, staging: Staging) -> tuple[bytes, tuple[int, ...]]:
    assert stream.stream.file is not None
    return files.read_whole(files.join(staging.target, stream.stream.file.name)), stream.offsets


def cut(batch: pa.RecordBatch, seed: int) -> list[pa.RecordBatch]:
    edges = sorted({0, batch.num_rows, *random.Random(seed).choices(range(batch.num_rows), k=7)})
    return [batch.slice(a, b - a) for a, b in pairwise(edges)]


@pytest.mark.parametrize("max_parallelism", [8, 200])
@pytest.mark.parametrize("long", [False, True])
def test_batches_do_not_matter(tmp_path: Path, long: bool, max_parallelism: int) -> None:
    if long:
        rows = [(k, i, f"{k}-{i}") for k in range(20) for i in range(k % 5)]
        table = pa.table(dict(zip(("k", "list_index", "value"), map(list, zip(*rows, strict=True)), strict=True)))
    else:
        table = pa.table(
            {"k": range(60), "a": [None if k % 7 == 0 else k for k in range(60)], "b": ["x" * k for k in range(60)]}
        )
    plan = planned(table, long=long, max_parallelism=max_parallelism)
    records = sorted_records(plan)
    with Publication(str(tmp_path / "sp")) as publication:
        staging = publication.staging
        expected = [content(s, staging) for s in streams(plan, [records], staging)]
        assert len(expected) == 2
        for seed in range(12):
            assert [content(s, staging) for s in streams(plan, cut(records, seed), staging)] == expected
        one_by_one = [records.slice(i, 1) for i in range(records.num_rows)]
        assert [content(s, staging) for s in streams(plan, one_by_one, staging)] == expected


def test_a_lost_attempt_leaves_no_file(tmp_path: Path) -> None:
    plan = planned(pa.table({"k": range(60), "a": range(60)}))
    records = sorted_records(plan)
    with Publication(str(tmp_path / "sp")) as publication:
        lost = streams(plan, [records], publication.staging)
        won = streams(plan, [records], publication.staging)
        assert {f.name for s in lost for f in s.files}.isdisjoint({f.name for s in won for f in s.files})
        publication.commit(b"m", [f for s in won for f in s.files])
    assert set(targets.list_sizes(str(tmp_path / "sp"))) == {"_metadata", *(f.name for s in won for f in s.files)}


@pytest.mark.parametrize("seed", range(5))
def test_a_key_that_comes_twice_is_seen_across_batches(tmp_path: Path, seed: int) -> None:
    keys = [*range(40), 17]
    plan = planned(pa.table({"k": keys, "a": [None if i % 3 == 0 else i for i in range(41)]}))
    with Publication(str(tmp_path / "sp")) as publication, pytest.raises(EncodeError, match="key 17 is there twice"):
        streams(plan, cut(sorted_records(plan), seed), publication.staging)


def test_an_element_that_comes_twice_is_seen(tmp_path: Path) -> None:
    plan = planned(pa.table({"k": [1, 1, 1], "list_index": [0, 1, 1], "value": ["a", "b", "c"]}), long=True)
    with Publication(str(tmp_path / "sp")) as publication, pytest.raises(EncodeError, match="key 1 is there twice"):
        streams(plan, [sorted_records(plan)], publication.staging)
