"""Metrics that follow jobs: what is read when nothing changed, and when something did."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import ConnectionFailedError, OptionError, SnapshotNotFoundError
from statetool.operations.cluster import snapshots
from statetool.reporting.openmetrics.exporter import Exporter
from statetool.reporting.openmetrics.families import CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE
from statetool.reporting.openmetrics.server import serving
from statetool.reporting.openmetrics.targets import targets_of
from statetool.snapshot.inventory import Inventory
from tests.support.metrics import Metrics
from tests.support.patience import eventually
from tests.support.servers.flink_rest import flink_rest
from tests.support.servers.object_store import object_store
from tests.support.zoo import ZOO

JOBS = ("1a" * 16, "2b" * 16)


class Opened:
    """Opens snapshots, and counts how often."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str) -> Inventory:
        self.paths.append(path)
        return Inventory(path)


def exporter(path: Path | str) -> tuple[Exporter, Opened]:
    opened = Opened()
    return Exporter(targets_of(str(path)), opened), opened


def checkpoint(directory: Path, number: int) -> Path:
    path = directory / f"chk-{number}"
    path.mkdir(parents=True)
    shutil.copy(os.path.join(ZOO, "_metadata"), path)
    return path


def test_each_checkpoint_is_opened_once(tmp_path: Path) -> None:
    first = checkpoint(tmp_path / JOBS[0], 9)
    following, opened = exporter(tmp_path / JOBS[0])
    assert following.refresh() == following.refresh() == []
    second = checkpoint(tmp_path / JOBS[0], 10)
    (tmp_path / JOBS[0] / "chk-11").mkdir()  # in progress
    (tmp_path / JOBS[0] / "shared").mkdir()
    for _ in range(3):
        assert following.refresh() == []
    assert opened.paths == [str(first), str(second)]
    shutil.rmtree(first)
    assert following.refresh() == []
    assert len(opened.paths) == 2
    assert Metrics(following.text).value("job_readable", job_id=JOBS[0]) == 1


def test_a_directory_of_jobs_has_the_newest_checkpoint_of_each(tmp_path: Path) -> None:
    for job in JOBS:
        checkpoint(tmp_path / job, 1)
    following, opened = exporter(tmp_path)
    assert following.refresh() == []
    assert Metrics(following.text).values("checkpoint_id", "job_id").keys() == {(job,) for job in JOBS}
    checkpoint(tmp_path / JOBS[1], 2)
    assert following.refresh() == []
    assert len(opened.paths) == 3
    shutil.rmtree(tmp_path / JOBS[0])
    assert following.refresh() == []
    assert Metrics(following.text).values("checkpoint_id", "job_id").keys() == {(JOBS[1],)}


def test_a_job_that_cannot_be_read_keeps_its_last_samples(tmp_path: Path) -> None:
    for job in JOBS:
        checkpoint(tmp_path / job, 1)
    following, _ = exporter(tmp_path)
    assert following.refresh() == []
    damaged = checkpoint(tmp_path / JOBS[0], 2) / "_metadata"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    for _ in range(2):
        (error,) = following.refresh()
        assert "chk-2" in str(error)
        metrics = Metrics(following.text)
        assert metrics.values("job_readable", "job_id") == {(JOBS[0],): 0, (JOBS[1],): 1}
        assert metrics.value("checkpoint_id", job_id=JOBS[0]) == 2
    shutil.rmtree(tmp_path)
    (error,) = following.refresh()
    assert isinstance(error, SnapshotNotFoundError)
    assert set(Metrics(following.text).values("job_readable", "job_id").values()) == {0}
    assert not following.is_readable


def test_a_checkpoint_that_is_deleted_while_it_is_opened(tmp_path: Path) -> None:
    checkpoint(tmp_path, 1)

    def open_late(path: str) -> Inventory:
        if path.endswith("chk-1"):
            shutil.rmtree(path)
            checkpoint(tmp_path, 2)
        return Inventory(path)

    following = Exporter(targets_of(str(tmp_path)), open_late)
    assert following.refresh() == []
    assert following.is_readable


def test_a_directory_without_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError, match="has no complete checkpoint"):
        statetool.metrics(str(tmp_path))
    with pytest.raises(SnapshotNotFoundError, match="does not exist"):
        statetool.metrics(str(tmp_path / "nothing"))


_COUNT = """
import json, sys
from statetool.reporting.openmetrics.exporter import Exporter
from statetool.reporting.openmetrics.server import serving
from statetool.reporting.openmetrics.targets import targets_of
from statetool.snapshot.inventory import Inventory
import urllib.request
events, calls = [], 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
sys.addaudithook(lambda event, _: events.append(event) if event in ("open", "os.scandir", "os.listdir") else None)
exporter = Exporter(targets_of(sys.argv[1]), Inventory)
exporter.refresh()
with serving(lambda: exporter.text, "127.0.0.1", 0) as url:
    urllib.request.urlopen(url).read()
    events.clear()
    sys.setprofile(count)
    for _ in range(10):
        assert exporter.refresh() == []
        urllib.request.urlopen(url).read()
    sys.setprofile(None)
print(json.dumps({"events": sorted(events), "calls": calls // 10}))
"""


def test_a_scrape_of_1000_checkpoints_opens_no_file(tmp_path: Path) -> None:
    for number in range(1, 1001):
        checkpoint(tmp_path / JOBS[0], number)
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, str(tmp_path / JOBS[0])], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["events"] == ["os.scandir"] * 10
    assert found["calls"] < 100 * 1000


def test_a_scrape_of_a_bucket_lists_once_and_reads_nothing() -> None:
    with object_store("metrics") as store:
        metadata = Path(ZOO, "_metadata").read_bytes()
        for number in range(1, 31):
            store.fs.pipe_file(f"metrics/{JOBS[0]}/chk-{number}/_metadata", metadata)
        following, opened = exporter(f"s3://metrics/{JOBS[0]}")
        assert following.refresh() == []
        store.requests.clear()
        assert following.refresh() == []
        assert [method for method, *_ in store.requests] == ["GET", "HEAD"]
        assert not store.objects_read()
        store.fs.pipe_file(f"metrics/{JOBS[0]}/chk-31/_metadata", metadata)
        assert following.refresh() == []
        assert [path.rpartition("/")[2] for path in opened.paths] == ["chk-30", "chk-31"]


@pytest.mark.parametrize("release", ["1.20", "2.3"])
def test_jobs_of_a_server(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_PATIENCE_S", 0.0)
    with flink_rest(release, tmp_path) as rest:
        newest = rest.history("orders")["latest"]["completed"]["id"]
        shutil.copytree(ZOO, rest.checkpoint_path("orders", newest))
        following, opened = exporter(f"flink://{rest.host}/orders")
        assert following.refresh() == []
        labels = {"job_id": rest.jobs["orders"], "job_name": "orders"}
        assert Metrics(following.text).value("checkpoint_id", **labels) > 0
        rest.requests.clear()
        assert following.refresh() == []
        assert len(rest.requests) == 2
        assert len(opened.paths) == 1
        # Jobs without a checkpoint are visible, too.
        everything, _ = exporter(rest.url)
        errors = everything.refresh()
        readable = Metrics(everything.text).values("job_readable", "job_id")
        assert readable[(rest.jobs["orders"],)] == 1
        assert readable[(rest.jobs["declining"],)] == 0
        assert (rest.jobs["finished"],) not in readable
        assert len(errors) == list(readable.values()).count(0)
    (error,) = following.refresh()
    assert isinstance(error, ConnectionFailedError)
    assert Metrics(following.text).value("job_readable", **labels) == 0


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(url, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_server(host: str) -> None:
    with serving(lambda: statetool.metrics(ZOO), host, 0) as url:
        assert get(url) == (200, PROMETHEUS_CONTENT_TYPE, statetool.metrics(ZOO))
        accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
        assert get(url, Accept=accept)[1] == CONTENT_TYPE
        assert get(f"{url}?x=1")[0] == 200
        assert get(url, "HEAD") == (200, PROMETHEUS_CONTENT_TYPE, "")
        assert "metrics" in get(url.removesuffix("metrics"))[2]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(url.replace("/metrics", "/etc/passwd"))
        with pytest.raises(urllib.error.HTTPError, match="501"):
            get(url, "POST")
        port = int(url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(OptionError, match=f"cannot listen on {host} port {port}"), serving(str, host, port):
            pass


def test_the_command_serves_new_checkpoints_until_interrupted(tmp_path: Path) -> None:
    root, aside = tmp_path / "checkpoints", tmp_path / "aside"
    checkpoint(root / JOBS[0], 1)
    checkpoint(aside / JOBS[1], 1)
    command = [sys.executable, "-m", "statetool", "metrics", str(root), "--serve", "0", "--interval", "0.1"]
    # A shell's job in the background ignores SIGINT, and so would the command that it runs.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().removeprefix("serving ").partition(";")[0]
            assert url.startswith("http://127.0.0.1:")
            before = get(url)[2]
            assert Metrics(before).value("job_readable") == 1
            # Files appear and disappear at once, as the command may look at any time.
            (aside / JOBS[1]).rename(root / JOBS[1])
            eventually(lambda: len(Metrics(get(url)[2]).values("job_readable", "job_id")) == 2)
            root.rename(tmp_path / "gone")
            # A look in the middle of this finds no checkpoint, which is printed, too.
            assert any("does not exist" in line for line in iter(process.stderr.readline, ""))
            eventually(lambda: set(Metrics(get(url)[2]).values("job_readable", "job_id").values()) == {0})
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 130
            assert process.stderr.read() == "interrupted\n"  # the error was printed once
        finally:
            process.kill()


def test_counts_of_events_are_complete() -> None:
    """The test of 1,000 checkpoints would notice a file that is opened."""
    code = _COUNT.replace("assert exporter.refresh() == []", "Inventory(sys.argv[1])")
    done = subprocess.run([sys.executable, "-c", code, ZOO], capture_output=True, text=True, check=True)
    assert Counter(json.loads(done.stdout)["events"])["open"] >= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--interval", "5"), "--interval is for --serve"),
        (("--host", "0.0.0.0"), "--host is for --serve"),
        (("--kafka", "a=b"), "--kafka cannot be used without --bootstrap-servers"),
        (("--ends", "a.csv", "--bootstrap-servers", "h:1"), "end offsets come from one place"),
        (("--ends", "missing.csv"), "missing.csv cannot be read: No such file"),
    ],
)
def test_options_that_do_not_fit(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(cli, ["metrics", str(Path(ZOO).parent / "kafka-source"), *arguments])
    assert message in done.stderr
    assert done.exit_code in (2, 3)


def test_the_command_prints_what_is_readable(tmp_path: Path) -> None:
    for job in JOBS:
        checkpoint(tmp_path / job, 1)
    (tmp_path / JOBS[0] / "chk-1" / "_metadata").write_bytes(b"")
    done = CliRunner().invoke(cli, ["metrics", str(tmp_path)])
    assert done.exit_code == 1
    assert Metrics(done.stdout).values("job_readable", "job_id") == {(JOBS[0],): 0, (JOBS[1],): 1}
    assert "chk-1" in done.stderr
