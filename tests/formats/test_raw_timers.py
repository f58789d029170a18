"""Raw keyed timers: versions 1 and 2 written by Flink, and the unversioned form built from its recorded serializers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.entries.raw_timers import TimerSource
from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle
from statetool.formats.stream import Stream
from statetool.formats.timers.raw_entries import read_raw_timers
from statetool.formats.timers.raw_timers import read_raw_header
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED


def raw_operators(path: Path) -> list[OperatorInventory]:
    return [o for o in statetool.load(str(path))._inventory.operators.values() if o.keyed.raw_timers]


def group_bytes(operator: OperatorInventory) -> bytes:
    """Return the largest key group."""
    (source,) = operator.keyed.raw_timers[0].sources(operator.keyed.context, groups=None, target_bytes=1 << 60)
    assert isinstance(source, TimerSource)
    largest = max(source.ranges, key=lambda r: r.size_bytes)
    with source.stream.open() as f:
        return bytes(f.read_at(largest.offset, largest.size_bytes))


def timers_of(raw: bytes, **arguments: Any) -> list[tuple[str, Any]]:
    header = read_raw_header(memoryview(raw), NOTHING_DECLARED, base=0, key=arguments.get("key"))
    assert header is not None
    stream = Stream(file="raw", start=0, size_bytes=len(raw), inline=raw)
    timers = []
    with stream.open() as f:
        for b in read_raw_timers(f, [KeyGroupRange(5, 0, len(raw))], header, NOTHING_DECLARED):
            assert set(b.group.tolist()) <= {5}
            for s, k, e in zip(b.state.tolist(), b.key.tolist(), b.key_end.tolist(), strict=True):
                meta = header.states[s]
                timers.append((meta.name, meta.value.decode(Cursor(bytes(b.data[k:e])))))
    return timers


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("new-stateful-udf-migration-itcase-flink1.5-rocksdb-savepoint", "timer"),
        ("new-stateful-udf-migration-itcase-flink1.9-rocksdb-savepoint", "timer"),
        ("new-stateful-udf-migration-itcase-flink1.13-rocksdb-savepoint", "timer"),
    ],
)
def test_timers_of_all_releases_are_alike(migration_savepoints: Path, name: str, service: str) -> None:
    """1.5 stores them in raw state of version 1, 1.9 of version 2, 1.13 in managed state: the same job, the same timers."""
    savepoint = statetool.load(str(migration_savepoints / name))
    rows = [r for o in savepoint.operators.values() if "timers" in o.tables for r in o.to_arrow("timers").to_pylist()]
    assert {r["service"] for r in rows} == {service}
    event = sorted((r["key"]["f0"], r["namespace"], r["timestamp"]) for r in rows if r["domain"] == "event")
    assert event == sorted((k, k, -(1 << 63) + 10) for k in range(4) for _ in range(2))
    assert len(rows) == 16


def test_the_form_before_versions(migration_savepoints: Path) -> None:
    """Its serializers are Java objects. The job of Flink's test had no timers left, so some are added."""
    (operator,) = raw_operators(migration_savepoints / "operatorstate" / "complexKeyed-flink1.3" / "_metadata")
    raw = group_bytes(operator)
    assert raw.startswith(b"\0\0\0\1")
    assert raw.endswith(b"\0" * 8)
    assert timers_of(raw, key=operator.keyed.managed[0].header().key) == []
    out = Output()
    out += raw[:-8]
    for timestamps in ([7, -7], [9]):
        out.i4(len(timestamps))
        for t in timestamps:
            out.i4(41)  # the key, a tuple of one int
            out.u1(0)  # GlobalWindow
            out.i8(t)
    key = operator.keyed.managed[0].header().key
    timers = timers_of(bytes(out), key=key)
    event, processing = "_timer_state/event_window-timers", "_timer_state/processing_window-timers"
    assert timers == [(event, (7, (41,), None)), (event, (-7, (41,), None)), (processing, (9, (41,), None))]
    with pytest.raises(LookupError, match="TupleSerializer"):
        read_raw_header(memoryview(raw), NOTHING_DECLARED, base=0, key=None)


def test_raw_timers_are_states_like_others(corpus: Path) -> None:
    savepoint = statetool.load(str(corpus / "v2_3_0-rocksdb-heap-timers" / "snapshot" / "chk-3"))
    op = savepoint["win-tumble-reduce"]
    assert {n for n, s in op.states.items() if s.kind == "timers"} == {
        "_timer_state/event_window-timers",
        "_timer_state/processing_window-timers",
    }
    rows = op.to_arrow("timers").to_pylist()
    one = rows[0]["key"]
    assert op.to_arrow("timers", keys=[one]).to_pylist() == [r for r in rows if r["key"] == one]
    assert sorted(map(repr, op.to_arrow("timers", split_bytes=500).to_pylist())) == sorted(map(repr, rows))


def test_every_cut_is_an_error(corpus: Path) -> None:
    operators = raw_operators(corpus / "v2_3_0-rocksdb-heap-timers" / "snapshot" / "chk-3")
    raw = group_bytes(next(o for o in operators if o.label == "timers"))
    assert timers_of(raw)
    for size in range(4, len(raw)):
        with pytest.raises((FormatError, StatetoolError)):
            timers_of(raw[:size])
    with pytest.raises(FormatError, match="trail"):
        timers_of(raw + b"\0")


def test_raw_state_of_an_operator_itself_is_named(corpus: Path, tmp_path: Path) -> None:
    """It has no table, but is reported."""
    source = corpus / "v2_3_0-rocksdb-heap-timers" / "snapshot" / "chk-3"
    metadata = parse_metadata((source / "_metadata").read_bytes())
    raw = ByteStreamHandle(name="own", data=b"what only the operator knows")
    operators = tuple(
        replace(
            o,
            subtasks=tuple(
                replace(s, raw_keyed=KeyGroupsHandle(tag=3, start=0, offsets=(0,), stream=raw), managed_keyed=None)
                for s in o.subtasks
            ),
        )
        for o in metadata.operators
        if o.uid == "timers"
    )
    (tmp_path / "_metadata").write_bytes(write_metadata(replace(metadata, operators=operators)))
    op = statetool.load(str(tmp_path))["timers"]
    assert [(s.kind, s.readable) for s in op.states.values() if s.scope == "keyed"] == [("raw", False)]
    assert not {"timers", "(raw keyed state)"} & set(op.tables)


def test_many_timers_come_in_bounded_batches(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = raw_operators(corpus / "v2_3_0-rocksdb-heap-timers" / "snapshot" / "chk-3")
    raw = group_bytes(next(o for o in operators if o.label == "timers"))
    whole = timers_of(raw)
    monkeypatch.setattr("statetool.formats.timers.raw_entries.BATCH_BYTES", 30)
    assert timers_of(raw) == whole
