"""Serializers of splits and committables that the job has: the jars of both jobs tell whether they changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool as st
from tests.support.compile import compile_java

_INTERFACE = "package org.apache.flink.core.io;\npublic interface SimpleVersionedSerializer<E> {}\n"
_SERIALIZER = """
package acme;
public class SplitSerializer implements org.apache.flink.core.io.SimpleVersionedSerializer<String> {
    public int getVersion() { return %s; }
    public byte[] serialize(String split) { return Coding.bytes(split); }
}
class Coding { static byte[] bytes(String s) { return s.getBytes(java.nio.charset.StandardCharsets.%s); } }
class Unused { int n = %s; }
"""


def jar(folder: Path, version: int = 1, charset: str = "UTF_8", unused: int = 0, *, gone: bool = False) -> str:
    (folder / "org").mkdir(parents=True)
    (folder / "org" / "SimpleVersionedSerializer.java").write_text(_INTERFACE)
    source = folder / "SplitSerializer.java"
    text = _SERIALIZER % (version, charset, unused)
    source.write_text("package acme; class Other {}" if gone else text)
    return str(compile_java([source, folder / "org" / "SimpleVersionedSerializer.java"], folder / "classes"))


@pytest.fixture
def snapshot(connector_cases: Path, rule_cases: Path, rule: str) -> str:
    """A snapshot with a source (C19), or with a sink (X18), of the job's own code."""
    return str(connector_cases / "v1_20_5-cep" / "snapshot" if rule == "C19" else rule_cases / "first")


@pytest.mark.parametrize(("rule", "places"), [("C19", 1), ("X18", 2)])
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, ""),
        ({"unused": 1}, ""),
        ({"version": 2}, "unknown"),
        ({"charset": "UTF_16"}, "unknown"),
        ({"gone": True}, "unknown"),
    ],
)
def test_serializers_of_the_job_are_compared(
    snapshot: str, tmp_path: Path, rule: str, places: int, change: dict[str, int | str | bool], kind: str
) -> None:
    """C19, X18: the source of a job; the writer and the committer of its sink."""
    jars, others = [jar(tmp_path / "a")], [jar(tmp_path / "b", **change)]  # type: ignore[arg-type]
    check = st.check(snapshot, jars=jars, other_jars=others)
    found = [f for s in check.steps for f in s.findings if f.rule == rule]
    assert [f.kind for f in found] == ([kind] * places if kind else [])
    assert all("acme.SplitSerializer" in f.text for f in found)
    assert not [a for a in check.assumptions if a.rule == rule]


@pytest.mark.parametrize(("rule", "places"), [("C19", 1), ("X18", 2)])
def test_without_the_old_jar_they_are_assumed(snapshot: str, tmp_path: Path, rule: str, places: int) -> None:
    check = st.check(snapshot, other_jars=[jar(tmp_path / "b")])
    assert [a.option for a in check.assumptions if a.rule == rule] == ["the jar of the old job (--jar-a)"] * places
