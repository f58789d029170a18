"""Facts about connectors' state that are easy to get wrong, each confirmed by bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors import registry
from statetool.connectors.checks import SourceCheck, check_source
from statetool.connectors.edits.conversion import convert_consumer, convert_source
from statetool.connectors.edits.edits import SourceEdit, edit_source
from statetool.connectors.layouts.dynamodb_streams import DynamoDbShard, DynamoDbStreamsSource
from statetool.connectors.layouts.kafka import KafkaSource, KafkaSplit
from statetool.connectors.layouts.kinesis import KinesisSource, KinesisSplit
from statetool.connectors.layouts.legacy_kafka import ConsumedPartition, KafkaConsumer
from statetool.connectors.model import Enumerator, HeldSplit, KnownSplit, SourceBytes, SourceState, SplitPosition
from statetool.connectors.sources import Source, source_of
from statetool.connectors.wire import read_version
from statetool.errors import FormatError, OptionError, UnsupportedError
from statetool.formats.metadata import SubtaskState
from statetool.formats.metadata.reader import parse_metadata
from statetool.formats.metadata.writer import write_metadata
from statetool.io.cursor import Cursor
from statetool.serializers.table import snapshot_reader
from tests.support.connectors.cdc import ENDS, chunk, log, offset
from tests.support.connectors.layouts import framed, java_object, packed
from tests.support.snapshots.build import LONG, STRING, composite

LEAST = -(1 << 63)


def source(cases: Path, name: str, connector: str) -> Source:
    sources = (source_of(o.inventory) for o in statetool.load(str(cases / name / "snapshot")).operators.values())
    (one,) = (s for s in sources if s is not None and s.name == connector)
    return one


def test_the_least_long_is_no_offset() -> None:
    """As a start it means "not resolved yet", as a stop "none": neither is an offset."""
    raw = packed("a-b.c", (4, 7), (8, LEAST), (8, LEAST))
    kafka = KafkaSource()
    split = read_version(raw, 0, kafka.read_split, "a split")
    assert (split.starting_offset, split.stopping_offset) == (None, None)
    assert kafka.place(split) == SplitPosition(source="a-b.c", partition=7)
    assert kafka.write_split(0, split) == raw


def test_an_enumerator_keeps_offsets_since_version_3(connector_cases: Path) -> None:
    kafka = KafkaSource()
    began, will_begin = (KafkaSplit(topic="t", partition=n, starting_offset=5 + n) for n in (0, 1))
    splits = (KnownSplit(split=began, status="assigned"), KnownSplit(split=will_begin, status="unassigned"))
    given = Enumerator(splits=splits, lists_assigned=True, facts={"initial_discovery_finished": True})
    for version, offsets in ((1, [None, None]), (2, [None, None]), (3, [5, 6])):
        raw = kafka.write_enumerator(version, given)
        decoded = read_version(raw, version, kafka.read_enumerator, "enumerator state")
        assert [k.split.starting_offset for k in decoded.splits] == offsets
        assert kafka.keeps_positions(version, decoded) == (version == 3)
    # For an assigned partition this is the start offset, not the reader's offset.
    read = source(connector_cases, "v2_3_0-kafka-source", "kafka-source")
    assert read.state.enumerator is not None
    starts = {k.split.split_id: k.split.starting_offset for k in read.state.enumerator.splits if k.status == "assigned"}
    held = {h.split.split_id: h.split.starting_offset for h in read.state.held}
    assert (starts["orders-0"], held["orders-0"]) == (1000, 1042)


@pytest.mark.parametrize(
    ("last", "upcoming"),
    [(0, 1), (1041, 1042), (-915623761773, -3), (-915623761774, -1), (-915623761775, -2)],
)
def test_consumers_keep_the_last_record_and_sources_the_next(connector_cases: Path, last: int, upcoming: int) -> None:
    """Markers are not offsets: the consumer and the source store different numbers for them."""
    base = source(connector_cases, "v1_20_5-flink-kafka-consumer", "flink-kafka-consumer")
    held = HeldSplit(subtask=0, version=0, data=b"", split=ConsumedPartition(topic="a-1", partition=2, offset=last))
    plan = convert_consumer(replace(base, state=SourceState(held=(held,))), 3)
    (written,) = plan.readers[0]
    split = read_version(written[8:], 0, KafkaSource().read_split, "a split")
    assert (split.topic, split.partition, split.starting_offset) == ("a-1", 2, upcoming)
    kafka = source(connector_cases, "v1_20_5-kafka-source", "kafka-source")
    there = HeldSplit(subtask=0, version=0, data=b"", split=split)
    known = Enumerator(splits=(KnownSplit(split=split, status="assigned"),), lists_assigned=True)
    back = convert_source(replace(kafka, state=SourceState(held=(there,), enumerator=known)), 4)
    assert back.partitions == ((0, held.split),)


def test_an_offset_that_the_consumer_had_not_found_is_no_position(connector_cases: Path) -> None:
    base = source(connector_cases, "v1_20_5-flink-kafka-consumer", "flink-kafka-consumer")
    split = ConsumedPartition(topic="t", partition=0, offset=-915623761776)
    assert KafkaConsumer().place(split) == SplitPosition(source="t", partition=0)
    held = HeldSplit(subtask=0, version=0, data=b"", split=split)
    with pytest.raises(UnsupportedError, match="had not found its offset yet"):
        convert_consumer(replace(base, state=SourceState(held=(held,))), 1)


def test_a_hybrid_source_does_not_say_what_is_inside() -> None:
    """An unknown inner source is shown by its index and bytes, next to known inner sources."""
    numbers = packed("1", (8, 3), (8, 9))
    given = SourceBytes(
        held=tuple(
            HeldSplit(subtask=0, version=0, data=packed((4, index), name, (4, version), framed(data)))
            for index, name, version, data in ((0, "x", 77, b"new"), (1, "1", 1, numbers))
        ),
        enumerator_version=0,
        enumerator=packed((4, 1), (4, 1), framed(packed((4, 0)))),
    )
    ((connector, state),) = registry.recognise(given)
    assert connector.name == "hybrid-source"
    shown = [(h.split.source_index, h.split.connector, h.split.wrapped) for h in state.held]
    assert shown[0] == (0, None, b"new")
    assert shown[1][:2] == (1, "number-sequence-source")
    assert [connector.place(h.split).position for h in state.held] == [None, "3"]


def test_offsets_inside_of_a_hybrid_source_are_kept_since_version_3_too(connector_cases: Path) -> None:
    """The relevant version is that of the inner enumerator: the hybrid one's does not determine the format of offsets."""
    kafka = KafkaSource()
    splits = [kafka.write_split(0, split(f"t-{n}")) for n in (0, 1)]
    known = [KnownSplit(split=split("t-0"), status="assigned"), KnownSplit(split=split("t-1"), status="unassigned")]
    inner = kafka.write_enumerator(2, Enumerator(splits=tuple(known), facts={"initial_discovery_finished": True}))
    given = SourceBytes(
        held=(HeldSplit(subtask=0, version=0, data=packed((4, 1), "t-0", (4, 0), framed(splits[0]))),),
        enumerator_version=0,
        enumerator=packed((4, 1), (4, 2), framed(inner)),
    )
    ((connector, state),) = registry.recognise(given)
    assert connector.name == "hybrid-source"
    operator = source(connector_cases, "v2_3_0-hybrid-second", "hybrid-source").operator
    hybrid = Source(operator=operator, connector=connector, state=state, given=given)
    with pytest.raises(UnsupportedError, match="does not store positions of unassigned splits"):
        edit_source(hybrid, SourceEdit(positions={"t:1": "7"}))
    edited = edit_source(hybrid, SourceEdit(positions={"t:1": "7"}, upgrade=True))
    assert [(c.split_id, c.place, c.after) for c in edited.changes] == [("t-1", "enumerator", "7")]
    assert edited.coordinator is not None
    written = replace(given, enumerator=edited.coordinator[12:])
    ((_, new),) = registry.recognise(written)
    assert new.enumerator is not None
    assert [k.split.wrapped.starting_offset for k in new.enumerator.splits] == [None, 7]
    assert {k.split.wrapped_version for k in new.enumerator.splits} == {None}
    assert new.enumerator.facts["wrapped_version"] == 3
    # An assigned split is set only in its reader, whatever the version.
    assert edit_source(hybrid, SourceEdit(positions={"t:0": "7"})).coordinator is None


@pytest.mark.parametrize(
    ("outer_version", "outer", "flag"),
    [(1, b"", False), (2, b"", False), (3, b"", True), (4, b"\0", False), (4, b"\1", True)],
)
def test_the_version_of_its_snapshot_says_whether_a_transaction_is_open(
    outer_version: int, outer: bytes, flag: bool
) -> None:
    name = "org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
    serializer = snapshot_reader().snapshot(Cursor(composite(name, outer_version, outer, STRING, LONG)))
    text = b"\2a"
    rest = packed(text, (8, 5), (4, 0), False)
    whole = packed(True, rest) if flag else rest
    c = Cursor(whole)
    assert serializer.decode(c) == (("a", 5), [], None)
    assert c.left == 0
    if flag:
        assert serializer.decode(Cursor(packed(False, (4, 1), text, (8, 6), False))) == (None, [("a", 6)], None)


def test_what_waits_for_compaction_is_kept_by_the_coordinator_of_it(connector_cases: Path) -> None:
    for release in ("v1_20_5", "v2_3_0"):
        rows = statetool.load(str(connector_cases / f"{release}-file-sink-compact" / "snapshot")).connector_rows(
            "sinks"
        )
        pending = {r.role: r.pending for r in rows}
        assert pending["compact-coordinator"] > 0
        assert pending["committer"] == 0


def test_files_are_little_endian(connector_cases: Path) -> None:
    """So are enumerators of files and recoverables of local files, among numbers that are big-endian."""
    files = source(connector_cases, "v2_3_0-file-source-bounded", "file-source")
    assert files.given is not None
    raw = files.given.enumerator
    assert raw is not None
    assert files.state.enumerator is not None
    assert raw[:8] == bytes.fromhex("efbeadde01000000")
    assert int.from_bytes(raw[8:12], "little") == len(files.state.enumerator.splits) > 0
    with pytest.raises(FormatError, match="expected the magic number"):
        read_version(raw[:4][::-1] + raw[4:], 1, registry.split_connector("file-source").read_enumerator, "")
    path = connector_cases / "v2_3_0-file-sink-row" / "snapshot"
    rows = [r for r in statetool.load(str(path)).connector_rows("transactions") if r.file]
    for row in rows:
        names = [n.encode() for n in (row.file, row.temporary_file)]
        lengths = b"".join(len(n).to_bytes(4, "little") for n in names)
        stored = bytes.fromhex("574b741e") + row.size_bytes.to_bytes(8, "little") + lengths + b"".join(names)
        assert stored in (path / "_metadata").read_bytes()
    assert rows


@pytest.mark.parametrize(("connector", "version"), [("mysql-cdc-source", 4), ("incremental-cdc-source", 6)])
def test_keys_of_cdc_are_java_streams_in_hexadecimal_digits(connector: str, version: int) -> None:
    """So are the factories of offsets embedded by the common base. All are read as data: none of their classes is available here."""
    key = java_object("com.example.NoSuchKey", {"id": 7}).hex()
    raw = chunk(connector, version, "c:3", False).replace(packed(ENDS, ENDS), packed(ENDS, key))
    ((reader, state),) = registry.recognise(SourceBytes(held=(HeldSplit(subtask=0, version=version, data=raw),)))
    assert reader.name == connector
    assert (state.held[0].split.start, state.held[0].split.end) == (None, {"class": "com.example.NoSuchKey", "id": 7})
    if connector == "incremental-cdc-source":
        factory = java_object("com.example.NoSuchFactory", {}).hex()
        embedded = packed(ENDS, ENDS, ENDS, offset(lsn="7"))
        assert embedded in log(connector, version)
        raw = log(connector, version).replace(embedded, packed(ENDS, ENDS, factory, offset(lsn="7")))
        ((reader, state),) = registry.recognise(SourceBytes(held=(HeldSplit(subtask=0, version=version, data=raw),)))
        assert state.held[0].split.finished_splits[0].high_watermark == {"lsn": "7"}


def checked(splits: dict[str, list[int]], known: list[KnownSplit], base: Source) -> list[SourceCheck]:
    held = tuple(
        HeldSplit(subtask=n, version=0, data=b"", split=split(name)) for name, where in splits.items() for n in where
    )
    enumerator = Enumerator(splits=tuple(known), lists_assigned=True)
    return check_source(replace(base, state=SourceState(held=held, enumerator=enumerator)))


def split(name: str, start: int = 4) -> KafkaSplit:
    topic, _, partition = name.rpartition("-")
    return KafkaSplit(topic=topic, partition=int(partition), starting_offset=start)


def test_gaps_and_what_waits_twice_are_found(connector_cases: Path) -> None:
    base = source(connector_cases, "v2_3_0-kafka-source", "kafka-source")
    waiting = [KnownSplit(split=split("a-b-4"), status="unassigned")] * 2
    assigned = [KnownSplit(split=split(f"a-b-{n}"), status="assigned") for n in (0, 2)]
    findings = checked({"a-b-0": [0], "a-b-2": [1]}, [*assigned, *waiting], base)
    assert [(c.check, c.split_id, c.is_problem) for c in findings] == [
        ("unassigned_twice", "a-b-4", True),
        ("partition_missing", None, False),
    ]
    assert findings[1].message.endswith(": a-b has no partition 1, 3")


def test_what_enumerators_do_not_store_is_said(connector_cases: Path) -> None:
    """None stores the checkpoint at which a split was assigned; some store whether the first discovery is done."""
    discovered = {"v2_3_0-kafka-source": True, "v1_20_5-kafka-source-enum1": None, "v2_3_0-kinesis-source": None}
    for name, done in discovered.items():
        savepoint = statetool.load(str(connector_cases / name / "snapshot"))
        assert {r.assigned_since for r in savepoint.connector_rows("enumerators")} == {None}
        assert {r.watermark for r in savepoint.connector_rows("source_splits")} == {"not stored"}
        assert [r.discovered for r in savepoint.connector_rows("sources") if r.enumerator_version is not None] == [done]


def test_finished_subtasks_with_something_uncommitted_are_named(connector_cases: Path, tmp_path: Path) -> None:
    raw = (connector_cases / "v2_3_0-kafka-sink" / "snapshot" / "_metadata").read_bytes()
    sink = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))["Sink Committer: out"]
    metadata = parse_metadata(raw)

    def finished(subtasks: tuple[SubtaskState, ...]) -> tuple[SubtaskState, ...]:
        return (SubtaskState(index=subtasks[0].index, finished=True), *subtasks[1:])

    operators = tuple(
        replace(o, subtasks=finished(o.subtasks)) if o.operator_id == sink.inventory.state.operator_id else o
        for o in metadata.operators
    )
    (tmp_path / "_metadata").write_bytes(write_metadata(replace(metadata, operators=operators)))
    done = CliRunner().invoke(cli, ["sinks", "pending", str(tmp_path)])
    assert done.exit_code == 0, done.stderr
    assert "Sink Committer: out: 1 subtask had finished; not committed: 2" in done.stderr
    listed: list[dict[str, Any]] = json.loads(
        CliRunner().invoke(cli, ["sinks", "list", str(tmp_path), "--json"]).stdout
    )
    assert {r["role"]: (r["finished_subtasks"], r["pending"]) for r in listed} == {
        "writer": (0, 0),
        "committer": (1, 2),
    }


@pytest.mark.parametrize("topic", ["Bestellungen/größe", "namespace:orders", "a b", "注文"])
def test_topics_of_other_services_have_more_letters(connector_cases: Path, topic: str) -> None:
    base = source(connector_cases, "v2_3_0-kafka-source", "kafka-source")
    assert base.given is not None
    kafka = KafkaSource()
    splits = [KafkaSplit(topic=topic, partition=n, starting_offset=7) for n in range(2)]
    held = tuple(HeldSplit(subtask=0, version=0, data=kafka.write_split(0, s)) for s in splits)
    known = tuple(KnownSplit(split=s, status="assigned") for s in splits)
    for version in (0, 1, 2, 3):
        facts = {"subtasks": [0]} if version == 0 else {"initial_discovery_finished": True}
        enumerator = Enumerator(splits=known, lists_assigned=True, facts=facts)
        given = SourceBytes(
            held=held, enumerator_version=version, enumerator=kafka.write_enumerator(version, enumerator)
        )
        ((connector, state),) = registry.recognise(given)
        assert connector.name == "kafka-source"
        assert [h.split.topic for h in state.held] == [topic, topic]
    assert kafka.added(f"{topic}:3", "5", ()).partition == 3


def test_no_topic_is_empty_or_has_characters_of_control() -> None:
    for topic in ("", "a\0b", "a\nb", "x" * 250):
        data = KafkaSource().write_split(0, KafkaSplit(topic=topic, partition=0, starting_offset=7))
        assert registry.recognise(SourceBytes(held=(HeldSplit(subtask=0, version=0, data=data),))) == []


def test_shards_that_begin_at_a_sequence_number_have_a_position() -> None:
    kinesis = KinesisSource()
    arn = "arn:aws:kinesis:eu-west-1:1:stream/orders"
    shard = KinesisSplit(split_id="s-0", stream_arn=arn, shard_id="s-0", position="AT_SEQUENCE_NUMBER", marker="4711")
    assert kinesis.place(shard).position == "at=4711"
    after = replace(shard, position="AFTER_SEQUENCE_NUMBER")
    assert kinesis.place(after).position == "after=4711"
    # With AT, the record itself is read next. With AFTER, it has been read.
    for split in (shard, after):
        assert kinesis.at(split, "at=4711") == shard
        assert kinesis.at(split, "after=4711") == after
        with pytest.raises(OptionError, match="does not say whether the record"):
            kinesis.at(split, "4711")
    for wrong in ("at=", "after=x", "at=-1", "after", "timestamp=x", f"timestamp={1 << 63}"):
        with pytest.raises(OptionError):
            kinesis.at(shard, wrong)


def test_streams_of_tables_tell_the_record_read_last_from_the_next_one() -> None:
    arn = "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026"
    kinds = {"AFTER_SEQUENCE_NUMBER": "after=7", "AT_SEQUENCE_NUMBER": "at=7", "TRIM_HORIZON": None}
    for kind, position in kinds.items():
        number = None if position is None else "7"
        shard = DynamoDbShard(split_id="s", stream_arn=arn, iterator_type=kind, sequence_number=number, parent=None)
        assert DynamoDbStreamsSource().place(shard).position == position


@pytest.mark.parametrize("name", ["mysql", "incremental"])
def test_chunks_of_the_snapshot_phase_are_assigned(connector_cases: Path, name: str) -> None:
    log = {"mysql": "binlog", "incremental": "stream"}[name]
    (row,) = (
        r
        for r in statetool.load(str(connector_cases / f"v2_3_0-{name}-cdc-snapshot" / "snapshot")).connector_rows(
            "sources"
        )
        if r.connector.endswith("-cdc-source")
    )
    assert (row.assigned, row.unassigned, row.finished, row.problems) == (1, 3, 2, 0)
    (row,) = (
        r
        for r in statetool.load(str(connector_cases / f"v2_3_0-{name}-cdc-{log}" / "snapshot")).connector_rows(
            "sources"
        )
        if r.connector.endswith("-cdc-source")
    )
    # The split of the log is not listed, so how many splits are assigned is not known.
    assert (row.assigned, row.unassigned, row.finished, row.problems) == (None, 0, 6, 0)
