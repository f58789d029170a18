"""Class files: their parts, and damage to them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from statetool.errors import FormatError
from statetool.java.classes.bytecode import EnumConstants, enum_constants, instructions
from statetool.java.classes.class_file import Annotation, ClassFile, parse_class, string_constants
from statetool.java.classes.signatures import GenericType, parse_class_signature, parse_parameters, parse_type
from tests.support.compile import compile_java
from tests.support.quick import quick

_ITEM = GenericType("class", "a.Item")


def parse(shop: Path, name: str) -> ClassFile:
    return parse_class((shop / "acme" / f"Shop${name}.class").read_bytes(), name)


def test_the_parts_of_a_class(shop: Path) -> None:
    item = parse(shop, "Item")
    assert (item.name, item.superclass, item.interfaces) == (
        "acme.Shop$Item",
        "java.lang.Object",
        ("java.io.Serializable",),
    )
    assert [(f.name, f.descriptor, f.is_stored) for f in item.fields] == [
        ("n", "I", True),
        ("name", "Ljava/lang/String;", True),
        ("left", "Ljava/lang/String;", False),
        ("out", "Ljava/lang/String;", False),
    ]
    assert list(string_constants((shop / "acme" / "Shop$Item.class").read_bytes())) == ["x"]
    assert parse(shop, "Point").is_record
    assert parse(shop, "Animal").is_interface
    assert parse(shop, "Custom").annotations == (
        Annotation("com.esotericsoftware.kryo.DefaultSerializer", "java.lang.String"),
    )
    assert parse(shop, "Index").signature == "<V:Ljava/lang/Object;>Ljava/util/HashMap<Ljava/lang/Integer;TV;>;"
    # Flags of a nested class are those of its declaration: a private class has package access in its own file.
    assert not parse(shop, "Hidden").access & 1
    assert enum_constants(parse(shop, "Op")) == EnumConstants(
        ("PLUS", "NONE", "MINUS"), ("PLUS", "MINUS"), (1, 3, -200000)
    )


def test_constants_of_an_enum_that_code_computes_are_not_guessed(shop: Path) -> None:
    raw = (shop / "acme" / "Shop$Color.class").read_bytes()
    code = next(m.code for m in parse(shop, "Color").methods if m.name == "<clinit>")
    # The second constant gets ordinal 2, so that two have the same.
    changed = raw.replace(code, code.replace(b"\x04\xb7", b"\x05\xb7", 1))
    assert changed != raw
    assert enum_constants(parse_class(changed, "Color")) is None


@pytest.mark.parametrize("release", quick(["8", "11", "17"], "8"))
def test_class_files_of_older_releases(shop: Path, tmp_path: Path, release: str) -> None:
    (tmp_path / "A.java").write_text("public class A { public int a; java.util.List<String> b; enum E { X, Y { } } }")
    compile_java([tmp_path / "A.java"], tmp_path, "--release", release, "-Xlint:-options")
    cls = parse_class((tmp_path / "A.class").read_bytes(), "A.class")
    assert [f.signature or f.descriptor for f in cls.fields] == ["I", "Ljava/util/List<Ljava/lang/String;>;"]
    found = enum_constants(parse_class((tmp_path / "A$E.class").read_bytes(), "E"))
    assert found == EnumConstants(("X", "Y"), ("Y",))


def test_signatures() -> None:
    assert parse_type("[[J") == GenericType(
        "array", "[]", (GenericType("array", "[]", (GenericType("class", "long"),)),)
    )
    inner = parse_type("La/Outer<TT;>.Inner<-La/Item;*>;")
    assert inner == GenericType("class", "a.Outer$Inner", (GenericType("super", "", (_ITEM,)), GenericType("any")))
    assert parse_parameters("(I[La/Item;)V") == (
        (GenericType("class", "int"), GenericType("array", "[]", (_ITEM,))),
        None,
    )
    cls = parse_class_signature("<A:La/Item;B::Ljava/lang/Runnable;C:>La/Base<TA;>;La/I;")
    assert [n for n, _ in cls.parameters] == ["A", "B", "C"]
    assert cls.superclass.args == (GenericType("variable", "A"),)
    assert [i.name for i in cls.interfaces] == ["a.I"]


@pytest.mark.parametrize("text", ["", "L", "La/B", "La/B<", "La/B<>x", "Q", "TT", "I;", "[" * 200 + "I", "La/B<" * 200])
def test_invalid_signatures_are_errors(text: str) -> None:
    with pytest.raises(FormatError, match="signature"):
        parse_type(text)


def test_every_truncation_is_an_error_with_file_and_offset(shop: Path) -> None:
    for name in ("Op", "BigItem", "Point", "Custom"):
        whole = (shop / "acme" / f"Shop${name}.class").read_bytes()
        for end in range(len(whole)):
            with pytest.raises(FormatError) as caught:
                parse_class(whole[:end], "A.class")
            assert caught.value.where.file == "A.class"
            assert caught.value.where.offset is not None
        with pytest.raises(FormatError, match="trail"):
            parse_class(whole + b"\0", "A.class")


def test_changed_bits_raise_errors_of_statetool_only(shop: Path) -> None:
    chance = random.Random(7)
    for name in ("Op", "BigItem", "Point", "Custom", "Index"):
        whole = (shop / "acme" / f"Shop${name}.class").read_bytes()
        for _ in range(400):
            damaged = bytearray(whole)
            for _ in range(chance.randrange(1, 3)):
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            try:
                cls = parse_class(bytes(damaged), "A.class")
                enum_constants(cls)
                parse_class_signature(cls.signature)
            except FormatError:
                continue


@pytest.mark.parametrize("code", [b"\xfe", b"\x12", b"\xaa\0\0\0", b"\xab" + b"\0" * 7 + b"\xff" * 4, b"\xc4\x84\0"])
def test_invalid_instructions_are_errors(code: bytes) -> None:
    with pytest.raises(FormatError):
        list(instructions(code))
