"""``hashCode()`` of key classes in the jar of the new job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.compatibility.verdicts import Check
from statetool.reporting.verdicts.check import check_findings
from tests.support.compile import compile_java

_CLASS = """
package acme;
public class Key {{
    public int a;
    public String b;
    @Override public int hashCode() {{ {body} }}
}}
"""
_OLD = "return java.util.Objects.hash(a, b);"
KEYS = pa.array([{"a": i, "b": f"k{i}"} for i in range(20)])


def classes(folder: Path, body: str) -> str:
    folder.mkdir()
    source = folder / "Key.java"
    source.write_text(_CLASS.format(body=body))
    return str(compile_java([source], folder / "classes"))


@pytest.fixture
def old(tmp_path: Path) -> st.Savepoint:
    table = pa.table({"key": KEYS, "v": list(range(20))})
    state = st.bootstrap_keyed_state(
        table,
        key_type=flink.pojo("acme.Key", {"a": flink.INT, "b": flink.STRING}),
        states={"v": st.value("BIGINT")},
        hashes={"acme.Key": "Objects.hash(a, b)"},
    )
    return st.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "old"), flink_version="2.3")


def check(old: st.Savepoint, tmp_path: Path, body: str, *, with_old_jar: bool = True) -> Check:
    jars = [classes(tmp_path / "a", _OLD)] if with_old_jar else []
    return st.check(old, jars=jars, other_jars=[classes(tmp_path / "b", body)])


@pytest.mark.parametrize("with_old_jar", [True, False])
def test_keys_of_another_hash_code_are_not_found(old: st.Savepoint, tmp_path: Path, with_old_jar: bool) -> None:
    checked = check(old, tmp_path, "return 31 * a + b.hashCode();", with_old_jar=with_old_jar)
    (warning,) = checked.operators[0].warnings
    assert (checked.verdict, warning.kind, checked.ok) == ("fully", "loses", False)
    assert "hashCode() of acme.Key changed" in warning.message
    assert "keys of 20" in warning.message


@pytest.mark.parametrize("with_old_jar", [True, False])
@pytest.mark.parametrize("body", [_OLD, "return 31 * (31 + a) + (b == null ? 0 : b.hashCode());"])
def test_another_method_with_the_same_result_is_fine(
    old: st.Savepoint, tmp_path: Path, body: str, with_old_jar: bool
) -> None:
    assert check(old, tmp_path, body, with_old_jar=with_old_jar).ok


def test_a_method_that_cannot_be_evaluated_is_unknown(old: st.Savepoint, tmp_path: Path) -> None:
    checked = check(old, tmp_path, "return new java.util.Random(a).nextInt();")
    assert checked.verdict == "unknown"
    assert "Whether the new job finds the keys of acme.Key is unknown" in checked.operators[0].reason


def test_without_the_old_jar_such_a_method_is_a_note(old: st.Savepoint, tmp_path: Path) -> None:
    checked = check(old, tmp_path, "return new java.util.Random(a).nextInt();", with_old_jar=False)
    assert (checked.verdict, checked.warnings, checked.ok) == ("fully", (), True)
    assert "hashCode() of acme.Key was not compared: " in checked.operators[0].reason
    (finding,) = check_findings(checked).findings
    assert (finding.severity, finding.where) == ("note", ("operator op",))
    assert "--jar-a" in finding.remedy
    assert checked.record()["operators"][0]["reason"] == finding.what


@pytest.mark.parametrize("with_old_jar", [True, False])
def test_a_key_class_that_no_jar_has_is_a_note(old: st.Savepoint, tmp_path: Path, with_old_jar: bool) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    jars = [folder] if with_old_jar else []
    checked = st.check(old, old, jars=jars, other_jars=[folder])
    assert (checked.verdict, checked.ok) == ("fully", True)
    assert "acme.Key was not compared: the jar of the new job does not have it" in checked.operators[0].reason
