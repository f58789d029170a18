from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from statetool.cli.main import cli
from statetool.demo import SAVEPOINT
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, parse_metadata, write_metadata
from statetool.plan.declarations import declared_classes


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_info_in_text_and_json() -> None:
    text = run("info", SAVEPOINT)
    assert text.exit_code == 0
    assert "metadata_version  6" in text.stdout
    found = json.loads(run("info", SAVEPOINT, "--output", "json").stdout)
    assert found["checkpoint_id"] == 2
    assert {"timers", "with-ttl"} <= {o["operator"] for o in found["operators"]}


@pytest.mark.parametrize("command", ["ls", "states", "files"])
def test_lists(command: str) -> None:
    assert "timers" in run(command, SAVEPOINT).stdout
    rows = json.loads(run(command, SAVEPOINT, "--output", "json").stdout)
    assert len(rows) > 10
    assert all("operator" in r for r in rows)


def test_ls_of_a_directory_lists_snapshots(corpus: Path) -> None:
    found = run("ls", str(corpus / "v2_3_0-hashmap-canonical"))
    assert found.exit_code == 0
    assert "snapshot" in found.stdout


def test_schema_as_ddl_and_avro() -> None:
    import fastavro

    assert run("schema", SAVEPOINT, "timers").stdout == "key STRING,\nregistered INT\n"
    avro = json.loads(run("schema", SAVEPOINT, "with-ttl", "--format", "avro").stdout)
    fastavro.parse_schema(avro)
    assert [f["name"] for f in avro["fields"]][:2] == ["key", "ttl_value"]


def test_head() -> None:
    rows = json.loads(run("head", SAVEPOINT, "timers", "-n", "3", "--output", "json").stdout)
    assert len(rows) == 3
    assert rows[0].keys() == {"key", "registered"}
    timers = json.loads(run("head", SAVEPOINT, "timers", "timers", "--output", "json").stdout)
    assert timers[0]["service"] == "user-timers"


def test_exit_codes_and_near_names(tmp_path: Path) -> None:
    unknown = run("head", SAVEPOINT, "timer")
    assert unknown.exit_code == 2
    assert "timers" in unknown.stderr
    assert run("head", SAVEPOINT, "timers", "registred").exit_code == 2
    assert run("info", str(tmp_path / "nothing")).exit_code == 3
    (tmp_path / "_metadata").write_bytes(b"not a savepoint")
    broken = run("info", str(tmp_path))
    assert broken.exit_code == 3
    assert "_metadata" in broken.stderr
    assert broken.stdout == ""
    misspelt = run("inf", SAVEPOINT)
    assert misspelt.exit_code == 2
    assert "info" in misspelt.stderr


def test_doctor_of_a_snapshot() -> None:
    found = run("doctor", SAVEPOINT, "--output", "json")
    rows = {r["what"]: r for r in json.loads(found.stdout)}
    assert rows["snapshot"]["fine"]
    assert found.exit_code == (0 if all(r["fine"] for r in rows.values()) else 1)


def without_java(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")}
    command = [sys.executable, "-m", "statetool", *arguments]
    return subprocess.run(command, env={**environment, "PATH": "/nowhere"}, capture_output=True, text=True, check=False)


def test_without_java() -> None:
    demo = without_java("demo")
    assert demo.returncode == 3
    assert "install Java 17" in demo.stderr
    head = without_java("head", SAVEPOINT, "timers", "-n", "1")
    assert head.returncode == 0
    assert "timer-" in head.stdout


def many_subtasks(folder: Path) -> Path:
    """A snapshot of ten operators with 500 subtasks each, their state inline."""
    source = parse_metadata((Path(SAVEPOINT) / "_metadata").read_bytes())
    model = next(o for o in source.operators if o.uid == "timers")
    state = model.subtasks[0].managed_keyed
    operators = tuple(
        OperatorState(
            operator_id=f"{i:032x}",
            uid=f"operator-{i}",
            parallelism=500,
            max_parallelism=1000,
            subtasks=tuple(SubtaskState(index=n, managed_keyed=state) for n in range(500)),
        )
        for i in range(10)
    )
    metadata = SnapshotMetadata(version=6, checkpoint_id=1, operators=operators, properties=source.properties)
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return folder


def test_info_of_5000_subtask_states_takes_less_than_a_second(tmp_path: Path) -> None:
    path = many_subtasks(tmp_path)
    command = [sys.executable, "-m", "statetool", "info", str(path)]
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - start)
        assert "operator-9" in done.stdout
    assert min(seconds) < 1


def test_declared_classes_are_read(tmp_path: Path, corpus: Path) -> None:
    schema = {
        "type": "record",
        "name": "Money",
        "java-class": "corpus.PublicTypes$Money",
        "fields": [{"name": "cents", "type": "long"}, {"name": "currency", "type": "string"}],
    }
    (tmp_path / "money.avsc").write_text(json.dumps(schema))
    path = str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot")
    rows = json.loads(
        run("head", path, "composites-by-int", "money", "--declare", str(tmp_path), "--output", "json").stdout
    )
    assert rows[0]["value"]["currency"] in ("EUR", "USD", "JPY", "GBP", "CHF")
    assert run("head", path, "composites-by-int", "money", "--declare", str(tmp_path / "none.avsc")).exit_code == 3
    assert declared_classes() == ()  # of that command alone
