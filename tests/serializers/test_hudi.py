"""State of Hudi's writers, by Flink 1.20.5 and Hudi 1.0.2 (``HudiJob``): a class file of Hudi's jars has the fields of each class."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import statetool
from statetool.connectors.wire import write_versioned
from statetool.errors import FormatError, UnknownSerializerError, UnsupportedError
from tests.support.connectors.commands import run
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


def test_without_the_jars_the_sink_has_its_instant(folder: Path, tmp_path: Path) -> None:
    (sink,) = run("sinks", "list", folder, "--uid", "writer")
    assert (sink["connector"], sink["role"], sink["pending"], sink["undecoded"]) == ("hudi-sink", "sink", 1, 0)
    assert json.loads(sink["writers"]) == [
        {
            "subtask": 0, "bootstrap": False, "endInput": False, "instantTime": "20260102030405678", "lastBatch": True,
            "taskID": 0, "files": None,
        }
    ]  # fmt: skip
    assert sink["note"] == "its files are not read: pass Hudi's jar with --jar"
    (event,) = run("sinks", "pending", folder, "--timeout", "0s")
    assert (event["name"], event["status"], event["verdict"], event["is_decoded"]) == (
        "20260102030405678/0", "pre_committed", "unknown", True,
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="nothing of hudi-sink can be forgotten"):
        statetool.drop_transactions(str(folder), str(tmp_path / "t"), "writer", [event["name"]], uids=["writer"])


def test_events_as_avro_stay_bytes(tmp_path: Path) -> None:
    """No release of Hudi has this state. The version does not say which schema its release has."""
    values = pa.table({"value": pa.array([write_versioned(4, b"an Avro record")], pa.binary())})
    state = statetool.bootstrap_list_state("write-metadata-state-v2", values, type="BINARY")
    statetool.SavepointWriter.new().with_operator("writer", state, parallelism=1).write(str(tmp_path / "s"))
    (sink,) = run("sinks", "list", tmp_path / "s")
    assert (sink["connector"], sink["pending"], sink["undecoded"], sink["note"]) == (
        "hudi-sink", None, 1, "not known: versions [4], 1 element",
    )  # fmt: skip
    (event,) = run("sinks", "pending", tmp_path / "s", code=1)
    assert (event["verdict"], event["is_decoded"]) == ("unknown", False)
    (row,) = statetool.load(str(tmp_path / "s")).connector_rows("transactions")
    assert row.undecoded == b"an Avro record"


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
    (sink,) = statetool.load(
        str(folder), uids=["writer"], jars=[str(jar) for jar in (common, client, basics)]
    ).connector_rows("sinks")
    assert (sink.pending, json.loads(sink.writers)[0]["files"], sink.note) == (1, 2, "")
    # Option is in another jar. Without it, nobody knows that it is final.
    with pytest.raises(FormatError, match=r"add the jar of org\.apache\.hudi\.common\.util\.Option"):
        operator(folder, common, client).to_arrow(STATE)
