"""References of ``_metadata`` read by kernels are those that the parser of objects finds, also in damaged files."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetool.errors import StatetoolError
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, columns, reader, write_metadata
from statetool.formats.metadata.handles import ChangelogHandle, ChangesHandle, FileHandle, IncrementalHandle
from statetool.formats.metadata.reader import columns_pay_off, parse_references
from statetool.kernels.core import jit
from tests.support.snapshots.every_handle import everything
from tests.support.snapshots.large import large_checkpoint


def found(data: bytes, *, in_columns: bool) -> Any:
    """Return the references of metadata in order, or its error."""
    try:
        references = parse_references(data, file="f", in_columns=in_columns)
    except StatetoolError as error:
        return type(error), str(error)
    streams = []
    for part in references.parts:
        streams += [part] if isinstance(part, tuple) else [part.reference(i) for i in range(len(part.rows))]
    rows = [(type(s), s.path, s.size_bytes, getattr(s, "start", 0), is_log) for s, is_log in streams]
    return references.metadata, rows


def check(data: bytes) -> None:
    assert found(data, in_columns=True) == found(data, in_columns=False)


def check_damaged(data: bytes, times: int) -> None:
    dice = random.Random(len(data))
    for _ in range(times):
        changed = bytearray(data)
        for _ in range(dice.choice([1, 1, 1, 2, 5])):
            changed[dice.randrange(len(data))] = dice.choice(
                [0, 1, 2, 127, 128, 255, dice.randrange(256), dice.choice(data)]
            )
        check(bytes(changed[: dice.randrange(len(data))] if dice.random() < 0.2 else changed))


def of_objects(data: bytes) -> int:
    """Return the number of references that the kernel left to the parser of objects."""
    return sum(isinstance(part, tuple) for part in parse_references(data, in_columns=True).parts)


def test_corpus(corpus: Path) -> None:
    left = 0
    for path in sorted(corpus.rglob("_metadata")):
        check(path.read_bytes())
        check_damaged(path.read_bytes(), 1)
        left += of_objects(path.read_bytes())
    assert left <= 3


def test_migration_savepoints_of_flink(migration_savepoints: Path) -> None:
    for path in sorted(migration_savepoints.rglob("_metadata")):
        check(path.read_bytes())
        check_damaged(path.read_bytes(), 1)


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6, 7])
def test_every_handle_in_every_version(version: int) -> None:
    data = write_metadata(everything(version))
    assert of_objects(data) == 0
    check(data)
    check_damaged(data, 100)
    for n in range(0, len(data), 11):
        check(data[:n])


def keyed(handle: Any, *, version: int = 3) -> bytes:
    operator = OperatorState(
        operator_id="0" * 32, parallelism=2, max_parallelism=2, subtasks=(SubtaskState(index=1, managed_keyed=handle),)
    )
    return write_metadata(SnapshotMetadata(version=version, checkpoint_id=1, operators=(operator,)))


def test_change_logs_of_flink_1_14() -> None:
    changes = ChangesHandle(
        tag=10, start=0, count=1, streams=((0, FileHandle(size_bytes=4, path="/log")),), state_size=3
    )
    data = keyed(ChangelogHandle(tag=8, start=0, count=1, materialized=(), changes=(changes,)))
    check(data)
    check_damaged(data, 100)
    assert found(data, in_columns=True)[1] == [(FileHandle, "/log", 4, 0, True)]


@pytest.mark.parametrize("path", ["s3://bucket/ü", "/a\0b", "/\U0001f600"])
def test_other_characters_are_left_to_the_parser_of_objects(path: str) -> None:
    file = FileHandle(size_bytes=4, path=path)
    handle = IncrementalHandle(
        tag=5, checkpoint_id=1, backend_id="b", start=0, count=1, meta=file, shared=(("1", file),), private=()
    )
    assert of_objects(keyed(handle)) == 2
    check(keyed(handle))


@pytest.mark.parametrize("rows", [1, 3, 10, 25])
def test_many_rows_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(columns, "_ROWS", rows)
    data = (large_checkpoint(tmp_path, 60, states=1) / "_metadata").read_bytes()
    check(data)
    assert len(parse_references(data, in_columns=True).parts) == {1: 6, 3: 6, 10: 6, 25: 3}[rows]


def test_a_subtask_with_two_states_is_refused() -> None:
    metadata = everything(6)
    operator = replace(metadata.operators[0], parallelism=9, subtasks=(SubtaskState(index=0), SubtaskState(index=0)))
    check(write_metadata(replace(metadata, operators=(operator,))))


@pytest.mark.parametrize(("budget", "sizes"), [
    (jit.BEFORE_LOADING, [False, True, True]),
    (jit.BEFORE_COMPILING, [False, False, True]),
    (jit.EVERYTHING, [False, False, False]),
    (jit.NOTHING, [False, True, True]),
])  # fmt: skip
def test_columns_are_for_much_metadata(
    monkeypatch: pytest.MonkeyPatch, budget: jit.InterpretBudget, sizes: list[bool]
) -> None:
    monkeypatch.setattr(jit, "allowance", lambda name: budget)
    most = (reader._ENOUGH_TO_LOAD - 1, reader._ENOUGH_TO_LOAD, reader._ENOUGH_TO_COMPILE)
    assert list(map(columns_pay_off, most)) == sizes
