from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from statetool.errors import EncodeError, FormatError, StatetoolError, UnsupportedError
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, parse_metadata, write_metadata
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    ChangelogHandle,
    ChangesHandle,
    FileHandle,
    IncrementalHandle,
    RelativeFileHandle,
    StreamHandle,
)
from statetool.io.cursor import Cursor
from tests.support.snapshots.every_handle import NULL_PROPERTIES, everything


def test_every_metadata_file_of_the_corpus_is_written_back_identical(corpus: Path) -> None:
    paths = sorted(corpus.rglob("_metadata"))
    assert len(paths) >= 39
    for path in paths:
        data = path.read_bytes()
        assert write_metadata(parse_metadata(data)) == data, path


def test_every_metadata_file_of_flinks_migration_tests_is_written_back_identical(migration_savepoints: Path) -> None:
    paths = sorted(migration_savepoints.rglob("_metadata"))
    assert len(paths) >= 50
    for path in paths:
        data = path.read_bytes()
        assert write_metadata(parse_metadata(data)) == data, path


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6, 7])
def test_every_handle_in_every_version_comes_back(version: int) -> None:
    data = write_metadata(everything(version))
    again = parse_metadata(data)
    assert write_metadata(again) == data
    assert again.version == version
    assert [o.operator_id for o in again.operators] == [o.operator_id for o in everything(version).operators]
    kinds = [type(s.managed_keyed) for o in again.operators for s in o.subtasks if not s.finished]
    assert kinds == [type(s.managed_keyed) for o in everything(version).operators for s in o.subtasks if not s.finished]


def test_the_checkpoint_that_a_regional_one_took_a_state_from() -> None:
    """Version 7, after Flink 2.3: like version 6, plus a flag and an id per subtask."""
    subtasks = (
        SubtaskState(index=0, ref_checkpoint_id=41),
        SubtaskState(index=1),
        SubtaskState(index=2, finished=True),
    )
    operator = OperatorState(operator_id="a" * 32, parallelism=3, max_parallelism=8, subtasks=subtasks)
    metadata = SnapshotMetadata(version=7, checkpoint_id=42, operators=(operator,), properties=NULL_PROPERTIES)
    raw = write_metadata(metadata)
    assert parse_metadata(raw) == metadata
    body = b"\0\0\0\0" * 2 + b"\0" * 2 + b"\0\0\0\0" * 2
    subtask_bytes = (
        b"\0\0\0\0" + body + b"\1" + (41).to_bytes(8, "big"),
        b"\0\0\0\1" + body + b"\0",
        b"\xff\xff\xff\xfd" + b"\0",
    )
    assert raw.endswith(b"".join(subtask_bytes) + NULL_PROPERTIES)
    older = write_metadata(replace(metadata, version=6))
    assert older.endswith(b"\0\0\0\0" + body + b"\0\0\0\1" + body + b"\xff\xff\xff\xfd" + NULL_PROPERTIES)
    with pytest.raises(FormatError):
        parse_metadata(raw.replace(b"\1" + (41).to_bytes(8, "big"), b"\2" + (41).to_bytes(8, "big")))
    with pytest.raises(UnsupportedError, match="metadata version 8 is not one of 2 to 7"):
        parse_metadata(raw[:7] + b"\x08" + raw[8:])


def test_flink_1_14_changelog_handles_are_told_from_those_of_1_15() -> None:
    short = ChangelogHandle(
        tag=8, start=0, count=1, materialized=(),
        changes=(ChangesHandle(tag=10, start=0, count=1, streams=(), state_size=3),),
    )  # fmt: skip
    operator = OperatorState(
        operator_id="0" * 32, parallelism=1, max_parallelism=1, subtasks=(SubtaskState(index=0, managed_keyed=short),)
    )
    metadata = SnapshotMetadata(version=3, checkpoint_id=1, operators=(operator,))
    assert parse_metadata(write_metadata(metadata)) == metadata


def test_what_a_version_cannot_say_is_refused() -> None:
    with pytest.raises(EncodeError, match="version 2"):
        write_metadata(replace(everything(3), version=2))
    with pytest.raises(EncodeError, match="properties"):
        write_metadata(replace(everything(3), version=4))


def test_other_files_are_refused_with_their_name() -> None:
    with pytest.raises(FormatError, match=r"not a Flink _metadata file.*x\.txt"):
        parse_metadata(b"hello world, this is text", file="x.txt")
    with pytest.raises(UnsupportedError, match="version 9"):
        parse_metadata(bytes.fromhex("4960672d00000009") + bytes(16))


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_truncated_metadata_is_an_error_with_an_offset(version: int) -> None:
    data = write_metadata(everything(version))
    for n in range(len(data)):
        with pytest.raises(StatetoolError) as caught:
            parse_metadata(data[:n])
        assert caught.value.where.offset is not None


def test_damaged_metadata_gives_metadata_or_our_error() -> None:
    data = write_metadata(everything(6))
    dice = random.Random(1)
    for _ in range(3000):
        changed = bytearray(data)
        changed[dice.randrange(len(data))] = dice.randrange(256)
        try:
            parse_metadata(bytes(changed))
        except StatetoolError:
            continue


def test_numbered_items_are_read_or_stepped_over() -> None:
    data = bytes.fromhex("00000002 ffffffff 00000002 6162 00000007 00000000")
    for keep, items in ((True, [(-1, b"ab"), (7, b"")]), (False, [])):
        cursor = Cursor(data)
        assert cursor.numbered("change", keep=keep) == items
        assert cursor.left == 0
        with pytest.raises(FormatError, match="negative length -2 of change") as negative:
            Cursor(data.replace(b"\0\0\0\2ab", b"\xff\xff\xff\xfeab")).numbered("change", keep=keep)
        assert negative.value.where.offset == 12
        with pytest.raises(FormatError, match="expected 11 more bytes of change, only 10 are left"):
            Cursor(data.replace(b"\0\0\0\2ab", b"\0\0\0\x0bab")).numbered("change", keep=keep)


@pytest.mark.parametrize("name", ["000012.sst", "ü", "a\0b", ""])
@pytest.mark.parametrize(
    "stream",
    [
        FileHandle(size_bytes=7, path="/a"),
        FileHandle(size_bytes=7, path="/ü\0"),
        FileHandle(size_bytes=0, path=""),
        RelativeFileHandle(size_bytes=7, path="a"),
        ByteStreamHandle(name="b", data=b"abc"),
        None,
    ],
)
def test_named_files_are_read_in_one_loop(name: str, stream: StreamHandle) -> None:
    """The loop reads plain file handles, and leaves other streams and characters to the general parser."""
    first = FileHandle(size_bytes=1, path="/first")
    handle = IncrementalHandle(
        tag=5,
        checkpoint_id=1,
        backend_id="b",
        start=0,
        count=1,
        meta=first,
        shared=((name, stream), ("2", first)),
        private=(),
    )
    metadata = SnapshotMetadata(version=3, checkpoint_id=1, operators=(_operator(handle),))
    data = write_metadata(metadata)
    (subtask,) = parse_metadata(data).operators[0].subtasks
    assert isinstance(subtask.managed_keyed, IncrementalHandle)
    (found_name, found), *_ = subtask.managed_keyed.shared
    assert found_name == name
    if isinstance(stream, ByteStreamHandle) and isinstance(found, ByteStreamHandle):
        stream = replace(stream, position=found.position)
    assert found == stream
    for length in range(len(data)):
        with pytest.raises(FormatError):
            parse_metadata(data[:length])


def test_equal_inline_state_is_one_object() -> None:
    handles = [ByteStreamHandle(name=f"n{i}", data=b"header" * 1000) for i in range(2)]
    ends = [
        IncrementalHandle(tag=5, checkpoint_id=1, backend_id="b", start=i, count=1, meta=handle, shared=(), private=())
        for i, handle in enumerate(handles)
    ]
    metadata = SnapshotMetadata(version=3, checkpoint_id=1, operators=(_operator(*ends),))
    first, second = (s.managed_keyed for s in parse_metadata(write_metadata(metadata)).operators[0].subtasks)
    assert isinstance(first, IncrementalHandle)
    assert isinstance(second, IncrementalHandle)
    assert isinstance(first.meta, ByteStreamHandle)
    assert isinstance(second.meta, ByteStreamHandle)
    assert first.meta.data is second.meta.data
    assert first.meta.position != second.meta.position


def _operator(*handles: IncrementalHandle) -> OperatorState:
    subtasks = tuple(SubtaskState(index=i, managed_keyed=handle) for i, handle in enumerate(handles))
    return OperatorState(operator_id="00" * 16, parallelism=len(handles), max_parallelism=128, subtasks=subtasks)
