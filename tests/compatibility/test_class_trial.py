"""Checks and upgrades with the classes of the new job: values of real jobs, read with changed classes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.compatibility.classes.job_classes import is_provided
from statetool.compatibility.classes.trial import user_class
from statetool.compatibility.verdicts import OperatorVerdict
from statetool.errors import OptionError, UnsupportedError
from tests.support.compile import compile_java
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink import pairs
from tests.support.flink.pair_suites import SUITES
from tests.support.snapshots import build
from tests.support.snapshots import canonical as canonical_state
from tests.support.zoo import ZOO

SUITE: Final = next(s for s in SUITES if s.name == "changed-classes")
UIDS: Final = sorted(SUITE.states(new=False))


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(pairs.SNAPSHOTS, tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def old_jar(snapshots: Path) -> str:
    return str(pairs.jar_of(snapshots, "old"))


@pytest.fixture(scope="module")
def new_jar(snapshots: Path) -> str:
    return str(pairs.jar_of(snapshots, "new"))


def old_savepoint(snapshots: Path, release: str = "1.20") -> st.Savepoint:
    return st.load(str(snapshots / "old" / SUITE.name / release), uids=UIDS)


def only(snapshots: Path, folder: Path, *names: str) -> str:
    """Write a savepoint of Flink 1.20 with some of the operators."""
    uids = [f"changed-{name}" for name in names]
    st.drop(old_savepoint(snapshots), str(folder), [uid for uid in UIDS if uid not in uids])
    return str(folder)


def by_name(check: object) -> dict[str, OperatorVerdict]:
    assert hasattr(check, "operators")
    return {o.uid.removeprefix("changed-"): o for o in check.operators}


def test_without_a_savepoint_of_the_new_job_its_jar_decides(snapshots: Path, old_jar: str, new_jar: str) -> None:
    check = by_name(st.check(old_savepoint(snapshots), jars=[old_jar], other_jars=[new_jar]))
    reasons = {
        "KryoByteAdded": "expected 1 more bytes",
        "KryoShapeGone": "The new job does not have the class evolved.Changed$Square.",
        "NowPojo": "The type Kryo evolved.Changed$NowPojo became POJO evolved.Changed$NowPojo.",
        "PojoEnumLost": "lost the constants RED, GREEN",
        "PojoFieldNoPojo": "The type POJO evolved.Changed$Chain became Kryo evolved.Changed$Chain.",
        "Zoo:Bat": "The new job does not have the class evolved.Changed$Bat.",
    }
    for name, reason in reasons.items():
        assert check[name].verdict == "not", name
        assert reason in check[name].states[0].reason, (name, check[name].states[0].reason)
    assert check["PojoRecordGrown"].verdict == "after_migration"
    for name in ("KryoInts", "KryoLists", "KryoNestedSame", "KryoEnumFewer", "Zoo:Cow", "PojoToRecord"):
        assert (check[name].verdict, check[name].states[0].warnings) == ("fully", ()), name


def test_kryo_reads_the_fields_of_a_class_with_methods_of_java_serialization(
    snapshots: Path, old_jar: str, new_jar: str
) -> None:
    old = old_savepoint(snapshots)
    check = by_name(st.check(old, jars=[old_jar], other_jars=[new_jar]))
    assert (check["KryoOwn"].verdict, check["KryoOwnGrown"].verdict) == ("fully", "not")
    upgraded = by_name(st.check(old, jars=[old_jar], other_jars=[new_jar], flink_version="2.3"))
    assert upgraded["KryoOwn"].verdict == "fully"


_OWN: Final = """
package acme;
public class Own implements com.esotericsoftware.kryo.KryoSerializable { int a; %s }
"""


def own_jar(folder: Path, more: str) -> str:
    """Compile a class that writes itself."""
    kryo = folder / "com" / "esotericsoftware" / "kryo"
    kryo.mkdir(parents=True)
    (kryo / "KryoSerializable.java").write_text(
        "package com.esotericsoftware.kryo; public interface KryoSerializable {}"
    )
    (folder / "Own.java").write_text(_OWN % more)
    return str(compile_java([folder / "Own.java", *kryo.iterdir()], folder / "classes"))


def test_a_class_that_writes_itself_is_known_only_if_it_stays_the_same(tmp_path: Path) -> None:
    state = canonical_state.keyed("v", "value", build.kryo("acme.Own"))
    (tmp_path / "old").mkdir()
    canonical_state.savepoint(tmp_path / "old", [canonical_state.Subtask(key=build.STRING, states=[state], entries=[])])
    old, jars = str(tmp_path / "old"), [own_jar(tmp_path / "a", "")]
    assert st.check(old, jars=jars, other_jars=[own_jar(tmp_path / "b", "")]).verdict == "fully"
    changed = st.check(old, jars=jars, other_jars=[own_jar(tmp_path / "c", "int b;")])
    assert changed.verdict == "unknown"
    assert "it writes itself (KryoSerializable)" in changed.operators[0].states[0].reason


def test_the_jars_of_an_opened_snapshot_of_the_new_job_are_those_of_the_new_job(tmp_path: Path) -> None:
    """Unless others are named, or none: the command line does so, where one ``--jar`` belongs to both snapshots."""
    state = canonical_state.keyed("v", "value", build.kryo("acme.Own"))
    paths = [str(tmp_path / name) for name in ("old", "new")]
    for path in paths:
        Path(path).mkdir()
        canonical_state.savepoint(Path(path), [canonical_state.Subtask(key=build.STRING, states=[state], entries=[])])
    jars, changed = [own_jar(tmp_path / "a", "")], [own_jar(tmp_path / "c", "int b;")]
    old, new = st.load(paths[0], jars=jars), st.load(paths[1], jars=changed)
    named = st.check(paths[0], paths[1], jars=jars, other_jars=changed)
    assert named.verdict == "unknown"
    assert st.check(old, new).record() == named.record()
    assert st.check(old, new, other_jars=jars).verdict == "fully"
    assert st.check(old, new, other_jars=()).record() == st.check(old, paths[1]).record()
    with pytest.raises(OptionError, match="an upgrade needs the jar of the new job"):
        st.upgrade(old, str(tmp_path / "upgraded"), to=new, other_jars=(), dry_run=True)


def test_java_serialization_needs_the_same_uid(snapshots: Path, old_jar: str, new_jar: str) -> None:
    suite = next(s for s in SUITES if s.name == "java-serialized")
    old = st.load(str(snapshots / "old" / suite.name / "2.3"), uids=suite.states(new=False))
    for jars in ([], [old_jar]):
        check = {o.uid.removeprefix("serialized-"): o for o in st.check(old, jars=jars, other_jars=[new_jar]).operators}
        reasons = {
            "UidChanged": "the values have serialVersionUID 1, the class of the new job has 2",
            "Computed": "the values have serialVersionUID ",
            "Nested": "Java serialization wrote evolved.Serialized$Inner: the values have serialVersionUID ",
            "Retyped": "the type of a differs in the class of the new job",
            "NoMore": "the class of the new job is not serializable",
            "LostConstant": "the new enum does not have BLUE",
            "WithoutConstructor": "evolved.Serialized$BaseWithoutConstructor has no constructor without parameters",
        }
        for name, reason in reasons.items():
            assert check[name].verdict == "not", name
            assert reason in check[name].states[0].reason, (name, check[name].states[0].reason)
        assert "private static final long serialVersionUID = 1L." in check["UidChanged"].states[0].remedy
        warned = {
            name: [w.message for w in o.states[0].warnings]
            for name, o in check.items()
            if o.verdict == "fully" and o.states
        }
        assert warned["Same"] == []
        assert "drops b and sets c to 0 or null" in warned["FieldsChanged"][0]
        assert "sets the fields of evolved.Serialized$Base to 0 or null" in warned["NewBase"][0]
        assert check["Resolved"].verdict == "unknown"


def test_without_the_old_jar_values_are_not_compared(snapshots: Path, new_jar: str) -> None:
    check = by_name(st.check(old_savepoint(snapshots), other_jars=[new_jar]))
    assert check["KryoByteAdded"].verdict == "not"
    ints = check["KryoInts"]
    assert (ints.verdict, [w.kind for w in ints.states[0].warnings]) == ("fully", ["may_change"])
    assert "--jar-a" in ints.states[0].warnings[0].text


def test_values_that_become_others_are_shown(snapshots: Path, old_jar: str, new_jar: str) -> None:
    check = by_name(st.check(old_savepoint(snapshots), jars=[old_jar], other_jars=[new_jar]))
    (warning,) = check["KryoEnum"].states[0].warnings
    assert warning.kind == "may_change"
    assert "color: 'RED' becomes 'NEW'" in warning.message or "becomes" in warning.message


def messages_of(snapshots: Path, folder: Path, release: str, *names: str) -> st.Savepoint:
    """Write a savepoint of Flink with some of the messages."""
    suite = next(s for s in SUITES if s.name == "messages")
    uids = suite.states(new=False)
    old = st.load(str(snapshots / "old" / suite.name / release), uids=uids)
    kept = [f"message-{name}" for name in names]
    st.drop(old, str(folder), [uid for uid in uids if uid not in kept])
    return st.load(str(folder), uids=kept)


def test_thrift_structs_keep_their_bytes_and_protobuf_messages_are_rewritten(
    snapshots: Path, old_jar: str, new_jar: str, tmp_path: Path
) -> None:
    old = messages_of(snapshots, tmp_path / "old", "1.20", "thrift.Added", "thrift.Same", "proto3.Same")
    options = {"jars": [old_jar], "other_jars": [new_jar], "flink_version": "2.3"}
    done = st.upgrade(old, str(tmp_path / "new"), **options)  # type: ignore[arg-type]
    assert done.ok
    assert [s.uid for s in done.plan.states] == ["message-proto3.Same"]
    refused = messages_of(snapshots, tmp_path / "refused", "1.20", "thrift.AddedRequired", "proto3.ToText")
    planned = st.upgrade(refused, str(tmp_path / "newer"), dry_run=True, **options)  # type: ignore[arg-type]
    assert not planned.ok
    assert any("without its required more" in text for text in planned.plan.refused)
    assert [r.text for r in planned.plan.rows if r.change == "impossible"] == [
        "bytes cannot become another type, or the reverse, in the field raw"
    ]


def test_a_renamed_field_of_a_nested_thrift_struct(snapshots: Path, old_jar: str, new_jar: str) -> None:
    for jar, names in ((old_jar, ["a", "b"]), (new_jar, ["number", "b"])):
        done = CliRunner().invoke(cli, ["declare", "--jar", jar, "messagepairs.thrift.InnerRenamedInner"])
        (declared,) = json.loads(done.stdout)
        assert (declared["kind"], declared["constants"], declared["numbers"]) == ("thrift", names, [1, 2])
        assert declared["fields"] == {names[0]: "int", "b": "java.lang.String"}
    suite = next(s for s in SUITES if s.name == "messages")
    old = st.load(str(snapshots / "old" / suite.name / "2.3"), uids=suite.states(new=False))
    checked = {o.uid: o for o in st.check(old, jars=[old_jar], other_jars=[new_jar]).operators}
    (state,) = checked["message-thrift.InnerRenamed"].states
    assert (state.verdict, [w.kind for w in state.warnings]) == ("fully", ["may_change"])
    assert '"inner":{"a":1,' in state.reason


def test_the_suggested_upgrade_makes_the_job_restore(
    snapshots: Path, old_jar: str, new_jar: str, tmp_path: Path
) -> None:
    old = only(snapshots, tmp_path / "old", "KryoByteAdded", "KryoLists", "KryoEnum", "PojoList")
    options = ["--jar-a", old_jar, "--jar-b", new_jar, "--flink", "2.3"]
    checked = CliRunner().invoke(cli, ["check", old, *options])
    assert checked.exit_code == 1, checked.output
    commands = {line.strip() for line in checked.stdout.splitlines() if line.strip().startswith("statetool upgrade")}
    (command,) = commands
    assert "--dry-run" not in command
    target = str(tmp_path / "upgraded")
    words = [target if word == "NEW" else word for word in shlex.split(command)[1:]]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "After: the new job restores the result" in done.stderr
    again = CliRunner().invoke(cli, ["check", target, "--jar-a", new_jar, "--jar-b", new_jar, "--flink", "2.3"])
    assert again.exit_code == 0, again.output


def test_an_upgrade_names_what_it_cannot_do(snapshots: Path, old_jar: str, new_jar: str, tmp_path: Path) -> None:
    old = only(snapshots, tmp_path / "old", "KryoShapeGone")
    options = {"jars": [old_jar], "other_jars": [new_jar], "flink_version": "2.3"}
    planned = st.upgrade(old, str(tmp_path / "new"), dry_run=True, **options)  # type: ignore[arg-type]
    assert not planned.ok
    assert any("evolved.Changed$Square" in text for text in planned.plan.refused)
    with pytest.raises(UnsupportedError):
        st.upgrade(old, str(tmp_path / "new"), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_a_native_snapshot_needs_the_backend_of_the_new_job(corpus: Path, public_jar: Path, tmp_path: Path) -> None:
    source = st.load(str(corpus / "v2_3_0-rocksdb-native" / "snapshot"))
    st.drop(source, str(tmp_path / "old"), [uid for uid in source.operators if uid not in ("timers", "by-tuple")])
    planned = st.upgrade(str(tmp_path / "old"), str(tmp_path / "new"), dry_run=True, other_jars=[public_jar])
    assert len(planned.plan.refused) == 2
    assert all("Name the backend of the new job" in text for text in planned.plan.refused)
    options = ["--backend", "rocksdb", "--jar-b", str(public_jar)]
    done = CliRunner().invoke(cli, ["upgrade", str(tmp_path / "old"), str(tmp_path / "unknown"), *options])
    assert done.exit_code == 1, done.output
    assert "After: whether the new job restores the result is unknown: " in done.stderr
    assert "timer-service.factory" in done.stderr
    (tmp_path / "config.yaml").write_text("state.backend.rocksdb.timer-service.factory: ROCKSDB\n")
    options += ["--config", str(tmp_path / "config.yaml")]
    done = CliRunner().invoke(cli, ["upgrade", str(tmp_path / "old"), str(tmp_path / "new"), *options])
    assert done.exit_code == 0, done.output
    assert "After: the new job restores the result, if 4 assumptions hold." in done.stderr
    assert "not verified: the new job has the operators and states of this snapshot" in done.stderr


def test_keys_that_kryo_wrote_are_refused(tmp_path: Path, new_jar: str) -> None:
    subtask = canonical_state.Subtask(
        key=build.kryo("java.util.UUID"),
        states=[canonical_state.keyed("v", "value", build.INT)],
        entries=[],
    )
    (tmp_path / "old").mkdir()
    canonical_state.savepoint(tmp_path / "old", [subtask])
    options = {"other_jars": [new_jar], "flink_version": "2.3"}
    with pytest.raises(UnsupportedError, match="cannot read values of Kryo"):
        st.upgrade(str(tmp_path / "old"), str(tmp_path / "new"), dry_run=True, **options)  # type: ignore[arg-type]


def test_a_jar_is_needed(snapshots: Path, tmp_path: Path) -> None:
    old = str(snapshots / "old" / SUITE.name / "1.20")
    with pytest.raises(OptionError, match="jar of the new job"):
        st.upgrade(old, str(tmp_path / "new"), other_jars=[])
    with pytest.raises(OptionError, match="nothing to check against"):
        st.check(old)
    failed = CliRunner().invoke(cli, ["upgrade", old, str(tmp_path / "new")])
    assert failed.exit_code == 2
    assert "--jar-b FILE" in failed.stderr


def test_a_sql_job_is_upgraded_without_a_jar(sql_corpus: Path, tmp_path: Path) -> None:
    old, new = str(sql_corpus / "sql_join_types_hashmap" / "snapshot"), str(tmp_path / "new")
    done = CliRunner().invoke(cli, ["upgrade", old, new, "--flink", "2.3"])
    assert done.exit_code == 0, done.output
    assert "the upgrade needs no --jar-b" in done.stderr
    assert "After: the new job restores the result" in done.stderr
    assert st.load(new).diff(old).equal


def test_which_states_need_the_jar() -> None:
    operators = st.load(ZOO)._inventory.operators.values()
    found = {str(user_class(operator)) for operator in operators} - {"None"}
    assert found == {"UserClass(place='orders.order', name='corpus.PublicTypes$Order')"}


def test_a_connector_is_part_of_the_jobs_jar(tmp_path: Path) -> None:
    """Classes of Flink are provided, those of its connectors are not."""
    package = "org.apache.flink.streaming.connectors.kafka.internals"
    source = tmp_path / "KafkaTopicPartition.java"
    source.write_text(
        f"package {package};\npublic final class KafkaTopicPartition implements java.io.Serializable {{\n"
        "private final String topic; private final int partition; private final int cachedHash;\n"
        "KafkaTopicPartition(String t, int p) { topic = t; partition = p; cachedHash = 0; } }\n"
    )
    with_connector = compile_java([source], tmp_path / "old")
    (tmp_path / "new").mkdir()
    snapshots = unpack(HERE / "corpus" / "connectors.tar.xz", tmp_path / "corpus")
    (metadata,) = snapshots.rglob("v1_20_5-flink-kafka-consumer/snapshot/_metadata")
    gone = f"The new job does not have the class {package}.KafkaTopicPartition."
    for new, found in ((tmp_path / "new", True), (with_connector, False)):
        check = st.check(str(metadata.parent), jars=[str(with_connector)], other_jars=[str(new)])
        assert (gone in check.reason) is found, check.reason
        assert (check.verdict == "not") is found


def test_which_packages_flink_provides() -> None:
    provided = [
        "org.apache.flink.FlinkVersion", "org.apache.flink.api.java.tuple.Tuple2", "org.apache.flink.connector.file.src.FileSourceSplit",
        "org.apache.flink.formats.json.JsonRowSchemaConverter", "[Lorg.apache.flink.types.Row;", "[J", "java.util.UUID",
    ]  # fmt: skip
    of_the_job = [
        "org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit", "org.apache.flink.formats.avro.AvroWriterFactory",
        "org.apache.flink.streaming.connectors.kinesis.model.SequenceNumber", "org.apache.flink.cdc.common.event.TableId",
        "org.apache.flink.graph.Edge", "org.apache.flinkx.api.serializers.package$", "com.acme.Order",
    ]  # fmt: skip
    assert [name for name in (*provided, *of_the_job) if is_provided(name)] == provided
