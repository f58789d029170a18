"""Serializers of splits and committables that the job has: the jars of both jobs tell whether they changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool as st
from tests.support.compile import compile_java
from tests.support.corpora.archives import HERE, unpack

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


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = unpack(HERE / "corpus" / "connectors.tar.xz", tmp_path_factory.mktemp("connectors"))
    return str(folder / "v1_20_5-cep" / "snapshot")  # Its source is none that statetool knows.


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
    snapshot: str, tmp_path: Path, change: dict[str, int | str | bool], kind: str
) -> None:
    jars, others = [jar(tmp_path / "a")], [jar(tmp_path / "b", **change)]  # type: ignore[arg-type]
    check = st.check(snapshot, jars=jars, other_jars=others)
    found = [f for s in check.steps for f in s.findings if f.rule == "C19"]
    assert [f.kind for f in found] == ([kind] if kind else [])
    assert all("acme.SplitSerializer" in f.text for f in found)
    assert not [a for a in check.assumptions if a.rule == "C19"]


def test_without_the_old_jar_they_are_assumed(snapshot: str, tmp_path: Path) -> None:
    check = st.check(snapshot, other_jars=[jar(tmp_path / "b")])
    assert [a.option for a in check.assumptions if a.rule == "C19"] == ["the jar of the old job (--jar-a)"]
