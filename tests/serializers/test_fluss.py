"""Offsets of the sink of Fluss 0.9, written by Flink 1.20.5 and 2.3.0 (``tests/support/flink/flusses`` has the job)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from tests.support.connectors.commands import run
from tests.support.connectors.layouts import packed
from tests.support.corpora.archives import unpack
from tests.support.flink.fluss_job import PACKED
from tests.support.flink.tree_job import RELEASES
from tests.support.snapshots.entries import entries_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("fluss"))


def opened(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"])["keeper"]


def serializer(path: Path) -> Serializer:
    ((header, _), *_) = opened(path).inventory.keyed_states.values()
    (state,) = (m for m in header.states if m.name == "offsets")
    return state.value


def described(value: dict[str, Any]) -> dict[str, int]:
    """Return offsets as the job describes them."""
    return {
        "-".join([str(o["table_id"]), *([] if o["partition_id"] is None else [f"p{o['partition_id']}"]), str(o["bucket"])]): o[
            "offset"
        ]
        for o in value["offsets"]
    }  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_all_values_are_those_of_the_job(folder: Path, release: str) -> None:
    expected = json.loads((folder / release / "values.json").read_text("utf-8"))
    rows = opened(folder / release).to_arrow("offsets").to_pylist()
    assert {r["key"]: described(r["value"]) for r in rows} == {k: v["offsets"] for k, v in expected.items()}
    assert {(r["value"]["version"], r["value"]["table_id"]) for r in rows} == {(1, None)}
    (sink,) = run("sinks", "list", folder / release)
    assert (sink["connector"], sink["role"], sink["pending"]) == ("fluss-sink", "writer", 0)
    undo_after = {"7-0": 5000, "7-p35-1": 5001}
    assert json.loads(sink["writers"]) == [{"subtask": n, "undo_after": undo_after} for n in range(2)]


@pytest.mark.parametrize("release", RELEASES)
def test_values_are_written_as_they_were_read(folder: Path, release: str) -> None:
    known = serializer(folder / release)
    assert resolve(known, known).level is Level.AS_IS
    written = 0
    for _, state, _, raw in entries_of(opened(folder / release).inventory):
        if state == "offsets":
            out, skipped = Output(), Cursor(raw)
            known.encode(out, known.decode(Cursor(raw)))
            known.skip(skipped)
            assert (bytes(out), skipped.left) == (raw, 0)
            written += 1
    assert written == 8


def test_version_2_has_one_table(folder: Path) -> None:
    known = serializer(folder / "2.3.0")
    raw = packed((4, 2), (8, 7), (4, 2), False, (4, 0), (8, 11), True, (8, 30), (4, 1), (8, 12))
    value = known.decode(Cursor(raw))
    assert value == (2, 7, [(7, None, 0, 11), (7, 30, 1, 12)])
    out = Output()
    known.encode(out, value)
    assert bytes(out) == raw
    for end in range(len(raw)):
        with pytest.raises(StatetoolError):
            known.decode(Cursor(raw[:end]))
    with pytest.raises(FormatError, match="version 3 of the state of a writer of Fluss is not 1 or 2"):
        known.decode(Cursor(packed((4, 3), (8, 7), (4, 0))))
    with pytest.raises(EncodeError, match="an offset of table 8 in the state of table 7"):
        known.encode(Output(), (2, 7, [(8, None, 0, 11)]))
    with pytest.raises(EncodeError, match="version 1 has no table of its own"):
        known.encode(Output(), (1, 7, []))
