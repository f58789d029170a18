"""Commands on jobs, with recorded answers of Flink 1.20 and 2.3."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster import triggers
from statetool.operations.cluster.overview import JobRow, JobSnapshotRow
from tests.support.servers.flink_rest import RELEASES, FlinkRest, flink_rest
from tests.support.zoo import ZOO


@pytest.fixture(params=RELEASES)
def rest(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkRest]:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    monkeypatch.setattr(triggers, "_STEPS_S", (0.0,))
    with flink_rest(request.param, tmp_path) as running:
        yield running


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    return done


def newest(rest: FlinkRest) -> Path:
    path = rest.checkpoint_path("orders", rest.history("orders")["latest"]["completed"]["id"])
    shutil.copytree(ZOO, path)
    return path


def test_jobs_and_ls_list_jobs_with_their_checkpoints(rest: FlinkRest) -> None:
    listed = run("jobs", rest.url).stdout
    assert listed == run("ls", rest.url).stdout == run("ls", f"flink://{rest.host}", "--latest").stdout
    jobs, failed, savepoints = (block.splitlines() for block in listed.split("\n\n"))
    assert jobs[0].split()[:5] == ["job_id", "name", "state", "uptime", "checkpoint_id"]
    completed = rest.history("orders")["latest"]["completed"]
    (orders,) = (line.split() for line in jobs if line.startswith(rest.jobs["orders"]))
    assert orders[1:3] == ["orders", "RUNNING"]
    assert orders[4] == str(completed["id"])
    assert orders[-1] == completed["external_path"].replace("/folder-of-the-cluster", str(rest.folder))
    assert len(jobs) == 8
    reason = rest.history("declining")["latest"]["failed"]["failure_message"].removesuffix(".")
    assert any(line.startswith("declining") and line.endswith(reason) for line in failed)
    assert len(savepoints) == 2
    assert "savepoint-" in savepoints[1]


#: Runs a command, and prints its modules and child processes.
_PROGRAM = """
import resource, sys
from statetool.cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "duckdb", "polars", "kubernetes", "requests"}))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_head_takes_few_requests_and_no_java(rest: FlinkRest) -> None:
    newest(rest)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "head", f"flink://{rest.host}/orders", "timers", "keyed_state", "-n", "1"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    _, row, modules, children = done.stdout.splitlines()
    assert row.split() == ["timer-0", "7"]
    assert (modules, children) == ("[]", "0")
    paths = [path for _, path, _, _ in rest.requests]
    of_job = f"/jobs/{rest.jobs['orders']}"
    # The snapshot stores names. A slow read asks for the same again, to compare its duration with the retention.
    assert list(dict.fromkeys(paths)) == ["/jobs/overview", f"{of_job}/checkpoints"]
    assert len(paths) in (2, 4)


def test_one_job_as_json(rest: FlinkRest) -> None:
    tree = json.loads(run("jobs", f"flink://{rest.host}/orders", "-o", "json").stdout)
    completed = rest.history("orders")["latest"]["completed"]
    (job,) = tree["jobs"]
    assert list(job) == [f.name for f in fields(JobRow)]
    assert (job["name"], job["checkpoint_id"], job["checkpoint_ms"], job["checkpoint_duration_ms"]) == (
        "orders", completed["id"], completed["trigger_timestamp"], completed["end_to_end_duration"],
    )  # fmt: skip
    counts = rest.history("orders")["counts"]
    assert (job["completed"], job["failed"]) == (counts["completed"], counts["failed"])
    (savepoint,) = tree["savepoints"]
    assert list(savepoint) == [f.name for f in fields(JobSnapshotRow)]
    assert all(failed["job_name"] == "orders" for failed in tree["failed"])


def test_commands_read_the_newest_checkpoint(rest: FlinkRest) -> None:
    path, url = newest(rest), f"flink://{rest.host}/orders"
    assert run("info", url).stdout.splitlines()[0].split() == ["path", f"file:{path}"]
    assert run("ls", url).stdout == run("ls", str(path)).stdout
    head = ("timers", "keyed_state", "-n", "2")
    assert run("head", url, *head).stdout == run("head", str(path), *head).stdout
    assert "not a Flink _metadata file" not in run("info", rest.url, code=2).stderr
    run("diff", url, ZOO)
    run("verify", url, "--allow-unread")
    run("stats", url, "--table", "states")
    run("copy", url, str(rest.folder / "copied"))
    assert (rest.folder / "copied" / "_metadata").exists()


_HEAD = """
import json, sys
from statetool.cli import options
from statetool.cli.main import cli
options._LEAST_CHECKED_S = 1e9  # on a slow machine, a read of over 1 s would be compared with the retention
cli(["head", sys.argv[1], "timers", "keyed_state", "-n", "2"], standalone_mode=False)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_first_rows_take_two_requests_and_no_java(rest: FlinkRest) -> None:
    newest(rest)
    # Without PATH and JAVA_HOME, no program can be started.
    done = subprocess.run(
        [sys.executable, "-c", _HEAD, f"flink://{rest.host}/orders"],
        env={"PYTHONPATH": str(Path(statetool.__file__).parents[1]), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    *rows, modules = done.stdout.splitlines()
    assert len(rows) == 3
    assert [path.rpartition("/")[2] for _, path, *_ in rest.requests] == ["overview", "checkpoints"]
    assert not {"pyspark", "py4j", "pandas", "jpype", "requests", "aiohttp", "kubernetes"}.intersection(
        json.loads(modules)
    )


def test_a_savepoint_is_triggered_and_its_path_printed(rest: FlinkRest) -> None:
    done = run("savepoint", f"flink://{rest.host}/orders", "--to", "/savepoints", "--format", "native")
    assert done.stdout.startswith(f"file:{rest.folder}/savepoints/savepoint-{rest.jobs['orders'][:6]}-")
    assert "savepoint of 'orders'" in done.stderr
    (sent,) = (r for r in rest.requests if r[0] == "POST")
    assert sent[1] == f"/jobs/{rest.jobs['orders']}/savepoints"
    assert sent[3] == {"target-directory": "/savepoints", "cancel-job": False, "formatType": "NATIVE"}


def test_a_host_and_a_port_are_a_url(rest: FlinkRest) -> None:
    newest(rest)
    for command in ("jobs", "ls"):
        assert run(command, rest.host).stdout == run(command, f"flink://{rest.host}").stdout
    assert run("info", f"{rest.host}/orders").stdout == run("info", f"flink://{rest.host}/orders").stdout


def test_a_savepoint_without_a_directory_is_in_that_of_the_job(rest: FlinkRest) -> None:
    url = f"flink://{rest.host}/orders"
    assert "savepoint-" in run("savepoint", url).stdout
    run("savepoint", url, "--stop")
    sent = [r for r in rest.requests if r[0] == "POST"]
    assert [body for *_, body in sent] == [{"cancel-job": False}, {"drain": False}]
    missing = b'{"errors":["Config key [execution.checkpointing.savepoint-dir] is not set."]}'
    rest.first = lambda method, path, headers: (400, missing, {}) if method == "POST" else None
    refused = run("savepoint", url, code=3).stderr
    assert "is not set" in refused
    assert "pass --to DIR" in refused


def test_a_savepoint_is_opened_on_request(rest: FlinkRest) -> None:
    command = ["savepoint", f"flink://{rest.host}/orders", "--to", "/savepoints", "--format", "native"]
    path = Path(run(*command).stdout.strip().removeprefix("file:"))
    shutil.copytree(ZOO, rest.folder / "elsewhere" / path.name)
    moved = ["--rebase", f"file:{rest.folder}/savepoints={rest.folder}/elsewhere"]
    shown = run(*command, "--open", *moved).stdout
    assert shown == run("info", str(rest.folder / "elsewhere" / path.name)).stdout
    assert json.loads(run(*command, "--open", *moved, "--json").stdout)["operators"]
    assert f"file:{path}, which Flink names, does not exist here" in run(*command, "--open", code=3).stderr


def test_a_job_is_only_stopped_on_request(rest: FlinkRest) -> None:
    url = f"flink://{rest.host}/orders"
    tree = json.loads(run("savepoint", url, "--to", "s3://b/s", "--stop", "--drain", "--json").stdout)
    assert tree["name"] == "orders"
    assert "savepoint-" in tree["path"]
    (sent,) = (r for r in rest.requests if r[0] == "POST")
    assert sent[1] == f"/jobs/{rest.jobs['orders']}/stop"
    assert sent[3] == {"targetDirectory": "s3://b/s", "drain": True}
    by_name = run("savepoint", f"flink://{rest.host}", "orders", "--to", "s3://b/s", "--stop", "--drain", "--json")
    assert json.loads(by_name.stdout) == tree
    assert "name a job" in run("savepoint", url, "orders", "--to", "s3://b/s", code=2).stderr
    assert "add --stop" in run("savepoint", url, "--to", "s3://b/s", "--drain", code=2).stderr


def test_a_checkpoint_is_triggered_and_its_path_printed(rest: FlinkRest) -> None:
    done = run("checkpoint", f"flink://{rest.host}/orders")
    assert f"{rest.jobs['orders']}/chk-" in done.stdout
    rest.answers["GET /config"] = [[200, {"flink-version": "1.16.3"}]]
    refused = run("checkpoint", f"flink://{rest.host}/orders", code=3)
    assert "Flink 1.16.3 cannot take a checkpoint on request, which needs 1.17" in refused.stderr
    rest.answers["GET /config"] = [[200, {"flink-version": "1.14.6"}]]
    refused = run("savepoint", f"flink://{rest.host}/orders", "--to", "/savepoints", "--format", "native", code=3)
    assert "Flink 1.14.6 cannot choose the format of a savepoint, which needs 1.15" in refused.stderr


@pytest.mark.parametrize("command", ["savepoint", "checkpoint"])
def test_a_dry_run_sends_nothing(rest: FlinkRest, command: str) -> None:
    more = ("--to", "/savepoints") if command == "savepoint" else ()
    tree = json.loads(run(command, f"flink://{rest.host}/orders", *more, "--dry-run", "--json").stdout)
    assert tree["request"] == f"POST {rest.url}/jobs/{rest.jobs['orders']}/{command}s"
    assert "target-directory" in tree["body"] or command == "checkpoint"
    lines = run(command, f"flink://{rest.host}/orders", *more, "--dry-run").stdout.splitlines()
    assert json.loads(lines[-1].removeprefix("body")) == tree["body"]
    assert {method for method, *_ in rest.requests} == {"GET"}


def test_requests_that_cannot_succeed(rest: FlinkRest) -> None:
    declining = run("savepoint", f"flink://{rest.host}/declining", "--to", "/savepoints", code=3)
    assert "could not take a savepoint of 'declining'" in declining.stderr
    assert "Checkpoint" in declining.stderr or "FailoverRegion" in declining.stderr
    for command in (["savepoint", "--to", "/savepoints"], ["savepoint", "--dry-run"], ["checkpoint"]):
        (line,) = run(*command, f"flink://{rest.host}/finished", code=3).stderr.splitlines()
        assert re.fullmatch(rf"error: 'finished' .* has ended\. run: statetool jobs {rest.url}", line)
    assert "relative path" in run("savepoint", f"flink://{rest.host}/orders", "--to", "sp", code=2).stderr
    assert "is not the URL of a job" in run("jobs", ZOO, code=2).stderr
    assert "2 jobs" in run("savepoint", f"flink://{rest.host}/twice", "--to", "/savepoints", code=2).stderr


def test_waiting_is_reported(rest: FlinkRest, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 1000, 9))
    # Other threads of this process may look at the clock too.
    clock = SimpleNamespace(monotonic=lambda: float(next(times)), sleep=time.sleep)
    monkeypatch.setattr(triggers, "time", clock)
    orders = rest.jobs["orders"]
    name = next(n for n in rest.answers if n.startswith(f"GET /jobs/{orders}/savepoints/"))
    rest.answers[name][:0] = [rest.answers[name][0]] * 4
    done = run("savepoint", f"flink://{rest.host}/orders", "--to", "/savepoints")
    assert "savepoint of 'orders': in progress for 18 s" in done.stderr


def test_a_server_that_ends_while_waiting(rest: FlinkRest) -> None:
    def end(method: str, path: str, headers: dict[str, str]) -> Any:
        return (503, b"", {}) if "/savepoints/" in path else None

    rest.first = end
    done = run("savepoint", f"flink://{rest.host}/orders", "--to", "/savepoints", code=3)
    assert "the savepoint may still be in progress or complete" in done.stderr


def test_text_of_a_server_cannot_control_a_terminal(rest: FlinkRest) -> None:
    hostile = "\x1b[31m\nerror: \u202eend"
    for job in rest.answers["GET /jobs/overview"][0][1]["jobs"]:
        job["name"] += hostile
    for job_name in ("orders", "declining"):
        for checkpoint in rest.history(job_name)["history"]:
            checkpoint["external_path"] = f"/x{hostile}"
            checkpoint["failure_message"] = hostile
    orders, declining = (f"flink://{rest.host}/{rest.jobs[name]}" for name in ("orders", "declining"))
    results = [run("jobs", rest.url), run("ls", rest.url), run("jobs", rest.url, "--json")]
    results += [run("info", url, code=3) for url in (orders, declining)]
    results += [run("info", f"flink://{rest.host}/x{hostile}", code=2), run("checkpoint", orders, "--dry-run")]
    rest.first = lambda method, path, headers: (500, json.dumps({"errors": [hostile]}).encode(), {})
    results.append(run("jobs", rest.url, code=3))
    for line in "\n".join(r.stdout + r.stderr for r in results).splitlines():
        assert line.isprintable()
        assert not line.startswith("error: \u202e")
