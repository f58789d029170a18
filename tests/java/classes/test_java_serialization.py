"""Classes as Java serialization sees them, compared with ``java.io.ObjectStreamClass``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.java_serialization import serializable_class
from statetool.types.serializable import SerializableClass
from tests.support.compile import compile_java
from tools.flink_jars import java_tool

HERE = Path(__file__).parent


def read(folder: Path) -> dict[str, SerializableClass]:
    path = ClassPath([folder])
    classes = {name: path.read(name) for name in path}
    return {name: serializable_class(path, cls) for name, cls in classes.items() if cls is not None}


def uids_of_java(folder: Path, names: list[str]) -> dict[str, int]:
    command = [java_tool("java"), "-Dstdout.encoding=UTF-8", "-cp", str(folder), "acme.UidPrinter", *names]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return {name: int(uid) for name, uid in map(str.split, done.stdout.splitlines())}


def test_the_uids_are_those_of_java(shop: Path) -> None:
    found = {name: cls.uid for name, cls in read(shop).items() if name.startswith("acme.")}
    assert len(found) > 70
    # Its value exists only at run time.
    assert found.pop("acme.Serials$NotConstant") is None
    # A thread, which is not serializable. The jar does not tell.
    assert found.pop("acme.Shop$Worker")
    assert found == uids_of_java(shop, list(found))


@pytest.mark.full
def test_the_uids_of_classes_for_java_8_are_those_of_java(tmp_path: Path) -> None:
    sources = [HERE / "java" / "acme" / "Serials.java", HERE / "java" / "acme" / "UidPrinter.java"]
    text = sources[0].read_text()
    for record in ("Point(int x, String y)", "DeclaredPoint(int x)"):
        start = text.index(f"public record {record}")
        text = text[:start] + text[text.index("public", start + 1) :]
    (tmp_path / "Serials.java").write_text(text)
    folder = compile_java([tmp_path / "Serials.java", sources[1]], tmp_path / "classes", "--release", "8")
    found = {name: cls.uid for name, cls in read(folder).items()}
    assert found.pop("acme.Serials$NotConstant") is None
    assert found == uids_of_java(folder, list(found))


def test_what_java_reads_is_known(shop: Path) -> None:
    found = {name.removeprefix("acme.Serials$"): cls for name, cls in read(shop).items() if "Serials$" in name}
    plain = found["Plain"]
    assert plain.fields == (("a", "I"), ("b", "Ljava/lang/String;"), ("c", "Ljava/util/List;"))
    assert (found["Below"].superclasses, found["Plain"].superclasses) == (("acme.Serials$Base",), ())
    assert {name for name, cls in found.items() if cls.has_own_code} == {"Own", "Persistent", "External"}
    assert found["External"].is_externalizable
    assert {name for name, cls in found.items() if cls.without_constructor} == {"WithoutConstructor"}
    assert found["Color"].constants == ("RED", "GREEN")
    assert (found["Point"].is_record, found["Point"].is_serializable) == (True, True)
    assert found["NoSerializable"].is_serializable is False
    # The jar does not have the superclass of this class.
    assert (found["More"].is_serializable, found["More"].superclasses) == (None, ("java.util.ArrayList",))
    assert found["Failure"].is_serializable
