"""Checks that run the classes of the new job with Flink, and what they decide."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.compatibility.running import machine
from statetool.compatibility.running.flink_jars import FlinkJars, find_flink_jars
from statetool.compatibility.running.machine import Machine, Question, RunEndedError
from statetool.compatibility.running.results import Ran
from statetool.compatibility.running.samples import Sample
from statetool.compatibility.verdicts import RUN, CheckWarning, Level, Resolution
from statetool.errors import MissingDependencyError, OptionError, UnsupportedError
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs, job_runs, pairs
from tests.support.flink.pair_suites import SUITES
from tests.support.flink.ran_states import RanState, classes, write
from tests.support.flink.versions import flink_versions
from tests.support.zoo import ZOO
from tools.flink_jars import DEFAULT_VERSIONS, flink_jars

#: Classes about which only running them tells, what a run says, and the verdict without one.
STATES: Final = (
    RanState("own", "Same", "fully", ruled="fully"),
    RanState("own", "Halved", "fully", ("may_change",)),
    RanState("own", "Shifted", "fully", ("may_change",)),
    RanState("own", "Refused", "not"),
    RanState("own", "Thrown", "not"),
    RanState("own", "Gone", "not", ruled="not"),
    RanState("own", "Exits", "unknown"),
    RanState("own", "Prints", "fully", ruled="fully"),
    RanState("pojo", "PojoThrows", "not"),
    RanState("kryo", "KryoThrows", "not"),
    RanState("kryo", "KryoOwn", "fully"),
    RanState("kryo", "KryoOwnLonger", "not"),
    RanState("key", "KeySame", "fully", ruled="fully"),
    RanState("key", "KeyMoved", "fully", ("loses",), ruled="fully"),
    RanState("key", "KeyWithoutEquals", "fully", ("loses",), ruled="fully"),
)
#: A class of Scala, which Chill writes in Flink 1.x.
CHILL: Final = RanState("kryo", "scala.Some", "fully", ruled="fully")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "version" in metafunc.fixturenames:
        metafunc.parametrize("version", flink_versions(metafunc, DEFAULT_VERSIONS))


def home_of(version: str) -> str:
    return str(flink_jars(version)[0].parent.parent)


def kinds_of(operator: Any) -> tuple[str, ...]:
    warnings = [*operator.warnings, *(w for state in operator.states for w in state.warnings)]
    return tuple(sorted({w.kind for w in warnings}))


@pytest.mark.full
def test_what_only_running_code_tells(version: str, tmp_path: Path) -> None:
    """S3."""
    states = (*STATES, CHILL) if version.startswith("1.") else STATES
    kryo: Any = 2 if version.startswith("1.") else 5
    old = st.load(write(version, "before", states, tmp_path / "old"), uids=[s.name for s in states], kryo=kryo)
    options: dict[str, Any] = {
        "jars": [classes(version, "before")],
        "other_jars": [classes(version, "after")],
        "flink_version": version.rpartition(".")[0],
        "backend": "heap",
    }
    ruled = {o.uid: o.verdict for o in st.check(old, **options).operators}
    assert ruled == {s.name: s.ruled for s in states}
    check = st.check(old, run=True, flink_home=home_of(version), **options)
    found = {o.uid: (o.verdict, kinds_of(o)) for o in check.operators}
    assert found == {s.name: (s.verdict, s.warnings) for s in states}
    reasons = {o.uid: f"{o.reason} {o.states[0].reason}" for o in check.operators}
    assert "it takes the new serializers, and reads and writes all 3 entries" in reasons["KryoOwn"]
    assert "is taken to give the value the serializer that it had" in reasons["Same"]
    assert "n: 3 becomes 2" in reasons["Shifted"]
    assert "another version" in reasons["Thrown"]
    assert "ended the JVM" in reasons["Exits"]
    assert "hashCode() of ran.Ran$KeyMoved changed" in reasons["KeyMoved"]  # a rule tells it already
    assert check.run is not None
    record = check.run.record()
    assert (record["flink"], record["sample"]) == (options["flink_version"], 1000)
    assert {s["operator"] for s in record["states"]} == {s.name for s in states} - {"Exits"}
    # RocksDB finds keys by their bytes.
    options["backend"] = "rocksdb"
    sampled = st.check(old, run=True, flink_home=home_of(version), sample=1, **options)
    found = {o.uid: (o.verdict, kinds_of(o)) for o in sampled.operators}
    assert found["KeyWithoutEquals"] == ("fully", ())
    assert found["Halved"] == ("fully", ("may_change",))
    assert [a.option for a in sampled.assumptions if "values that were not read" in a.text] == ["--sample all"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("names", "backend"),
    [(("java-serialized", "changed-classes", "kind-serializers"), "rocksdb"), (("java-serialized",), "hashmap")],
)
def test_a_run_agrees_with_what_flink_did(version: str, names: tuple[str, ...], backend: str, tmp_path: Path) -> None:
    """These suites need no jars of Maven. Among their pairs are those that only a run decides."""
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    release = pairs.short(version)
    did = pairs.results(release, release)
    for suite in (s for s in SUITES if s.name in names):
        jars, other_jars = pairs.jars_of(suite, snapshots)
        uids = pairs.written(suite, snapshots, release) if suite.by_jars else suite.states(new=False)
        check = st.check(
            st.load(str(pairs.old_savepoint(suite, snapshots, release, tmp_path)), uids=uids),
            None if suite.by_jars else st.load(str(pairs.new_savepoint(suite, snapshots, release)), uids=suite.states(new=True)),
            flink_version=release, backend="heap" if backend == "hashmap" else "rocksdb", jars=jars, other_jars=other_jars,
            run=True, flink_home=home_of(version),
        )  # fmt: skip
        wrong = {}
        for operator in (o for o in check.operators if (suite.name, o.uid, backend) in did):
            flink = did[suite.name, operator.uid, backend]
            warned = bool(kinds_of(operator))
            right = {
                "same": operator.verdict in ("fully", "after_migration") and not warned,
                "other": operator.verdict == "not" or warned,
                "refused": operator.verdict == "not",
            }
            if operator.verdict == "unknown" or not right.get(flink, True):
                wrong[operator.uid] = (flink, operator.verdict, operator.reason)
        assert not wrong


@pytest.mark.full
def test_a_run_decides_what_is_unknown_of_a_job(tmp_path: Path) -> None:
    """``python -m tests.support.flink.job_runs`` runs all pairs of jobs that are unknown, and writes the table."""
    snapshots = unpack(job_pairs.SNAPSHOTS, tmp_path / "snapshots")
    (stored,) = (r for r in job_runs.table() if r.pair == "ValueBoxRetyped")
    rows = {(r.pair, r.written_by, r.release, r.backend): r for r in job_pairs.table()}
    row = rows[stored.pair, stored.written_by, stored.release, stored.backend]
    assert row.jars.startswith("unknown")
    assert row.flink == "refused"
    assert job_runs.run(snapshots, row, stored.known) == stored
    assert stored.verdict.startswith("not ")


# ---- without Java


def unsure() -> Resolution:
    text = "Only the class tells."
    return Resolution.by_run(text, CheckWarning(kind="may_change", message=text, in_reason=True))


def test_a_run_replaces_only_what_it_decides() -> None:
    other = Resolution.because(Level.UNKNOWN, "The backend is not known.")
    read = Resolution.because(Level.AS_IS, "It read all.")
    decided = Ran(Resolution(Level.AS_IS), True, read).apply(unsure())
    assert (decided.level, decided.reason, decided.warnings) == (Level.AS_IS, "It read all.", ())
    both = Resolution(Level.UNKNOWN, (*unsure().causes, *other.causes), unsure().warnings)
    assert Ran(Resolution(Level.AS_IS), True, read).apply(both).reason == "The backend is not known."
    undecided = Ran(Resolution(Level.AS_IS), False).apply(unsure())
    assert undecided.level == Level.UNKNOWN
    assert "--run" not in undecided.remedy
    assert "--run" in unsure().remedy
    refused = Resolution.because(Level.INCOMPATIBLE, "It fails.")
    assert Ran(refused, True, read).apply(Resolution(Level.AS_IS)).level == Level.INCOMPATIBLE
    assert RUN.command[-1] == "--run"


def test_a_sample_is_spread_over_the_entries() -> None:
    sample = Sample(10)
    for i in range(1005):
        sample.add((i, b"", b""))
    groups = [group for group, _, _ in sample.finished().entries]
    assert len(groups) == 10
    assert not sample.is_whole
    assert groups[0] == 0
    assert groups[-1] > 800
    whole = Sample(None)
    for i in range(100):
        whole.add((i, b"", b""))
    assert (len(whole.finished().entries), whole.is_whole) == (100, True)


def fake_flink(folder: Path, name: str = "flink-dist-2.3.0.jar") -> Path:
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / name).write_bytes(b"")
    return folder


def test_which_flink_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLINK_HOME", raising=False)
    home = str(fake_flink(tmp_path / "flink"))
    assert find_flink_jars(home, ()).release == "2.3"
    old = str(fake_flink(tmp_path / "old", "flink-dist_2.12-1.14.6.jar"))
    assert find_flink_jars(old, ("1.14",)).release == "1.14"
    with pytest.raises(OptionError, match=r"are those of Flink 1\.14, and the new job has Flink 2\.3") as wrong:
        find_flink_jars(old, ("2.3",))
    assert "pip install 'apache-flink-libraries==2.3.*'" in wrong.value.hint
    with pytest.raises(OptionError, match=r"has no jar flink-dist"):
        find_flink_jars(str(tmp_path), ())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="none were found") as missing:
        find_flink_jars(None, ("1.20",))
    assert "--flink-home DIR" in missing.value.hint
    monkeypatch.setenv("FLINK_HOME", home)
    assert find_flink_jars(None, ("2.3",)).release == "2.3"


def fake_java(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!{sys.executable}\n{script}")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


NOTHING_ASKED: Final = Question(
    form=0, max_parallelism=128, as_objects=True, as_bytes=True, parts=(), entries=[(1, b"key", b"value")] * 1000
)


def test_a_java_that_cannot_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Machine(FlinkJars("2.3", ()), (), ())
    fake_java(tmp_path / "old", monkeypatch, "import sys; sys.exit('Error: Could not find or load main class')")
    with pytest.raises(UnsupportedError, match=r"cannot run Flink 2\.3: Error: Could not find") as failed:
        running.ask(NOTHING_ASKED)
    assert "JDK 11 or later" in failed.value.hint
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingDependencyError, match="there is none in JAVA_HOME"):
        running.ask(NOTHING_ASKED)
    running.close()


_HELLO: Final = """
import struct, sys
def text(s): return struct.pack(">i", len(s)) + s
out = sys.stdout.buffer
out.write(text(b"2.3.0") + text(b"17")); out.flush()
sys.stdin.buffer.read(8)  # no jars
"""


def test_a_jvm_that_ends_or_hangs_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Machine(FlinkJars("2.3", ()), (), ())
    fake_java(tmp_path / "ends", monkeypatch, _HELLO + "sys.exit('out of memory')")
    with pytest.raises(RunEndedError, match="ended the JVM: out of memory"):
        running.ask(NOTHING_ASKED)
    fake_java(tmp_path / "hangs", monkeypatch, _HELLO + "import time; time.sleep(60)")
    monkeypatch.setattr(machine, "_LIMIT_S", 2)
    with pytest.raises(RunEndedError, match="did not return"):
        running.ask(NOTHING_ASKED)
    running.close()


def test_an_answer_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (
        'out.write(struct.pack(">ii", 1000, 1) + text(b"key") + text(b"hash") + text(b"moved") + text(b""));'
        'out.write(struct.pack(">i", 1) + text(b"value") + text(b"old") + text(b"new")); out.flush(); sys.stdin.read()'
    )
    fake_java(tmp_path, monkeypatch, _HELLO + answer)
    running = Machine(FlinkJars("2.3", ()), (), ())
    found = running.ask(NOTHING_ASKED)
    assert (found.entries, found.findings[0].text, found.rewritten) == (1000, "moved", (("value", b"old", b"new"),))
    assert running.java == "17"
    folder = running._folder.name
    running.close()
    assert not os.path.exists(folder)


def test_options_of_a_run() -> None:
    with pytest.raises(OptionError, match="--run needs the jar of the new job"):
        st.check(ZOO, flink_version="2.3", run=True)
    with pytest.raises(OptionError, match="sample is an option of a run"):
        st.check(ZOO, flink_version="2.3", sample=5)
    with pytest.raises(OptionError, match="flink_home is an option of a run"):
        st.check(ZOO, flink_version="2.3", flink_home="/opt/flink")
    with pytest.raises(OptionError, match="sample"):
        st.check(ZOO, flink_version="2.3", run=True, sample=0)
    done = CliRunner().invoke(cli, ["check", ZOO, "--flink", "2.3", "--run"])
    assert (done.exit_code, "--jar-b FILE" in done.stderr) == (2, True)
    done = CliRunner().invoke(cli, ["check", ZOO, "--flink", "2.3", "--sample", "many"])
    assert (done.exit_code, "pass a number of 1 or more, or all" in done.stderr) == (2, True)


def test_jars_in_jars_and_folders(tmp_path: Path) -> None:
    import zipfile

    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.txt", "a")
    jar = tmp_path / "job.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("lib/inner.jar", inner.getvalue())
    (tmp_path / "work").mkdir()
    urls = machine._urls(str(jar), tmp_path / "work")
    assert [u.rpartition("/")[2] for u in urls] == ["job.jar", "0-inner.jar"]
    assert machine._urls(str(tmp_path), tmp_path / "work")[0].endswith("/")
