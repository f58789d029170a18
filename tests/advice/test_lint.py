"""Faults in Flink configurations: each known fault is found, and none in sound configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.advice.configuration import parse_duration, parse_size
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError

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
    ("no-interval", "warning", {f"{C}interval": None}, f"{C}interval", {}),
    ("no-directory", "error", {f"{C}dir": None}, f"{C}dir", {}),
    ("storage-ignores-dir", "warning", {"state.checkpoint-storage": "jobmanager"}, "state.checkpoint-storage", {}),
    ("filesystem-without-dir", "error", {f"{C}dir": None, f"{C}storage": "filesystem"}, f"{C}dir", {}),
    (
        "not-retained",
        "warning",
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
    ("compression-incremental", "warning", {f"{C}snapshot-compression": "true"}, f"{C}snapshot-compression", {}),
    ("changelog-memory", "error", {"state.backend.changelog.enabled": "true"}, "state.changelog.storage", {}),
    (
        "changelog-no-path",
        "error",
        {"state.changelog.enabled": "true", "state.changelog.storage": "filesystem"},
        "state.changelog.dstl.dfs.base-path",
        {},
    ),
    ("never-restarts", "warning", {"restart-strategy.type": "none"}, "restart-strategy.type", {}),
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
        "high-availability.type": "kubernetes",
        "high-availability.storageDir": "s3://bucket/ha",
    },
    {"jobmanager.rpc.address": "localhost", "parallelism.default": "8", "rest.port": "8081", "env.java.opts": "-Da=b"},
]


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
    assert statetool.lint(path, rest=statistics(tmp_path, 45_000), transaction_timeout="1 h") == []


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
    assert (fine.exit_code, fine.stdout) == (0, "")
    assert json.loads(CliRunner().invoke(cli, ["lint", path, "--output", "json"]).stdout) == []
    late = CliRunner().invoke(cli, ["lint", path, "--transaction-timeout", "1 min", "--output", "json"])
    assert late.exit_code == 1
    assert [f["rule"] for f in json.loads(late.stdout)] == ["transaction-timeout"]
    assert CliRunner().invoke(cli, ["lint", path, "--transaction-timeout", "soon"]).exit_code == 2
    assert CliRunner().invoke(cli, ["lint", str(tmp_path / "none.yaml")]).exit_code == 3
