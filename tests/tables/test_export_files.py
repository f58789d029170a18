"""Exports without Spark: the rows of the table, published together or not at all."""

from __future__ import annotations

import csv
import datetime as dt
import errno
import io
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError, StatetoolError, TargetExistsError
from statetool.io import owner
from statetool.tables.export import directories as export_directories
from statetool.tables.export import files as export_files
from statetool.tables.export.directories import new_directory
from statetool.tables.export.result_files import csv_lines
from tests.support.patience import eventually
from tests.support.zoo import ZOO


@pytest.fixture(scope="module")
def timers() -> statetool.Operator:
    return statetool.load(ZOO)["timers"]


def read(target: Path, style: str) -> list[dict[str, Any]]:
    files = sorted(target.rglob(f"*.{style}"))
    if style == "csv":
        # csv reads no character 0 before Python 3.11.
        texts = [io.StringIO(f.read_bytes().decode().replace("\0", "\ue000"), newline="") for f in files]
        return [
            {k: v.replace("\ue000", "\0") for k, v in row.items()} for text in texts for row in csv.DictReader(text)
        ]
    return [json.loads(line) for f in files for line in f.read_text().splitlines()]


def test_parquet_has_the_rows_of_the_table(timers: statetool.Operator, tmp_path: Path) -> None:
    assert timers.export(str(tmp_path / "rows"), "timers") == 150
    assert {f.suffix for f in (tmp_path / "rows").iterdir()} == {".parquet", ""}
    assert (tmp_path / "rows" / "_SUCCESS").exists()
    read_again = ds.dataset(tmp_path / "rows", format="parquet").to_table()
    assert read_again.sort_by([("key", "ascending"), ("timestamp", "ascending")]).equals(
        timers.to_arrow("timers").sort_by([("key", "ascending"), ("timestamp", "ascending")])
    )
    with pytest.raises(TargetExistsError, match="already exists"):
        timers.export(str(tmp_path / "rows"), "timers")


@pytest.mark.parametrize("style", ["csv", "jsonl"])
def test_text_has_the_rows_of_the_table(timers: statetool.Operator, tmp_path: Path, style: str) -> None:
    assert timers.export(str(tmp_path / "rows"), "timers", style=style) == 150
    rows = read(tmp_path / "rows", style)
    expected = [(r["key"], str(r["timestamp"]), r["domain"]) for r in timers.to_arrow("timers").to_pylist()]
    assert sorted((r["key"], str(r["timestamp"]), r["domain"]) for r in rows) == sorted(expected)
    assert rows[0]["time"].endswith("+00:00")


def test_nested_values_are_json(tmp_path: Path) -> None:
    operator = statetool.load(ZOO)["collections-by-string"]
    options: dict[str, Any] = {"states": ["prices", "visits", "names"]}
    for style in ("csv", "jsonl"):
        operator.export(str(tmp_path / style), style=style, **options)
    lines = {row["key"]: row for row in read(tmp_path / "jsonl", "jsonl")}
    for row in read(tmp_path / "csv", "csv"):
        for name in options["states"]:
            assert (json.loads(row[name]) if row[name] else None) == lines[row["key"]][name]
    assert any(isinstance(row["prices"], dict) for row in lines.values())


def test_values_with_line_breaks_and_quotes_stay_one_field() -> None:
    values = ["a\nb", "c\rd", "e\r\nf", 'g"h', "i,j", " k ", ""]
    batch = pa.record_batch({"x": values, "y": [*values[1:], None]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, pa.record_batch({"x": [""], "y": ["z"]})])
    text = "".join(f"{line}\n" for line in csv_lines(reader))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["x", "y"], *([a, b or ""] for a, b in zip(values, [*values[1:], None], strict=True)), ["", "z"]]
    single = pa.record_batch({"x": pa.array([None, "a"], pa.string())})
    lines = list(csv_lines(pa.RecordBatchReader.from_batches(single.schema, [single])))
    assert lines == ["x", '""', "a"], "an empty line would be no row"


def test_key_groups_and_checkpoints_are_folders(timers: statetool.Operator, tmp_path: Path) -> None:
    target = tmp_path / "rows"
    for checkpoint in (7, 8):
        assert timers.export(str(target), by_key_group=True, append_as=checkpoint) == 14
    with pytest.raises(TargetExistsError, match="checkpoint_id=8"):
        timers.export(str(target), append_as=8)
    groups = {int(f.name.removeprefix("key_group=")) for f in (target / "checkpoint_id=7").glob("key_group=*")}
    assert groups == set(timers.to_arrow(key_group=True)["key_group"].to_pylist())


def test_a_failure_leaves_nothing(timers: statetool.Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_files, "_write_file", full)
    with pytest.raises(StatetoolError, match="cannot write"):
        timers.export(str(tmp_path / "rows"))
    assert not (tmp_path / "rows").exists()


_KILLED = """
import os, sys, statetool.tables.export.files as e
from statetool.cli.main import main
def die(*arguments, **more):
    os.kill(os.getpid(), 9)
match sys.argv.pop(1):
    case "before files": e._write_split = die
    case "before moves": e.remove_folder = die
    case "before the end": os.rename = die
main()
"""


@pytest.mark.parametrize("style", ["parquet", "avro", "csv", "jsonl"])
@pytest.mark.parametrize("moment", ["before files", "before moves", "before the end"])
def test_a_killed_export_blocks_nothing(tmp_path: Path, style: str, moment: str) -> None:
    target = tmp_path / "target"
    name = next(o.name for o in statetool.load(ZOO).operators.values() if "keyed_state" in o.tables)
    arguments = ["export", ZOO, name, "keyed_state", str(target), "--format", style]
    done = subprocess.run([sys.executable, "-c", _KILLED, moment, *arguments], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert not target.exists()
    assert all(entry.name.startswith(".target.") for entry in tmp_path.iterdir())
    again = CliRunner().invoke(cli, arguments)
    assert again.exit_code == 0, again.output
    assert (target / "_SUCCESS").exists()
    assert not (target / "_temporary").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["target"]


def test_another_running_export_stays(timers: statetool.Operator, tmp_path: Path) -> None:
    with pytest.raises(TargetExistsError), new_directory(str(tmp_path / "rows")) as place:  # noqa: PT012 - the end of the block raises
        Path(place).mkdir()
        timers.export(str(tmp_path / "rows"), "timers")
        assert len(list(tmp_path.iterdir())) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows"]


def ended_owner() -> bytes:
    """Return the marker of a process of this machine that has ended."""
    code = "from statetool.io import owner; print(owner.describe_owner().decode())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


@pytest.fixture
def store() -> Iterator[tuple[Any, str]]:
    """An object store, and a target in it."""
    fs, folder = MemoryFileSystem(), f"/{uuid.uuid4().hex}"
    yield fs, folder
    if fs.exists(folder):
        fs.rm(folder, recursive=True)


@pytest.mark.parametrize("moved", [(), ("part-" + "0" * 32 + ".csv", "key_group=7/part-" + "1" * 32 + ".csv")])
def test_a_killed_export_to_a_store_does_not_block_the_next(
    timers: statetool.Operator, store: tuple[Any, str], moved: tuple[str, ...]
) -> None:
    fs, folder = store
    for name in (*moved, f"_temporary/part-{'2' * 32}.csv"):
        fs.pipe_file(f"{folder}/{name}", b"half")
    fs.pipe_file(f"{folder}/_temporary/owner-{'a' * 32}", ended_owner())
    assert timers.export(f"memory:/{folder}", "timers", style="csv") == 150
    names = [Path(name).name for name in fs.find(folder)]
    assert "_SUCCESS" in names
    assert not [name for name in names if name.startswith("owner-") or name.strip("part-.csv") in ("0" * 32, "2" * 32)]


@pytest.mark.parametrize("case", ["running", "another machine", "a file of the user", "complete"])
def test_what_is_not_of_a_killed_export_stays(timers: statetool.Operator, store: tuple[Any, str], case: str) -> None:
    fs, folder = store
    marker = ended_owner()
    if case == "running":
        marker = owner.describe_owner()
        owner.RUNNING["a" * 32] = export = type("Export", (), {})()
        assert export is not None
    elif case == "another machine":
        marker = json.dumps({**json.loads(marker), "host": "another"}).encode()
    elif case != "complete":
        fs.pipe_file(f"{folder}/notes.txt", b"mine")
    else:
        fs.pipe_file(f"{folder}/_SUCCESS", b"")
    fs.pipe_file(f"{folder}/_temporary/owner-{'a' * 32}", marker)
    before = fs.find(folder)
    with pytest.raises(TargetExistsError, match="already exists"):
        timers.export(f"memory:/{folder}", "timers", style="csv")
    assert fs.find(folder) == before


def elsewhere(*, beats: bool = True) -> bytes:
    """Return the marker of a process of another machine."""
    marker = {**json.loads(ended_owner()), "host": "another"}
    return json.dumps(marker | ({"beat_s": 60} if beats else {})).encode()


@pytest.mark.parametrize("beats", [True, False])
def test_a_killed_export_of_another_machine_blocks_the_next_for_a_while(
    timers: statetool.Operator, store: tuple[Any, str], beats: bool
) -> None:
    """A running export writes its marker again and again. Those of earlier releases do not, and count as running for a day."""
    fs, folder = store
    fs.pipe_file(f"{folder}/_temporary/part-{'2' * 32}.csv", b"half")
    marker = f"{folder}/_temporary/owner-{'a' * 32}"
    fs.pipe_file(marker, elsewhere(beats=beats))
    limit = dt.timedelta(minutes=15) if beats else dt.timedelta(days=1)
    before = fs.find(folder)
    for age in (dt.timedelta(), limit - dt.timedelta(seconds=30)):
        fs.store[marker].created = fs.store[marker].modified = dt.datetime.now(dt.timezone.utc) - age
        with pytest.raises(TargetExistsError, match=r"another machine|process [0-9]+ on") as error:
            timers.export(f"memory:/{folder}", "timers", style="csv")
        assert "try again in" in error.value.hint
        assert fs.find(folder) == before
    fs.store[marker].created = fs.store[marker].modified = (
        dt.datetime.now(dt.timezone.utc) - limit - dt.timedelta(seconds=30)
    )
    assert timers.export(f"memory:/{folder}", "timers", style="csv") == 150
    assert not [name for name in fs.find(folder) if "_temporary" in name]


def test_a_running_export_shows_that_it_runs(store: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    fs, folder = store
    monkeypatch.setattr(export_directories, "_BEAT_S", 0.01)
    with export_directories.marked(fs, f"{folder}/_temporary", folder) as stop:
        (marker,) = fs.find(folder)
        first = fs.modified(marker)
        eventually(lambda: fs.modified(marker) != first)
        stop()
        last = fs.modified(marker)
        time.sleep(0.1)
        assert fs.modified(marker) == last


def test_an_export_whose_target_was_taken_over_leaves_it(store: tuple[Any, str]) -> None:
    """Its process stood still for so long that another machine called it dead."""
    fs, folder = store
    target = f"memory:/{folder}"
    writes = export_directories.marked(fs, f"{folder}/_temporary", target)
    with pytest.raises(TargetExistsError, match="taken over"), new_directory(target), writes:  # noqa: PT012 - the end of the block raises
        fs.rm(folder, recursive=True)
        fs.pipe_file(f"{folder}/part-{'1' * 32}.csv", b"of the other one")
        raise OSError("a file is gone")
    assert len(fs.find(folder)) == 1
    writes = export_directories.marked(fs, f"{folder}/_temporary", target)
    with pytest.raises(TargetExistsError, match="taken over"), writes as finish:  # noqa: PT012 - the same
        fs.rm(folder, recursive=True)
        finish()


@pytest.mark.full
@pytest.mark.parametrize("style", ["parquet", "jsonl"])
def test_a_killed_export_on_spark_blocks_nothing(tmp_path: Path, style: str) -> None:
    name = next(o.name for o in statetool.load(ZOO).operators.values() if "keyed_state" in o.tables)
    arguments = ["export", ZOO, name, "keyed_state", str(tmp_path / "target"), "--format", style, "--spark"]
    command = [sys.executable, "-c", _KILLED, "before the end", *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert {entry.name[:8] for entry in tmp_path.iterdir()} == {".target."}
    assert CliRunner().invoke(cli, arguments[:-1]).exit_code == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize("failing", ["_write_file", "_write_split"])
def test_a_failed_export_blocks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    target = tmp_path / "target"
    target.mkdir()  # as a killed export of an earlier release left it
    name = next(o.name for o in statetool.load(ZOO).operators.values() if "keyed_state" in o.tables)
    arguments = ["export", ZOO, name, "keyed_state", str(target)]

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(export_files, failing, fail)
        assert CliRunner().invoke(cli, arguments).exit_code == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["target"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    refused = CliRunner().invoke(cli, arguments)
    assert refused.exit_code == 2
    assert "already exists" in refused.stderr


def test_styles_and_types_that_need_spark_are_named(timers: statetool.Operator, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no format 'orc'"):
        timers.export(str(tmp_path / "rows"), style="orc")
    assert not (tmp_path / "rows").exists()
