"""Compressed operator state of Flink 1.18.0 and 1.18.1, whose elements have wrong offsets (FLINK-34063)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import UnsupportedError
from tests.support.corpora.archives import unpack
from tests.support.flink.list_job import PACKED, list_machine, run_job

EDITS: Final[dict[str, Callable[[str, str], object]]] = {
    "converted": lambda src, dst: statetool.convert(src, dst),
    "renamed": lambda src, dst: statetool.change_uids(src, dst, {"a61ab9024f87f3989f080776f487a070": "keeper"}),
    "rescaled": lambda src, dst: statetool.rescale(src, dst, 256),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("lists")) / "1.18.1"


def values(path: object) -> dict[str, Any]:
    """Return the values of all states, in the form of the job."""
    operator = statetool.load(str(path), uids=["keeper"])["keeper"]
    lists = {name: operator.to_arrow(name)["value"].to_pylist() for name in ("list", "union", "one")}
    return {**lists, "rules": {row["key"]: row["value"] for row in operator.to_arrow("rules").to_pylist()}}


def written(folder: Path) -> Any:
    return json.loads((folder / "values.json").read_text("utf-8"))


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
    assert {"FLINK-34063" in p.problem for p in statetool.verify(str(folder)).problems} == {True}


@pytest.mark.full
@pytest.mark.parametrize("release", ["1.20.5"])
def test_flink_restores_the_converted_savepoint(folder: Path, tmp_path: Path, release: str) -> None:
    statetool.convert(str(folder), str(tmp_path / "new"))
    machine = list_machine(release, tmp_path)
    try:
        assert run_job(machine, snapshot=str(tmp_path / "new"))["values"] == written(folder)
    finally:
        machine.close()
