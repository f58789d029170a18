from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from statetool import load, uids_in
from statetool.errors import FormatError, SnapshotNotFoundError, UnsupportedError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot import uid_search

WANTED = {operator_id_for_uid(uid): uid for uid in ("orders", "größe 'x'", "4_group-aggregate", "tab\tbed")}
JOB = """
class Job {
    static final long LARGE = 1L << 40;
    static String uid() { return "orders"; }
    static String other(String s) { return s + LARGE + "größe 'x'" + 1.5; }
}
"""


def class_file(*texts: str) -> bytes:
    """Return the beginning of a class file with these texts as constants, preceded by a long."""
    constants = b"\x05" + (1 << 40).to_bytes(8, "big")
    for i, text in enumerate(texts):
        raw = text.encode()
        constants += b"\x01" + len(raw).to_bytes(2, "big") + raw + b"\x08" + (3 + 2 * i).to_bytes(2, "big")
    return b"\xca\xfe\xba\xbe\x00\x00\x00\x3d" + (3 + 2 * len(texts)).to_bytes(2, "big") + constants


def test_a_list_of_uids(tmp_path: Path) -> None:
    (tmp_path / "uids.txt").write_text("nobody\n  orders  \ngröße 'x'\n")
    assert uids_in(str(tmp_path / "uids.txt"), list(WANTED)) == ["orders", "größe 'x'"]


def test_source_code(tmp_path: Path) -> None:
    (tmp_path / "Job.java").write_text('stream.keyBy(k).map(f).uid("orders").name("x").uid("tab\\tbed");\n')
    assert uids_in(str(tmp_path / "Job.java"), list(WANTED)) == ["orders", "tab\tbed"]


def test_a_compiled_plan_and_a_plan_of_the_web_interface(tmp_path: Path) -> None:
    compiled = {"flinkVersion": "2.3", "nodes": [{"id": 4, "type": "stream-exec-group-aggregate_1"}], "edges": []}
    (tmp_path / "compiled.json").write_text(json.dumps(compiled))
    assert uids_in(str(tmp_path / "compiled.json"), list(WANTED)) == ["4_group-aggregate"]
    web = {"plan": {"jid": "0", "nodes": [{"id": "1", "description": "orders"}]}}
    (tmp_path / "plan.json").write_text(json.dumps(web))
    assert uids_in(str(tmp_path / "plan.json"), list(WANTED)) == ["orders"]


def test_texts_of_the_classes_in_a_jar(tmp_path: Path) -> None:
    jar = tmp_path / "job.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("com/acme/Job.class", class_file("größe 'x'", "unused"))
        archive.writestr("job.py", "ds.uid('orders')\n")
        archive.writestr("picture.png", "'4_group-aggregate'")
    assert uids_in(str(jar), list(WANTED)) == ["größe 'x'", "orders"]
    assert uids_in(str(jar), []) == []


@pytest.mark.full
def test_a_jar_as_javac_and_jar_make_it(tmp_path: Path) -> None:
    (tmp_path / "Job.java").write_text(JOB)
    assert shutil.which("javac"), "this test needs a JDK"
    subprocess.run(["javac", "-encoding", "utf-8", "Job.java"], cwd=tmp_path, check=True)
    subprocess.run(["jar", "cf", "job.jar", "Job.class"], cwd=tmp_path, check=True)
    assert "orders" in uids_in(str(tmp_path / "job.jar"), list(WANTED))


@pytest.mark.parametrize("cut", [11, 14, 30])
def test_damaged_files_are_our_errors(tmp_path: Path, cut: int) -> None:
    (tmp_path / "A.class").write_bytes(class_file("a" * 40)[:cut])
    with pytest.raises(FormatError, match=r"A\.class"):
        uids_in(str(tmp_path / "A.class"), list(WANTED))
    (tmp_path / "a.jar").write_bytes(b"PK\x03\x04" + b"x" * cut)
    with pytest.raises(FormatError, match="not a valid jar"):
        uids_in(str(tmp_path / "a.jar"), list(WANTED))
    with pytest.raises(SnapshotNotFoundError):
        uids_in(str(tmp_path / "nothing"), list(WANTED))


def test_an_archive_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.jar"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("A.class", b"\xca\xfe\xba\xbe" + bytes(65 << 20))
    with pytest.raises(UnsupportedError, match="64 MiB"):
        uids_in(str(bomb), list(WANTED))


def nested(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_jars_in_jars_and_folders_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    inner = nested({"BOOT-INF/lib/b.jar": nested({"A.class": class_file("orders")})})
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "job.jar").write_bytes(inner)
    for path in (tmp_path / "jars", tmp_path / "jars" / "job.jar"):
        assert uids_in(str(path), list(WANTED)) == ["orders"]
    with monkeypatch.context() as patch:
        patch.setattr(uid_search, "_texts_of_archive", None)  # the result is in the cache
        assert uids_in(str(tmp_path / "jars" / "job.jar"), list(WANTED)) == ["orders"]
    for _ in range(5):
        inner = nested({"a.jar": inner})
    (tmp_path / "deep.jar").write_bytes(inner)
    with pytest.raises(UnsupportedError, match="nested deeper than 4"):
        uids_in(str(tmp_path / "deep.jar"), list(WANTED))
    (tmp_path / "damaged.jar").write_bytes(nested({"a.jar": b"PK\x03\x04damaged"}))
    with pytest.raises(FormatError, match=r"damaged\.jar!a\.jar is not a valid jar"):
        uids_in(str(tmp_path / "damaged.jar"), list(WANTED))
    monkeypatch.setattr(uid_search, "_MOST_NESTED_BYTES", 10)
    with pytest.raises(UnsupportedError, match="jars inside"):
        uids_in(str(tmp_path / "damaged.jar"), ["0" * 32])


def test_a_jar_names_operators_when_the_snapshot_is_opened(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "job.jar").write_bytes(nested({"lib/a.jar": nested({"job.properties": b"timers\n"})}))
    path = str(corpus / "v1_13_6-rocksdb-canonical" / "snapshot")
    assert "timers" not in list(load(path))
    assert "timers" in list(load(path, jars=[tmp_path / "job.jar"]))


def test_names_are_used_by_the_snapshot(corpus: Path, tmp_path: Path) -> None:
    old = load(str(corpus / "v1_13_6-rocksdb-canonical" / "snapshot"))
    (tmp_path / "uids").write_text("timers\nnot-there\n")
    ids = [o.operator_id for o in old.operators.values()]
    assert "timers" in old.with_uids(uids_in(str(tmp_path / "uids"), ids))
    assert "timers" not in list(old)
