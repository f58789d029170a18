"""Objects whose classes only the values tell: those of Kryo in fields of type ``Object``, and values in Java serialization."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.columns.types import arrow_type
from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaObject, read_java_stream
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.migration.choices import Choices
from statetool.migration.compiling import EXACT, Compiler
from statetool.migration.java_objects import JavaClasses
from statetool.migration.leaves import exact_number, leaf_change
from statetool.migration.objects import ObjectClasses
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.types import Scalar
from statetool.types.declared import ClassDeclaration, ClassSource, TypeContext, class_of_fields
from statetool.types.java import JavaType
from statetool.types.serializable import SerializableClass
from tests.support.corpora.archives import unpack
from tests.support.flink import pairs


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(pairs.SNAPSHOTS, tmp_path_factory.mktemp("pairs"))


#: Suites and pairs that Flink refuses, the step that is accepted, and the values of key 1 after the migration.
CONVERTED = (
    ("changed-classes", "changed-KryoShapeGrown", "", {"a": 11, "shape": '{"evolved.Changed$Circle":{"radius":31,"width":0}}'}),
    ("changed-classes", "changed-PojoObject", "", {"a": 11, "held": '{"evolved.Changed$Circle":{"radius":31,"width":0}}'}),
    ("java-serialized", "serialized-UidChanged", "", {"a": 11}),
    ("java-serialized", "serialized-Retyped", "", {"a": 11}),
    ("java-serialized", "serialized-Boxed", "evolved.Serialized$Boxed.a", {"a": 11}),
    ("java-serialized", "serialized-Nested", "", {"n": 11, "inner": {"a": 121, "b": 0}}),
)  # fmt: skip


def fields_of(value: Any) -> Any:
    """Return a value; that of a Java stream as a dict."""
    if isinstance(value, bytes):
        return fields_of(read_java_stream(Cursor(value)))
    return {n: fields_of(v) for n, v in value.fields.items()} if isinstance(value, JavaObject) else value


@pytest.mark.parametrize(("suite", "pair", "accept", "expected"), CONVERTED)
def test_objects_get_the_fields_of_the_new_class(
    snapshots: Path, tmp_path: Path, suite: str, pair: str, accept: str, expected: Any
) -> None:
    """``tests/flink/test_pairs.py`` restores them in Flink."""
    old, new = (
        statetool.load(str(snapshots / side / suite / "2.3"), uids=[pair], jars=[str(pairs.jar_of(snapshots, side))])
        for side in ("old", "new")
    )
    plan = statetool.plan_migration(old, new)
    migrated = str(tmp_path / "migrated")
    accepted = [f"{pair}.s.{accept}"] if accept else []
    states = tuple(s for s in plan.states if s.uid == pair)
    plan = replace(plan, states=states, refused=()).accepting(accepted)
    statetool.migrate(old, migrated, plan=plan)
    rows = statetool.load(migrated, uids=[pair], jars=[str(pairs.jar_of(snapshots, "new"))])[pair]
    value = next(r["s"] for r in rows.to_arrow("keyed_state").to_pylist() if r["key"] == 1)
    assert fields_of(value) == expected
    path = str(tmp_path / "plan.json")
    statetool.write_plan(plan, path)
    with pytest.raises(UnsupportedError, match="migrate with --to and --jar-b"):
        statetool.migrate(old, str(tmp_path / "again"), plan=path)


@pytest.mark.parametrize("suite", ["changed-classes", "java-serialized"])
def test_a_plan_in_a_file_never_keeps_values_of_the_old_classes(snapshots: Path, tmp_path: Path, suite: str) -> None:
    old, new = (
        statetool.load(str(snapshots / side / suite / "2.3"), jars=[str(pairs.jar_of(snapshots, side))])
        for side in ("old", "new")
    )
    plan = statetool.plan_migration(old, new)
    path = str(tmp_path / "plan.json")
    statetool.write_plan(plan, path)
    again = statetool.read_plan(path, old)
    refused = " ".join(again.refused)
    for state in plan.states:
        kept = next((s for s in again.states if s.name == state.name), None)
        if kept is None:
            assert f"{state.name}: its values have classes whose new versions no plan stores" in refused
            continue
        descriptions = [
            [(s.logical, s.declarations()) for s in t.conversion.meta.serializers.values()] for t in (state, kept)
        ]
        assert (kept.steps, descriptions[0]) == (state.steps, descriptions[1]), state.name
    assert "changed-KryoIntToLong.s" in refused or suite != "changed-classes"


@pytest.mark.parametrize("pair", ["changed-KryoShapeGrown", "changed-PojoObject"])
def test_classes_that_occur_only_after_the_first_values_are_converted(
    snapshots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: str
) -> None:
    monkeypatch.setattr("statetool.migration.occurring.MOST_BYTES", -1)
    old, new = (
        statetool.load(
            str(snapshots / side / "changed-classes" / "2.3"), uids=[pair], jars=[str(pairs.jar_of(snapshots, side))]
        )
        for side in ("old", "new")
    )
    plan = statetool.plan_migration(old, new)
    states = tuple(s for s in plan.states if s.uid == pair)
    assert [r.text for s in states for r in s.steps] == [
        "objects of classes that the first values do not have are converted if they lose nothing"
    ]
    statetool.migrate(old, str(tmp_path / "migrated"), plan=replace(plan, states=states, refused=()))
    rows = statetool.load(str(tmp_path / "migrated"), uids=[pair], jars=[str(pairs.jar_of(snapshots, "new"))])[pair]
    assert '{"evolved.Changed$Circle":{"radius":31,"width":0}}' in str(rows.to_arrow("keyed_state").to_pylist())


# ---- Kryo


def kryo(**fields: str) -> KryoInstance:
    holder = class_of_fields("Box", {"held": "Object"})
    return KryoInstance(5, TypeContext(kryo=5, classes=(holder, class_of_fields("Circle", fields))), ())


def converted(
    text: str, old: dict[str, str], new: dict[str, str], *, listed: bool = True, **choices: Any
) -> str | None:
    java = JavaClasses(None, Choices(), (), is_key=False)
    names = frozenset({"Circle"}) if listed else frozenset()
    objects = ObjectClasses(kryo(**old), kryo(**new), java, Choices(**choices), names, is_key=False)
    return objects.text(text)


def test_fields_are_added_renamed_widened_and_boxed_wherever_the_class_occurs() -> None:
    old, new = {"r": "int", "b": "Integer"}, {"radius": "long", "b": "int", "n": "String", "f": "float"}
    text = '{"java.util.ArrayList":[{"Box":{"held":{"Circle":{"r":5,"b":6}}}},7,"text"]}'
    done = converted(text, old, new, sources={"Circle.radius": "r"}, fills={"Circle.n": "none", "Circle.f": 0.5})
    assert done == '[{"Box":{"held":{"Circle":{"radius":5,"b":6,"n":"none","f":0.5}}}},7,"text"]'


@pytest.mark.parametrize(
    ("value", "old", "new", "reason"),
    [
        ('{"r":300}', {"r": "int"}, {"r": "byte"}, "does not fit int8: 300"),
        ('{"r":null}', {"r": "Integer"}, {"r": "int"}, "a null for a field of type int"),
        ('{"r":0.1}', {"r": "double"}, {"r": "float"}, "does not fit float32: 0.1"),
        (
            '{"r":"a"}',
            {"r": "String"},
            {"r": "java.util.UUID"},
            r"a java.lang.String for a field of type java\.util\.UUID",
        ),
    ],
)
def test_an_object_that_the_new_class_cannot_hold_is_refused(value: str, old: Any, new: Any, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        converted(f'{{"Circle":{value}}}', old, new)


def test_elements_of_a_set_that_become_equal_are_refused() -> None:
    text = '{"java.util.HashSet":[{"Circle":{"r":1,"gone":1}},{"Circle":{"r":1,"gone":2}}]}'
    with pytest.raises(EncodeError, match="become equal"):
        converted(text, {"r": "int", "gone": "int"}, {"r": "int"})


def test_a_class_that_nobody_was_asked_about_loses_nothing() -> None:
    text = '{"Circle":{"r":1,"gone":1}}'
    assert converted(text, {"r": "int", "gone": "int"}, {"r": "int"}) == '{"Circle":{"r":1}}'
    with pytest.raises(
        EncodeError, match=r"the first values have no object of Circle.*Circle.gone: its values are dropped"
    ):
        converted(text, {"r": "int", "gone": "int"}, {"r": "int"}, listed=False)
    assert converted('{"Circle":{"r":1}}', {"r": "int"}, {"r": "int", "x": "long"}, listed=False) == (
        '{"Circle":{"r":1,"x":0}}'
    )


def test_fields_of_a_key_are_not_dropped() -> None:
    java = JavaClasses(None, Choices(), (), is_key=True)
    objects = ObjectClasses(kryo(r="int", gone="int"), kryo(r="int"), java, Choices(), frozenset(), is_key=True)
    plan = objects.plan("Circle")
    assert plan is not None
    assert [(s.path, s.change) for s in plan.steps] == [("Circle.gone", "impossible")]


def colors(*bodies: str) -> KryoInstance:
    color = ClassDeclaration(
        name="Color", kind="enum", constants=("RED", "BLUE"), bodies=tuple(bodies), final=not bodies
    )
    return KryoInstance(5, TypeContext(kryo=5, classes=(class_of_fields("Box", {"color": "Color"}), color)), ())


@pytest.mark.parametrize(
    ("before", "color", "after", "expected"),
    [
        ((), '"RED"', ("BLUE",), '{"Color":"RED"}'),
        (("BLUE",), '{"Color":"RED"}', (), '"RED"'),
        (("RED", "BLUE"), '{"Color$2":"BLUE"}', ("BLUE",), '{"Color$1":"BLUE"}'),
        (("BLUE",), '{"Color$1":"BLUE"}', (), '"BLUE"'),
    ],
)
def test_a_constant_gets_the_class_that_it_has_in_the_new_job(
    before: Any, color: str, after: Any, expected: str
) -> None:
    """Constants with bodies have their own classes. The text of a final class omits the class; a text alone would be a string."""
    java = JavaClasses(None, Choices(), (), is_key=False)
    objects = ObjectClasses(colors(*before), colors(*after), java, Choices(), frozenset(), is_key=False)
    assert objects.text(f'{{"Box":{{"color":{color}}}}}') == f'{{"Box":{{"color":{expected}}}}}'


@pytest.mark.parametrize("kind", ["java.util.Optional<Object>", "Circles"])
def test_objects_in_an_optional_or_in_a_collection_of_the_job_are_converted(kind: str) -> None:
    def holder(**fields: str) -> KryoSerializer:
        circles = ClassDeclaration(
            name="Circles", kind="collection", element_types=(JavaType("java.lang.Object"),), final=True
        )
        classes = (class_of_fields("Box", {"held": kind}), circles, class_of_fields("Circle", fields))
        return KryoSerializer("", 2, "Box", (), ((), (), ()), TypeContext(kryo=5, classes=classes))

    old, new = holder(r="int"), holder(r="int", added="int")
    convert = Compiler(Choices(), objects=(("Circle", None),)).value(old, new, "value")
    held: Any = '{"Circle":{"r":5}}'
    value = [{"held": {"value": held} if "Optional" in kind else [held]}]
    done = convert(pa.array(value, arrow_type(old.logical, EXACT)))
    assert '{"Circle":{"r":5,"added":0}}' in str(done.to_pylist())


# ---- Java serialization


class Jar(ClassSource):
    """The class ``Circle`` of a new job."""

    def __init__(self, uid: int = 2, **more: Any) -> None:
        fields = more.pop("fields", (("r", "J"),))
        self._circle = SerializableClass(uid=uid, is_serializable=True, fields=fields, **more)

    def serializable(self, name: str) -> SerializableClass | None:
        return self._circle if name == "Circle" else None


def stream(value: Any) -> bytes:
    out = Output()
    write_java_stream(out, value)
    return bytes(out)


CIRCLE = JavaClass("Circle", 2, (("I", "r"),), suid=1)


def test_objects_that_are_the_same_stay_the_same() -> None:
    circle = JavaObject(CIRCLE, {"r": 5})
    array = JavaArray(JavaClass("[Ljava.lang.Object;", 2), [circle, circle])
    done = JavaClasses(Jar(), Choices(), (), is_key=False).stream(stream(array))
    found = read_java_stream(Cursor(done))
    assert found.items[0] is found.items[1]
    assert (found.items[0].fields, found.items[0].cls.suid, found.items[0].cls.fields) == ({"r": 5}, 2, (("J", "r"),))


def test_an_object_that_contains_itself_is_converted() -> None:
    cls = JavaClass("Circle", 2, (("L", "next"),), suid=1, signatures=("LCircle;",))
    circle = JavaObject(cls)
    circle.fields["next"] = circle
    jar = Jar(fields=(("next", "LCircle;"),))
    found = read_java_stream(Cursor(JavaClasses(jar, Choices(), (), is_key=False).stream(stream(circle))))
    assert found.fields["next"] is found
    assert found.cls.suid == 2


def test_a_field_that_a_class_and_its_converted_superclass_have_is_refused() -> None:
    class WithChild(Jar):
        def serializable(self, name: str) -> SerializableClass | None:
            same = SerializableClass(uid=1, is_serializable=True, fields=(("more", "I"),), superclasses=("Circle",))
            return same if name == "Child" else super().serializable(name)

    child = JavaClass("Child", 2, (("I", "more"),), parent=CIRCLE, suid=1)
    jar = WithChild(fields=(("more", "I"), ("r", "I")))
    with pytest.raises(EncodeError, match="a superclass has a field more, too"):
        JavaClasses(jar, Choices(fills={"Circle.more": 7}), (), is_key=False).stream(
            stream(JavaObject(child, {"r": 5, "more": 6}))
        )


@pytest.mark.parametrize("name", ["HashSet", "HashMap"])
def test_keys_of_a_java_collection_that_become_equal_are_refused(name: str) -> None:
    old = JavaClass("Circle", 2, (("I", "gone"), ("I", "r")), suid=1)
    circles = [JavaObject(old, {"r": 5, "gone": i}) for i in (1, 2)]
    parts: list[Any] = [b"size", *circles] if name == "HashSet" else [b"size", circles[0], None, circles[1], None]
    value = JavaObject(JavaClass(f"java.util.{name}", 3, suid=1), {}, parts)
    with pytest.raises(EncodeError, match=f"two keys or elements of a java.util.{name} become equal"):
        JavaClasses(Jar(fields=(("r", "I"),)), Choices(), [old], is_key=False).stream(stream(value))


def test_another_version_of_a_class_loses_nothing_that_nobody_was_asked_about() -> None:
    other = JavaClass("Circle", 2, (("I", "gone"), ("I", "r")), suid=1)
    with pytest.raises(EncodeError, match="the first values have no object of Circle"):
        JavaClasses(Jar(), Choices(), [CIRCLE], is_key=False).stream(stream(JavaObject(other, {"r": 5, "gone": 1})))


def test_two_versions_of_a_class_are_converted_each_by_its_own_fields() -> None:
    classes = JavaClasses(Jar(fields=(("r", "Ljava/lang/Long;"),)), Choices(), (), is_key=False)
    number = JavaClass("java.lang.Number", 2, suid=-8742448824652078965)
    for letter, kind in (("J", "Long"), ("I", "Integer")):
        box = JavaObject(JavaClass(f"java.lang.{kind}", 2, ((letter, "value"),), number, 1), {"value": 5})
        circle = JavaClass("Circle", 2, (("L", "r"),), suid=1, signatures=(f"Ljava/lang/{kind};",))
        found = read_java_stream(Cursor(classes.stream(stream(JavaObject(circle, {"r": box})))))
        assert found.fields["r"].cls.name == "java.lang.Long"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"has_own_code": True}, "methods of the class write or read its objects"),
        ({"superclasses": ("Base",)}, "its superclasses differ"),
        ({"without_constructor": "Plain"}, "Plain has no constructor without parameters"),
        ({"is_externalizable": True}, "methods of the class"),
        ({"is_enum": True}, "became an enum"),
        ({"fields": (("r", "Ljava/lang/String;"),)}, "int cannot be converted to java.lang.String"),
        ({"fields": ()}, "the first values have no object of Circle"),
    ],
)
def test_what_java_would_read_in_another_way_is_refused(more: Any, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        JavaClasses(Jar(**more), Choices(), (), is_key=False).stream(stream(JavaObject(CIRCLE, {"r": 5})))


def test_classes_that_java_reads_keep_their_bytes() -> None:
    raw = stream(JavaObject(CIRCLE, {"r": 5}))
    jar = Jar(uid=1, fields=(("r", "I"), ("more", "J")))
    assert JavaClasses(jar, Choices(), (), is_key=False).stream(raw) is raw


def test_a_stream_that_is_not_written_alike_is_refused() -> None:
    raw = stream(JavaObject(CIRCLE, {"r": 5})).replace(b"\x78\x70", b"\x77\x01a\x78\x70")  # the class has an annotation
    with pytest.raises(EncodeError, match="does not write with the same bytes"):
        JavaClasses(Jar(), Choices(), (), is_key=False).stream(raw)


# ---- numbers and booleans


@pytest.mark.parametrize(
    ("value", "kind"),
    [(-0.0, "int32"), (1.5, "int64"), (float("nan"), "int8"), (1e300, "float32"), ((1 << 53) + 1, "float64")],
)
def test_numbers_are_never_rounded(value: Any, kind: str) -> None:
    with pytest.raises(EncodeError, match="does not fit"):
        exact_number(value, kind)


def test_booleans_become_bytes_and_back() -> None:
    there, back = leaf_change(Scalar("bool"), Scalar("int8")), leaf_change(Scalar("int8"), Scalar("bool"))
    assert there is not None
    assert back is not None
    assert (there.change, back.change) == ("retype", "narrow")
    numbers = there.convert(pa.array([True, False, None]))
    assert numbers.to_pylist() == [1, 0, None]
    assert back.convert(numbers).to_pylist() == [True, False, None]
    with pytest.raises(EncodeError, match="neither 0 nor 1"):
        back.convert(pa.array([2], pa.int8()))
    compiler = Compiler(Choices())
    compiler.value(statetool.flink.BOOLEAN, statetool.flink.BYTE, "value")
    assert [s.text for s in compiler.steps] == ["Boolean becomes Byte: false becomes 0, true becomes 1"]
