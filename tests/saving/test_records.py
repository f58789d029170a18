"""Rows become the same streams however they are split into batches; failed attempts leave no files."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from statetool.errors import EncodeError
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.io import files, targets
from statetool.java.declaring.states import StateType
from statetool.saving.bootstrap import KeyedBootstrap, TableSchema, table_entries
from statetool.saving.bootstrap.tables import keyed_job
from statetool.saving.composition import StreamWriteTask
from statetool.saving.publish import Publication, Staging
from statetool.saving.streams.output import NewStream, UnshuffledStreams
from statetool.saving.streams.runs import Spill, order_of_groups, pack_run
from statetool.types.declared import NOTHING_DECLARED

MEMORY = 1 << 20


def planned(table: pa.Table, *, long: bool = False, max_parallelism: int = 8) -> StreamWriteTask:
    states = {"l": StateType(kind="list", element="STRING")} if long else None
    bootstrap = KeyedBootstrap(data=table, key=("k",), states=states, long=long)
    return keyed_job(
        "op",
        [(bootstrap, TableSchema(schema=table.schema))],
        None,
        parallelism=2,
        max_parallelism=max_parallelism,
        inline_bytes=0,
        formula_of=lambda *_: None,
        types=NOTHING_DECLARED,
    )


def streams(
    job: StreamWriteTask, batches: list[pa.RecordBatch], staging: Staging, memory: int = MEMORY
) -> list[NewStream]:
    ((_, recipe),) = job.tables
    assert not isinstance(job.streams, UnshuffledStreams)
    with Spill() as spill:
        for place, rows in enumerate(batches):
            for batch in table_entries(recipe, rows):
                order = order_of_groups(batch.group, batch.state)
                spill.add(pack_run(batch, order, job.streams.prefix), place)
        segments = spill.segments()
        return [
            job.streams.write(n, [segments.within(job.streams.numbers(n))], staging, memory)
            for n in job.streams.subtasks
        ]


def content(stream: NewStream, staging: Staging) -> tuple[bytes, tuple[int, ...]]:
    (file,) = stream.files
    assert isinstance(stream.handle, KeyGroupsHandle)
    return files.read_whole(files.join(staging.target, file.name)), stream.handle.offsets


def cut(table: pa.Table, seed: int) -> list[pa.RecordBatch]:
    (batch,) = table.combine_chunks().to_batches()
    edges = sorted({0, batch.num_rows, *random.Random(seed).choices(range(batch.num_rows), k=7)})
    batches = [batch.slice(a, b - a) for a, b in pairwise(edges)]
    random.Random(seed).shuffle(batches)
    return batches


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
    job = planned(table, long=long, max_parallelism=max_parallelism)
    with Publication(str(tmp_path / "sp")) as publication:
        staging = publication.staging
        expected = [content(s, staging) for s in streams(job, table.to_batches(), staging)]
        assert len(expected) == 2
        for seed in range(12):
            assert [content(s, staging) for s in streams(job, cut(table, seed), staging)] == expected
            assert [content(s, staging) for s in streams(job, cut(table, seed), staging, 50)] == expected
        one_by_one = table.to_batches(max_chunksize=1)
        assert [content(s, staging) for s in streams(job, one_by_one, staging)] == expected


def test_a_lost_attempt_leaves_no_file(tmp_path: Path) -> None:
    table = pa.table({"k": range(60), "a": range(60)})
    job = planned(table)
    with Publication(str(tmp_path / "sp")) as publication:
        lost = streams(job, table.to_batches(), publication.staging)
        won = streams(job, table.to_batches(), publication.staging)
        files_of = [[file for s in attempt for file in s.files] for attempt in (lost, won)]
        assert {f.name for f in files_of[0]}.isdisjoint({f.name for f in files_of[1]})
        publication.commit(b"m", files_of[1])
    assert set(targets.list_sizes(str(tmp_path / "sp"))) == {"_metadata", *(f.name for f in files_of[1])}


@pytest.mark.parametrize("seed", range(5))
def test_a_key_that_comes_twice_is_seen_across_batches(tmp_path: Path, seed: int) -> None:
    keys = [*range(40), 17]
    table = pa.table({"k": keys, "a": [None if i % 3 == 0 else i for i in range(41)]})
    with Publication(str(tmp_path / "sp")) as publication, pytest.raises(EncodeError, match="key 17 occurs twice"):
        streams(planned(table), cut(table, seed), publication.staging)


def test_an_element_that_comes_twice_is_seen(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 1, 1], "list_index": [0, 1, 1], "value": ["a", "b", "c"]})
    with Publication(str(tmp_path / "sp")) as publication, pytest.raises(EncodeError, match="key 1 occurs twice"):
        streams(planned(table, long=True), table.to_batches(), publication.staging)


def test_an_element_without_an_index_is_refused(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 1], "list_index": [0, None], "value": ["a", "b"]})
    with (
        Publication(str(tmp_path / "sp")) as publication,
        pytest.raises(EncodeError, match="null in column 'list_index'"),
    ):
        streams(planned(table, long=True), table.to_batches(), publication.staging)
