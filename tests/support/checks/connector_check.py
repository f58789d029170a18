"""Comparison of connector state in a corpus case with the expected state."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Any

import statetool
from statetool.connectors.checks import check_source
from statetool.connectors.layouts.file_sink import read_bucket
from statetool.connectors.layouts.legacy_kafka import ConsumedPartition
from statetool.connectors.model import PendingCommit, as_plain
from statetool.connectors.sinks import Sink, sink_of
from statetool.connectors.sources import Source, source_of
from statetool.connectors.wire import read_all, whole_versioned
from tests.support.expected.scalars import json_text

#: Corpus names of fields with other names here.
_RENAMED = {"start": "from", "end": "to"}
_CHECKS = {"assigned_held_by_none", "held_twice", "unknown_to_enumerator", "held_but_unassigned"}


class ConnectorChecker:
    """Comparison of one operator."""

    def __init__(self, op: statetool.Operator, wanted: dict[str, Any]) -> None:
        self.op = op
        self.wanted = wanted
        self.rows = 0
        self.problems: list[str] = []

    def run(self) -> None:
        if "elements" in self.wanted:
            self.waiting_calls()
        elif "partial_matches" in self.wanted:
            self.matches()
        elif "splits" in self.wanted or "modification_time" in self.wanted:
            source = source_of(self.op.inventory)
            if source is None or source.name != self.wanted["connector"]:
                self.problems.append(f"{self.op.name}: seen as {source and source.name}")
                return
            self.source(source)
        else:
            sink = sink_of(self.op.inventory)
            empty = self.wanted.get("role") == "committer" and not self.wanted["committables"]
            if sink is None or (sink.name != self.wanted["connector"] and not empty):
                self.problems.append(f"{self.op.name}: seen as {sink and sink.name}")
                return
            self.sink(sink)

    def waiting_calls(self) -> None:
        """Compare the queue of an async wait operator."""
        waiting = [
            {"subtask": r["subtask"], "timestamp": r["timestamp"], "value": list(r["value"].values())}
            for r in self.op.to_arrow("waiting").to_pylist()
        ]
        self.compare("elements", waiting, self.wanted["elements"])

    def matches(self) -> None:
        """Compare the started matches, and the events that the watermark has not reached."""
        partial = [
            {
                "key": r["key"],
                "waiting_for": r["waiting_for"],
                "start_timestamp": r["start_ms"],
                "events": {name: [list(e.values()) for e in events] for name, events in r["events"]},
            }
            for r in self.op.to_arrow("matches").to_pylist()
        ]
        self.compare("partial matches", partial, self.wanted["partial_matches"])
        queued = [
            {"key": r["key"], "timestamp": r["timestamp"], "event": list(r["value"].values())}
            for r in self.op.to_arrow("waiting").to_pylist()
        ]
        self.compare("queued", queued, self.wanted["queued"])

    def compare(self, what: str, actual: Any, expected: Any) -> None:
        left, right = (Counter(map(ordered, v if isinstance(v, list) else [v])) for v in (actual, expected))
        self.rows += sum(right.values())
        if left != right:
            extra, missing = list((left - right).elements()), list((right - left).elements())
            self.problems.append(f"{self.op.name} {what}: unexpected {extra[:1]}, missing {missing[:1]}")

    def source(self, source: Source) -> None:
        wanted = self.wanted
        splits = [{"subtask": h.subtask, **split_json(h.split)} for h in source.state.held]
        if "modification_time" in wanted:
            self.compare("modification time", [s["modification_time"] for s in splits], [wanted["modification_time"]])
            return
        self.compare("splits", splits, wanted["splits"])
        if source.given is None:
            return
        self.compare("split version", sorted(source.given.split_versions), [wanted["split_version"]] if splits else [])
        self.compare("enumerator version", source.given.enumerator_version, wanted["enumerator_version"])
        self.compare("enumerator", enumerator_json(source), wanted["enumerator"])
        if "backlog" in wanted:
            # A hybrid source does not store its number of sources: the last one can only be recognized if it is unbounded.
            last = source.state.backlog is None and wanted["connector"] == "hybrid-source"
            self.compare("backlog", False if last else source.state.backlog, wanted["backlog"])
        if "sentinels" in wanted:
            marked = [c.split_id for c in check_source(source) if c.check == "marker"]
            self.compare("sentinels", marked, [s["split_id"] for s in wanted["sentinels"] if s["where"] == "reader"])
        if "checks" in wanted:
            checks = [
                {"check": c.check, "split_id": c.split_id}
                | ({"subtasks": [int(s) for s in c.subtasks.split(", ")]} if c.subtasks else {})
                for c in check_source(source)
                if c.check in _CHECKS
            ]
            self.compare("checks", checks, wanted["checks"])

    def sink(self, sink: Sink) -> None:
        wanted = self.wanted
        state = sink.state
        if "writer_state" in wanted:
            writers = [{"subtask": n, **without_nulls(w)} for n, w in state.writers]
            self.compare("writers", writers, wanted["writer_state"])
            self.compare("writer version", sorted(state.versions), [wanted["writer_state_version"]])
        if "committables" in wanted:
            self.compare("committables", [committable_json(p) for p in state.pending], wanted["committables"])
        if "transactions" in wanted:
            self.compare("transactions", [transaction_json(p) for p in state.pending], wanted["transactions"])
            contexts = [{"subtask": n, **w} for n, w in state.writers if "context" in w]
            self.compare("contexts", contexts, wanted["contexts"])
        if "next_transactional_id_hint" in wanted:
            hints = [w["next_transactional_id_hint"] for _, w in state.writers if "next_transactional_id_hint" in w]
            hints = [
                {"next_free_transactional_id": h["next_free_id"], "last_parallelism": h["last_parallelism"]}
                for h in hints
            ]
            self.compare("hint", hints, [wanted["next_transactional_id_hint"]])
        if "buckets" in wanted:
            buckets = [{"subtask": n, **bucket_json(w)} for n, w in state.writers if not isinstance(w, dict)]
            self.compare("buckets", buckets, wanted["buckets"])
            counters = [
                {"subtask": n, "max_part_counter": w["max_part_counter"]}
                for n, w in state.writers
                if isinstance(w, dict)
            ]
            self.compare("counters", counters, wanted["max_part_counters"])


def ordered(value: Any) -> str:
    """Return JSON text in which members and elements are sorted."""
    return json_text(_ordered(value))


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return {k: _ordered(value[k]) for k in sorted(value)}
        case list():
            return sorted((_ordered(v) for v in value), key=json_text)
    return value


def split_json(split: Any) -> dict[str, Any]:
    """Return a split in the corpus's notation."""
    fields = as_plain(split)
    if isinstance(split, ConsumedPartition):
        return dict(fields)
    written = {"split_id": split.split_id, **fields}
    match type(split).__name__:
        case "FileSplit":
            written["path"] = str(split.path)
        case "NumberSplit":
            written = {_RENAMED.get(k, k): v for k, v in written.items()}
        case "KinesisSplit" if isinstance(written["marker"], int):
            time = datetime.fromtimestamp(written["marker"] / 1000, tz=timezone.utc)
            written["marker"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case "ConsumedShard" | "ReadFile" | "Monitored":
            del written["split_id"]
        case "HybridSplit":
            del written["connector"]
            written["wrapped"] = split_json(split.wrapped)
    return written


def enumerator_json(source: Source) -> dict[str, Any]:
    """Return an enumerator in the corpus's notation."""
    enumerator, state = source.state.enumerator, source.given
    assert enumerator is not None
    assert state is not None
    return _enumerator_json(source.name, state.enumerator_version, enumerator.splits, dict(enumerator.facts))


def _enumerator_json(name: str, version: int | None, splits: Any, facts: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "kafka-source":
            rows = [split_json(s.split) | {"status": s.status.upper()} for s in splits]
            if version in (0, 1):
                rows = [{k: v for k, v in r.items() if k != "status"} for r in rows]
            if version in (1, 2):
                rows = [{k: v for k, v in r.items() if not k.endswith("_offset")} for r in rows]
            facts.pop("subtasks", None)
            return {"splits": rows, **facts}
        case "kinesis-source":
            del facts["split_version"]
            return {**facts, "splits": [split_json(s.split) | {"status": s.status.upper()} for s in splits]}
        case "hybrid-source":
            inside = facts.pop("wrapped")
            wrapped = [type(s)(split=s.split.wrapped, status=s.status) for s in splits]
            return {**facts, "wrapped": _enumerator_json(inside["connector"], 1, wrapped, dict(inside["facts"]))}
        case "mysql-cdc-source" | "incremental-cdc-source":
            waiting = [split_json(s.split) for s in splits if s.status == "unassigned"]
            others = [split_json(s.split) for s in splits if s.status != "unassigned"]
            return {"remaining_splits": waiting, "assigned_splits": others, **as_plain(facts)}
    return {"splits": [split_json(s.split) for s in splits], **facts}


def file_json(file: dict[str, Any] | None) -> Any:
    """Return a file in the corpus's notation, without fields that are not stored."""
    return None if file is None else {k: v for k, v in file.items() if v is not None}


def without_nulls(writer: Any) -> dict[str, Any]:
    """Return the state of a writer, without fields that an old version does not store."""
    fields: dict[str, Any] = as_plain(writer)
    if "bucket_id" in fields:
        del fields["pending"]
        return {**fields, "in_progress": file_json(fields["in_progress"])}
    old = fields["owned_subtask_id"] is None
    return {"transactional_id_prefix": fields["transactional_id_prefix"]} if old else fields


def committable_json(pending: PendingCommit) -> dict[str, Any]:
    """Return a committable in the corpus's notation."""
    fields = as_plain(pending.fields)
    for name in ("pending_file", "in_progress_to_cleanup"):
        if name in fields:
            fields[name] = file_json(fields[name])
    if pending.status == "compacting":
        return dict(fields)
    head = {"checkpoint_id": pending.checkpoint_id, "subtask": pending.subtask, "retries": pending.retries}
    return {**head, "state": pending.status.upper(), **fields}


def transaction_json(pending: PendingCommit) -> dict[str, Any]:
    """Return a transaction in the corpus's notation."""
    handle = pending.fields.get("handle", pending.fields)
    return {"subtask": pending.subtask, "status": pending.status, "start_time": pending.start_ms, "handle": handle}


def bucket_json(bucket: Any) -> dict[str, Any]:
    """Return the state of a bucket in the corpus's notation."""
    fields: dict[str, Any] = as_plain(bucket)
    pending = [{"checkpoint_id": i, "files": [file_json(f) for f in files]} for i, files in fields["pending"]]
    return {**fields, "in_progress": "yes" if fields["in_progress"] else None, "pending": pending}


def wrong_bucket(data: bytes, wanted: dict[str, Any]) -> list[str]:
    """Return the differences in the state of a standalone, versioned bucket."""
    version, raw = whole_versioned(data, "a bucket")
    actual = bucket_json(read_all(raw, lambda c: read_bucket(version, c), "a bucket"))
    expected = wanted["bucket"]
    expected["pending"] = [{"checkpoint_id": i, "files": files} for i, files in expected["pending"]]
    expected["in_progress"] = "yes" if expected["in_progress"] else None
    same = version == wanted["version"] and json_text(actual) == json_text(expected)
    return [] if same else [f"{actual}, expected {expected}"]
