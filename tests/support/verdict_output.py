"""Output of the commands that print verdicts, on snapshots that this module writes or unpacks.

``python -m tests.support.verdict_output`` writes the expected output into ``tests/cli/expected/verdicts``.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from tests.support.corpora.archives import HERE, unpack
from tests.support.snapshots import unreadable
from tests.support.snapshots.trees import JOB, checkpoint_root
from tests.support.zoo import ZOO

EXPECTED: Final = HERE / "cli" / "expected" / "verdicts"
_UNREADABLE: Final = ("--name-uid", unreadable.GOOD, "--name-uid", unreadable.BAD)
#: Arguments of statetool, by file of expected output. Paths are relative to the folder of :func:`write_inputs`.
COMMANDS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "check": (
        ("check", "old", "new"),
        ("check", "old", "wide"),
        ("check", "demo", "demo", "--rebase", "/old=/new"),
        ("check", "demo", "--flink", "1.20"),
        ("check", "unread", "unread-2", *_UNREADABLE),
        ("check", "old", "old"),
    ),
    "verify": (
        ("verify", "unread", *_UNREADABLE),
        ("verify", "incomplete/chk-4"),
        ("verify", "damaged", "--deep"),
        ("verify", "old"),
    ),
    "diff": (
        ("diff", "old", "new"),
        ("diff", "alike", "alike-2"),
        ("diff", "release-1.20", "demo", "--limit", "1", "--uid", "orders", "--uid", "by-short"),
        ("diff", "unread", "unread-2", *_UNREADABLE),
        ("diff", "old", "old"),
    ),
    "sources-check": (
        ("sources", "check", "inconsistent"),
        ("sources", "check", "consistent"),
        ("sources", "check", "old"),
    ),
    "lint": (("lint", "flink-conf.yaml"), ("lint", "sound/flink-conf.yaml")),
    "advise": (
        ("advise", "job"),
        ("advise", "job", "--rest", "checkpoints.json", "--config", "flink-conf.yaml"),
        ("advise", "job", "--rest", "checkpoints.json", "--max-recovery", "20 s"),
    ),
}
_SOUND: Final = """execution.checkpointing.interval: 1 min
execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
execution.checkpointing.dir: s3://bucket/checkpoints
"""
_CONFLICTS: Final = """execution.checkpointing.interval: 1 min
execution.checkpointing.min-pause: 5 min
execution.checkpointing.dir: s3://bucket/checkpoints
execution.checkpointing.intervall: 3
execution.checkpointing.timeout: soon
"""


def write_inputs(folder: Path, corpus: Path, connectors: Path) -> None:
    """Write the snapshots and configurations that the commands read."""
    _write_jobs(folder)
    _write_alike(folder)
    for name in ("demo", "damaged"):
        shutil.copytree(ZOO, folder / name)
    metadata = folder / "damaged" / "_metadata"
    metadata.write_bytes(metadata.read_bytes() + b"more")
    shutil.copytree(snapshot_of(corpus, "v1_20_5-rocksdb-canonical"), folder / "release-1.20")
    _write_checkpoints(folder, corpus)
    for number, name in enumerate(("unread", "unread-2")):
        unreadable.savepoint(folder / name, "raw timers", value=number)
    for name, case in (("inconsistent", "v2_3_0-kafka-source-inconsistent"), ("consistent", "v2_3_0-kafka-source")):
        shutil.copytree(connectors / case / "snapshot", folder / name)
    (folder / "flink-conf.yaml").write_text(_CONFLICTS)
    (folder / "sound").mkdir()
    (folder / "sound" / "flink-conf.yaml").write_text(_SOUND)


def _keyed(table: dict[str, Any], **types: str) -> Any:
    states = {name: st.value(kind) for name, kind in types.items()} or None
    return st.bootstrap_keyed_state(pa.table({"id": [1, 2], **table}), key="id", states=states)


def _write(path: Path, operators: dict[str, Any], **options: Any) -> None:
    writer = st.SavepointWriter.new()
    for uid, state in operators.items():
        writer = writer.with_operator(uid, state, parallelism=2, **options)
    writer.write(str(path), flink_version="2.3")


def _write_jobs(folder: Path) -> None:
    numbers, texts = pa.array([1, 2], pa.int32()), pa.array(["a", "b"])
    old = {
        "accounts": _keyed({"balance": [5, 7]}),
        "orders": _keyed({"total": numbers, "note": texts}, total="INT", note="STRING"),
        "carts": _keyed({"items": texts}),
    }
    new = {
        "accounts-v2": _keyed({"balance": [5, 7]}),
        "orders": _keyed({"total": [1, 3], "note": [1.0, 2.0]}, total="BIGINT", note="DOUBLE"),
        "carts": _keyed({"articles": texts}),
    }
    _write(folder / "old", old, max_parallelism=64)
    _write(folder / "new", new)
    _write(
        folder / "wide",
        {**old, "orders": _keyed({"total": [1, 3], "note": texts}, total="BIGINT")},
        max_parallelism=256,
    )


def _write_alike(folder: Path) -> None:
    """Write values that print alike, and long ones that differ in one character."""
    long = "the same beginning of both, " * 4
    pairs = [("x", "x "), ("\x1b", "\\x1b"), (None, "null"), (f"{long}a", f"{long}b"), ("1", "2")]
    for number, name in enumerate(("alike", "alike-2")):
        values = pa.table({"id": list(range(len(pairs))), "text": [pair[number] for pair in pairs]})
        floats = pa.table({"id": [0, 1], "number": [(0.0, 1.0), (-0.0, float("nan"))][number]})
        _write(
            folder / name,
            {
                "texts": st.bootstrap_keyed_state(values, key="id", states={"text": st.value("STRING")}),
                "numbers": st.bootstrap_keyed_state(floats, key="id"),
            },
        )


def _write_checkpoints(folder: Path, corpus: Path) -> None:
    """Write the checkpoints of a job one minute apart, with their statistics; and the same job without some of its files."""
    root = checkpoint_root(corpus, folder / "root")
    for number in (3, 4):
        metadata = root / JOB / f"chk-{number}" / "_metadata"
        os.utime(metadata, (1_700_000_000 + 60 * number, 1_700_000_000 + 60 * number))
    os.replace(root / JOB, folder / "job")
    shutil.copytree(folder / "job", folder / "incomplete")
    needed = {
        r.path for r in st.load(str(folder / "job" / "chk-4")).metadata_rows("files") if "/shared/" in (r.path or "")
    }
    (folder / "incomplete" / "shared" / max(needed).rpartition("/")[2]).unlink()
    history = [
        {
            "id": number,
            "status": "COMPLETED",
            "is_savepoint": False,
            "trigger_timestamp": 1_700_000_000_000 + 60_000 * number,
            "end_to_end_duration": 5_000,
            "checkpointed_size": 1 << 20,
            "state_size": 4 << 20,
        }
        for number in range(1, 5)
    ]
    answer = {"counts": {"completed": 4, "failed": 1}, "summary": {}, "history": history}
    (folder / "checkpoints.json").write_text(json.dumps(answer))


def snapshot_of(corpus: Path, case: str) -> Path:
    """Return the last snapshot of a case of the corpus."""
    return max((corpus / case / "snapshot").rglob("_metadata")).parent


def run_commands(name: str) -> str:
    """Run the commands of a file of expected output, in the current folder, and return their output."""
    return "\n".join(f"$ statetool {' '.join(words)}\n{_run(words)}" for words in COMMANDS[name])


def _run(words: tuple[str, ...]) -> str:
    done = CliRunner().invoke(cli, list(words))
    assert done.exit_code in (0, 1), (words, done.output, done.exception)
    assert not done.stderr, (words, done.stderr)
    folder = Path.cwd()
    shown = done.stdout.replace(str(folder), "/folder").replace(str(folder.parent), "/parent")
    return f"{shown}[exit code {done.exit_code}]\n"


@contextmanager
def inputs() -> Iterator[None]:
    """Write all inputs into a temporary folder, and make it the current folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = unpack(HERE / "corpus" / "public-datastream.tar.xz", folder / "corpus") / "public"
        connectors = unpack(HERE / "corpus" / "connectors.tar.xz", folder / "connectors")
        (folder / "work").mkdir()
        write_inputs(folder / "work", corpus, connectors)
        os.chdir(folder / "work")
        try:
            yield
        finally:
            os.chdir(before)


def main() -> None:
    """Write the expected output."""
    EXPECTED.mkdir(parents=True, exist_ok=True)
    with inputs():
        for name in COMMANDS:
            (EXPECTED / f"{name}.txt").write_text(run_commands(name))


if __name__ == "__main__":
    main()
