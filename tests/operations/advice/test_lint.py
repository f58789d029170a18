"""Faults in Flink configurations: each known fault is found, and none in sound configurations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError
from statetool.operations.advice.configuration import parse_duration, parse_size

#: A configuration without faults; tests change it to introduce them.
SOUND = {
    "execution.checkpointing.interval": "1 min",
    "execution.checkpointing.min-pause": "30 s",
    "execution.checkpointing.timeout": "10 min",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.dir": "s3://bucket/checkpoints",
    "execution.checkpointing.savepoint-dir": "s3://bucket/savepoints",
    "execution.checkpointing.incremental": "true",
    "state.backend.type": "rocksdb",
    "restart-strategy.type": "exponential-delay",
}
C = "execution.checkpointing."
CHANGE_LOG: dict[str, str | None] = {
    "state.changelog.enabled": "true",
    "state.changelog.storage": "filesystem",
    "state.changelog.dstl.dfs.base-path": "s3://bucket/changelog",
}
#: By rule name: settings (``None``: removed), the key that is named, and facts known besides the configuration.
FAULTS: list[tuple[str, str, dict[str, str | None], str, dict[str, Any]]] = [
    ("too-short", "error", {f"{C}interval": "5 ms", f"{C}min-pause": None}, f"{C}interval", {}),
    ("min-pause-above-interval", "warning", {f"{C}min-pause": "5 min"}, f"{C}min-pause", {}),
    ("timeout-below-p99", "error", {f"{C}timeout": "30 s"}, f"{C}timeout", {"rest": 45_000}),
    ("transaction-timeout", "error", {}, f"{C}timeout", {"transaction_timeout": "10 min"}),
    ("backlog-interval", "error", {f"{C}interval-during-backlog": "30 s"}, f"{C}interval-during-backlog", {}),
    ("no-concurrent", "error", {f"{C}max-concurrent-checkpoints": "0"}, f"{C}max-concurrent-checkpoints", {}),
    (
        "concurrent-unaligned",
        "error",
        {f"{C}max-concurrent-checkpoints": "2", f"{C}unaligned.enabled": "true"},
        f"{C}max-concurrent-checkpoints",
        {},
    ),
    (
        "concurrent-with-min-pause",
        "warning",
        {f"{C}max-concurrent-checkpoints": "3"},
        f"{C}max-concurrent-checkpoints",
        {},
    ),
    (
        "unaligned-at-least-once",
        "warning",
        {f"{C}unaligned": "true", f"{C}mode": "AT_LEAST_ONCE"},
        f"{C}unaligned",
        {},
    ),
    (
        "aligned-timeout-alone",
        "warning",
        {f"{C}aligned-checkpoint-timeout": "30 s"},
        f"{C}aligned-checkpoint-timeout",
        {},
    ),
    ("forced-alone", "warning", {f"{C}unaligned.forced": "true"}, f"{C}unaligned.forced", {}),
    (
        "aligned-timeout-late",
        "warning",
        {f"{C}aligned-checkpoint-timeout": "PT20M", f"{C}unaligned.enabled": "true"},
        f"{C}aligned-checkpoint-timeout",
        {},
    ),
    ("no-interval", "advice", {f"{C}interval": None}, f"{C}interval", {}),
    ("no-directory", "advice", {f"{C}dir": None}, f"{C}dir", {}),
    ("storage-ignores-dir", "warning", {"state.checkpoint-storage": "jobmanager"}, "state.checkpoint-storage", {}),
    ("filesystem-without-dir", "error", {f"{C}dir": None, f"{C}storage": "filesystem"}, f"{C}dir", {}),
    (
        "not-retained",
        "advice",
        {f"{C}externalized-checkpoint-retention": None},
        f"{C}externalized-checkpoint-retention",
        {},
    ),
    ("num-retained", "warning", {"state.checkpoints.num-retained": "0"}, "state.checkpoints.num-retained", {}),
    (
        "inline-threshold",
        "error",
        {"state.storage.fs.memory-threshold": "2mb"},
        "state.storage.fs.memory-threshold",
        {},
    ),
    ("incremental-hashmap", "warning", {"state.backend.type": "hashmap"}, f"{C}incremental", {}),
    ("incremental-hashmap", "advice", {"state.backend.type": None}, f"{C}incremental", {}),
    ("compression-incremental", "warning", {f"{C}snapshot-compression": "true"}, f"{C}snapshot-compression", {}),
    (
        "changelog-memory",
        "error",
        {"state.backend.changelog.enabled": "true", "execution.state-recovery.claim-mode": "CLAIM"},
        "state.changelog.storage",
        {},
    ),
    (
        "changelog-no-path",
        "error",
        {
            "state.changelog.enabled": "true",
            "state.changelog.storage": "filesystem",
            "execution.state-recovery.claim-mode": "CLAIM",
        },
        "state.changelog.dstl.dfs.base-path",
        {},
    ),
    ("never-restarts", "advice", {"restart-strategy.type": "none"}, "restart-strategy.type", {}),
    ("ha-no-storage", "error", {"high-availability.type": "kubernetes"}, "high-availability.storageDir", {}),
    (
        "drops-in-flight",
        "error",
        {f"{C}recover-without-channel-state.checkpoint-id": "17"},
        f"{C}recover-without-channel-state.checkpoint-id",
        {},
    ),
    (
        "ignores-unclaimed",
        "warning",
        {"execution.savepoint.ignore-unclaimed-state": "true"},
        "execution.savepoint.ignore-unclaimed-state",
        {},
    ),
    ("batch", "warning", {"execution.runtime-mode": "BATCH"}, "execution.runtime-mode", {}),
    ("batch", "advice", {"execution.runtime-mode": "AUTOMATIC"}, "execution.runtime-mode", {}),
    ("changelog-no-claim", "advice", CHANGE_LOG, "execution.state-recovery.claim-mode", {}),
    (
        "changelog-no-claim",
        "error",
        {**CHANGE_LOG, "execution.savepoint-restore-mode": "NO_CLAIM"},
        "execution.savepoint-restore-mode",
        {},
    ),
    (
        "changelog-no-claim",
        "error",
        {**CHANGE_LOG, "execution.savepoint.path": "s3://bucket/savepoints/savepoint-1"},
        "execution.state-recovery.claim-mode",
        {},
    ),
    (
        "claim-legacy",
        "warning",
        {"execution.state-recovery.claim-mode": "LEGACY"},
        "execution.state-recovery.claim-mode",
        {},
    ),
    (
        "backend-no-claim",
        "advice",
        {"state.backend.type": "com.acme.OwnBackendFactory", f"{C}incremental": None},
        "execution.state-recovery.claim-mode",
        {},
    ),
    (
        "approximate-recovery",
        "error",
        {"execution.state-recovery.approximate-local-recovery": "true"},
        "execution.state-recovery.approximate-local-recovery",
        {},
    ),
    (
        "heap-timers",
        "warning",
        {"state.backend.rocksdb.timer-service.factory": "HEAP"},
        "state.backend.rocksdb.timer-service.factory",
        {},
    ),
    ("exactly-once-sink", "error", {f"{C}mode": "AT_LEAST_ONCE"}, f"{C}mode", {"transaction_timeout": "1 h"}),
    (
        "sinks-never-commit",
        "advice",
        {f"{C}{name}": None for name in ("interval", "min-pause", "timeout")},
        f"{C}interval",
        {"transaction_timeout": "1 h"},
    ),
    (
        "none-after-tasks-finish",
        "warning",
        {f"{C}checkpoints-after-tasks-finish": "false"},
        f"{C}checkpoints-after-tasks-finish",
        {},
    ),
    ("wrong-value", "error", {f"{C}timeout": "ten minutes"}, f"{C}timeout", {}),
    ("unknown-key", "error", {f"{C}min_pause": "1 s"}, f"{C}min_pause", {}),
    ("set-twice", "error", {"state.checkpoints.dir": "s3://bucket/elsewhere"}, "state.checkpoints.dir", {}),
]
SOUND_ONES: list[dict[str, str]] = [
    SOUND,
    {
        "state.backend": "hashmap",
        "state.checkpoints.dir": "hdfs:///flink/checkpoints",
        "execution.checkpointing.interval": "300000",
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        "execution.checkpointing.snapshot-compression": "true",
        "taskmanager.numberOfTaskSlots": "4",
    },
    {
        **SOUND,
        f"{C}unaligned.enabled": "true",
        f"{C}aligned-checkpoint-timeout": "30 s",
        f"{C}interval-during-backlog": "0",
        f"{C}max-concurrent-checkpoints": "1",
    },
    {
        **SOUND,
        "state.changelog.enabled": "true",
        "state.changelog.storage": "filesystem",
        "dstl.dfs.base-path": "s3://bucket/changelog",
        "execution.state-recovery.claim-mode": "CLAIM",
        "high-availability.type": "kubernetes",
        "high-availability.storageDir": "s3://bucket/ha",
    },
    # The user chose the heap of the JobManager.
    {
        "state.checkpoint-storage": "jobmanager",
        f"{C}interval": "3 min",
        f"{C}externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    },
    {"jobmanager.rpc.address": "localhost", "parallelism.default": "8", "rest.port": "8081", "env.java.opts": "-Da=b"},
]

#: Configurations of Flink's documentation: those of its pages on state, checkpoints, recovery and high availability, and of its distribution.
DOCUMENTED: dict[str, str] = {
    "memory": "state.backend: hashmap\nstate.checkpoint-storage: jobmanager\n",
    "file system": "state.backend: hashmap\nstate.checkpoints.dir: file:///checkpoint-dir/\nstate.checkpoint-storage: filesystem\n",
    "rocksdb": "state.backend: rocksdb\nstate.checkpoints.dir: file:///checkpoint-dir/\nstate.checkpoint-storage: filesystem\n",
    "rocksdb incremental": "state.backend.type: rocksdb\nexecution.checkpointing.incremental: true\nexecution.checkpointing.dir: hdfs:///checkpoints\n",
    "incremental": "execution.checkpointing.incremental: true\n",
    "forst": "state.backend.type: forst\nexecution.checkpointing.incremental: true\nexecution.checkpointing.dir: s3://your-bucket/flink-checkpoints\n",
    "interval": "execution.checkpointing.interval: 10s\nexecution.checkpointing.storage: jobmanager\n",
    "interval alone": "execution.checkpointing.interval: 3min\n",
    "changelog": (
        "state.changelog.enabled: true\nstate.changelog.storage: filesystem # currently, only filesystem and memory\n"
        "dstl.dfs.base-path: s3://my-bucket\nexecution.checkpointing.max-concurrent-checkpoints: 1\nstate.backend.local-recovery: false\n"
    ),
    "fixed delay": "restart-strategy.type: fixed-delay\nrestart-strategy.fixed-delay.attempts: 3\nrestart-strategy.fixed-delay.delay: 10 s\n",
    "exponential delay": (
        "restart-strategy.type: exponential-delay\nrestart-strategy.exponential-delay.initial-backoff: 10 s\n"
        "restart-strategy.exponential-delay.max-backoff: 2 min\nrestart-strategy.exponential-delay.backoff-multiplier: 2.0\n"
        "restart-strategy.exponential-delay.reset-backoff-threshold: 10 min\nrestart-strategy.exponential-delay.jitter-factor: 0.1\n"
        "restart-strategy.exponential-delay.attempts-before-reset-backoff: 10\n"
    ),
    "failure rate": (
        "restart-strategy.type: failure-rate\nrestart-strategy.failure-rate.max-failures-per-interval: 3\n"
        "restart-strategy.failure-rate.failure-rate-interval: 5 min\nrestart-strategy.failure-rate.delay: 10 s\n"
    ),
    "no restart": "restart-strategy.type: none\nexecution.checkpointing.interval: 1 min\n",
    "zookeeper": (
        "high-availability.type: zookeeper\nhigh-availability.zookeeper.quorum: localhost:2181\nhigh-availability.zookeeper.path.root: /flink\n"
        "high-availability.cluster-id: /cluster_one # important: customize per cluster\nhigh-availability.storageDir: hdfs:///flink/recovery\n"
    ),
    "kubernetes": "kubernetes.cluster-id: my-cluster\nhigh-availability.type: kubernetes\nhigh-availability.storageDir: hdfs:///flink/recovery\n",
    "unaligned": "execution.checkpointing.unaligned.enabled: true\nexecution.checkpointing.aligned-checkpoint-timeout: 30 s\n",
    "local recovery": "execution.state-recovery.from-local: true\nexecution.checkpointing.local-backup.enabled: true\n",
    "small files": "execution.checkpointing.file-merging.enabled: true\nexecution.checkpointing.file-merging.across-checkpoint-boundary: true\n",
    "retained": (
        "execution.checkpointing.interval: 10 min\nexecution.checkpointing.num-retained: 3\nexecution.checkpointing.mode: EXACTLY_ONCE\n"
        "execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION\nexecution.checkpointing.min-pause: 500\n"
        "execution.checkpointing.tolerable-failed-checkpoints: 2\nexecution.checkpointing.timeout: 10min\n"
    ),
    "distribution": (
        "jobmanager.rpc.address: localhost\njobmanager.rpc.port: 6123\njobmanager.bind-host: localhost\n"
        "jobmanager.memory.process.size: 1600m\ntaskmanager.bind-host: localhost\ntaskmanager.host: localhost\n"
        "taskmanager.memory.process.size: 1728m\ntaskmanager.numberOfTaskSlots: 1\nparallelism.default: 1\n"
        "jobmanager.execution.failover-strategy: region\nrest.address: localhost\nrest.bind-address: localhost\n"
    ),
}


def written(folder: Path, values: dict[str, str], *, nested: bool) -> str:
    """Write a configuration as ``flink-conf.yaml``, or nested as ``config.yaml``."""
    if not nested:
        file = folder / "flink-conf.yaml"
        file.write_text("# ours\n" + "".join(f"{k}: {v}  # set\n" for k, v in values.items()))
        return str(file)
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        place = tree
        for name in above:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            if not isinstance(place.get(last), dict):
                place[last] = value
                continue
        tree[key] = value
    file = folder / "config.yaml"
    file.write_text(json.dumps(tree))  # which is YAML
    return str(file)


def statistics(folder: Path, p99: int) -> str:
    file = folder / "checkpoints.json"
    summary = {"end_to_end_duration": {"min": 1, "max": p99, "avg": p99 // 2, "p99": float(p99)}}
    counts = {"restored": 0, "total": 9, "in_progress": 0, "completed": 9, "failed": 0}
    file.write_text(json.dumps({"counts": counts, "summary": summary, "latest": {}, "history": []}))
    return str(file)


@pytest.mark.parametrize("nested", [False, True], ids=["flink-conf", "config"])
@pytest.mark.parametrize(("rule", "level", "change", "key", "beside"), FAULTS, ids=[f[0] for f in FAULTS])
def test_each_fault_is_found_alone(
    tmp_path: Path,
    rule: str,
    level: str,
    change: dict[str, str | None],
    key: str,
    beside: dict[str, Any],
    nested: bool,
) -> None:
    values = {k: v for k, v in {**SOUND, **change}.items() if v is not None}
    known = dict(beside)
    if "rest" in known:
        known["rest"] = statistics(tmp_path, known["rest"])
    (finding,) = statetool.lint(written(tmp_path, values, nested=nested), **known)
    assert (finding.rule, finding.level, finding.key) == (rule, level, key)
    assert finding.value == values.get(key)
    assert finding.message
    assert finding.page.startswith("https://nightlies.apache.org/flink/flink-docs-stable/docs/")


@pytest.mark.parametrize("nested", [False, True], ids=["flink-conf", "config"])
@pytest.mark.parametrize("values", SOUND_ONES, ids=range(len(SOUND_ONES)))
def test_nothing_is_found_in_sound_configurations(tmp_path: Path, values: dict[str, str], nested: bool) -> None:
    path = written(tmp_path, values, nested=nested)
    timeout = "1 h" if f"{C}interval" in values else None
    assert statetool.lint(path, rest=statistics(tmp_path, 45_000), transaction_timeout=timeout) == []


@pytest.mark.parametrize("text", DOCUMENTED.values(), ids=DOCUMENTED)
def test_no_alarm_on_configurations_of_the_documentation(tmp_path: Path, text: str) -> None:
    path = tmp_path / "flink-conf.yaml"
    path.write_text(text)
    done = CliRunner().invoke(cli, ["lint", str(path), "--json"])
    assert done.exit_code == 0, done.stdout
    assert {f["level"] for f in json.loads(done.stdout)} <= {"advice"}


BOMBS = {
    "aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "mappings": "a0: &a0 {x: 1, y: 2}\n"
    + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}\n" for n in range(1, 60)),
    "itself": "a: &a {b: *a}\n",
    "brackets": "a: " + "[" * 100_000,
    "braces": "{a: " * 20_000,
    "dashes": "a:\n" + "- " * 50_000,
    "long": "a: b\n" * 200_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_yaml_that_grows_is_an_error_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 1_000_000:
            sys.setprofile(None)
            raise AssertionError("too many calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        done = CliRunner().invoke(cli, ["lint", str(path)])
    finally:
        sys.setprofile(before)
    assert done.exit_code == 3, done.output
    assert str(path) in done.stderr
    assert isinstance(done.exception, SystemExit)
    # A tenth of them, at most; an expansion of any of these takes billions.
    assert calls < 1_000_000


def test_aliases_of_some_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("x-shared: &s {interval: 5 ms}\nexecution:\n  checkpointing: *s\n")
    assert [f.rule for f in statetool.lint(str(path))][:1] == ["too-short"]


def test_values_are_read_as_flink_reads_them() -> None:
    assert [parse_duration(t) for t in ("10 min", "500ms", "3000", "PT1M30S", "1 d", "P1D")] == [
        600_000, 500, 3000, 90_000, 86_400_000, 86_400_000,
    ]  # fmt: skip
    assert [parse_size(t) for t in ("20 kb", "1mb", "4096", "2 g")] == [20 << 10, 1 << 20, 4096, 2 << 30]
    for wrong in ("", "P", "ten", "5 parsecs", "-1 s"):
        with pytest.raises(OptionError, match="is not a duration"):
            parse_duration(wrong)


def test_files_that_are_no_configuration_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError):
        statetool.lint(str(tmp_path / "config.yaml"))
    flat = tmp_path / "flink-conf.yaml"
    flat.write_text("a: 1\nexecution:\n  checkpointing: 1\n")
    with pytest.raises(FormatError, match="line 2"):
        statetool.lint(str(flat))
    deep = tmp_path / "config.yaml"
    for text in ("- a\n- b\n", "a: [1\n"):
        deep.write_text(text)
        with pytest.raises(FormatError):
            statetool.lint(str(deep))
    deep.write_text("")
    assert statetool.lint(str(deep)) == []


def test_command(tmp_path: Path) -> None:
    path = written(tmp_path, SOUND, nested=False)
    fine = CliRunner().invoke(cli, ["lint", path])
    assert (fine.exit_code, fine.stdout.partition(".")[0]) == (
        0,
        "No conflicts; 9 of 9 settings in the file are consistent",
    )
    assert json.loads(CliRunner().invoke(cli, ["lint", path, "--output", "json"]).stdout) == []
    late = CliRunner().invoke(cli, ["lint", path, "--transaction-timeout", "1 min", "--output", "json"])
    assert late.exit_code == 1
    assert [f["rule"] for f in json.loads(late.stdout)] == ["transaction-timeout"]
    assert CliRunner().invoke(cli, ["lint", path, "--transaction-timeout", "soon"]).exit_code == 2
    advised = written(tmp_path, {k: v for k, v in SOUND.items() if not k.endswith("retention")}, nested=False)
    safer = CliRunner().invoke(cli, ["lint", advised])
    assert (safer.exit_code, safer.stdout.split(":")[0]) == (0, "advice")
    assert "No conflicts" in safer.stdout
    assert CliRunner().invoke(cli, ["lint", str(tmp_path / "none.yaml")]).exit_code == 3
