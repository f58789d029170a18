"""Parts of file sinks in S3: uploads, and the object with the bytes after the last part of an upload, which only state names.

The recoverables are those of Flink's jar (``tests/support/flink/uploads/S3Recoverables.java``).
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import statetool
from statetool.analysis.verification.named_files import check_named_files
from statetool.connectors.layouts.file_sink import BUCKET, Upload, UploadedFile, part_files, pending_file, read_bucket
from statetool.connectors.model import SinkState
from statetool.connectors.named_files import NamedFiles
from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.listing import FoundFile
from tests.support.corpora.archives import HERE, unpack

OPEN = bytes.fromhex(
    "32147698140000007461626c652f6461793d312f706172742d302d370c000000565842736232466b49456c4502000000010000001000000030636331"
    "373562396330663162366138020000001000000039326562356666656536616532666563"
    "0000a000000000001e0000007461626c652f6461793d312f5f706172742d302d375f746d705f356630634101000000000000"
)
CLOSED = bytes.fromhex(
    "32147698140000007461626c652f6461793d312f706172742d302d360c000000565842736232466b49456c4602000000010000001000000030636331"
    "373562396330663162366138020000001000000039326562356666656536616532666563"
    "ef00a0000000000000000000ffffffffffffffff"
)
PARTS = ((1, "0cc175b9c0f1b6a8"), (2, "92eb5ffee6ae2fec"))


def bucket(recoverable: bytes) -> bytes:
    """Return the state of a bucket with a part in progress."""

    def versioned(version: int, data: bytes) -> bytes:
        return struct.pack(">ii", version, len(data)) + data

    def utf(text: bytes) -> bytes:
        return struct.pack(">H", len(text)) + text

    part = struct.pack(">I", 0xB3A4073D) + b"\0" + versioned(1, recoverable)
    name = struct.pack("<i", 5) + b"day=1"
    head = struct.pack(">I", BUCKET) + versioned(1, name) + utf(b"s3://lake/table/day=1") + struct.pack(">q", 1)
    return head + b"\1" + versioned(2, part)


def file_of(recoverable: bytes) -> UploadedFile:
    file = read_bucket(3, Cursor(bucket(recoverable))).in_progress
    assert isinstance(file, UploadedFile)
    return file


def test_uploads_to_s3_are_decoded() -> None:
    file = file_of(OPEN)
    assert file.upload == Upload(
        key="table/day=1/part-0-7",
        upload_id="VXBsb2FkIElE",
        parts=PARTS,
        rest_key="table/day=1/_part-0-7_tmp_5f0c",
        rest_bytes=321,
    )
    assert (file.offset, file.recoverable) == (10_485_760 + 321, None)
    closed = file_of(CLOSED)
    assert closed.upload == Upload(
        key="table/day=1/part-0-6", upload_id="VXBsb2FkIElF", parts=PARTS, rest_key=None, rest_bytes=0
    )
    assert pending_file(closed).name == "table/day=1/part-0-6"
    assert pending_file(closed).size_bytes == 10_485_999


@pytest.mark.parametrize("at", [30, 60, len(OPEN) - 3])
def test_cut_uploads_are_refused(at: int) -> None:
    with pytest.raises(FormatError):
        file_of(OPEN[:at])


@pytest.mark.parametrize(("size", "severity"), [(321, None), (320, "error"), (None, "error")])
def test_the_rest_of_an_upload_must_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None, severity: str | None
) -> None:
    """A restored writer reads the object, and fails without it. Flink deletes it once a later checkpoint is complete."""
    state = SinkState(role="writer", pending=(), writers=((0, read_bucket(3, Cursor(bucket(OPEN)))),))
    files = tuple(part_files(state))
    assert [file.path for file in files] == ["s3://lake/table/day=1/_part-0-7_tmp_5f0c"]
    monkeypatch.setattr("statetool.analysis.verification.named_files.named_files", lambda _: NamedFiles(files=files))
    folder = unpack(HERE / "corpus" / "write-ahead.tar.xz", tmp_path)
    operator = statetool.load(str(max(folder.rglob("_metadata")).parent), uids=["ahead"]).inventory.operators["ahead"]

    def find(path: str) -> FoundFile | None:
        return None if size is None else FoundFile(path, size, None)

    problems = check_named_files(operator, "s3://lake/checkpoints/chk-1/_metadata", find)[1]
    assert [p.severity for p in problems] == ([] if severity is None else [severity])
    elsewhere = check_named_files(operator, "s3://other/chk-1/_metadata", find)[1]
    assert [p.severity for p in elsewhere] == ["note"]
