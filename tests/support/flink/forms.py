"""Jobs with states of each kind, synchronous or asynchronous, whose snapshots change their form and are restored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tests.support.flink import judge
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.zoo_cases import make_case, sources_of

#: The operators of ``ZooData`` that the jobs have.
_SET: Final = "forms"
#: Operators of ``GrownJob``, named by the kind of their state.
GROWN: Final = ("value", "list", "map")
_BEFORE: Final = Path(__file__).parent / "before"
#: Checkpoints are incremental, and stay after the job.
CHECKPOINTS: Final = {
    "state.backend.incremental": "true",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.interval": "365 d",
}
#: How the names of states with a time to live start.
LIVING: Final = "kept "
Api = Literal["sync", "async"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a job found in a snapshot: the differences from what is expected, and the path of its next checkpoint."""

    differences: list[str]
    checkpoint: Path


def make_base(flink: FlinkMachine, folder: Path, api: Api, backend: str | None = None) -> tuple[Path, dict[str, Any]]:
    """Let a job write a native savepoint of RocksDB, or of ForSt if its state is asynchronous; return its path and expected content."""
    backend = backend or ("forst" if api == "async" else "rocksdb")
    make_case(flink, folder, _SET, backend=backend, kind="native", asynchronous=api == "async")
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())["operators"]
    return folder / "snapshot", expected


def restore(
    flink: FlinkMachine,
    snapshot: Path,
    expected: Mapping[str, Any],
    api: Api,
    *,
    backend: str,
    parallelism: int = 2,
    config: Mapping[str, str] | None = None,
    append: bool = False,
) -> Restored:
    """Restore a snapshot in a job, compare all values and timers with the expected ones, and take a checkpoint.

    Parameters
    ----------
    append
        The job goes on: it adds the first element of each list to its end.

    Raises
    ------
    FlinkRefusedError
        Flink did not restore it.
    """
    config = {**CHECKPOINTS, **(config or {})}
    if api == "sync":
        requests = [{**request, "append": append} for request in judge.requests_for(snapshot, expected)]
        answer = judge.restore(
            flink, snapshot, requests, backend=backend, parallelism=parallelism, checkpoint=True, config=config
        )
        return Restored(judge.differences(answer, expected), Path(answer["checkpoint"]))
    names = sorted({name for operator in expected.values() for name in operator["keyed_state"]["states"]})
    timers = sorted(
        _text(uid, t["key"], t["timestamp"])
        for uid, operator in expected.items()
        for t in operator["keyed_state"]["event_time_timers"]
    )
    answer = flink.call(
        "class", **{"class": "ZooRestored"}, set=_SET, snapshot=str(snapshot), backend=backend,
        parallelism=parallelism, checkpoint=True, config=config, append=append, states=names, timers=len(timers),
        max_parallelisms={uid: operator["max_parallelism"] for uid, operator in expected.items()},
    )  # fmt: skip
    found = sorted(
        _text(r["operator"], r["state"], r["key"], r["value"]) for r in answer["rows"] if r["value"] is not None
    )
    wanted = sorted(
        _text(uid, name, row["key"], row["value"])
        for uid, operator in expected.items()
        for name, state in operator["keyed_state"]["states"].items()
        for row in state["rows"]
    )
    fired = sorted(_text(r["operator"], r["key"], r["timestamp"]) for r in answer["fired"])
    differences = [f"unexpected {row}" for row in found if row not in wanted]
    differences += [f"missing {row}" for row in wanted if row not in found]
    if len(found) != len(wanted):
        differences.append(f"{len(found)} values, expected {len(wanted)}")
    if fired != timers:
        differences.append(f"{len(fired)} timers fired, expected {len(timers)}")
    return Restored(differences, Path(answer["checkpoint"]))


def without(expected: Mapping[str, Any], *starts: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the expected content without the states whose names start so, and the names of these by operator."""
    changed: dict[str, Any] = json.loads(json.dumps(expected))
    names = {uid: [n for n in o["keyed_state"]["states"] if n.startswith(starts)] for uid, o in changed.items()}
    for uid, left_out in names.items():
        for name in left_out:
            del changed[uid]["keyed_state"]["states"][name]
    return changed, names


def write_grown(release: str, work: Path, side: Literal["old", "new"]) -> Path:
    """Let a job write a native savepoint of ForSt with asynchronous state of a POJO, before or after it gets a field; return its path."""
    before = _BEFORE if side == "old" else None
    machine = FlinkMachine(release, work, sources_of(release), before=before)
    try:
        answer = machine.call(
            "class", **{"class": "GrownJob"}, kinds=GROWN, backend="forst", savepoint=str(work / f"grown-{side}")
        )
    finally:
        machine.close()
    return Path(answer["savepoint"])


def appended(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expected content after ``append``."""
    changed: dict[str, Any] = json.loads(json.dumps(expected))
    for operator in changed.values():
        for state in operator["keyed_state"]["states"].values():
            if state["kind"] == "list":
                for row in state["rows"]:
                    row["value"].append(row["value"][0])
    return changed


def _text(*parts: Any) -> str:
    return json.dumps([judge.normal(part) for part in parts], sort_keys=True)
