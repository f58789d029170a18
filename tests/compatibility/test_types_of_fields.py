"""A job that starts with the very classes that wrote a savepoint: their serializers are compatible, or unknown, and never others."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from statetool import flink as types
from statetool.compatibility.classes.rules import resolve_class
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.io.cursor import Cursor
from statetool.java.classes.jar_classes import JarClasses
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from tests.support.compile import compile_java
from tests.support.flink.typed_fields import WITH_LIBRARIES, answers, unpack
from tools.flink_jars import DEFAULT_VERSIONS


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the classes, and of the snapshots that Flink wrote of their serializers."""
    return unpack(tmp_path_factory.mktemp("typed"))


def resolved(typed: Path, version: str, language: str, *, with_old: bool) -> dict[str, tuple[Level, str]]:
    """Return the level and reason for each class, with the same jar for the new job."""
    kryo: Literal[2, 5] = 2 if version.startswith("1.") else 5
    source = JarClasses([typed / "java", *([typed / language] if language != "java" else [])])
    old_types = TypeContext(kryo=kryo, source=source if with_old else None)
    new_types = TypeContext(
        kryo=kryo, source=source, renewed=True, tried=True, former=old_types.source, former_kryo=kryo
    )
    found = {}
    for name in dict.fromkeys(a.java_class for a in answers() if (a.version, a.language) == (version, language)):
        snapshot = typed / "snapshots" / version / name
        if snapshot.exists():
            old, new = (snapshot_reader(t).snapshot(Cursor(snapshot.read_bytes())) for t in (old_types, new_types))
            resolution = resolve(old, new)
            found[name] = resolution.level, resolution.reason
    return found


@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
@pytest.mark.parametrize("language", ["java", *WITH_LIBRARIES])
def test_the_classes_that_wrote_a_savepoint_are_never_refused(typed: Path, language: str, version: str) -> None:
    found = resolved(typed, version, language, with_old=False)
    refused = [f"{n}: {r}" for n, (level, r) in found.items() if level in (Level.AFTER_MIGRATION, Level.INCOMPATIBLE)]
    assert found
    assert refused == [], "\n".join(refused)
    unknown = {n.partition("$")[0] for n, (level, _) in found.items() if level == Level.UNKNOWN}
    assert (
        unknown
        == {
            "java": {"typed.Basics", "typed.Generics", "typed.Shapes", "typed.Tuples"},
            "avro": set(),
            "kotlin": {"typed.KBox"},
            "scala": {"typed.SBox", "typed.SPojo"},
        }[language]
    )


@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
@pytest.mark.parametrize("language", ["java", *WITH_LIBRARIES])
def test_what_only_code_decides_is_the_same_if_both_jars_are(typed: Path, language: str, version: str) -> None:
    found = resolved(typed, version, language, with_old=True)
    assert {n: r for n, (level, r) in found.items() if level != Level.AS_IS} == {}


_BEFORE = """
package acme;
public class Old {
    public static class Shape { public int n; }
    public record Tail(int a, int b, int c) {}
    public record Head(int a, int b, int c) {}
    public record Mixed(int a, int b, int c) {}
}
"""
_AFTER = """
package acme;
public class Old {
    public abstract static class Shape { public int n; }
    public record Tail(int a, int b) {}
    public record Head(int b, int c) {}
    public record Mixed(int c, int b) {}
}
"""


@pytest.mark.parametrize(
    ("name", "fields", "level"),
    [
        ("Shape", "n", None),  # Only a value of exactly this class cannot be read.
        ("Tail", "abc", None),
        # Flink takes the position of c among the old components for that among the new ones.
        ("Head", "abc", Level.INCOMPATIBLE),
        ("Mixed", "abc", None),
    ],
)
def test_classes_of_which_flink_creates_no_objects(
    both_jars: tuple[JarClasses, JarClasses], name: str, fields: str, level: Level | None
) -> None:
    old, new = (TypeContext(kryo=5, source=jar) for jar in both_jars)
    part = types.pojo(f"acme.Old${name}", dict.fromkeys(fields, "INT"))
    assert [r.level for r in resolve_class(part, old, new, is_key=False)] == ([] if level is None else [level])


@pytest.fixture(scope="module")
def both_jars(tmp_path_factory: pytest.TempPathFactory) -> tuple[JarClasses, JarClasses]:
    """Return the classes of an old job and of a new one."""
    folders = []
    for name, source in (("before", _BEFORE), ("after", _AFTER)):
        folder = tmp_path_factory.mktemp(name)
        (folder / "Old.java").write_text(source)
        folders.append(compile_java([folder / "Old.java"], folder / "classes", "--release", "17"))
    return JarClasses([folders[0]]), JarClasses([folders[1]])
