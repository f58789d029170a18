"""The JSON Schema of each command, and the JSON that the command prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.json_schema import ANSWERS, json_schema
from statetool.cli.main import cli
from statetool.cli.options import CommonOptions
from tests.support.cli_output import command_of, commands
from tests.support.connectors.committers import iceberg
from tests.support.connectors.committers import new as committing
from tests.support.servers.flink_rest import flink_rest
from tests.support.zoo import ZOO
from tools import sandbox
from tools.cli_reference import EXAMPLES
from tools.examples import run_bash
from tools.generated import FILES, SCHEMAS

#: Runs of commands beside the examples of the reference: other alternatives of an answer, and rows with more values.
RUNS = [
    "ls statetool/demo/savepoint",
    f"stats {ZOO} --ttl-ms 1",
    *(f"stats {ZOO} --table {name}" for name in ("sizes", "skew", "restore")),
    f"stats {ZOO} --estimate",
    "stats checkpoints",
    f"info {ZOO}",
    f"states {ZOO}",
    "info CONNECTORS/v2_3_0-hybrid-first/snapshot",
    "sources show statetool/demo/savepoint --enumerator",
    "sources check CONNECTORS/v2_3_0-kafka-source-inconsistent/snapshot",
    "sources list CONNECTORS/v2_3_0-kafka-source-inconsistent/snapshot",
    "sinks list CONNECTORS/v2_3_0-kafka-sink/snapshot",
    "sinks pending CONNECTORS/v2_3_0-kafka-sink/snapshot --timeout 5s",
    "sinks committed ICEBERG",
    "copy ROCKSDB copied --dry-run",
    "export statetool/demo/savepoint orders keyed_state exported-json --format jsonl",
    "schema statetool/demo/savepoint orders --format avro",
    "transform statetool/demo/savepoint edited --uid orders --set points=points+1",
    "keep statetool/demo/savepoint kept-dry --where points>1 --dry-run",
    "erase statetool/demo/savepoint erased --keys Ida",
    "chain checkpoints --delete 42",
    "doctor",
    "jobs REST",
    "ls REST",
]
#: Answers without rows: nothing is wrong in the examples.
EMPTY = {
    "verify statetool/demo/savepoint --deep",
    "sources check statetool/demo/savepoint",
    "sinks committed statetool/demo/next-day",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which examples of the documentation run."""
    folder = sandbox.create(tmp_path_factory.mktemp("sandbox") / "made")
    (folder / "checkpoints" / "leftover").write_bytes(b"from a failed checkpoint")
    for file in folder.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def words(corpus: Path, connector_cases: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield what words in capitals stand for."""
    with flink_rest("2.3", tmp_path) as rest:
        table = committing(7, *iceberg(7)).write(str(tmp_path / "table"))
        rocksdb = corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4"
        yield {"CONNECTORS": str(connector_cases), "ICEBERG": table.path, "REST": rest.url, "ROCKSDB": str(rocksdb)}


def examples(command: str) -> list[str]:
    """Return the examples of a command in the reference, and those in :data:`RUNS`."""
    named = {name: example for group in EXAMPLES.values() for name, example in group.items()}
    own = [named[command]] if command in named else []
    return [*own, *(run for run in RUNS if f"{run} ".startswith(f"{command} "))]


@pytest.fixture
def read_options(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the common options that commands read, as far as they have run. Copies of all options do not count."""
    read = set()

    def get(options: CommonOptions, name: str) -> Any:
        if sys._getframe(1).f_globals["__name__"] != "dataclasses":
            read.add(name)
        return object.__getattribute__(options, name)

    monkeypatch.setattr(CommonOptions, "__getattribute__", get)
    return read


def closed(schema: Any) -> Any:
    """Return a schema that allows no other fields, so that a field that no schema names is found."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    return parts | ({"additionalProperties": False} if "properties" in parts else {})


@pytest.mark.parametrize("command", [name for name in ANSWERS if examples(name)])
def test_the_outputs_of_a_command_fit_its_schema_and_its_common_options_act(
    command: str, made: Path, words: dict[str, str], read_options: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for example in examples(command):
        *before, line = example.replace("\\\n", "").split("\n")
        typed = shlex.split(line.partition(" | ")[0].removeprefix("statetool "))
        arguments = [re.sub("[A-Z]{4,}", lambda found: words.get(found[0], found[0]), word) for word in typed]
        with sandbox.fresh(made) as folder, monkeypatch.context() as patch:
            if before:
                run_bash("\n".join([f"cd {folder}", *before]))
            patch.chdir(folder)
            done = CliRunner().invoke(cli, [*arguments, "--json"])
        assert done.exit_code in (0, 1), done.output
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, closed(json_schema(command)))
        assert answer or line.removeprefix("statetool ") in EMPTY
    names = {p.name for p in command_of(tuple(command.split(" "))).params}
    assert names & {*CommonOptions.__dataclass_fields__} <= read_options


def test_each_command_with_json_output_has_a_schema() -> None:
    with_json = [names for names in commands() if any("--json" in p.opts for p in command_of(names).params)]
    assert {" ".join(names) for names in with_json} == set(ANSWERS)


def test_the_folder_has_the_schema_of_each_command() -> None:
    made = {file: make() for file, make in FILES.items() if file.parent == SCHEMAS}
    assert {file: file.read_text("utf-8") for file in SCHEMAS.iterdir()} == made, "run python -m tools.generated"


@pytest.mark.parametrize("name", ANSWERS)
def test_a_command_prints_its_schema(name: str) -> None:
    done = CliRunner().invoke(cli, [*name.split(" "), "--json-schema"])
    assert done.exit_code == 0, done.output
    schema = json.loads(done.stdout)
    assert schema == json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)


def test_an_object_has_the_version_of_its_form() -> None:
    done = CliRunner().invoke(cli, ["info", ZOO, "--json"])
    assert json.loads(done.stdout)["json_version"] == 1
    assert json_schema("info")["properties"]["json_version"] == {"const": 1}


def test_the_record_of_a_check_fits_its_schema() -> None:
    verdict = statetool.check(ZOO, ZOO)
    record = json.loads(json.dumps({"json_version": 1, **verdict.record()}))
    assert record["operators"][0]["states"]
    assert record["warnings"]
    jsonschema.validate(record, closed(json_schema("check")))
