"""Formulas of ``hashCode()`` from class files, compared with the hash codes that Java computes."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.java.classes.class_file import parse_class
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.hash_codes import find_convention
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.hashing.formulas import HashFormula, formula_hash, user_classes
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import class_snapshot, serializer_snapshot
from statetool.types.conventions import Convention
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import parse_java_type
from tests.support.compile import compile_java, make_jar
from tools.flink_jars import java_tool
from tools.maven import maven_jars

HERE = Path(__file__).parent
_HASHES = "acme.Hashes$"
FOUND = {
    "Varargs": "Objects.hash(name, id, on, maybe, ratio, share, letter, small, tiny, boxed)",
    "WithArray": "Objects.hash(name, raw, numbers)",
    "Idea": "polynomial[0, 31, plain](name, id, on, ratio, share, boxed, small, raw)",
    "OldIdea": "polynomial[0, 31, plain-old](share, name)",
    "Eclipse": "Objects.hash(id, name, on, ratio, share)",
    "BelowEclipse": "Objects.hash(id, name, on, ratio, share, more)",
    "Inherits": "Objects.hash(id, name, on, ratio, share)",
    "Lombok": "lombok(big, n, flag, share, boxed:lombok-boxed, text, raw:boxed)",
    "Row": "record(name, n, id, on, share, ratio)",
    "Empty": "linear[0]()",
    "Xor": "xor(left, right, id)",
    "Sum": "sum(left, right)",
    "Weighted": "linear[7, 13, 31, 1](a, b, c)",
    "Only": "record(id)",
    "Id": "record(id)",
    "Constant": "linear[42]()",
    "Helper": "polynomial[17, 31](a, b)",
    "Outer": "Objects.hash(tag, row)",
    "Listed": "Objects.hash(names, tag)",
    "Colored": "record(color:name, n)",
}
REASONS = {
    "Truncated": "does not only combine hash codes of fields",
    "Loop": "not followed",
    "Lower": "calls java.lang.String.toLowerCase(), whose result is not known",
    "Identity": "hashes the array 'raw' by its address",
    "None": "is inherited from Object, which hashes by address",
    "Cached": "not followed",
    "Late": "reads field 'lost', which is not stored",
}
#: Classes without random objects: those with parts that the printer does not fill.
_NOT_PRINTED = ("Outer", "Colored", "Empty")


def conventions(folder: Path, names: Sequence[str]) -> dict[str, str]:
    path = ClassPath([folder])
    found = {}
    for name in names:
        cls = path.read(name)
        assert cls is not None
        found[name] = str(find_convention(path, cls))
    return found


def hashed_objects(names: Sequence[str], *folders: Path) -> dict[str, list[tuple[dict[str, Any], int]]]:
    """Return fields and hash codes of random objects by class, from Java."""
    command = [java_tool("java"), "-cp", os.pathsep.join(map(str, folders)), "acme.HashPrinter", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    objects = defaultdict(list)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        objects[row["class"]].append((row["fields"], row["hash"]))
    return objects


def plain(kind: str, value: Any) -> Any:
    """Return a value as statetool decodes it."""
    if value is None:
        return None
    if kind.removeprefix("java.lang.").lower() in ("float", "double"):
        return float(value)
    return bytes(b & 255 for b in value) if kind == "byte[]" else value


def check_hash_codes(classes: Path, names: Sequence[str], *folders: Path) -> int:
    """Compare formulas with Java's hash codes, as keys that Kryo writes and as POJOs; return the number of keys."""
    source = JarClasses([classes])
    context = TypeContext(kryo=5, source=source)
    count = 0
    for name, objects in hashed_objects(names, classes, *folders).items():
        declared = context.find(name)
        assert isinstance(declared, ClassDeclaration), source.reason(name, 5)
        snapshots = [serializer_snapshot(parse_java_type(name), context, generic=True)]
        if not declared.generic and not any(str(kind).startswith("java.util.") for _, kind in declared.fields):
            snapshots.append(class_snapshot(declared, context))
        for snapshot in snapshots:
            key = snapshot_reader(context).snapshot(Cursor(snapshot))
            formula = HashFormula(()).with_types(user_classes(key), context)
            hash_code = formula_hash(formula, key)
            order = (
                [n for n, _ in declared.fields] if snapshot is snapshots[0] else sorted(n for n, _ in declared.fields)
            )
            for fields, expected in objects:
                values = {n: plain(str(kind), fields[n]) for n, kind in declared.fields}
                row = (*(values[n] for n in order), *([name] if context.subclasses(name) else []))
                assert hash_code(row) == expected, (name, str(formula), row)
                count += 1
    return count


def test_generated_methods_have_formulas(shop: Path) -> None:
    assert conventions(shop, [f"{_HASHES}{n}" for n in FOUND]) == {f"{_HASHES}{n}": text for n, text in FOUND.items()}


def test_formulas_give_the_hash_codes_of_java(shop: Path) -> None:
    assert check_hash_codes(shop, [f"{_HASHES}{n}" for n in FOUND if n not in _NOT_PRINTED]) > 900


@pytest.mark.parametrize("name", REASONS)
def test_methods_without_a_formula_have_a_reason(shop: Path, name: str) -> None:
    assert REASONS[name] in conventions(shop, [f"{_HASHES}{name}"])[f"{_HASHES}{name}"]


def test_the_parts_of_a_key_are_hashed_by_their_own_classes(shop: Path) -> None:
    context = TypeContext(kryo=2, source=JarClasses([shop]))
    for name, row, expected in (
        ("Outer", (("a", 1, 2, True, 0.5, 1.5), "t"), None),
        ("Colored", ("GREEN", 3), 31 * 68081379 + 3 - (1 << 31)),
    ):
        key = snapshot_reader(context).snapshot(
            Cursor(serializer_snapshot(parse_java_type(f"{_HASHES}{name}"), context, generic=True))
        )
        formula = HashFormula(()).with_types(user_classes(key), context)
        code = formula_hash(formula, key)(row)
        if expected is None:
            assert (
                str(formula)
                == f"{_HASHES}Outer: Objects.hash(tag, row); {_HASHES}Row: record(name, n, id, on, share, ratio)"
            )
        else:
            assert (code - expected) % (1 << 31) == 0


def test_damaged_methods_raise_errors_of_statetool_only(shop: Path, tmp_path: Path) -> None:
    chance = random.Random(11)
    for name in ("Idea", "Lombok", "Row", "Varargs", "Helper"):
        whole = (shop / "acme" / f"Hashes${name}.class").read_bytes()
        method = next(m for m in parse_class(whole, name).methods if m.name == "hashCode")
        start = whole.index(method.code)
        for n in range(200):
            damaged = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                damaged[start + chance.randrange(len(method.code))] = chance.randrange(256)
            jar = make_jar(tmp_path / f"{name}{n}.jar", {f"acme/Hashes${name}.class": bytes(damaged)})
            path = ClassPath([jar])
            cls = path.read(f"{_HASHES}{name}")
            assert cls is not None
            try:
                assert isinstance(find_convention(path, cls), Convention | str)
            except FormatError as error:
                assert error.where.file is not None


@pytest.fixture(scope="session")
def lombok_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of classes that Lombok completes (``--maven``)."""
    folder = tmp_path_factory.mktemp("lombok")
    (jar,) = maven_jars("lombok")
    command = [java_tool("javac"), "-nowarn", "-cp", str(jar), "-processorpath", str(jar), "-d", str(folder)]
    subprocess.run([*command, str(HERE / "jvm" / "Lombok.java")], check=True)
    return folder


@pytest.fixture(scope="session")
def kotlin_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of classes that Kotlin's compiler writes (``--maven``)."""
    folder = tmp_path_factory.mktemp("kotlin")
    jars = maven_jars("kotlin")
    library = next(j for j in jars if j.name.startswith("kotlin-stdlib"))
    command = [java_tool("java"), "-cp", os.pathsep.join(map(str, jars)), "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"]
    command += ["-no-stdlib", "-no-reflect", "-nowarn", "-cp", str(library), "-d", str(folder)]
    subprocess.run([*command, str(HERE / "jvm" / "Keys.kt")], check=True)
    return folder


@pytest.fixture(scope="session")
def commons_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of classes that use Apache Commons (``--maven``)."""
    (jar,) = maven_jars("commons-lang")
    return compile_java([HERE / "jvm" / "Commons.java"], tmp_path_factory.mktemp("commons"), "-cp", str(jar))


def test_formulas_of_apache_commons(shop: Path, commons_classes: Path) -> None:
    names = [f"acme.commons.Commons${n}" for n in ("Usual", "Same", "Numbered", "Array")]
    found = conventions(commons_classes, names)
    assert found == {
        names[0]: "commons(id, on, name, maybe:boxed, share, ratio, n)",
        names[1]: "polynomial[11, 41](name, n)",
        names[
            2
        ]: "its hashCode() calls org.apache.commons.lang3.builder.HashCodeBuilder.build(), whose result is not known",
        names[
            3
        ]: "its hashCode() calls org.apache.commons.lang3.builder.HashCodeBuilder.append(), whose result is not known",
    }
    assert check_hash_codes(commons_classes, names[:2], shop, *maven_jars("commons-lang")) > 50


def test_formulas_of_classes_for_java_8(tmp_path: Path) -> None:
    (tmp_path / "Key.java").write_text(
        "import java.util.*; public class Key { public long a; public Boolean b; public String c; static class In { private int x; "
        "int f() { return x; } } public int hashCode() { int h = Objects.hash(a, b); return 31 * h + (c == null ? 0 : c.hashCode()); } }"
    )
    compile_java([tmp_path / "Key.java"], tmp_path, "--release", "8", "-Xlint:-options")
    assert conventions(tmp_path, ["Key"]) == {"Key": "Objects.hash(a, b, c)"}


def test_formulas_of_lombok(shop: Path, lombok_classes: Path) -> None:
    names = [f"acme.lombok.Lombok${n}" for n in ("Full", "Fixed", "Partial", "Below")]
    assert conventions(lombok_classes, names) == {
        names[0]: "lombok(big, n, flag, ratio, share, small, letter, maybe:lombok-boxed, boxed, text, raw:boxed, "
        "numbers:boxed, last)",
        names[1]: "lombok(id, name)",
        names[2]: "lombok(in)",
        names[3]: "lombok(in, n)",
    }
    assert check_hash_codes(lombok_classes, names, shop) > 200


def test_formulas_of_kotlin(shop: Path, kotlin_classes: Path) -> None:
    names = [f"acme.kotlin.{n}" for n in ("Full", "One", "OfUser")]
    assert conventions(kotlin_classes, names) == {
        names[0]: "record(id, name, flag, n, ratio, share, maybe, big, letter, small, tiny, raw, names, last)",
        names[1]: "record(id)",
        names[2]: "record(user, name)",
    }
    jars = maven_jars("kotlin")
    assert check_hash_codes(kotlin_classes, names[:2], shop, *jars) > 50
