"""Declarations from class files: the rules of Kryo and of Flink's type extraction, and reasons for classes without a declaration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.declarations import UndeclaredClass, declare_class, declare_classes
from statetool.java.classes.jar_classes import JarClasses
from statetool.types.declared import ClassDeclaration, class_of_fields, enum_of
from tests.support.compile import compile_java, files_of, make_jar
from tests.support.corpora.archives import HERE
from tests.support.corpora.kryo_classes import CLASSES

_SHOP = "acme.Shop$"
_ITEM = {"n": "int", "name": "String"}


def declared(shop: Path, name: str, kryo: Literal[2, 5] | None = None) -> ClassDeclaration:
    found = declare_class(ClassPath([shop]), f"{_SHOP}{name}", kryo=kryo)
    assert isinstance(found, ClassDeclaration), found
    return found


def reason(shop: Path, name: str, kryo: Literal[2, 5] | None = None) -> str:
    found = declare_class(ClassPath([shop]), f"{_SHOP}{name}", kryo=kryo)
    assert isinstance(found, UndeclaredClass), found
    return found.reason


def fields(found: ClassDeclaration) -> dict[str, str]:
    return {name: str(kind).replace("java.lang.", "").replace("java.util.", "") for name, kind in found.fields}


def test_kryo_does_not_call_methods_of_java_serialization(shop: Path) -> None:
    assert fields(declared(shop, "Stream")) == {"a": "int"}


def test_enums_have_their_constants_in_the_order_of_ordinals(shop: Path) -> None:
    assert declared(shop, "Color") == enum_of(f"{_SHOP}Color", ("RED", "GREEN", "BLUE"))
    assert declared(shop, "Op") == enum_of(f"{_SHOP}Op", ("PLUS{}", "NONE", "MINUS{}"))
    assert declare_class(ClassPath([shop]), f"{_SHOP}Op$1") is None


def test_fields_are_those_that_are_written_with_their_type_arguments(shop: Path) -> None:
    assert declared(shop, "Item") == class_of_fields(f"{_SHOP}Item", _ITEM)
    item = f"{_SHOP}Item"
    given = {
        "parts": f"List<{item}>", "byName": f"Map<String, {item}>", "anything": "List<Object>", "sink": "List<Object>", "grid": "int[][]",
        "array": f"{item}[]", "lists": "List<String>[]", "color": f"{_SHOP}Color", **_ITEM,
    }  # fmt: skip
    assert declared(shop, "BigItem") == class_of_fields(f"{_SHOP}BigItem", given, extends=[item], final=True)
    point = class_of_fields(f"{_SHOP}Point", {"y": "int", "x": "Integer"}, record=True)
    assert declared(shop, "Point") == replace(point, hash_code="record(y, x)")


@pytest.mark.parametrize(
    ("name", "is_pojo"),
    [
        ("Item", True),
        ("Point", True),
        ("Properties", True),
        ("Pet", True),
        ("Hidden", False),
        ("NoConstructor", False),
        ("NoSetter", False),
        ("Inner", False),
        ("Tags", False),
    ],
)
def test_pojos_are_told_from_classes_that_flink_leaves_to_kryo(shop: Path, name: str, is_pojo: bool) -> None:
    assert declared(shop, name).generic is not is_pojo


def test_an_inner_class_is_written_without_its_outer_object(shop: Path) -> None:
    assert fields(declared(shop, "Inner")) == {"a": "int"}


def test_type_variables_of_a_superclass_are_known_to_kryo_5_only(shop: Path) -> None:
    assert declared(shop, "Box").parameters == ("T",)
    assert fields(declared(shop, "Box")) == {"value": "T", "more": "List<T>"}
    item = f"{_SHOP}Item"
    # Kryo writes the names of classes that are not final whether it knows the type argument or not.
    assert fields(declared(shop, "OfItem")) == {"value": item, "more": f"List<{item}>"}
    assert fields(declared(shop, "OfText", 5)) == {"value": "String", "more": "List<String>"}
    assert "which Kryo 2.24 does not know" in reason(shop, "OfText")
    assert "which Kryo 2.24 does not know" in reason(shop, "OfText", 2)
    assert fields(declared(shop, "HiddenOfText", 2)) == {"value": "Object", "more": "List<Object>"}
    assert fields(declared(shop, "Same", 2)) == {"value": "T", "more": "List<T>"}
    assert "same name" in reason(shop, "Crossed", 2)
    assert fields(declared(shop, "Raw")) == {"value": "Object", "more": "List<Object>"}


def test_collections_and_maps_are_declared_by_their_elements(shop: Path) -> None:
    tags = declared(shop, "Tags")
    assert (tags.kind, [str(t) for t in tags.element_types], tags.fields) == ("collection", ["java.lang.String"], ())
    index = declared(shop, "Index")
    assert (index.kind, [str(t) for t in index.element_types]) == ("map", ["java.lang.Integer", "java.lang.Object"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Custom", "@DefaultSerializer(java.lang.String) of acme.Shop$Custom"),
        ("BelowCustom", "@DefaultSerializer(java.lang.String) of acme.Shop$Custom"),
        ("Tagged", "@TypeInfo(java.lang.String)"),
        ("Itself", "KryoSerializable"),
        ("Steps", "scala.collection.Traversable, which Flink 1.x writes with the serializers of chill"),
        ("Shadow", "two fields 'n'"),
        ("Sorted", "java.util."),
        ("Worker", "superclass java.lang.Thread is not in the jar"),
        ("Arrays", "array of the type variable T"),
        ("FinalWildcard", "bound by the final class java.lang.String"),
    ],
)
def test_classes_whose_fields_do_not_decide_what_is_written_have_a_reason(shop: Path, name: str, expected: str) -> None:
    assert expected in reason(shop, name)


def test_classes_that_need_no_declaration_have_none(shop: Path) -> None:
    path = ClassPath([shop])
    for name in ("acme.Shop$Animal", "acme.Shop$Failure", "java.lang.String", "acme.Missing", "int"):
        assert declare_class(path, name) is None


def test_serializers_that_a_job_registers_are_named(shop: Path, tmp_path: Path) -> None:
    for path in (ClassPath([shop]), ClassPath([make_jar(tmp_path / "job.jar", files_of(shop))])):
        found = declare_classes(path, ["acme.Job$*"])
        assert {c.name.rpartition("$")[2]: c.reason for c in found.undeclared} == {
            "Money": "acme.Job registers acme.Job$MoneySerializer for it with Kryo",
            "Shape": "acme.Job registers acme.Job$ShapeSerializer for it with Kryo",
            "Square": "acme.Job registers acme.Job$ShapeSerializer for it with Kryo",
        }
        # A serializer that the code computes, and one of a library, are left to the registrations of the snapshot.
        assert {"acme.Job$Other", "acme.Job$Plain"} <= {c.name for c in found.declared}
        # Values are read by the registrations of the snapshot, so the fields are known in any case.
        assert isinstance(declare_class(path, "acme.Job$Money"), ClassDeclaration)


def test_a_superclass_that_is_not_in_the_jar_is_named(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "Dog.class").write_bytes((shop / "acme" / "Shop$Dog.class").read_bytes())
    (found,) = declare_classes(ClassPath([tmp_path])).undeclared
    assert found.reason == "its superclass acme.Shop$Pet is not in the jar"


def test_patterns_choose_classes(shop: Path) -> None:
    found = declare_classes(ClassPath([shop]), ["*$Dog", "*$Custom", "*$Pupp?"])
    assert [c.name for c in found.declared] == ["acme.Shop$Dog", "acme.Shop$Puppy"]
    assert [c.name for c in found.undeclared] == ["acme.Shop$Custom"]


def test_subclasses_that_can_be_read_are_found_below_classes_of_the_jar(shop: Path) -> None:
    source = JarClasses([shop])
    # The cat has a field whose serializer is unknown. Abstract classes and interfaces have no values.
    assert [c.name for c in source.subclasses("acme.Shop$Animal", 5)] == ["acme.Shop$Dog", "acme.Shop$Puppy"]
    assert source.subclasses("java.io.Serializable", 5) == ()
    assert "@TypeInfo" in source.reason("acme.Shop$Tagged", 5)
    assert source.without_subclasses().subclasses("acme.Shop$Animal", 5) == ()
    assert source.without_subclasses() != source == JarClasses([shop])


def test_declarations_of_the_corpora_are_those_of_their_sources(tmp_path: Path) -> None:
    source = HERE / "support" / "flink" / "java" / "corpus" / "PublicTypes.java"
    path = ClassPath([compile_java([source], tmp_path)])
    by_hand: list[Any] = [c for c in CLASSES if c.name.startswith("corpus.")]
    assert len(by_hand) == 2
    for wanted in by_hand:
        found = declare_class(path, wanted.name)
        assert isinstance(found, ClassDeclaration)
        assert dict(found.fields) == dict(wanted.fields)
        assert found.extends == wanted.extends
