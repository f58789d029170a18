"""Part files that file sinks have open: listed, looked for, and forgotten."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE
from statetool.connectors.wire import write_versioned
from tests.support.connectors.commands import run
from tests.support.connectors.committers import committer, write_sink
from tests.support.connectors.layouts import framed, packed
from tests.support.corpora.archives import unpack
from tests.support.flink.write_ahead_job import ARCHIVE, UIDS

BUCKET, IN_PROGRESS, PENDING = (struct.pack(">I", n) for n in (0x1E764B79, 0xB3A4073D, 0x2C853C89))


def recoverable(target: str, temporary: str, offset: int) -> bytes:
    names = [target.encode(), temporary.encode()]
    return struct.pack("<Iqii", 0x1E744B57, offset, *map(len, names)) + b"".join(names)


def bucket(version: int, folder: Path | str, *, is_open: bool = True, pending: str = "") -> bytes:
    """Return the state of a bucket with an open part of 10 bytes, and in versions 1 and 2 with a pending file."""
    at = f"{folder}/".__add__
    parts: list[Any] = [BUCKET, write_versioned(1, struct.pack("<i", 3) + b"day"), str(folder)]
    if is_open:
        place = write_versioned(1, recoverable(at("part-0"), at(".part-0.inprogress"), 10))
        if version > 1:
            place = write_versioned(2, packed(IN_PROGRESS, True, at("part-0"), place))
        parts += [(8, 1700000000000), True, place]
    else:
        parts += [(8, 2**63 - 1), False]
    if version < 3:
        file = recoverable(at(pending), at(f".{pending}.inprogress"), 5)
        if version == 2:
            file = packed(PENDING, True, at(pending), (8, 5), write_versioned(1, file))
        files = [framed(file)] if pending else []
        # The version of a file, one checkpoint, its files.
        parts += [(4, 2 if version == 2 else 1), (4, 1), (8, 7), (4, len(files)), *files]
    return packed(*parts)


def streaming(folder: Path, *buckets: bytes) -> Path:
    """Return a snapshot of a ``StreamingFileSink``: one element per bucket."""
    states = {
        "bucket-states": (pa.array(buckets, pa.binary()), "BINARY"),
        "max-part-counter": (pa.array([1], pa.int64()), "BIGINT"),
    }
    rows = [statetool.bootstrap_list_state(n, pa.table({"value": v}), type=t) for n, (v, t) in states.items()]
    statetool.SavepointWriter.new().with_operator("sink", *rows, parallelism=1).write(str(folder))
    return folder


def names(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(r[c] for c in columns) for r in rows]


def test_open_parts_of_a_job_are_listed_and_forgotten(tmp_path: Path) -> None:
    (tmp_path / "uids.txt").write_text("\n".join(UIDS))
    uids = ["--uids", str(tmp_path / "uids.txt")]
    for checkpoint in sorted(unpack(ARCHIVE, tmp_path / "jobs").glob("*/chk-*")):
        sinks = {r["operator"]: r for r in run("sinks", "list", checkpoint, *uids) if r["connector"] == "file-sink"}
        assert (sinks["open"]["pending"], sinks["open"]["open"]) == (2, 2)
        assert (sinks["rolled"]["pending"], sinks["rolled"]["open"]) == (0, 0)
        of_open = run("sinks", "pending", checkpoint, *uids, "--uid", "open")
        assert set(names(of_open, "status", "verdict")) == {("in_progress", "will_continue")}
        # The folders of the job are gone from this machine: nothing is known of its files.
        checked = [r for r in run("sinks", "check", checkpoint, *uids, code=1) if r["operator"] == "open"]
        assert [r["outcome"] for r in checked] == ["unknown"] * 2
        target = tmp_path / f"without-{checkpoint.parent.name}"
        lose = ["--lose", of_open[0]["name"]]
        lost = run("sinks", "forget", checkpoint, target, "--uid", "open", *lose)
        assert names(lost, "name", "status") == [(of_open[0]["name"], "in_progress")]
        left = run("sinks", "pending", target, *uids, "--uid", "open")
        assert [r["name"] for r in left] == [of_open[1]["name"]]
        assert statetool.verify(str(target)).ok


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_forgotten_part_leaves_what_the_writer_stores_without_one(version: int, tmp_path: Path) -> None:
    element = write_versioned(version, bucket(version, tmp_path, pending="part-9"))
    source = write_sink(tmp_path / "s", WRITER_STATE, element)
    (part,) = run("sinks", "pending", source)
    run("sinks", "forget", source, tmp_path / "t", "--uid", "sink", "--lose", part["name"])
    values = statetool.load(str(tmp_path / "t"), uids=["sink"])["sink"].to_arrow(WRITER_STATE)
    expected = write_versioned(version, bucket(version, tmp_path, is_open=False, pending="part-9"))
    assert values["value"].to_pylist() == [expected]


@pytest.mark.parametrize("version", [1, 2])
def test_parts_of_the_old_sink_are_forgotten_one_by_one(version: int, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    elements = [write_versioned(version, bucket(version, f, pending="part-9")) for f in (first, second)]
    source = streaming(tmp_path / "s", *elements)
    (row,) = run("sinks", "list", source)
    assert (row["connector"], row["pending"], row["open"]) == ("streaming-file-sink", 4, 2)
    lose = [str(first / "part-9"), str(second / "part-0")]
    run("sinks", "forget", source, tmp_path / "t", "--uid", "sink", "--lose", lose[0], "--lose", lose[1])
    values = statetool.load(str(tmp_path / "t"), uids=["sink"])["sink"].to_arrow("bucket-states")
    expected = [bucket(version, first), bucket(version, second, is_open=False, pending="part-9")]
    assert values["value"].to_pylist() == [write_versioned(version, b) for b in expected]


def test_check_looks_for_open_and_uncommitted_files(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    source = streaming(tmp_path / "s", write_versioned(2, bucket(2, folder, pending="part-9")))
    open_file, pending = folder / ".part-0.inprogress", folder / ".part-9.inprogress"
    outcomes = []

    def outcome(code: int) -> None:
        rows = run("sinks", "check", source, code=code)
        outcomes.append([r["outcome"] for r in rows])

    outcome(1)
    open_file.write_bytes(b"x" * 12)
    pending.write_bytes(b"x" * 5)
    outcome(0)
    pending.rename(folder / "part-9")
    outcome(0)
    open_file.write_bytes(b"x" * 9)
    outcome(1)
    assert outcomes == [
        ["will_fail", "will_drop"],
        ["will_continue", "will_commit"],
        ["will_continue", "is_committed"],
        ["will_fail", "is_committed"],
    ]


def test_check_sees_that_another_job_has_gone_on(tmp_path: Path) -> None:
    """A job that was restored from an earlier snapshot has committed a file of the same name, and goes on with the same open file."""
    folder = tmp_path / "out"
    folder.mkdir()
    source = streaming(tmp_path / "s", write_versioned(2, bucket(2, folder, pending="part-9")))
    (folder / ".part-0.inprogress").write_bytes(b"x" * 1012)
    (folder / "part-9").write_bytes(b"x" * 7)
    opened, pending = run("sinks", "check", source, code=1)
    assert (opened["outcome"], opened["is_problem"]) == ("will_continue", False)
    assert "1,002 bytes were written after the snapshot" in opened["message"]
    assert (pending["outcome"], pending["is_problem"]) == ("will_drop", True)
    assert "part-9 has 7 bytes, the state says 5: another job has committed it" in pending["message"]
    (problem,) = [p for p in statetool.verify(str(source)).problems if p.severity != "note"]
    assert (problem.severity, problem.file) == ("warning", str(folder / "part-9"))
    (folder / "part-9").write_bytes(b"x" * 5)
    run("sinks", "check", source)


@pytest.mark.parametrize("folder", ["http://169.254.169.254/out", "hdfs://169.254.169.254:80/out", "ftp://there/out"])
def test_check_asks_only_storage(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State cannot send the command to other servers."""
    monkeypatch.setattr("statetool.connectors.outside.file_checks.stat", refuse)
    source = streaming(tmp_path / "s", write_versioned(2, bucket(2, folder, pending="part-9")))
    rows = run("sinks", "check", source, code=1)
    assert names(rows, "outcome") == [("unknown",)] * 2
    assert all("which statetool does not open" in r["message"] for r in rows)
    assert statetool.verify(str(source)).ok


def refuse(path: str) -> None:
    raise AssertionError(f"{path} is looked for")


def test_verify_looks_for_a_committed_file_only_where_the_snapshot_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = bucket(2, tmp_path, is_open=False, pending="part-9").replace(
        f"{tmp_path}/part-9".encode(), f"s3://{str(tmp_path)[5:]}/part-9".encode()
    )
    source = streaming(tmp_path / "s", write_versioned(2, elsewhere))
    monkeypatch.setattr("statetool.io.listing.file_system", refuse)
    (problem,) = statetool.verify(str(source)).problems
    assert "s3://" in problem.problem
    assert "in another file system" in problem.problem


def test_the_removal_of_a_file_is_no_commit(tmp_path: Path) -> None:
    cleanup = write_versioned(2, packed(IN_PROGRESS, True, "/out/part-3", write_versioned(1, b"?")))
    committable = packed(struct.pack(">I", 0x1E765C80), False, True, cleanup)
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(committable))
    (row,) = run("sinks", "pending", path)
    assert (row["name"], row["verdict"]) == ("remove /out/part-3", "will_remove")
    assert run("sinks", "check", path) == []
