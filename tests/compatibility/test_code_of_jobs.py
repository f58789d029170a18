"""What the code of a job tells of its states, windows, keys, uids and records, and where it does not tell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import statetool as st
from statetool.compatibility.declared_types import resolve_types
from statetool.compatibility.record_types import has_same_classes, has_same_streams, has_same_types
from statetool.compatibility.verdicts import Level
from statetool.io.cursor import Cursor
from statetool.java.classes.jar_classes import JarClasses
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import type_snapshot
from statetool.types.declared import TypeContext
from statetool.types.flink_calls import (
    FlinkCall,
    WindowForm,
    content_calls,
    given_uids,
    windows_of_uids,
)
from statetool.types.type_information import TypeInformation, simple
from statetool.types.type_names import basic_type
from tests.support.checks.restore_steps import found, snapshot_of
from tests.support.compile import compile_java, files_of, make_jar
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs

_STREAM: Final = "org.apache.flink.streaming.api.datastream."
_WINDOWS: Final = "org.apache.flink.streaming.api.windowing."
_TUPLE2: Final = "org.apache.flink.api.java.tuple.Tuple2<java.lang.String, java.lang.Integer>"


def call(owner: str, name: str, *arguments: str, place: str = "jobs.Job.build") -> FlinkCall:
    owner = owner if "." in owner else f"{_STREAM}{owner}"
    return FlinkCall(owner, name, arguments, place)


def serializer(java_class: str) -> Serializer:
    return snapshot_reader().snapshot(Cursor(type_snapshot(simple(java_class), None, {})))


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("job-pairs"))


@pytest.mark.parametrize(
    ("job", "side", "types"),
    [
        ("FlightTupleLonger", "old", {"java.lang.String", _TUPLE2}),
        ("FlightKryoToPojo", "old", {"java.lang.String", "generic jobs.FlightKryoToPojo$Event"}),
        ("FlightKryoToPojo", "new", {"java.lang.String", "jobs.FlightKryoToPojo$Event"}),
        ("FlightSame", "new", {"java.lang.String", _TUPLE2}),
    ],
)
def test_code_names_the_types_of_records(snapshots: Path, job: str, side: str, types: set[str]) -> None:
    assert set(JarClasses([job_pairs.jar_of(snapshots, job, side)]).record_types(5)) == types


def test_code_shows_the_type_of_keys(snapshots: Path) -> None:
    found = [JarClasses([job_pairs.jar_of(snapshots, "StateKeyType", side)]).key_types(5) for side in ("old", "new")]
    assert [{uid: str(kind) for uid, kind in one.items()} for one in found] == [
        {"sums": "String"},
        {"sums": "TUPLE org.apache.flink.api.java.tuple.Tuple2(String, Int)"},
    ]
    # The stream with keys comes from another method.
    assert JarClasses([job_pairs.jar_of(snapshots, "StateSame", "old")]).key_types(5) == {}


def test_a_computed_uid_may_be_any() -> None:
    calls = [call("SingleOutputStreamOperator", "uid", '"sums"'), call("DataStreamSink", "uid", '"sink-"', "?")]
    assert given_uids(calls) == ({"sums"}, True)
    assert given_uids(calls[:1]) == ({"sums"}, False)


def test_constants_of_flink_are_types() -> None:
    found = [
        basic_type(t) for t in ("Types.BIG_DEC", "BasicTypeInfo.INT_TYPE_INFO", "LongSerializer.INSTANCE", "Types.ROW")
    ]
    assert found == ["java.math.BigDecimal", "java.lang.Integer", "java.lang.Long", None]


@pytest.mark.parametrize(
    ("texts", "level"),
    [
        (["Types.INT"], Level.AS_IS),
        (["java.lang.Long.class"], Level.INCOMPATIBLE),
        (["Types.LIST"], None),
        (["?"], None),
        (["Types.INT", "Types.INT"], None),
    ],
)
def test_types_that_are_not_known_decide_nothing(texts: list[str], level: Level | None) -> None:
    found = resolve_types([serializer("java.lang.Integer")], texts, TypeContext())
    assert (None if found is None else found.level) == level


def windows(*between: FlinkCall, function: FlinkCall, after: tuple[FlinkCall, ...] = ()) -> WindowForm | None:
    assigner = call(f"{_WINDOWS}assigners.TumblingEventTimeWindows", "of")
    uid = call("SingleOutputStreamOperator", "uid", '"w"')
    return windows_of_uids([assigner, call("KeyedStream", "window"), *between, function, *after, uid]).get("w")


def test_windows_are_those_of_the_operator_with_the_uid() -> None:
    process = call("WindowedStream", "process", "All")
    form = WindowForm(kind="list", function="All", evicts=False, is_global=False, is_all=False)
    assert windows(function=process) == form
    assert windows(function=process, after=(call("SingleOutputStreamOperator", "name", '"n"'),)) == form
    assert windows(function=process, after=(call("SingleOutputStreamOperator", "map", "Next"),)) is None


def test_an_explicit_type_hides_that_of_the_function() -> None:
    found = windows(function=call("WindowedStream", "aggregate", "Sum", "Types.LONG", "Types.LONG"))
    assert found is not None
    assert (found.kind, found.function) == ("aggregating", "")


def test_an_evictor_in_another_method_may_be_that_of_the_windows() -> None:
    elsewhere = call("WindowedStream", "evictor", place="jobs.Job.windows")
    calls = [elsewhere, call("WindowedStream", "process", "All"), call("SingleOutputStreamOperator", "uid", '"w"')]
    assert windows_of_uids(calls)["w"].evicts is None


def test_streams_of_other_calls_differ() -> None:
    before = [call("DataStream", "rebalance"), call("DataStream", "map", "lambda 0a1b2c3d")]
    assert has_same_streams(before, [before[0], call("DataStream", "map", "lambda ffffffff")])
    assert not has_same_streams(before, [call("DataStream", "forward"), before[1]])


def test_settings_and_arguments_of_own_methods_are_part_of_streams() -> None:
    kryo = call("org.apache.flink.api.common.ExecutionConfig", "enableForceKryo")
    option = call("org.apache.flink.configuration.Configuration", "set", "PipelineOptions.FORCE_KRYO", "?")
    own = [FlinkCall("jobs.Job", "exchange", ("?", flag), "jobs.Job.build", use="streams") for flag in "01"]
    assert not has_same_streams([], [kryo])
    assert not has_same_streams([], [option])
    assert not has_same_streams(own[:1], own[1:])
    assert has_same_streams(own, own)


def test_values_may_be_of_subclasses_that_changed(snapshots: Path) -> None:
    old, new = (JarClasses([job_pairs.jar_of(snapshots, "FlightTupleLonger", side)]) for side in ("old", "new"))
    base = TypeInformation("pojo", "jobs.FlightJob")
    assert old.is_same("jobs.FlightJob", new)
    assert not old.is_same("jobs.FlightTupleLonger", new)
    assert not has_same_classes(base, old, new)
    assert has_same_classes(base, old, old)
    # Kryo writes the class of each value.
    assert not has_same_classes(TypeInformation("kryo", "jobs.FlightJob"), old, old)


def test_a_uid_that_a_method_gets_is_computed() -> None:
    named = call("SingleOutputStreamOperator", "uid", '"sums"')
    by_transformation = call("org.apache.flink.api.dag.Transformation", "setUid", "?")
    by_reference = call("DataStream", "map", "SingleOutputStreamOperator::uid")
    assert given_uids([named, by_transformation]) == ({"sums"}, True)
    assert given_uids([named, by_reference]) == ({"sums"}, True)


def job_of(folder: Path, *classes: str) -> JarClasses:
    """Compile classes of Flink, each given by its name and source, and the class ``jobs.Job`` that calls them, and return those of the job."""
    *flink, job = classes
    named = {name: source for name, _, source in (text.partition(" ") for text in flink)} | {"jobs.Job": job}
    sources = {
        folder / f"{name.replace('.', '/')}.java": f"package {name.rpartition('.')[0]}; {source}"
        for name, source in named.items()
    }
    for file, text in sources.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    compiled_files = files_of(compile_java(sources, folder / "classes"))
    own = {name: data for name, data in compiled_files.items() if name.startswith("jobs/")}
    return JarClasses([make_jar(folder / "job.jar", own)])


def test_functions_that_exchange_their_types_do_not_have_the_same_ones(tmp_path: Path) -> None:
    """The code names the same types, and calls the same functions by name."""

    def context(side: str, first: str, second: str) -> TypeContext:
        functions = f"static class A implements F<{first}> {{}} static class B implements F<{second}> {{}}"
        flink, job = (
            "org.apache.flink.F public interface F<T> {}",
            f"import org.apache.flink.F; class Job {{ {functions} }}",
        )
        return TypeContext(source=job_of(tmp_path / side, flink, job))

    old = context("old", "Integer", "Long")
    assert has_same_types(old, context("same", "Integer", "Long"))
    assert not has_same_types(old, context("exchanged", "Long", "Integer"))


def test_windows_that_count_have_an_evictor_if_they_slide_also_by_computed_numbers(tmp_path: Path) -> None:
    """Whatever is computed, the method that is called tells."""

    def windows(side: str, arguments: str) -> Counter[tuple[str, ...]]:
        stream = (
            f"{_STREAM}KeyedStream public abstract class KeyedStream {{ public abstract Object countWindow(long size);"
        )
        stream += " public abstract Object countWindow(long size, long slide); }"
        call = f"static void build({_STREAM}KeyedStream s, long n) {{ s.countWindow({arguments}); }}"
        return content_calls(job_of(tmp_path / side, stream, f"class Job {{ {call} }}").flink_calls())

    whole, slides = windows("constant", "3"), windows("slides", "3, 1")
    assert whole != slides
    assert windows("computed", "n") == whole
    assert windows("slide", "n, 1") == windows("both", "n, n") == slides


def test_places_where_sources_start_are_compared(connector_cases: Path, tmp_path: Path) -> None:
    """C6."""
    kafka = "org.apache.flink.connector.kafka.source."
    flink = (
        f"{kafka}enumerator.initializer.OffsetsInitializer public interface OffsetsInitializer {{ static OffsetsInitializer earliest() "
        "{ return null; } static OffsetsInitializer latest() { return null; } }",
        f"{kafka}KafkaSourceBuilder import {kafka}enumerator.initializer.OffsetsInitializer; public class KafkaSourceBuilder {{ public "
        "KafkaSourceBuilder setStartingOffsets(OffsetsInitializer start) { return this; } public Object build() { return null; } }",
        f"{_STREAM}DataStreamSource public interface DataStreamSource {{ DataStreamSource name(String name); }}",
    )

    def jar(side: str, start: str, name: str) -> Path:
        source = f"new KafkaSourceBuilder().setStartingOffsets(OffsetsInitializer.{start}()).build()"
        body = f'static Object build({_STREAM}DataStreamSource s) {{ s.name("{name}"); return {source}; }}'
        job = f"import {kafka}KafkaSourceBuilder; import {kafka}enumerator.initializer.OffsetsInitializer; class Job {{ {body} }}"
        job_of(tmp_path / side, *flink, job)
        return tmp_path / side / "job.jar"

    old, same, other = jar("old", "earliest", "a"), jar("same", "earliest", "b"), jar("other", "latest", "a")
    path = snapshot_of(connector_cases / "v2_3_0-kafka-source")
    for new, expected in ((same, set()), (other, {("C6", "note")})):
        check = st.check(path, flink_version="2.3", jars=[old], other_jars=[new])
        assert {r for r in found(check) if r[0] == "C6"} == expected
