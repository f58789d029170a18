"""Constructors and methods of class files, executed with known values."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetool.classes.jar_classes import JarClasses
from statetool.types.execution import Boxed, Constant, Instance
from tests.support.compile import compile_java

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
}
"""


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> JarClasses:
    folder: Path = tmp_path_factory.mktemp("classes")
    (folder / "All.java").write_text(_SOURCE)
    return JarClasses([str(compile_java([folder / "All.java"], folder / "out"))])


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
