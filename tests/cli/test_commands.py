from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, parse_metadata, write_metadata
from statetool.java.declaring.classes import declared_classes
from statetool.tables.request import OPTIONS
from tests.support.zoo import ZOO


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_info_in_text_and_json() -> None:
    text = run("info", ZOO)
    assert text.exit_code == 0
    assert "metadata_version  6" in text.stdout
    info = json.loads(run("info", ZOO, "--output", "json").stdout)
    assert info["checkpoint_id"] == 2
    assert {"timers", "with-ttl"} <= {o["operator"] for o in info["operators"]}


@pytest.mark.parametrize("command", ["ls", "states", "files"])
def test_lists(command: str) -> None:
    assert "timers" in run(command, ZOO).stdout
    rows = json.loads(run(command, ZOO, "--output", "json").stdout)
    assert len(rows) > 10
    assert all("operator" in r for r in rows)


def test_ls_of_a_directory_lists_snapshots(corpus: Path) -> None:
    result = run("ls", str(corpus / "v2_3_0-hashmap-canonical"))
    assert result.exit_code == 0
    assert "snapshot" in result.stdout


def test_schema_as_ddl_and_avro() -> None:
    import fastavro

    assert run("schema", ZOO, "timers").stdout == "key STRING,\nregistered INT\n"
    avro = json.loads(run("schema", ZOO, "with-ttl", "--format", "avro").stdout)
    fastavro.parse_schema(avro)
    assert [f["name"] for f in avro["fields"]][:2] == ["key", "ttl_value"]


def test_head() -> None:
    rows = json.loads(run("head", ZOO, "timers", "-n", "3", "--output", "json").stdout)
    assert len(rows) == 3
    assert rows[0].keys() == {"key", "registered"}
    timers = json.loads(run("head", ZOO, "timers", "timers", "--output", "json").stdout)
    assert timers[0]["service"] == "user-timers"


def test_head_has_every_option_of_a_read(corpus: Path) -> None:
    for command in ("head", "schema", "export"):
        shown = run(command, "--help").stdout
        assert all(f"--{name.replace('_', '-')} " in shown for name in OPTIONS if name != "table")
    path = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    assert run("head", path, "orders", "--states", "pet").exit_code == 3
    kept = run("head", path, "orders", "--states", "pet", "--on-error", "keep_raw", "--key-group", "--output", "json")
    rows = json.loads(kept.stdout)
    assert rows[0].keys() == {"key", "pet", "_undecoded", "key_group"}
    one = run("head", ZOO, "timers", "--keys", '["timer-3", "nobody"]', "--output", "json")
    assert [r["key"] for r in json.loads(one.stdout)] == ["timer-3"]
    assert run("schema", ZOO, "timers", "--key-group").stdout.endswith("key_group INT\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nanoz", "error"], "--nanos"),
        (["--nanos", "round"], "'round' is not one of"),
        (["--split-bytes", "much"], "split_bytes='much' is not a number"),
        (["--ttl-ms", "5"], "only ttl='hide_expired' uses"),
        (["--columns", "{"], "columns is not JSON"),
    ],
)
def test_options_of_a_read_that_make_no_sense(arguments: list[str], message: str) -> None:
    done = run("head", ZOO, "timers", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_head_shows_years_that_python_does_not_have(tmp_path: Path, form: str) -> None:
    days = pa.array([2_932_897, -719_163, 0], pa.int32())
    micros = pa.array([d * 86_400_000_000 + 1 for d in days.to_pylist()], pa.int64())
    columns = {
        "day": days.cast(pa.date32()),
        "local": micros.cast(pa.timestamp("us")),
        "instant": micros.cast(pa.timestamp("us", tz="UTC")),
        "list": pa.ListArray.from_arrays([0, 1, 2, 3], days.cast(pa.date32())),
    }
    table = pa.table({"key": [1, 2, 3], **columns})
    path = str(tmp_path / "sp")
    bootstrap = statetool.bootstrap_keyed_state(table, key="key")
    statetool.SavepointWriter.new().with_operator("o", bootstrap).write(path)
    done = run("head", path, "o", "--nanos", "truncate", "--output", form)
    assert done.exit_code == 0, done.stderr
    for year in ("+10000-01-01", "0000-12-31", "1970-01-01"):
        times = (f"{year} 00:00:00.000001", f"{year} 00:00:00.000001+00:00", f"[{year}]" if form == "text" else "")
        assert all(text in done.stdout for text in (year, *times) if year != "1970-01-01" or text != f"[{year}]")
    if form == "json":
        rows = {r["key"]: r for r in json.loads(done.stdout)}
        assert [rows[k]["list"] for k in (1, 2, 3)] == [["+10000-01-01"], ["0000-12-31"], ["1970-01-01"]]


def test_exit_codes_and_near_names(tmp_path: Path) -> None:
    unknown = run("head", ZOO, "timer")
    assert unknown.exit_code == 2
    assert "timers" in unknown.stderr
    assert run("head", ZOO, "timers", "registred").exit_code == 2
    assert run("info", str(tmp_path / "nothing")).exit_code == 3
    (tmp_path / "_metadata").write_bytes(b"not a savepoint")
    broken = run("info", str(tmp_path))
    assert broken.exit_code == 3
    assert "_metadata" in broken.stderr
    assert broken.stdout == ""


def test_doctor_of_a_snapshot() -> None:
    result = run("doctor", ZOO, "--output", "json")
    rows = {r["what"]: r for r in json.loads(result.stdout)}
    assert rows["snapshot"]["fine"]
    assert result.exit_code == (0 if all(r["fine"] for r in rows.values()) else 1)


def without_java(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")}
    command = [sys.executable, "-m", "statetool", *arguments]
    return subprocess.run(command, env={**environment, "PATH": "/nowhere"}, capture_output=True, text=True, check=False)


def test_without_java() -> None:
    demo = without_java("demo")
    assert demo.returncode == 3
    assert "install Java 17" in demo.stderr
    head = without_java("head", ZOO, "timers", "-n", "1")
    assert head.returncode == 0
    assert "timer-" in head.stdout


def many_subtasks(folder: Path) -> Path:
    """Write a snapshot of ten operators with 500 subtasks each, their state inline."""
    source = parse_metadata((Path(ZOO) / "_metadata").read_bytes())
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


def test_info_of_5000_subtask_states_makes_few_calls_for_each(tmp_path: Path) -> None:
    """A hundred calls for each subtask state take about a tenth of a second in all. The number of calls is the same on each machine."""
    code = (
        "import atexit, sys, threading\n"
        "from statetool.cli.main import main\n"
        "calls = 0\n"
        "def count(frame, event, argument):\n"
        "    global calls\n"
        "    calls += event in ('call', 'c_call')\n"
        "atexit.register(lambda: print(calls, file=sys.stderr))\n"
        "threading.setprofile(count)\n"
        "sys.setprofile(count)\n"
        "main()"
    )

    def calls(path: str, said: str) -> int:
        # Kernels run as they do for users, who compile none for so little.
        command, variables = [sys.executable, "-c", code, "info", path], os.environ | {"STATETOOL_JIT": ""}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        assert said in done.stdout
        return int(done.stderr.splitlines()[-1])

    assert calls(str(many_subtasks(tmp_path)), "operator-9") - calls(ZOO, "timers") < 200 * 5000


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
    assert declared_classes() == ()  # declared for that command only


@pytest.mark.parametrize("command", ["info", "states", "files"])
def test_a_reader_that_has_enough_is_no_error(command: str) -> None:
    asked = [sys.executable, "-m", "statetool", command, ZOO]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        words = process.stderr.read()
    assert process.returncode == 0
    assert re.search(b"error|pipe|Traceback", words, re.IGNORECASE) is None, words


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", ">&- 2>&-"])
def test_a_closed_stdout_is_no_error(closed: str, tmp_path: Path) -> None:
    """A file opened later does not get its file descriptor."""
    words = [sys.executable, "-m", "statetool", "head", ZOO, "timers"]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *words], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout == done.stderr == b""


def test_a_command_does_not_free_objects_one_by_one_at_its_end() -> None:
    # Functions that are registered first are called last.
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 10_000, file=sys.stderr))\n"
        "from statetool.cli.main import main\nmain()"
    )
    words = [sys.executable, "-c", code, "info", ZOO]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "True"


def test_of_a_write_that_nobody_reads_nothing_is_promised(tmp_path: Path) -> None:
    asked = [sys.executable, "-m", "statetool", "uid", ZOO, str(tmp_path / "new"), "timers=alarms"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1


def test_a_slip_in_a_uid_is_told_though_one_of_two_snapshots_may_have_it() -> None:
    for command in ("diff", "check"):
        assert run(command, ZOO, ZOO, "--name-uid", "timers").exit_code < 2
        slip = run(command, ZOO, ZOO, "--name-uid", "timres")
        assert slip.exit_code == 2
        assert "timres" in slip.stderr
