"""Malicious snapshots: lengths, depths, links, paths, compression."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import cramjam
import pytest

import statetool
from statetool.errors import FormatError, SnapshotNotFoundError, StatetoolError
from statetool.formats.compression import STREAM_START, read_chunks
from statetool.formats.metadata.handles import KeyGroupsHandle, RelativeFileHandle
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import NOTHING_DECLARED
from tests.fuzz.targets import TARGETS, Target, guarded
from tests.support.corpora.golden import generated
from tests.support.failures.damage import Patient

_LARGE = (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFF0)
#: Memory limit for a rejected input, however large its claimed content is.
_MOST_BYTES = 64 << 20


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "most"),
    [
        *((name, 2) for name in ("metadata", "java", "snapshots", "headers", "kryo")),
        *((name, 60) for name in ("connectors", "libraries", "library-snapshots")),
    ],
)
def test_no_length_takes_memory_before_it_is_compared_with_what_is_left(name: str, most: int) -> None:
    target = TARGETS[name]
    seeds = [s for s in target.seeds() if len(s) > 8]
    for seed in seeds[:2] if most == 2 else seeds[:: -(-len(seeds) // most)]:
        guarded(target, seed)
        # The first time, an input may reach a kernel that is not compiled yet, or a module that no test has imported.
        assert any(peak_with_large_lengths(target, seed) < _MOST_BYTES for _ in range(2))


def peak_with_large_lengths(target: Target, seed: bytes) -> int:
    """Return the most memory that a target takes for an input with large numbers in place of four of its bytes."""
    tracemalloc.start()
    try:
        for at in range(0, min(len(seed) - 4, 240), 3):
            for number in _LARGE:
                guarded(target, seed[:at] + struct.pack(">I", number) + seed[at + 4 :])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_objects_in_objects_without_end_are_refused() -> None:
    array = b"\x75\x72\x00\x13[Ljava.lang.Object;" + bytes(8) + b"\x02\x00\x00\x78\x70\x00\x00\x00\x01"
    with pytest.raises(FormatError):
        read_java_stream(Cursor(b"\xac\xed\x00\x05" + array * 5000))


def test_types_in_types_without_end_are_refused() -> None:
    snapshots = [c.snapshot or b"" for cases in generated().values() for c in cases]
    snapshot = next(s for s in snapshots if b"ListSerializerSnapshot" in s)
    at = snapshot.find(b"org.apache", 4)
    with pytest.raises(StatetoolError):
        snapshot_reader(NOTHING_DECLARED).snapshot(Cursor(snapshot[:at] * 3000))


def test_a_compiled_plan_in_a_plan_without_end_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[" * 100_000)
    assert statetool.uids_in(str(tmp_path / "plan.json"), ["0" * 32]) == []
    (tmp_path / "plan.json").write_text(json.dumps({"nodes": 1, "edges": [None]}))
    assert statetool.uids_in(str(tmp_path / "plan.json"), ["0" * 32]) == []


def naming(corpus: Path, target: Path, name: str) -> tuple[str, str]:
    """Return a copy of a snapshot in which a keyed handle refers to another file, and its operator."""
    patient = Patient.of(corpus / "v2_3_0-hashmap-canonical" / "snapshot", target)
    for operator in patient.metadata.operators:
        for subtask in operator.subtasks:
            handle = subtask.managed_keyed
            if isinstance(handle, KeyGroupsHandle) and isinstance(handle.stream, RelativeFileHandle):
                hostile = replace(handle, stream=replace(handle.stream, path=name))
                patient.change_subtask(operator.uid, subtask.index, partial(replace, managed_keyed=hostile))
                return str(target), operator.uid
    raise AssertionError("no keyed state in a separate file")


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "circle",
        "pipe",
        *(
            pytest.param(n, marks=pytest.mark.full)
            for n in ("a/../../s", "..", "nul\0byte", "x" * 5000, "_metadata/x", ".")
        ),
    ],
)
def test_a_relative_handle_names_files_of_the_snapshot_alone(corpus: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(b"not yours")
    path, operator = naming(corpus, tmp_path / "snapshot", name)
    (tmp_path / "snapshot" / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "snapshot" / "pipe")
    with pytest.raises((FormatError, SnapshotNotFoundError)):
        statetool.load(path)[operator].to_arrow()
    verified = statetool.verify(path, allow_unread=True)
    assert not verified.ok


def test_a_block_that_unfolds_without_end_is_refused() -> None:
    """The stored size of a Snappy block is checked before it is uncompressed, in streams and in table files."""
    body = b"\xff\xff\xff\xff\x0f" + bytes(cramjam.snappy.compress_raw(bytes(1 << 16)))[3:]
    framed = STREAM_START + b"\x00" + (len(body) + 4).to_bytes(3, "little") + bytes(4) + body
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="claims more"):
            list(read_chunks(memoryview(framed), base=0))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
