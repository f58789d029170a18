"""Advice and directories by the URL of a job, with recorded answers of Flink 1.20 and 2.3."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError
from statetool.operations.advice.live_job import LiveJob
from statetool.operations.cluster import client as client_module
from tests.support.servers.flink_rest import RELEASES, FlinkRest, flink_rest
from tests.support.zoo import ZOO

INTERVAL = "execution.checkpointing.interval"
RETENTION = "execution.checkpointing.externalized-checkpoint-retention"


@pytest.fixture(params=RELEASES)
def rest(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkRest]:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    with flink_rest(request.param, tmp_path) as running:
        yield running


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    return done


def store_checkpoints(rest: FlinkRest) -> Path:
    """Create the newest two checkpoints of the job ``orders`` and return their directory."""
    newest = rest.history("orders")["latest"]["completed"]["id"]
    for number in (newest - 1, newest):
        shutil.copytree(ZOO, rest.checkpoint_path("orders", number))
    return rest.checkpoint_path("orders", newest).parent


def settings(rest: FlinkRest, job: str = "orders") -> Any:
    """Return the recorded checkpoint settings of a job, which a test may change."""
    return rest.answers[f"GET /jobs/{rest.jobs[job]}/checkpoints/config"][-1][1]


def configuration(rest: FlinkRest) -> dict[str, str]:
    return dict(LiveJob.open(f"flink://{rest.host}/orders", job_needed=True).configuration().values)


def write(rest: FlinkRest, **values: str) -> None:
    """Add settings to the configuration of the JobManager."""
    entries = rest.answers[f"GET /jobs/{rest.jobs['orders']}/jobmanager/config"][-1][1]
    entries += [{"key": key, "value": value} for key, value in values.items()]


def test_settings_of_the_code_are_known(rest: FlinkRest) -> None:
    found = configuration(rest)
    assert found["rest.address"] == "127.0.0.1"
    assert found[INTERVAL] == "1000 ms"
    assert found[RETENTION] == "RETAIN_ON_CANCELLATION"
    # Defaults that nobody sets are no settings.
    assert "execution.checkpointing.timeout" not in found
    assert "execution.checkpointing.mode" not in found
    server = LiveJob.open(rest.url, job_needed=False).configuration()
    assert INTERVAL not in server.values
    assert server.values["rest.address"] == "127.0.0.1"


def test_the_effective_value_replaces_that_of_the_cluster(rest: FlinkRest) -> None:
    write(rest, **{INTERVAL: "1 s", "execution.checkpointing.unaligned": "true", "state.backend": "rocksdb"})
    tree = settings(rest)
    tree.update(timeout=20_000, unaligned_checkpoints=False, state_backend="EmbeddedRocksDBStateBackend")
    found = configuration(rest)
    assert found[INTERVAL] == "1 s"  # the same time
    assert found["execution.checkpointing.timeout"] == "20000 ms"
    assert found["execution.checkpointing.unaligned"] == "false"  # by the name under which it is set
    assert "execution.checkpointing.unaligned.enabled" not in found
    assert found["state.backend"] == "rocksdb"
    tree["mode"] = "at_least_once"
    assert configuration(rest)["execution.checkpointing.mode"] == "AT_LEAST_ONCE"
    del tree["mode"]
    with pytest.raises(FormatError, match="checkpoints/config"):
        configuration(rest)


def test_lint_takes_a_job(rest: FlinkRest) -> None:
    settings(rest).update(min_pause=5000, timeout=1)
    found = {f.key: f for f in statetool.lint(f"flink://{rest.host}/orders")}
    alone = {f.key for f in statetool.lint(rest.url)}
    assert "execution.checkpointing.timeout" in found.keys() - alone
    assert found["execution.checkpointing.timeout"].value == "1 ms"
    contradicts = any(f.is_contradiction for f in found.values())
    run("lint", f"flink://{rest.host}/orders", code=int(contradicts))
    with pytest.raises(OptionError, match="names one snapshot"):
        statetool.lint(f"flink://{rest.host}/orders?checkpoint=1")


def test_advise_needs_no_files(rest: FlinkRest, tmp_path: Path) -> None:
    directory = store_checkpoints(rest)
    url = f"flink://{rest.host}/orders"
    orders = f"GET /jobs/{rest.jobs['orders']}"
    (tmp_path / "rest.json").write_text(json.dumps(rest.answers[f"{orders}/checkpoints"][-1][1]))
    # The history may have been recorded when another checkpoint was the newest.
    newest = rest.history("orders")["latest"]["completed"]["id"]
    recorded = {
        re.sub(r"/details/\d+/", f"/details/{newest}/", path): a
        for path, a in rest.answers.items()
        if "/subtasks/" in path
    }
    rest.answers.update(recorded)
    details = [answers[-1][1] for answers in recorded.values()]
    assert details
    for i, tree in enumerate(details):
        (tmp_path / f"{i}.json").write_text(json.dumps(tree))
    values = configuration(rest)
    (tmp_path / "flink-conf.yaml").write_text("".join(f"{k}: {v}\n" for k, v in values.items() if v))
    given = [str(tmp_path / "rest.json"), *(str(tmp_path / f"{i}.json") for i in range(len(details)))]
    by_files = statetool.advise(str(directory), rest=given, config=str(tmp_path / "flink-conf.yaml"))
    assert statetool.advise(url) == by_files
    assert json.loads(run("advise", url, "--json").stdout) == json.loads(
        run(
            "advise", str(directory), *(f"--rest={f}" for f in given), "--config", str(tmp_path / "flink-conf.yaml"), "--json"
        ).stdout
    )  # fmt: skip
    interval = next(advice for advice in by_files if advice.topic == "interval")
    assert interval.now == "1 s"


def test_files_take_precedence(rest: FlinkRest, tmp_path: Path) -> None:
    store_checkpoints(rest)
    (tmp_path / "flink-conf.yaml").write_text(f"{INTERVAL}: 7 s\n")
    found = statetool.advise(f"flink://{rest.host}/orders", config=str(tmp_path / "flink-conf.yaml"))
    assert next(advice for advice in found if advice.topic == "interval").now == "7 s"


def test_directories_of_a_job(rest: FlinkRest) -> None:
    directory, url = store_checkpoints(rest), f"flink://{rest.host}/orders"
    assert statetool.chain(url) == statetool.chain(str(directory))
    assert len(statetool.list_snapshots(url)) == 2
    assert run("chain", url).stdout == run("chain", str(directory)).stdout
    (directory / "shared").mkdir()
    (directory / "shared" / "left").write_bytes(b"1")
    assert [row.path for row in statetool.orphans(url, min_age="0s")] == [str(directory / "shared" / "left")]
    run("orphans", url, "--min-age", "0s", code=1)
    assert {row.path for row in statetool.growth(url)} == {r.path for r in statetool.list_snapshots(str(directory))}
    with pytest.raises(OptionError, match="names one snapshot"):
        statetool.chain(f"{url}?checkpoint=1")
