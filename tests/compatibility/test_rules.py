"""Rules of a restore that need no other job, or a small change of one: each on a snapshot that real Flink wrote, or on a copy with one change."""

from __future__ import annotations

import shutil
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import statetool as st
from statetool.api.load import inventory_of
from statetool.compatibility.classes.trial import NewClasses
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle
from statetool.formats.metadata.model import MasterState
from statetool.java.classes.jar_classes import JarClasses
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.core.snapshot import NESTED_MAGIC
from statetool.serializers.libraries.flinkx.case_class import FlinkxCaseClassSerializer
from statetool.serializers.own_composites import OwnCompositeSerializer, open_own_composites
from statetool.serializers.typeutils.arrays import GenericArraySerializer
from statetool.serializers.typeutils.tuples import CaseClassSerializer, TupleSerializer
from statetool.serializers.typeutils.user import UserTypeSerializer
from statetool.types.declared import TypeContext
from tests.support.checks.restore_steps import found, job_graph, rules_of, snapshot_of, step
from tests.support.connectors.lake_cases import PACKED
from tests.support.corpora.archives import unpack
from tests.support.failures.damage import Patient
from tests.support.flink import job_pairs, pairs
from tests.support.snapshots.trees import replace_file

#: A class that the jar of the new job lacks.
GONE = "corpus.PublicTypes$Order"


def test_windows_without_a_timer(restores: Path, corpus: Path) -> None:
    """W6: FLINK-33192 leaves 16 windows without a timer; other windows have one each."""
    leaked = st.check(str(restores / "leaked-windows-1.18.1"), flink_version="2.3")
    assert ("W6", "may_change") in found(leaked)
    assert any("16 windows of 16 have no timer" in w for w in leaked.warnings)
    remedies = [f.remedy for s in leaked.steps for f in s.findings if f.rule == "W6"]
    assert all("removes all state of a key" in r and "(keys: " in r for r in remedies), remedies
    for case in ("v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-heap-timers", "v2_3_0-changelog-rocksdb"):
        assert "W6" not in {rule for rule, _ in found(st.check(snapshot_of(corpus / case), flink_version="2.3"))}


def test_vertices_that_have_finished_before_their_inputs(restores: Path, tmp_path: Path) -> None:
    """F3: a partly finished vertex needs a finished one before it, unless each of its subtasks has one of its own."""
    path = str(restores / "partly-finished")
    ids = {o.uid: o.operator_id for o in st.load(path).operators.values()}

    def rules(name: str, strategy: str, first: str) -> set[str]:
        graph = job_graph(
            tmp_path / name,
            (ids[first], 2, "Source: Custom Source<br/>", ()),
            (ids["plus"], 2, "Map<br/>", ((ids[first], strategy),)),
            (ids["acc" if first == "src" else "src"], 2, "KeyedProcess<br/>", ((ids["plus"], "HASH"),)),
        )
        return {rule for rule, kind in found(st.check(path, path, graph=graph)) if kind == "not"}

    assert rules("forward", "FORWARD", "src") == set()
    assert rules("hash", "HASH", "src") == {"F3"}
    assert "F3" in rules("running", "FORWARD", "acc")


def test_a_finished_vertex_behind_one_that_runs(corpus: Path, tmp_path: Path) -> None:
    """F2."""
    path = snapshot_of(corpus / "v2_3_0-finished")
    operators = [o.state for o in inventory_of(path).operators.values()]
    whole = next(o for o in operators if o.fully_finished)
    running = next(o for o in operators if o.subtasks and not any(s.finished for s in o.subtasks))
    graph = job_graph(
        tmp_path / "graph.json",
        (running.operator_id, 1, "Source: a<br/>", ()),
        (whole.operator_id, 1, "b<br/>", ((running.operator_id, "FORWARD"),)),
    )
    assert ("F2", "not") in found(st.check(path, path, graph=graph))


def test_a_savepoint_of_a_drained_job(corpus: Path, tmp_path: Path) -> None:
    """F5: its properties tell."""
    patient = Patient.of(Path(snapshot_of(corpus / "v2_3_0-hashmap-canonical")), tmp_path / "drained")
    properties = patient.metadata.properties
    assert properties is not None
    for name, drained in ((b"Savepoint", b"Terminate Savepoint"), (b"NONE", b"TERMINATE")):
        before, after = (struct.pack(">H", len(n)) + n for n in (name, drained))
        assert properties.count(b"t" + before) == 1
        properties = properties.replace(b"t" + before, b"t" + after)
    patient.write(replace(patient.metadata, properties=properties))
    assert ("F5", "may_change") in found(st.check(str(patient.folder), flink_version="2.3"))


def test_a_bounded_kafka_source_never_ends(connector_cases: Path, tmp_path: Path) -> None:
    """F7: one of its subtasks has finished."""
    patient = Patient.of(Path(snapshot_of(connector_cases / "v2_3_0-kafka-source")), tmp_path / "partly")
    patient.change_subtask("orders", 0, lambda s: replace(s, finished=True))
    path = str(patient.folder)
    assert ("F7", "note") in found(st.check(path, path))


def test_in_flight_data(corpus: Path, tmp_path: Path) -> None:
    """U6, U8, U9, U10."""
    path = snapshot_of(corpus / "v2_3_0-unaligned")
    operators = {o.uid: o for o in st.load(path).operators.values()}
    ids = {uid: o.operator_id for uid, o in operators.items()}
    assert ("U9", "note") in found(st.check(path, path))
    twice = job_graph(
        tmp_path / "twice.json",
        (ids["relay"], 1, "relay<br/>", ()),
        (ids["slow"], 1, "slow<br/>", ((ids["relay"], "HASH"), (ids["relay"], "HASH"))),
    )
    assert ("U6", "loses") in found(st.check(path, path, graph=twice, parallelism=1))
    st.drop(path, str(tmp_path / "without"), ["slow"])
    assert ("U8", "loses") in found(st.check(path, str(tmp_path / "without"), allow_non_restored=True))
    number = st.load(path).checkpoint_id
    for dropped in (number, number + 1):
        config = tmp_path / f"{dropped}.yaml"
        config.write_text(f"execution.state-recovery.without-channel-state.checkpoint-id: {dropped}\n")
        assert (("U10", "loses") in found(st.check(path, path, config=config))) == (dropped == number)


def test_lists_are_dealt_out_and_claims_are_told(corpus: Path) -> None:
    """P6, G6, M10."""
    savepoint = snapshot_of(corpus / "v2_3_0-hashmap-canonical")
    assert ("P6", "note") in found(st.check(savepoint, savepoint, parallelism=2))
    checkpoint = snapshot_of(corpus / "v2_3_0-rocksdb-incremental")
    kinds = {mode: found(st.check(checkpoint, flink_version="2.3", claim_mode=mode)) for mode in ("legacy", "no_claim")}
    assert ("G6", "note") in kinds["legacy"]
    assert ("M10", "note") in kinds["no_claim"]
    assert "G6" in {a.rule for a in step(st.check(checkpoint, flink_version="2.3"), "claim").assumptions}
    assert step(st.check(savepoint, flink_version="2.3"), "claim").status == "not_relevant"


def test_settings_of_the_new_job(corpus: Path, tmp_path: Path) -> None:
    """G3, H9, H12, R2."""
    config = tmp_path / "config.yaml"
    config.write_text("state.backend.type: org.example.Backend\nrestart-strategy.type: none\npekko.framesize: 1000b\n")
    path = snapshot_of(corpus / "v2_3_0-hashmap-checkpoint-inline")
    check = st.check(path, flink_version="2.3", config=config, claim_mode="no_claim")
    assert {("G3", "unknown"), ("H12", "note"), ("R2", "not")} <= found(check)
    assert "H9" not in {rule for rule, _ in found(check)}
    assert "G3" not in rules_of(st.check(path, flink_version="2.3", config=config, claim_mode="claim"))
    config.write_text("pekko.framesize: 10485760b\n")
    assert "R2" not in {rule for rule, _ in found(st.check(path, flink_version="2.3", config=config))}


def test_a_large_state_on_the_jobmanager(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H9."""
    config = tmp_path / "config.yaml"
    config.write_text("execution.checkpointing.storage: jobmanager\n")
    path = snapshot_of(corpus / "v2_3_0-hashmap-canonical")
    assert "H9" not in {rule for rule, _ in found(st.check(path, flink_version="2.3", config=config))}
    monkeypatch.setattr("statetool.compatibility.steps.first_checkpoint._MOST_BYTES", 100)
    assert ("H9", "later") in found(st.check(path, flink_version="2.3", config=config))


def test_handles_of_other_subtasks_and_backends(corpus: Path, tmp_path: Path) -> None:
    """M13, M14: keyed handles of two subtasks change places, or one is that of another backend."""
    canonical = Path(snapshot_of(corpus / "v2_3_0-rocksdb-canonical"))
    patient = Patient.of(canonical, tmp_path / "swapped")
    first, second = (patient.keyed("orders", i) for i in (0, 1))
    patient.change_subtask("orders", 0, lambda s: replace(s, managed_keyed=second))
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=first))
    assert ("M14", "loses") in found(st.check(str(patient.folder), str(canonical)))
    assert "M14" not in {rule for rule, _ in found(st.check(str(canonical), str(canonical)))}
    native = Patient.of(Path(snapshot_of(corpus / "v2_3_0-rocksdb-native")), tmp_path / "mixed")
    native.change_subtask("orders", 0, lambda s: replace(s, managed_keyed=first))
    assert ("M13", "not") in found(st.check(str(native.folder), flink_version="2.3", backend="rocksdb"))


def test_raw_state_that_only_the_operator_reads(corpus: Path, tmp_path: Path) -> None:
    """T6, E6: raw state of a real job, with bytes that are no timers."""
    path = tmp_path / "copy"
    st.copy(snapshot_of(corpus / "v2_3_0-rocksdb-heap-timers"), str(path))
    patient = Patient.of(path, tmp_path / "snapshot")
    handle = next(s for s in patient.operator("timers").subtasks if s.index == 0).raw_keyed
    assert isinstance(handle, KeyGroupsHandle)
    offsets = tuple(8 * i for i, _ in enumerate(handle.offsets))
    own = replace(handle, offsets=offsets, stream=ByteStreamHandle(name="own", data=b"\x07own" * 400))
    patient.change_subtask("timers", 0, lambda s: replace(s, raw_keyed=own))
    assert ("T6", "unknown") in found(st.check(str(patient.folder), str(path)))
    patient.change_subtask("op-lists", 0, lambda s: replace(s, raw_operator=s.managed_operator, managed_operator=None))
    patient.change_operator("op-lists", lambda o: replace(o, name="another function"))
    assert ("E6", "unknown") in found(st.check(str(patient.folder), str(path)))


def test_change_logs_that_are_gone(corpus: Path, tmp_path: Path) -> None:
    """M11."""
    old = snapshot_of(corpus / "v2_3_0-changelog-rocksdb")
    st.copy(old, str(tmp_path / "copy"))
    assert step(st.check(str(tmp_path / "copy"), flink_version="2.3"), "files").status == "proved"
    logs = [f for f in (tmp_path / "copy").rglob("*") if f.is_file() and f.name != "_metadata"]
    assert logs
    for log in logs:
        log.unlink()
    assert ("M6", "not") in found(st.check(str(tmp_path / "copy"), flink_version="2.3"))


def test_coordinators_of_a_newer_release(connector_cases: Path, tmp_path: Path) -> None:
    """C4."""
    path = Path(snapshot_of(connector_cases / "v2_3_0-kafka-source"))
    patient = Patient.of(path, tmp_path / "newer")
    state = patient.operator("orders").coordinator
    assert state is not None
    assert isinstance(state, ByteStreamHandle)
    newer = replace(state, data=struct.pack(">i", 2) + state.data[4:])
    patient.change_operator("orders", lambda o: replace(o, coordinator=newer))
    assert ("C4", "not") in found(st.check(str(patient.folder), str(path)))
    assert ("C4", "not") not in found(st.check(str(path), str(path)))


def test_topics_that_the_new_job_does_not_have(connector_cases: Path) -> None:
    """C5, C9: KafkaSource reads them on."""
    old, new = (snapshot_of(connector_cases / f"v2_3_0-{n}") for n in ("kafka-source", "kafka-source-inconsistent"))
    check = st.check(old, new)
    assert ("C5", "may_change") in found(check)
    assert "C9" in {a.rule for a in step(check, "sources").assumptions}


def test_sinks_of_other_releases_and_guarantees(connector_cases: Path, tmp_path: Path) -> None:
    """X3, X5, X17 (by E4): KafkaSink 4.0 and later writes version 2, and has no state unless it is exactly once."""
    old, new = (snapshot_of(connector_cases / n) for n in ("v2_3_0-kafka-sink", "v1_20_5-kafka-sink"))
    ids = {o.uid: o.operator_id for o in st.load(old).operators.values()}
    check = st.check(old, new)
    assert ("X5", "may_change") in found(check), found(check)
    st.drop(old, str(tmp_path / "stateless"), states={"out": ["writer_raw_states"]})
    check = st.check(old, str(tmp_path / "stateless"))
    assert ("X3", "loses") in found(check)
    st.drop(new, str(tmp_path / "writer"), states={ids["out"]: ["writer_raw_states"]})
    assert ("E4", "loses") in found(st.check(new, str(tmp_path / "writer")))


def test_values_of_asynchronous_state_are_not_migrated(rule_cases: Path) -> None:
    """V2: ForSt of Flink 2.0.2, 2.1.3, 2.2.1 and 2.3.0 refuses each kind of state whose POJO got a field."""
    old, new = (str(rule_cases / f"grown-{side}") for side in ("old", "new"))
    for release in (None, "2.3", "2.1"):
        check = st.check(old, new, flink_version=release)
        states = {s.name: s for o in check.operators for s in o.states if s.name == "grown"}
        verdicts = {str(o.uid): s.verdict for o in check.operators for s in o.states if s.name == "grown"}
        assert verdicts == dict.fromkeys(("value", "list", "map"), "not")
        assert "migrate" in states["grown"].remedy
    assert st.check(new, new).verdict == "fully"
    kept = st.check(old, new, backend="rocksdb")
    assert {s.verdict for o in kept.operators for s in o.states if s.name == "grown"} == {"after_migration"}


def test_connectors_of_a_job_without_keyed_state_or_splits(connector_cases: Path, tmp_path: Path) -> None:
    """C1: the jars tell that the sources changed, whatever they keep; C9 is assumed of positions in list states, too."""
    path = snapshot_of(connector_cases / "v1_20_5-flink-kafka-consumer")
    jars = unpack(job_pairs.SNAPSHOTS, tmp_path) / "jars"
    old, new = ((jars / f"RevisedSourceToFiles-{side}.jar",) for side in ("old", "new"))
    check = st.check(path, flink_version="1.20", jars=old, other_jars=new)
    assert ("C1", "unknown") in found(check)
    assert "C9" in {a.rule for a in step(check, "sources").assumptions}


def test_what_is_no_snapshot(tmp_path: Path) -> None:
    """M3."""
    (tmp_path / "_metadata").write_bytes(struct.pack(">ii", 0x4960672D, 1))
    with pytest.raises(st.StatetoolError, match="version 1"):
        st.check(str(tmp_path), flink_version="2.3")
    (tmp_path / "_metadata").write_bytes(b"no snapshot")
    with pytest.raises(st.StatetoolError, match="not a"):
        st.check(str(tmp_path), flink_version="2.3")


@pytest.mark.parametrize(("release", "readable"), [("1.15", True), ("1.16", True), ("1.17", False), ("2.3", False)])
def test_serializers_of_flink_1_6_and_older(migration_savepoints: Path, release: str, readable: bool) -> None:
    """M4: Flink up to 1.16 reads them."""
    path = str(migration_savepoints / "new-stateful-udf-migration-itcase-flink1.5-savepoint")
    refused = {f for f in found(st.check(path, flink_version=release)) if f[1] == "not"}
    assert refused == (set() if readable else {("K4", "not"), ("E4", "not"), ("K2", "not")})


def test_splits_that_are_read_twice_or_never(connector_cases: Path) -> None:
    """C16: on all snapshots of sources, as ``sources check`` says."""
    paths = sorted({str(p.parent) for p in connector_cases.rglob("_metadata") if "-sink" not in str(p)})
    found_in = {path for path in paths if ("C16", "may_change") in found(st.check(path, flink_version="2.3"))}
    assert {Path(p).parent.name.partition("-")[2] for p in found_in} == {"kafka-source-inconsistent"}


def test_hooks_on_the_jobmanager(corpus: Path, tmp_path: Path) -> None:
    """O10."""
    path = Path(snapshot_of(corpus / "v2_3_0-hashmap-canonical"))
    patient = Patient.of(path, tmp_path / "hooks")
    hook = MasterState(version=0, name="hook", payload=b"state")
    patient.write(replace(patient.metadata, master_states=(hook,)))
    hooked = str(patient.folder)
    assert ("O10", "unknown") in found(st.check(hooked, str(path)))
    assert "O10" not in {rule for rule, _ in found(st.check(hooked, hooked))}


def test_an_operator_that_is_new_in_a_chain_has_the_default_max_parallelism(restores: Path, tmp_path: Path) -> None:
    """P5: Flink 2.3.0 and 1.20.5 fail, as the backend gets key groups that it does not have."""
    old, new = (str(restores / n) for n in ("partly-finished", "one-more-chained-operator"))
    assert "P5" not in {rule for rule, _ in found(st.check(old, new))}
    st.rescale(old, str(tmp_path / "rescaled"), 256)
    rescaled = str(tmp_path / "rescaled")
    check = st.check(rescaled, new)
    assert ("P5", "unknown") in found(check)
    # P1 does not say that Flink keeps the number of the snapshot where P5 says that it may not.
    limits = {f.text for f in step(check, "parallelism").findings if f.rule == "P1"}
    assert any("otherwise Flink keeps 256, unless an operator that is new in its chain" in text for text in limits)
    assert "P5" not in {rule for rule, _ in found(st.check(rescaled, new, max_parallelism=256))}
    # B has the max parallelism of the snapshot, and the job runs with a parallelism that has another default.
    assert ("P5", "unknown") in found(st.check(old, new, parallelism=100))
    ids = {o.uid: o.operator_id for o in st.load(new).operators.values()}
    apart = job_graph(tmp_path / "apart.json", *((i, 2, f"{uid}<br/>", ()) for uid, i in ids.items()))
    assert "P5" not in {rule for rule, _ in found(st.check(old, new, parallelism=100, graph=apart))}


def copy_without(jar: Path, copy: Path, gone: str) -> None:
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(copy, "w") as less:
        for name in whole.namelist():
            if not name.endswith(f"${gone}.class"):
                less.writestr(name, whole.read(name))


@pytest.mark.parametrize(
    ("uid", "state", "gone"),
    [("orders", "order", "Order"), ("orders", "by-color", "Color"), ("composites-by-int", "money", "Money")],
)
def test_a_state_whose_class_is_gone_too(
    corpus: Path, public_jar: Path, tmp_path: Path, uid: str, state: str, gone: str
) -> None:
    """E5: Flink 1.20.5 and 2.3.0 fail with ``Could not find class``, although the new job does not register the state."""
    old, new, jar = snapshot_of(corpus / "v2_3_0-hashmap-canonical"), str(tmp_path / "new"), tmp_path / "new.jar"
    st.drop(old, new, states={uid: [state]})
    copy_without(public_jar, jar, gone)
    for other, kinds in ((jar, {"not", "loses"}), (public_jar, {"loses"})):
        check = st.check(old, new, jars=[public_jar], other_jars=[other])
        assert {f.kind for s in check.steps for f in s.findings if f.state == state} == kinds


@pytest.mark.parametrize(
    "serializer",
    [
        TupleSerializer("org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot", 2, 1, GONE, ()),
        CaseClassSerializer("org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot", 2, 2, GONE, ()),
        FlinkxCaseClassSerializer("org.apache.flinkx.api.serializer.ScalaCaseClassSerializerSnapshot", 2, 3, (GONE, True), ()),
        GenericArraySerializer("org.apache.flink.api.common.typeutils.base.GenericArraySerializerSnapshot", 1, 1, f"[L{GONE};", (OpaqueSerializer(b"", "any"),)),
        UserTypeSerializer("org.apache.flink.api.java.typeutils.runtime.ValueSerializer$ValueSerializerSnapshot", 2, GONE, "Value"),
        AvroSerializer("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot", 3, GONE, '"long"'),
        OpaqueSerializer(len(GONE).to_bytes(2) + GONE.encode(), "unknown"),
    ],
    ids=lambda s: type(s).__name__,
)  # fmt: skip
def test_all_classes_that_flink_loads_to_read_a_header(
    serializer: Serializer, public_jar: Path, tmp_path: Path
) -> None:
    """E5: each of these snapshots resolves its class by name when it is read."""
    copy_without(public_jar, tmp_path / "new.jar", "Order")
    old, new = (TypeContext(source=JarClasses((jar,)).open()) for jar in (public_jar, tmp_path / "new.jar"))
    assert NewClasses(old, new).resolve_header([serializer]).level == Level.INCOMPATIBLE
    assert NewClasses(old, old).resolve_header([serializer]).level == Level.AS_IS
    assert NewClasses(TypeContext(), new).resolve_header([serializer]).level == Level.UNKNOWN


def test_commits_with_a_lower_checkpoint_id(tmp_path: Path) -> None:
    """X10: Iceberg drops commits of ids that its table has."""
    case = unpack(PACKED, tmp_path / "lakes") / "iceberg-1.10.0"
    patient = Patient.of(case / "snapshot", tmp_path / "low")
    assert "X10" not in {rule for rule, _ in found(st.check(str(patient.folder), flink_version="1.20"))}
    patient.write(replace(patient.metadata, checkpoint_id=1))
    assert ("X10", "loses") in found(st.check(str(patient.folder), flink_version="1.20"))


@pytest.mark.full
def test_parts_of_a_serializer_of_the_job(tmp_path: Path) -> None:
    """K4: ``CompositeTypeSerializerSnapshot`` has a format of its own, so that parts are compared, as Flink does with the pair of the table."""
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "pairs")
    assert pairs.results("2.3", "2.3")["kind-serializers", "Own$CompositeRetyped", "rocksdb"] == "refused"
    path = str(snapshots / "old" / "kind-serializers" / "2.3")
    operator = st.load(path, uids=["Own$CompositeRetyped"])["Own$CompositeRetyped"].inventory
    ((_, meta),) = operator.listed_keyed.values()
    old = meta.value
    assert isinstance(old, OpaqueSerializer)
    opened = open_own_composites(old)
    assert isinstance(opened, OwnCompositeSerializer)
    assert opened.snapshot == old.snapshot
    assert [part.type_name for part in opened.nested] == ["Int", "String"]

    def changed(before: bytes, after: bytes) -> OpaqueSerializer:
        assert old.snapshot.count(before) == 1
        return OpaqueSerializer(old.snapshot.replace(before, after), "of the new job")

    kinds = [f"org.apache.flink.api.common.typeutils.base.{n}Serializer${n}SerializerSnapshot" for n in ("Int", "Long")]
    part, other = (len(name).to_bytes(2) + name.encode() for name in kinds)
    assert resolve(old, old).level == Level.UNKNOWN  # Only the code tells how it writes its values.
    retyped = resolve(old, changed(part, other))
    assert (retyped.level, retyped.reason) == (Level.INCOMPATIBLE, "part 1: The type Int became Long.")
    block = NESTED_MAGIC.to_bytes(4) + (1).to_bytes(4)
    fewer = changed(block + (2).to_bytes(4) + part + (3).to_bytes(4), block + (1).to_bytes(4))
    assert resolve(old, fewer).level == Level.INCOMPATIBLE
    own_payload = changed(block, b"\0\0\0\7" + block)
    assert open_own_composites(own_payload) is None
    assert resolve(old, own_payload).level == Level.UNKNOWN


def test_synchronous_state_that_becomes_asynchronous(corpus: Path, tmp_path: Path) -> None:
    """V5, V6: the operators have states with a time to live."""
    old, new = snapshot_of(corpus / "v2_3_0-rocksdb-native"), str(tmp_path / "new")
    st.convert(old, new, format="native", backend="forst", state_api="v2")
    check = st.check(old, new)
    assert {("V5", "note"), ("V6", "not")} <= found(check)
    assert "V6" not in rules_of(st.check(new, new))
    # Without a time to live, only Flink 2.0 refuses it, and ForSt in any release if the snapshot is canonical.
    canonical, mortal, mortal_new = (str(tmp_path / name) for name in ("canonical", "mortal", "mortal-new"))
    st.drop(old, str(tmp_path / "dropped"), ["with-ttl"])
    st.convert(str(tmp_path / "dropped"), canonical)
    st.convert(canonical, mortal, format="native", backend="forst")
    st.convert(canonical, mortal_new, format="native", backend="forst", state_api="v2")
    for snapshot, release, kind in ((mortal, "2.3", ""), (mortal, "2.0", "not"), (canonical, "2.3", "not")):
        kinds = {k for rule, k in found(st.check(snapshot, mortal_new, flink_version=release)) if rule == "V6"}
        assert kinds == ({kind} if kind else set())
    assert "V5" not in rules_of(st.check(old, flink_version="2.3", backend="rocksdb"))


def test_options_of_databases(corpus: Path, tmp_path: Path) -> None:
    """K12, K13: by the OPTIONS file that RocksDB writes."""
    old, new = (snapshot_of(corpus / f"v{release}-rocksdb-native") for release in ("1_20_5", "2_3_0"))
    assert ("K12", "not") in found(st.check(new, flink_version="1.20"))
    for path, release in ((old, "1.20"), (old, "2.3"), (new, "2.3")):
        assert not {"K12", "K13"} & rules_of(st.check(path, flink_version=release)).keys()
    other = tmp_path / "other"
    shutil.copytree(new, other)
    for file in other.iterdir():
        data = file.read_bytes()
        if file.name != "_metadata" and b"comparator=leveldb.BytewiseComparator" in data:
            replace_file(file, data.replace(b"=leveldb.BytewiseComparator", b"=rocksdb.BytewiseComparator"))
    check = st.check(str(other), flink_version="2.3")
    assert "rocksdb.BytewiseComparator" in rules_of(check)["K13"]
    assert ("K13", "note") in found(check)


def test_settings_of_serializers(corpus: Path, public_jar: Path, tmp_path: Path) -> None:
    """S5, S7."""
    path, config = snapshot_of(corpus / "v2_3_0-hashmap-canonical"), tmp_path / "config.yaml"
    config.write_text("pipeline.force-avro: true\n")
    check = st.check(path, flink_version="2.3", config=config)
    assert {("S5", "unknown"), ("S7", "note")} <= found(check)
    assert "corpus.PublicTypes$" in rules_of(check)["S5"]
    assert "Kryo may not read" in rules_of(check)["S7"]
    of_1 = rules_of(st.check(path, flink_version="1.20", config=config))["S7"]
    assert "Kryo of Flink 1.x does not start" in of_1
    assert "Flink 2.x" not in of_1
    # The release is not known.
    of_both = rules_of(st.check(path, other_jars=[public_jar], config=config))["S7"]
    assert "Kryo of Flink 1.x does not start" in of_both
    assert "in Flink 2.x, Kryo may not read the private fields of java." in of_both
    config.write_text("env.java.opts.all: --add-opens=java.base/java.util=ALL-UNNAMED\npipeline.force-avro: false\n")
    assert not {"S5", "S7"} & rules_of(st.check(path, flink_version="2.3", config=config)).keys()


def test_states_that_only_one_jar_names(restores: Path, tmp_path: Path) -> None:
    """K16, E7: a state that B does not have and its jar names; a state of A that only the new jar names."""
    path = str(restores / "timers-twice-in-header")
    (uid, names), *_ = ((o.uid, list(o.listed_keyed)) for o in inventory_of(path).operators.values() if o.listed_keyed)
    name = next(n for n in names if not n.startswith("_timer_state"))
    jars = []
    for folder, texts in (("old", [uid]), ("new", [uid, name])):
        jars.append(tmp_path / f"{folder}.jar")
        with zipfile.ZipFile(jars[-1], "w") as jar:
            jar.writestr("job.properties", "".join(f"{text}\n" for text in texts))
    st.drop(path, str(tmp_path / "dropped"), states={uid: [name]})
    check = st.check(path, str(tmp_path / "dropped"), jars=jars[1:], other_jars=jars[1:])
    assert {("K16", "note"), ("K4", "loses")} <= found(check)
    assert "E7" not in rules_of(check)
    assert "K16" not in rules_of(st.check(path, str(tmp_path / "dropped"), jars=jars[1:], other_jars=jars[:1]))
    assert ("E7", "note") in found(st.check(path, flink_version="2.3", jars=jars[:1], other_jars=jars[1:]))


def test_ids_of_sql_operators(sql_corpus: Path, tmp_path: Path) -> None:
    """Q1, Q2, Q6: one query with generated ids and one with uids, and another query."""
    generated, named, other = (
        snapshot_of(sql_corpus / f"sql_{n}") for n in ("group_agg_hashmap", "group_agg_rocksdb", "join_types")
    )
    assert "table.exec.uid.generation" in rules_of(st.check(generated, named))["Q2"]
    check = st.check(other, named)
    assert "6_join" in rules_of(check)["Q1"]
    assert {("Q1", "note"), ("O1", "not")} <= found(check)
    config = tmp_path / "config.yaml"
    config.write_text("table.exec.mini-batch.enabled: true\n")
    check = st.check(named, named, config=config)
    assert not {"Q1", "Q2"} & rules_of(check).keys()
    (assumed,) = (a for a in step(check, "operators").assumptions if a.rule == "Q6")
    assert "table.exec.mini-batch.enabled: true" in assumed.text


def test_timers_that_are_overdue(restores: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T7, Z2."""
    path = str(restores / "datastream-v2-sessions")
    first = 1_795_875_689_394
    for now, count in ((first, 0), (first + 1, 1)):
        monkeypatch.setattr("statetool.compatibility.steps.timers.time.time_ns", lambda now=now: now * 1_000_000)
        check = st.check(path, flink_version="2.3")
        assert len({(f.rule, f.kind) for f in step(check, "timers").findings}) == 2 * count
    assert found(check) == {("T7", "note"), ("Z2", "note")}
    assert rules_of(check)["T7"].startswith("1 processing-time timer is overdue, the first since 2026-")
    # Timers between values of the heap's native format, which only their serializers tell apart.
    check = st.check(snapshot_of(corpus / "v2_3_0-hashmap-native"), flink_version="2.3")
    assert "T7" in {a.rule for a in step(check, "timers").assumptions}


def test_values_that_are_migrated_at_the_first_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Z6."""
    snapshots = unpack(job_pairs.SNAPSHOTS, tmp_path)
    migrated = (r for r in job_pairs.table() if r.savepoint.startswith("after_migration") and r.backend == "rocksdb")
    row = next(filter(job_pairs.is_stored, migrated))
    assert "Z6" not in rules_of(job_pairs.check(snapshots, row, "savepoint"))
    monkeypatch.setattr("statetool.compatibility.steps.keyed_state._MUCH", 10)
    assert ("Z6", "note") in found(job_pairs.check(snapshots, row, "savepoint"))
