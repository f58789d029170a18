"""Edits change the named positions, in readers and enumerator, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.edits.edits import SourceEdit, edit_source
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.collector import read_collector
from statetool.connectors.sinks import COMMITTER_STATE, sink_of
from statetool.connectors.sources import source_of
from statetool.connectors.wire import whole_versioned
from statetool.errors import OptionError, TargetExistsError, UnknownNameError, UnsupportedError
from statetool.saving.bootstrap.states import snapshot_bytes


def case(cases: Path, name: str) -> statetool.Savepoint:
    return statetool.load(str(cases / name / "snapshot"))


def source_named(savepoint: statetool.Savepoint, connector: str) -> Any:
    sources = [s for o in savepoint.operators.values() if (s := source_of(o.inventory)) and s.name == connector]
    assert len(sources) == 1
    return sources[0]


def at(savepoint: statetool.Savepoint) -> dict[str, str | None]:
    return {r.split_id: r.position or r.marker for r in savepoint.connector_rows("source_splits")}


def waiting(savepoint: statetool.Savepoint) -> dict[str, str | None]:
    rows = savepoint.connector_rows("enumerators")
    return {r.split_id: r.position or r.marker for r in rows if r.status == "unassigned"}


def whole(target: Path) -> statetool.Savepoint:
    assert statetool.verify(str(target), deep=True).ok
    return statetool.load(str(target))


@pytest.mark.parametrize("release", ["v1_20_5", "v2_3_0"])
def test_offsets_of_kafka_change_where_they_are_named(connector_cases: Path, tmp_path: Path, release: str) -> None:
    base = case(connector_cases, f"{release}-kafka-source")
    source = source_named(base, "kafka-source")
    wanted: dict[str, int | str] = {"orders:0": 5000, "payments.eu-1-2": "latest"}
    plan = statetool.edit_source(base, str(tmp_path / "new"), source.label, positions=wanted)
    assert [(c.split_id, c.place, c.before, c.after) for c in plan.changes] == [
        ("orders-0", "reader", "1042", "5000"),
        ("payments.eu-1-2", "reader", "31", "latest"),
    ]
    new = whole(tmp_path / "new")
    assert at(new) == {**at(base), "orders-0": "5000", "payments.eu-1-2": "latest"}
    edited = source_named(new, "kafka-source")
    assert edited.coordinator == source.coordinator
    assert [h.data for h in edited.state.held if h.split.split_id not in ("orders-0", "payments.eu-1-2")] == [
        h.data for h in source.state.held if h.split.split_id not in ("orders-0", "payments.eu-1-2")
    ]


def test_unassigned_partitions_are_set_where_their_offsets_are_stored(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-kafka-source")
    statetool.edit_source(base, str(tmp_path / "new"), "orders", to="earliest")
    new = whole(tmp_path / "new")
    assert set(at(new).values()) == set(waiting(new).values()) == {"earliest"}
    assigned = [r for r in new.connector_rows("enumerators") if r.status == "assigned"]
    assert assigned == [r for r in base.connector_rows("enumerators") if r.status == "assigned"]


def test_an_enumerator_without_offsets_is_refused_or_upgraded(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v1_20_5-kafka-source")
    source = source_named(base, "kafka-source")
    with pytest.raises(UnsupportedError, match=r"\(version 2\) does not store positions .*orders-4"):
        statetool.edit_source(base, str(tmp_path / "new"), source.label, positions={"orders:4": 7})
    assert not (tmp_path / "new").exists()
    statetool.edit_source(base, str(tmp_path / "new"), source.label, positions={"orders:4": 7}, upgrade_enumerator=True)
    new = whole(tmp_path / "new")
    assert source_named(new, "kafka-source").given.enumerator_version == 3
    assert waiting(new) == {"orders-4": "7", "payments.eu-1-4": None}
    assert at(new) == at(base)


@pytest.mark.parametrize("name", ["v1_20_5-kafka-source-enum0", "v1_20_5-kafka-source-enum1", "v2_3_0-kafka-source"])
def test_splits_go_and_come_in_readers_and_enumerator(connector_cases: Path, tmp_path: Path, name: str) -> None:
    base = case(connector_cases, name)
    uid = source_named(base, "kafka-source").label
    plan = statetool.edit_source(
        base, str(tmp_path / "new"), uid, remove=["orders:1"], add={"orders:7": 70, "new.topic-a:0": "earliest"}
    )
    assert not [c for c in plan.checks if c.is_problem]
    new = whole(tmp_path / "new")
    expected = {k: v for k, v in at(base).items() if k != "orders-1"}
    assert at(new) == {**expected, "orders-7": "70", "new.topic-a-0": "earliest"}
    known = {r.split_id for r in new.connector_rows("enumerators")}
    assert {"orders-7", "new.topic-a-0"} <= known
    assert "orders-1" not in known


def test_each_split_is_named_once_and_is_somewhere(connector_cases: Path) -> None:
    source = source_named(case(connector_cases, "v2_3_0-kafka-source"), "kafka-source")
    for wanted in (
        SourceEdit(positions={"orders:0": "5", "orders-0": "7"}),
        SourceEdit(added={"orders:9": "5", "orders:09": "7"}),
    ):
        with pytest.raises(OptionError, match=r"split '?orders-[09]'? is (changed twice|added twice)"):
            edit_source(source, wanted)
    lost = replace(
        source, state=replace(source.state, held=[h for h in source.state.held if h.split.split_id != "orders-0"])
    )
    with pytest.raises(OptionError, match="split 'orders:0' is assigned but in no reader"):
        edit_source(lost, SourceEdit(positions={"orders:0": "5", "orders:3": "6"}))


def test_the_legacy_consumer_keeps_the_last_record_read(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v1_20_5-flink-kafka-consumer")
    source = source_named(base, "flink-kafka-consumer")
    assert at(base)["orders-0"] == "1042"
    statetool.edit_source(
        base,
        str(tmp_path / "new"),
        source.label,
        positions={"orders:0": 2000, "orders:1": "earliest"},
        add={"payments.eu-1:9": 1},
    )
    new = whole(tmp_path / "new")
    assert at(new) == {**at(base), "orders-0": "2000", "orders-1": "earliest", "payments.eu-1-9": "1"}
    stored = {h.split.split_id: h.split.offset for h in source_named(new, "flink-kafka-consumer").state.held}
    assert (stored["orders-0"], stored["orders-1"], stored["payments.eu-1-9"]) == (1999, -915623761775, 0)
    old = {h.split.split_id: h.data for h in source.state.held}
    # A rewritten partition has the same bytes as Kryo's.
    again = statetool.edit_source(new, str(tmp_path / "back"), source.label, positions={"orders:0": 1042}).elements
    rewritten = [data for elements in again["topic-partition-offset-states"].values() for data in elements]
    assert old["orders-0"] in rewritten


@pytest.mark.parametrize(
    ("name", "connector", "positions", "expected"),
    [
        ("v2_3_0-file-source-bounded", "file-source", {"0000000003": "28"}, {"0000000003": "28"}),
        ("v2_3_0-number-sequence", "number-sequence-source", {"1": "300"}, {"1": "300"}),
        ("v2_3_0-hybrid-second", "hybrid-source", {"2": "400"}, {"2": "400"}),
        ("v2_3_0-kinesis-source", "kinesis-source", {"shardId-000000000001": "timestamp=5"}, {"shardId-000000000001": "timestamp=5"}),
    ],
)  # fmt: skip
def test_other_sources_are_set(
    connector_cases: Path,
    tmp_path: Path,
    name: str,
    connector: str,
    positions: dict[str, str],
    expected: dict[str, str],
) -> None:
    base = case(connector_cases, name)
    statetool.edit_source(base, str(tmp_path / "new"), source_named(base, connector).label, positions=positions)
    assert at(whole(tmp_path / "new")) == {**at(base), **expected}


def test_what_waits_in_the_enumerator_of_files_is_set_and_removed(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-file-source-bounded")
    first, second, *others = sorted(waiting(base))
    statetool.edit_source(base, str(tmp_path / "new"), "files", positions={first: "10+2"}, remove=[second])
    assert waiting(whole(tmp_path / "new")) == {first: "10+2", **dict.fromkeys(others, "earliest")}


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        ({"positions": {"orders:5": 1}}, UnknownNameError, "no split 'orders:5'"),
        ({"positions": {"orders:0": "x"}}, OptionError, "'x' is not a valid offset"),
        ({"positions": {"orders:0": -5}}, OptionError, "'-5' is not a valid offset"),
        ({"positions": {"orders:0": 1042}}, OptionError, "nothing to change"),
        ({"to": "timestamp=5"}, OptionError, "not a valid offset"),
        ({"add": {"orders:0": 1}}, OptionError, "already exists"),
        ({"positions": {"orders:0": 1}, "remove": ["orders-0"]}, OptionError, "changed twice"),
    ],
)
def test_what_makes_no_sense_is_refused(
    connector_cases: Path, tmp_path: Path, edit: dict[str, Any], error: type[Exception], message: str
) -> None:
    base = case(connector_cases, "v2_3_0-kafka-source")
    with pytest.raises(error, match=message):
        statetool.edit_source(base, str(tmp_path / "new"), "orders", **edit)
    assert not (tmp_path / "new").exists()


def test_a_sequence_is_not_set_past_its_end(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-data-generator")
    with pytest.raises(OptionError, match="500 is past the end 499 of split '1'"):
        statetool.edit_source(base, str(tmp_path / "new"), "generated", positions={"1": 500})


def test_sources_that_are_only_shown_are_refused(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-mysql-cdc-binlog")
    with pytest.raises(UnsupportedError, match="positions of mysql-cdc-source cannot be changed"):
        statetool.edit_source(base, str(tmp_path / "new"), "orders", to="earliest")
    with pytest.raises(OptionError, match="is not a source"):
        statetool.edit_source(base, str(tmp_path / "new"), "discard", to="earliest")


def test_a_dry_run_writes_nothing_and_a_target_that_is_there_is_refused(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-kafka-source")
    plan = statetool.edit_source(base, str(tmp_path / "new"), "orders", to="latest", dry_run=True)
    assert plan.changes
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").write_text("")
    with pytest.raises(TargetExistsError):
        statetool.edit_source(base, str(tmp_path), "orders", to="latest")


@pytest.mark.parametrize(
    "name",
    ["v1_17_2-file-sink-row", "v1_20_5-kafka-sink", "v2_3_0-file-sink-compact", "v2_3_0-kafka-sink", "v2_3_0-two-phase-commit",
     "v1_20_5-flink-kafka-producer"],
)  # fmt: skip
def test_what_is_forgotten_is_gone_and_the_rest_stays(connector_cases: Path, tmp_path: Path, name: str) -> None:
    base = case(connector_cases, name)
    rows = [r for r in base.connector_rows("transactions") if r.status != "open"]
    for label in dict.fromkeys(r.operator for r in rows):
        wanted = [r.name for r in rows if r.operator == label][::2]
        target = tmp_path / label.operator_id
        lost = statetool.forget_transactions(base, str(target), label, wanted)
        assert [r.name for r in lost] == wanted
        new = whole(target).connector_rows("transactions")
        assert new == [r for r in base.connector_rows("transactions") if r.operator != label or r.name not in wanted]


def test_a_writer_is_expected_to_have_made_fewer(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-kafka-sink")
    label = "Sink Committer: out"
    statetool.forget_transactions(base, str(tmp_path / "new"), label, ["orders-out-0-1"])
    sink = sink_of(statetool.load(str(tmp_path / "new"))[label].inventory)
    assert sink is not None
    collectors = [read_collector(whole_versioned(v, "")[1]) for _, v in sink.data.values(COMMITTER_STATE)]
    writers = [w for c in collectors for checkpoint in c.checkpoints for w in checkpoint.writers]
    assert all(w.expected == len(w.requests) for w in writers)
    assert sorted(len(w.requests) for w in writers) == [0, 1, 1, 1]


def test_what_is_open_or_unknown_is_not_forgotten(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v2_3_0-two-phase-commit")
    with pytest.raises(UnknownNameError, match="it is open: a restore aborts it"):
        statetool.forget_transactions(base, str(tmp_path / "new"), "two-phase", ["ledger/0/2"])
    with pytest.raises(UnknownNameError, match="did you mean ledger/0/1 or ledger/0/0"):
        statetool.forget_transactions(base, str(tmp_path / "new"), "two-phase", ["ledger/0/9"])
    with pytest.raises(OptionError, match="no transactions to drop"):
        statetool.forget_transactions(base, str(tmp_path / "new"), "two-phase", [])


def test_details_are_json_of_all_that_is_stored(connector_cases: Path) -> None:
    row = case(connector_cases, "v2_3_0-kafka-source").connector_rows("source_splits")[0]
    fields = {"topic": "orders", "partition": 0, "starting_offset": 1042, "stopping_offset": None}
    assert json.loads(row.details) == fields


def test_a_legacy_consumer_becomes_a_source_that_reads_on(connector_cases: Path, tmp_path: Path) -> None:
    base = case(connector_cases, "v1_20_5-flink-kafka-consumer")
    label = source_named(base, "flink-kafka-consumer").label
    for version in (1, 2, 3):
        target = tmp_path / str(version)
        statetool.convert_consumer(base, str(target), label, enumerator_version=version)
        new = whole(target)
        assert at(new) == at(base)
        (row,) = (r for r in new.connector_rows("sources") if r.operator == label)
        assert (row.connector, row.enumerator_version, row.held, row.assigned) == ("kafka-source", version, 8, 8)
        assert row.problems == 0
        assert "topic-partition-offset-states" not in new[label].states
        splits = {(r.subtask, r.split_id) for r in new.connector_rows("source_splits")}
        assert splits == {(r.subtask, r.split_id) for r in base.connector_rows("source_splits")}
    with pytest.raises(OptionError, match="is kafka-source, not the Kafka consumer"):
        statetool.convert_consumer(str(tmp_path / "1"), str(tmp_path / "no"), label)


STATE = "topic-partition-offset-states"


def test_a_source_becomes_the_legacy_consumer_that_it_was(connector_cases: Path, tmp_path: Path) -> None:
    """After a round trip, state and serializer have the same bytes as Flink's."""
    base = case(connector_cases, "v1_20_5-flink-kafka-consumer")
    label = source_named(base, "flink-kafka-consumer").label
    for version in (1, 2, 3):
        there, back = str(tmp_path / f"there-{version}"), tmp_path / f"back-{version}"
        statetool.convert_consumer(base, there, label, enumerator_version=version)
        plan = statetool.convert_source(there, str(back), label)
        assert ("1042", "1041") in {(c.before, c.after) for c in plan.changes}
        new = whole(back)
        assert at(new) == at(base)
        assert new[label].inventory.state.coordinator is None
        old, now = (OperatorBytes(s[label].inventory) for s in (base, new))
        assert list(now.elements(STATE)) == list(old.elements(STATE))
        headers = [o.operator.elements.header(o.operator.elements.streams[0]) for o in (old, now)]
        described = [snapshot_bytes(h.states[0].value) for h in headers]
        assert described[0] == described[1]


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("v1_20_5-kafka-source", {}, "payments.eu-1-1 ends at 90, and the consumer has no ends"),
        (
            "v1_20_5-kafka-source",
            {"remove": [f"payments.eu-1:{n}" for n in (1, 2, 3)]},
            "payments.eu-1-4 starts at a position that only the settings of the job define",
        ),
        ("v1_20_5-kafka-source-inconsistent", {}, "do not agree"),
        ("v2_3_0-kafka-source", {}, "Flink 2 has no FlinkKafkaConsumer"),
    ],
)
def test_what_the_consumer_cannot_be_told_is_refused(
    connector_cases: Path, tmp_path: Path, name: str, edit: dict[str, Any], message: str
) -> None:
    base = case(connector_cases, name)
    label = source_named(base, "kafka-source").label
    if edit:
        statetool.edit_source(base, str(tmp_path / "edited"), label, **edit)
        base = statetool.load(str(tmp_path / "edited"))
    with pytest.raises(UnsupportedError, match=message):
        statetool.convert_source(base, str(tmp_path / "new"), label)
    assert not (tmp_path / "new").exists()


def test_partitions_that_wait_begin_where_the_enumerator_says(connector_cases: Path, tmp_path: Path) -> None:
    """If no partition ends and all have offsets, none depends on the consumer's setting for new ones."""
    base = case(connector_cases, "v1_20_5-kafka-source")
    label = source_named(base, "kafka-source").label
    ends = [r.split_id for r in base.connector_rows("source_splits") if r.stop is not None]
    waits: dict[str, int | str] = {"orders:4": 7, "payments.eu-1:4": "latest"}
    statetool.edit_source(base, str(tmp_path / "set"), label, positions=waits, remove=ends, upgrade_enumerator=True)
    plan = statetool.convert_source(str(tmp_path / "set"), str(tmp_path / "new"), label)
    assert {"orders-4": "6", "payments.eu-1-4": "-915623761774"}.items() <= {
        c.split_id: c.after for c in plan.changes
    }.items()
    new = whole(tmp_path / "new")
    assert at(new) == {
        **{k: v for k, v in at(base).items() if k not in ends},
        "orders-4": "7",
        "payments.eu-1-4": "latest",
    }
