"""Compressed operator state of Flink 1.18.0 and 1.18.1, whose elements have wrong offsets (FLINK-34063)."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import DecodeError, UnsupportedError
from statetool.formats.compression import BLOCK_BYTES, FrameWriter
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.unflushed_lists import may_be_unflushed, rewrite_stream
from statetool.types.declared import NOTHING_DECLARED
from tests.support.corpora.archives import unpack
from tests.support.flink.list_job import PACKED, list_machine, run_job

EDITS: Final[dict[str, Callable[[str, str], object]]] = {
    "converted": lambda src, dst: statetool.convert(src, dst),
    "renamed": lambda src, dst: statetool.change_uids(src, dst, {"a61ab9024f87f3989f080776f487a070": "renamed"}),
    "rescaled": lambda src, dst: statetool.rescale(src, dst, 256),
    "dealt": lambda src, dst: statetool.rescale(src, dst, 256, parallelism=2),
}
#: Operators of three subtasks with elements above 64 KiB, whose offsets differ, and their states.
LARGE: Final = {"large": ("large", "small"), "alone": ("large",)}

#: Each byte as a character of one byte.
ASCII: Final = bytes(i & 0x7F for i in range(256))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("lists")) / "1.18.1"


def values(path: object) -> dict[str, Any]:
    """Return the values of all states, in the form of the job. Those of operators with several subtasks are together."""
    snapshot = statetool.load(str(path))
    ids = {o.operator_id for o in snapshot.operators.values()}
    keeper = next(uid for uid in ("keeper", "renamed") if operator_id_for_uid(uid) in ids)
    snapshot = snapshot.with_uids([keeper, *LARGE])
    operator = snapshot[keeper]
    lists = {name: operator.to_arrow(name)["value"].to_pylist() for name in ("list", "union", "one")}
    rules = {row["key"]: row["value"] for row in operator.to_arrow("rules").to_pylist()}
    large = {
        uid: {name: sorted(snapshot[uid].to_arrow(name)["value"].to_pylist()) for name in states}
        for uid, states in LARGE.items()
    }
    return {**lists, "rules": rules, **large}


def join_subtasks(written: dict[str, Any]) -> dict[str, Any]:
    """Return the values that a job told, with those of all subtasks of an operator together."""
    subtasks = {uid: [written.pop(name) for name in sorted(written) if name[:-1] == uid] for uid in LARGE}
    return written | {
        uid: {name: sorted(v for values in subtasks[uid] for v in values[name]) for name in states}
        for uid, states in LARGE.items()
    }


def written(folder: Path) -> Any:
    return join_subtasks(json.loads((folder / "values.json").read_text("utf-8")))


def test_elements_are_read_in_their_order(folder: Path) -> None:
    assert values(folder) == written(folder)


@pytest.mark.parametrize("edit", EDITS)
def test_edits_write_right_offsets(folder: Path, tmp_path: Path, edit: str) -> None:
    EDITS[edit](str(folder), str(tmp_path / "new"))
    assert values(tmp_path / "new") == written(folder)
    assert not statetool.verify(str(tmp_path / "new"), deep=True).problems


def test_copies_are_refused_and_verify_names_the_ticket(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"FLINK-34063.*statetool convert"):
        statetool.copy(str(folder), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    problems = statetool.verify(str(folder)).problems
    assert {"FLINK-34063" in p.problem for p in problems} == {True}
    assert len({p.operator for p in problems}) == 3


def test_offsets_of_full_elements_are_right(folder: Path) -> None:
    """The stream of a release without the fault looks the same if each element fills its chunks."""
    elements = statetool.load(str(folder), uids=[*LARGE])["alone"].inventory.elements
    stored = next(iter(elements._stored_streams))
    header = elements.header(stored)
    full = b"\xfe\xff\x03" + b"x" * (BLOCK_BYTES - 3)
    with stored.stream.open() as f:
        out = bytearray(f.read_at(0, header.size_bytes))
    writer, offsets = FrameWriter(out.extend), []
    for _ in range(3):
        offsets.append(len(out))
        writer.write(full)
        writer.flush()
    stream = replace(stored.stream, start=0, size_bytes=len(out), inline=bytes(out))
    assert may_be_unflushed({"large": tuple(offsets)})
    assert rewrite_stream(stream, header, {"large": tuple(offsets)}, NOTHING_DECLARED) is None
    wrong = (offsets[0], offsets[0], offsets[1])
    rewritten = rewrite_stream(stream, header, {"large": wrong}, NOTHING_DECLARED)
    assert rewritten is not None
    at = rewritten[1]["large"]
    assert [b - a for a, b in pairwise(at)] == [len(full)] * 2


def test_small_elements_are_not_suspected() -> None:
    assert not may_be_unflushed({"list": (100, 132, 9000), "rules": (9100,)})
    assert not may_be_unflushed({"one": (100,), "rules": (9100,)})


def test_operators_that_cannot_be_decoded_stay_with_a_warning(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DecodeError("the class com.acme.Order is unknown", hint="declare it")

    monkeypatch.setattr("statetool.snapshot.elements.rewrite_stream", fail)
    writer = statetool.SavepointWriter.from_existing(statetool.load(str(folder), uids=["keeper", *LARGE]))
    with pytest.warns(UserWarning, match=r"large.*as it is stored.*com\.acme\.Order.*statetool convert"):
        writer.remove_operator("keeper").remove_operator("alone").write(str(tmp_path / "new"))
    with pytest.raises(DecodeError, match=r"com\.acme\.Order"):
        statetool.convert(str(folder), str(tmp_path / "converted"))
    with pytest.raises(UnsupportedError, match="statetool convert"):
        statetool.copy(str(tmp_path / "new"), str(tmp_path / "copied"))


def test_the_memory_of_decoded_lists_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.snapshot.elements.MOST_BYTES", 1 << 18)
    operator = statetool.load(str(folder), uids=[*LARGE])["alone"]
    with pytest.raises(UnsupportedError, match=r"FLINK-34063.*statetool drop"):
        operator.to_arrow("large")


def test_lists_are_decoded_in_little_more_memory_than_they_have(folder: Path) -> None:
    elements = statetool.load(str(folder), uids=[*LARGE])["alone"].inventory.elements
    stored = next(iter(elements._stored_streams))
    header = elements.header(stored)
    with stored.stream.open() as f:
        out = bytearray(f.read_at(0, header.size_bytes))
    at, n = len(out), 32
    writer = FrameWriter(out.extend)
    for _ in range(n):  # random bytes, so that also the compressed ones are large
        writer.write(b"\xfe\xff\x0f" + random.Random(1).randbytes((1 << 18) - 3).translate(ASCII))
    writer.flush()
    stream = replace(stored.stream, start=0, size_bytes=len(out), inline=bytes(out))
    tracemalloc.start()
    try:
        rewritten = rewrite_stream(stream, header, {"large": (at,) * n}, NOTHING_DECLARED)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rewritten is not None
    assert peak < 1.5 * rewritten[0].size_bytes


@pytest.mark.full
@pytest.mark.parametrize("release", ["1.20.5"])
def test_flink_restores_the_converted_savepoint(folder: Path, tmp_path: Path, release: str) -> None:
    statetool.convert(str(folder), str(tmp_path / "new"))
    machine = list_machine(release, tmp_path)
    try:
        answer = run_job(machine, snapshot=str(tmp_path / "new"), large=2)
        assert join_subtasks(answer["values"]) == written(folder)
    finally:
        machine.close()
