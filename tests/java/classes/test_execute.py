"""Constructors and methods of class files, executed with known values."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from statetool.io.cursor import Cursor
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.hashing.executed import Executed
from statetool.types.declared import TypeContext
from statetool.types.execution import Boxed, Constant, Instance
from tests.support.compile import compile_java
from tests.support.snapshots import build, canonical
from tools.flink_jars import java_tool

_SOURCE = """
package acme;
import java.util.Objects;

public class All {
    public static class Fine { int a = 3; String b = "x"; java.util.List<String> c = new java.util.ArrayList<>(); }
    public static class Throws { public Throws() { Deep.check(null); } }
    static class Deep { static void check(Object o) { if (o == null) { throw new IllegalStateException(); } } }
    public static class Asks { int a = Integer.parseInt(System.getProperty("size")); }
    public static class Catches { int a; public Catches() { try { Deep.check(null); } catch (RuntimeException e) { a = 1; } } }
    public static class Static { static int n = 1 / Integer.valueOf(0).intValue(); }
    public abstract static class Abstract {}
    public record Checked(int a, String b) { public Checked { Objects.requireNonNull(b); if (a < 5) { throw new IllegalArgumentException(); } } }
    public record Trims(String a) { public Trims { a = a.trim(); } }
    public enum Level { LOW, HIGH }
    public static class Key {
        long id; String name; Level level; int kind;
        @Override public int hashCode() {
            switch (kind) {
                case 0: return Objects.hash(id, name);
                case 1: { int h = 7; for (int i = 0; i < name.length(); i++) { h = 31 * h + name.charAt(i); } return h; }
                case 2: return Objects.hash(id, level);
                case 3: return (int) (id ^ (id >>> 32));
                case 4: return level.name().hashCode() + level.ordinal();
                default: return super.hashCode();
            }
        }
    }
    public record Pair(long a, Level b, double c) {}
    public static class Salted { public int a; transient int salt = 31; @Override public int hashCode() { return a * salt; } }
    public static class Asked { public int a; transient int salt = Integer.getInteger("salt"); @Override public int hashCode() { return a * salt; } }
    public static class Sums {
        long id; String name; double d; Level level; int kind; int[] numbers;
        public Sums() {}
        @Override public int hashCode() {
            float f = (float) d;
            switch (kind) {
                case 0: return (byte) id;
                case 1: return (char) id;
                case 2: return (short) id;
                case 3: return (int) f;
                case 4: return (int) (((long) d) >>> 7);
                case 5: return (f > 1 ? 1 : 2) + (f < 1 ? 10 : 20) + (d >= 1 ? 100 : 200);
                case 6: return -(int) id;
                case 7: return (int) (f * 3.3f * 1000f);
                case 8: return name.length();
                case 9: return name.charAt(1) + name.trim().length() + (name.startsWith("a") ? 100 : 200);
                case 10: { int[] a = {1, 2}; a[(int) id & 1] = 7; return Objects.hash(a[0], a[1]); }
                case 11: return level == Level.HIGH ? 10 : 20;
                case 12: return (int) id % 7 + (int) id / 7;
                default: return 31 * (int) (id >> 3) + (int) (id >>> 40) + (int) (id << 5);
            }
        }
        @Override public boolean equals(Object o) {
            if (o == null || getClass() != o.getClass()) { return false; }
            Sums other = (Sums) o;
            return level == other.level && id == other.id && Objects.equals(name, other.name)
                && (kind == 0 ? Objects.equals(numbers, other.numbers) : Objects.deepEquals(numbers, other.numbers));
        }
    }
    public static void main(String[] given) {
        String[] names = {"ab ", "a\\tc", "\\u00e9\\ud83d\\ude00x", "zz"};
        long[] ids = {-(1L << 31), 0x1234567890ABCDEFL, 200, -1};
        double[] doubles = {Double.NaN, 1e20, -1e20, 1.1};
        for (int kind = 0; kind < 14; kind++) {
            for (int i = 0; i < 4; i++) {
                Sums sums = new Sums();
                sums.kind = kind; sums.id = ids[i]; sums.d = doubles[i]; sums.name = names[i]; sums.level = Level.HIGH;
                System.out.println(sums.hashCode());
            }
        }
    }
}
"""
NAMES: Final = ("ab ", "a\tc", "é\U0001f600x", "zz")
IDS: Final = (-(1 << 31), 0x1234567890ABCDEF, 200, -1)
DOUBLES: Final = (float("nan"), 1e20, -1e20, 1.1)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("classes")
    (folder / "All.java").write_text(_SOURCE)
    return compile_java([folder / "All.java"], folder / "out")


@pytest.fixture(scope="module")
def jar(classes: Path) -> JarClasses:
    return JarClasses([str(classes)])


@pytest.mark.parametrize(
    ("name", "values", "fails", "unknown"),
    [
        ("Fine", {}, "", ""),
        ("Throws", {}, "throws a java.lang.IllegalStateException", ""),
        ("Asks", {}, "", "passes the result of java.lang.System.getProperty() to java.lang.Integer.parseInt()"),
        ("Catches", {}, "", "throws a java.lang.IllegalStateException, which <init> of acme.All$Catches may catch"),
        ("Static", {}, "throws java.lang.ArithmeticException (in the static initializer of acme.All$Static)", ""),
        ("Abstract", {}, "is abstract", ""),
        ("Checked", {"a": 7, "b": "x"}, "", ""),
        ("Checked", {"a": 7}, "throws java.lang.NullPointerException", ""),
        ("Checked", {"a": 4, "b": "x"}, "throws a java.lang.IllegalArgumentException", ""),
    ],
)
def test_objects_are_created(jar: JarClasses, name: str, values: dict[str, object], fails: str, unknown: str) -> None:
    made = jar.create(f"acme.All${name}", values)
    assert (made.fails, made.unknown) == (fails, unknown)


def test_a_constructor_changes_a_value(jar: JarClasses) -> None:
    assert jar.create("acme.All$Trims", {"a": " x "}).fields == {"a": "x"}


@pytest.mark.parametrize(
    ("kind", "expected", "address"),
    [
        (0, 31 * (31 + 5) + 97, ""),
        (1, 31 * 7 + 97, ""),
        (2, None, "the enum acme.All$Level"),
        (3, 5, ""),
        (4, 2217378 + 1, ""),
        (5, None, "acme.All$Key"),
    ],
)
def test_hash_codes(jar: JarClasses, kind: int, expected: int | None, address: str) -> None:
    level = Constant("acme.All$Level", "HIGH", 1)
    found = jar.execute_hash(Instance("acme.All$Key", {"id": 5, "name": "a", "level": level, "kind": kind}))
    assert (found.value, found.address, found.unknown) == (expected, address, "")


def test_a_record_hashes_its_components(jar: JarClasses) -> None:
    values = {"a": 5, "b": Boxed("java.lang.Long", 3), "c": 0.5}
    found = jar.execute_hash(Instance("acme.All$Pair", values))
    assert found.value == (5 * 31 + 3) * 31 + 1071644672


def test_numbers_are_those_of_java(classes: Path, jar: JarClasses) -> None:
    """Java itself says what the results are. What is not known is no number."""
    command = [java_tool("java"), "-cp", str(classes), "acme.All"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    known = Counter[int]()
    for place, expected in enumerate(printed):
        kind, i = divmod(place, len(IDS))
        level = Constant("acme.All$Level", "HIGH", 1)
        fields = {"id": IDS[i], "name": NAMES[i], "d": DOUBLES[i], "level": level, "kind": kind}
        found = jar.execute_hash(Instance("acme.All$Sums", fields))
        assert found.unknown or found.value == int(expected), (kind, i)
        known[kind] += not found.unknown
    # Texts with letters beyond ASCII, and constants that the initializer of an enum creates.
    assert known == {kind: {8: 3, 9: 3, 11: 0}.get(kind, 4) for kind in range(14)}


@pytest.mark.parametrize(("kind", "equal"), [(0, 0), (1, 1)])
def test_objects_are_compared_as_java_does(jar: JarClasses, kind: int, equal: int) -> None:
    """Arrays that were read twice are two arrays, constants are the same."""

    def made() -> Instance:
        level = Constant("acme.All$Level", "HIGH", 1)
        return Instance("acme.All$Sums", {"id": 7, "name": "a", "level": level, "kind": kind, "numbers": [1, 2]})

    found = jar.execute_equals(made(), made())
    assert (found.value, found.unknown) == (equal, "")


def test_fields_that_are_not_stored_have_the_values_of_the_constructor(jar: JarClasses) -> None:
    def hashed(name: str) -> tuple[int, str]:
        key = canonical.serializer(build.pojo(f"acme.All${name}", {"a": build.INT}))
        executed = Executed(TypeContext(source=jar))
        hasher = executed.serializer(key)
        return hasher.hash_code(hasher.decode(Cursor(canonical.encoded(key, (5,))))), executed.unknown

    assert hashed("Salted") == (155, "")
    assert hashed("Asked")[1]
