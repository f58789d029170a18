"""State of Hudi's writers, by Flink 1.20.5 and Hudi 1.0.2 (``HudiJob``): a class file of Hudi's jars has the fields of each class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from statetool.errors import FormatError, UnknownSerializerError
from tests.support.corpora.archives import unpack
from tests.support.flink.built_job import PACKED
from tools.maven import maven_jars

STATE = "write-metadata-state"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("built")) / "hudi"


def operator(folder: Path, *jars: Path) -> statetool.Operator:
    return statetool.load(str(folder), uids=["writer"], jars=[str(jar) for jar in jars])["writer"]


def test_without_the_jars_the_class_is_named(folder: Path) -> None:
    with pytest.raises(
        UnknownSerializerError, match=r"Kryo class org\.apache\.hudi\.client\.WriteStatus are not known"
    ):
        operator(folder).to_arrow(STATE)


@pytest.mark.full
@pytest.mark.usefixtures("connectors_by_maven")
def test_written_files_are_read_by_the_class_files_of_hudi(folder: Path) -> None:
    common, client, basics = maven_jars("hudi")
    (row,) = operator(folder, common, client, basics).to_arrow(STATE).to_pylist()
    event = row["value"]
    assert (event["taskID"], event["instantTime"], event["lastBatch"]) == (0, "20260102030405678", True)
    statuses = [status["org.apache.hudi.client.WriteStatus"] for status in json.loads(event["writeStatuses"])]
    stats = [next(iter(s["stat"].values())) if "path" not in s["stat"] else s["stat"] for s in statuses]
    found = [f"{stat['path']} {stat['numWrites']}" for stat in stats]
    assert found == json.loads((folder / "values.json").read_text("utf-8"))
    assert [s["totalRecords"] for s in statuses] == [1000, 1001]
    assert stats[1]["logFiles"] == [".file-1.log.2"]
    # Option is in another jar. Without it, nobody knows that it is final.
    with pytest.raises(FormatError, match=r"add the jar of org\.apache\.hudi\.common\.util\.Option"):
        operator(folder, common, client).to_arrow(STATE)
