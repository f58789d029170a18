"""Rewritten savepoints of jobs with flink-scala-api: the jobs find the changed values in Flink, with Scala 2.13 and 3 (``--flinkx``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.flinkx_job import BUILDS, PACKED, FlinkxBuild, flinkx_machine, run_job
from tests.support.flink.library_job import KINDS

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: f"scala-{build.scala}")
def test_a_job_finds_rescaled_and_changed_values(build: FlinkxBuild, flinkx_clone: Path, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / build.case
    expected = json.loads((folder / "values.json").read_text("utf-8"))
    rescaled, renamed, changed = (str(tmp_path / name) for name in ("rescaled", "renamed", "changed"))
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"])
    statetool.change_uids(rescaled, renamed, {"keeper": "renamed"}, uids=["keeper"])
    item = {"_1": 5, "_2": "größe"}
    new = {
        "case_class": item,
        "list": [item, {"_1": 6, "_2": ""}],
        "option": item,
        "coproduct": {"kind": "Circle", "Circle": {"_1": 2.5}, "Box": None},
        "objects": "Red",
        "mutable_map": [("größe", 7)],
        "sorted_set": ["a", "b"],
        "null_case_class": {"_1": None, "_2": {"_1": 1, "_2": 2}, "_3": "note"},
        "finite_duration": {"length": 9, "unit": "HOURS"},
    }
    key = (3 * 7919, "item 3")
    statetool.set_values(renamed, changed, "renamed", key, {**new, "nested._2._1": 99}, uids=["renamed"])
    expected["3"] |= {**new, "mutable_map": [["größe", 7]]}
    expected["3"]["nested"]["_2"]["_1"] = 99
    with flinkx_machine(build, flinkx_clone, tmp_path) as machine:
        for backend in KINDS:
            request = {"backend": backend, "snapshot": changed, "uid": "renamed", "parallelism": 3}
            assert run_job(machine, **request, max_parallelism=300)["values"] == expected, backend
