"""Pairs of jobs in two versions: patterns, windows, records in flight, operators, values, ways to declare a state, change logs, Avro and Scala.

Each class of ``job_pairs/jobs`` and its neighbours is a job in two versions: lines that end with ``// old`` and ``// new`` are those of one. The old
version receives lines and takes a snapshot, and both versions go on from it with the same lines. ``python -m tests.support.flink.job_pairs`` runs all
and writes ``job_pairs.tsv`` and the snapshots with the jars of both versions (``job_pairs.tar.xz``) again; ``--job NAME`` runs some and keeps the
other rows; ``--verdicts`` only checks again.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import statetool as st
from statetool.compatibility.verdicts import Check
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.compile import make_jar
from tests.support.corpora.archives import unpack
from tests.support.flink.machine import JAVA, FlinkMachine
from tests.support.flink.pairs import releases_before, short
from tests.support.flink.zoo_cases import pack
from tools.flink_jars import DEFAULT_VERSIONS, SHORT_LIVED, compiled, flink_jars, java_tool
from tools.maven import maven_jars

HERE: Final = Path(__file__).with_name("job_pairs")
TABLE: Final = HERE.with_suffix(".tsv")
SNAPSHOTS: Final = HERE.with_suffix(".tar.xz")
SIDES: Final = ("old", "new")
#: What is known of the new job: a savepoint of it and both jars, both jars, its jar.
KNOWN: Final = ("savepoint", "jars", "jar")
_CHANGELOG: Final = {
    "state.backend.changelog.enabled": "true", "state.changelog.enabled": "true",
    "state.backend.changelog.periodic-materialize.interval": "1 h", "state.changelog.periodic-materialize.interval": "1 h",
}  # fmt: skip
_MATERIALIZED: Final = _CHANGELOG | dict.fromkeys(
    ("state.backend.changelog.periodic-materialize.interval", "state.changelog.periodic-materialize.interval"), "200 ms"
)
_CLAIM: Final = {"execution.savepoint-restore-mode": "CLAIM", "execution.state-recovery.claim-mode": "CLAIM"}
_UNALIGNED: Final = {
    "execution.checkpointing.interval": "365 d",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.unaligned": "true",
    "execution.checkpointing.unaligned.enabled": "true",
    "execution.checkpointing.aligned-checkpoint-timeout": "0 ms",
    "execution.buffer-timeout": "5 ms",
    "execution.buffer-timeout.interval": "5 ms",
}
_RETAINED: Final = {
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.interval": "365 d",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPair:
    """A job in two versions.

    Attributes
    ----------
    before, after
        Lines that the old job receives before the snapshot, and those that both versions receive after it.
    old_config, new_config
        Settings of both versions.
    held
        Whether the snapshot is an unaligned checkpoint with records in flight.
    checkpoint
        Whether it is a checkpoint instead of a savepoint, on the backend that restores it.
    scala
        Whether it needs Flink's Scala, which releases since 2.0 do not have.
    """

    name: str
    topic: str
    job: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    old_config: Mapping[str, str] = field(default_factory=dict)
    new_config: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    checkpoint: bool = False
    scala: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a pair: what Flink did, and what ``check`` says with a savepoint of the new job, with both jars, and with the new jar.

    ``flink`` is ``same`` if both versions give the same results, ``other``, ``refused``, or ``later`` if the restored job fails.
    """

    topic: str
    pair: str
    written_by: str
    release: str
    backend: str
    flink: str
    savepoint: str
    jars: str
    jar: str


#: Lines before and after the snapshot.
_LINES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "Patterns": (
        ("p,a,1000", "p,b,2000", "q,a,2500", "w,,3000"),
        ("p,c,4000", "q,b,4500", "q,c,5000", "p,d,5500", "q,d,6000", "w,,99000"),
    ),
    "Windows": (
        ("p,1,1000", "q,2,4000", "p,4,8000", "w,,8500"),
        ("p,8,9000", "q,16,9500", "w,,12000", "p,32,13000", "p,64,9800", "w,,99000"),
    ),
    "States": (("p,1,1000", "q,2,2000", "p,4,3000"), ("p,8,4000", "q,16,5000", "p,32,6000", "w,,99000")),
    "Timers": (("p,1,1000", "q,2,2000", "p,4,3000"), ("p,8,4000", "w,,99000")),
    "Flights": (("p,1,1000", "q,2,2000", "p,4,3000", "q,8,4000"), ("p,16,5000",)),
}  # fmt: skip


def _pairs() -> Iterator[JobPair]:
    for folder in ("jobs", "avro", "scala"):
        for source in sorted((HERE / folder).iterdir()):
            topic = source.stem
            for name, base in re.findall(r"^(?:final )?class (\w+) extends (\w+)", source.read_text(), re.MULTILINE):
                if base in ("Job", "PatternJob", "WindowedJob", "TuplesJob", "FlightJob", "ScalaJob"):
                    held = topic == "Flights"
                    config = _UNALIGNED if held else {}
                    before, after = _LINES.get("Timers" if name.startswith("Timers") else topic, _LINES["States"])
                    yield JobPair(
                        name=name, topic=topic, job=name, before=before, after=after, held=held, scala=folder == "scala",
                        old_config=config, new_config=config,
                    )  # fmt: skip
    before, after = _LINES["States"]
    for name, old, new, checkpoint in (
        ("off-to-on", {}, _CHANGELOG | _CLAIM, False),
        ("off-to-on-no-claim", {}, _CHANGELOG, False),
        ("on-to-off", _CHANGELOG | _CLAIM, {}, False),
        ("checkpoint-same", _CHANGELOG | _CLAIM, _CHANGELOG | _CLAIM, True),
        ("checkpoint-no-claim", _CHANGELOG | _CLAIM, _CHANGELOG, True),
        ("checkpoint-off-to-on", _CLAIM, _CHANGELOG | _CLAIM, True),
        ("checkpoint-on-to-off", _CHANGELOG | _CLAIM, _CLAIM, True),
        ("materialized-same", _MATERIALIZED | _CLAIM, _MATERIALIZED | _CLAIM, True),
        ("materialized-on-to-off", _MATERIALIZED | _CLAIM, _CLAIM, True),
    ):
        yield JobPair(
            name=f"Changelog-{name}", topic="Changelogs", job="StateSame", before=before, after=after,
            old_config=old | _RETAINED, new_config=new | _RETAINED, checkpoint=checkpoint,
        )  # fmt: skip


PAIRS: Final = tuple(_pairs())


# ---- both versions of the jobs


def sources(work: Path, side: str, folders: Sequence[str]) -> Path:
    """Write the sources of a version into a folder."""
    target = work / "sources" / f"{side}-{folders[0]}"
    other = SIDES[side == "old"]
    for source in (p for folder in folders for p in sorted((HERE / folder).iterdir())):
        lines = [line for line in source.read_text().splitlines() if not line.endswith(f"// {other}")]
        target.mkdir(parents=True, exist_ok=True)
        (target / source.name).write_text("\n".join(lines).replace("SUMS_HASH", operator_id_for_uid("sums")) + "\n")
    return target


def _compile_scala(work: Path, side: str, java: Path) -> Path:
    """Compile the jobs in Scala, in one version, and return their classes."""
    target = work / "scala" / side
    if not target.exists():
        target.mkdir(parents=True)
        jars = [*maven_jars("scala-2.12"), *flink_jars(min(DEFAULT_VERSIONS))]
        path = os.pathsep.join(map(str, jars))
        command = [
            java_tool("java"),
            *SHORT_LIVED,
            "-Xss8m",
            "-cp",
            path,
            "scala.tools.nsc.Main",
            "-nowarn",
            "-Ydelambdafy:inline",
            "-cp",
            f"{path}{os.pathsep}{java}",
        ]
        files = sorted(sources(work, side, ("scala",)).glob("*.scala"))
        subprocess.run([*command, "-d", str(target), *map(str, files)], check=True)
    return target


def machine_of_jobs(version: str, work: Path, side: str) -> FlinkMachine:
    """Start a release with the jobs that need no other jars, in one version."""
    return FlinkMachine(version, work, (HERE / "harness", sources(work, side, ("jobs",))))


def _classes(version: str, work: Path, side: str) -> list[Path]:
    """Compile all jobs in one version, and return the folders of their classes."""
    jars = maven_jars(f"flink-avro-{version}")
    java = compiled(
        version, HERE / "harness", sources(work, side, ("jobs", "avro")), jars=jars, classes=[compiled(version, JAVA)]
    )
    return [java, *([_compile_scala(work, side, java)] if version.startswith("1.") else [])]


def machine(version: str, work: Path, side: str) -> FlinkMachine:
    """Start a release with all jobs in one version."""
    return FlinkMachine(version, work, jars=[*_classes(version, work, side), *maven_jars(f"flink-avro-{version}")])


def _make_jars(work: Path, snapshots: Path) -> None:
    """Write a jar of each version of each job, with the classes that it needs."""
    for side in SIDES:
        files = {
            p.relative_to(folder).as_posix(): p.read_bytes()
            for folder in _classes(min(DEFAULT_VERSIONS), work, side)
            for p in sorted((folder / "jobs").rglob("*.class"))
        }
        for job in {p.job for p in PAIRS}:
            target = jar_of(snapshots, job, side)
            target.parent.mkdir(parents=True, exist_ok=True)
            make_jar(target, closure(f"jobs/{job}.class", files), method=zipfile.ZIP_STORED)


def closure(first: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the classes that a class needs, and itself."""
    found, todo = dict[str, bytes](), [first]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = files[name]
        stem = name.removesuffix(".class")
        words = set(re.findall(rb"jobs/[\w$/]+", files[name]))
        todo += [n for w in words if (n := f"{w.decode()}.class") in files]
        todo += [n for n in files if n.startswith(f"{stem}$")]
    return found


def jar_of(snapshots: Path, job: str, side: str) -> Path:
    """Return the jar of a version of a job."""
    return snapshots / "jars" / f"{job}-{side}.jar"


# ---- runs


def run(
    flink: FlinkMachine, pair: JobPair, side: str, backend: str, lines: Sequence[str], *, snapshot: Path | None = None, wait_ms: int = 1000,
) -> dict[str, Any]:  # fmt: skip
    """Let a version of a job receive lines, from a snapshot or empty; return how far it came."""
    config = pair.old_config if side == "old" else pair.new_config
    target = tempfile.mkdtemp(dir=flink.work)
    return flink.call(
        "class", **{"class": "ChangedJob"}, job=pair.job, backend=backend, config=dict(config), lines=list(lines), savepoint=target,
        snapshot=None if snapshot is None else str(snapshot), checkpoint=pair.checkpoint,
        held=pair.held and snapshot is None and side == "old", wait_ms=wait_ms,
    )  # fmt: skip


def stored(snapshots: Path, side: str, pair: JobPair, release: str, backend: str) -> Path:
    """Return the snapshot of a version of a job."""
    return snapshots / side / pair.name / (f"{release}-{backend}" if pair.checkpoint else release)


def take(flink: FlinkMachine, side: str, pair: JobPair, snapshots: Path, backend: str) -> Path:
    """Let a version of a job run, and store its snapshot; return its first place, to which a checkpoint points."""
    target = stored(snapshots, side, pair, short(flink.version), backend)
    for wait_ms in (1_000, 5_000, 30_000):
        answer = run(flink, pair, side, backend, pair.before, wait_ms=wait_ms)
        if answer["reached"] != "done":
            raise AssertionError(f"{pair.name} {side}: {answer['failure'][:9000]}")
        path = Path(answer["snapshot"])
        if not pair.held or side == "new" or _is_held(path):
            break
    shutil.rmtree(target, ignore_errors=True)
    if pair.checkpoint:
        st.copy(str(path), str(target))  # Change logs have a folder of their own.
    else:
        shutil.copytree(path, target)
    return path


def _is_held(path: Path) -> bool:
    """Return True if the barrier overtook records."""
    metadata = st.load(str(path))._inventory.metadata
    return any(s.input_channels or s.output_channels for o in metadata.operators for s in o.subtasks)


def result(flink: FlinkMachine, pair: JobPair, backend: str, snapshot: Path, expected: Sequence[str]) -> str:
    """Restore the new version of a job, and return what Flink did."""
    answer = run(flink, pair, "new", backend, pair.after, snapshot=snapshot)
    if answer["reached"] != "done":
        if "waited too long" in answer["failure"]:
            raise AssertionError(f"{pair.name}: {answer['failure'][:9000]}")
        return str(answer["reached"])
    return "same" if sorted(answer["records"]) == list(expected) else "other"


def results_again(version: str, work: Path, names: Sequence[str]) -> dict[str, str]:
    """Run pairs again within a release, on the heap, and return what Flink did with each."""
    wanted = [p for p in PAIRS if p.name in names]
    flink = machine_of_jobs(version, work, "old")
    first = {}
    for pair in wanted:
        path = take(flink, "old", pair, work / "snapshots", "hashmap")
        first[pair.name] = path, sorted(run(flink, pair, "old", "hashmap", pair.after, snapshot=path)["records"])
    flink.close()
    flink = machine_of_jobs(version, work, "new")
    found = {pair.name: result(flink, pair, "hashmap", *first[pair.name]) for pair in wanted}
    flink.close()
    return found


def backends(pair: JobPair, written_by: str, release: str) -> tuple[str, ...]:
    """Return the backends that restore a pair. Those of records in flight have no keyed state."""
    if pair.held:
        return ("hashmap",)
    return ("rocksdb", "hashmap") if written_by == release != "1.20" else ("rocksdb",)


def outcomes(snapshots: Path, work: Path, wanted: Sequence[JobPair]) -> Iterator[Outcome]:
    """Run the pairs in all releases."""
    first: dict[tuple[str, str, str], tuple[Path, list[str]]] = {}
    _make_jars(work, snapshots)
    for version in sorted(DEFAULT_VERSIONS):
        release = short(version)
        flink = machine(version, work, "old")
        here = [p for p in wanted if not p.scala or release.startswith("1.")]
        for pair in here:
            for backend in ("rocksdb", "hashmap") if pair.checkpoint else ("hashmap",):
                path = take(flink, "old", pair, snapshots, backend)
                answer = run(flink, pair, "old", backend, pair.after, snapshot=path)
                assert answer["reached"] == "done", f"{pair.name}: {answer['failure'][:9000]}"
                first[pair.name, release, backend] = path, sorted(answer["records"])
        flink.close()
        flink = machine(version, work, "new")
        for pair in here:
            for backend in ("rocksdb", "hashmap") if pair.checkpoint else ("hashmap",):
                try:
                    take(flink, "new", pair, snapshots, backend)
                except AssertionError as e:
                    print("BROKEN", pair.name, str(e)[-3000:], flush=True)
            for old in releases_before(version):
                for backend in backends(pair, old, release):
                    path, expected = first[pair.name, old, backend if pair.checkpoint else "hashmap"]
                    row = Outcome(
                        topic=pair.topic, pair=pair.name, written_by=old, release=release, backend=backend,
                        flink=result(flink, pair, backend, path, expected), savepoint="", jars="", jar="",
                    )  # fmt: skip
                    yield checked(snapshots, row)
        flink.close()


# ---- verdicts


def checked(snapshots: Path, row: Outcome) -> Outcome:
    """Return a row with the verdicts of ``check``."""
    return replace(row, **{known: said(snapshots, row, known) for known in KNOWN})


def is_stored(row: Outcome) -> bool:
    """Return True if the snapshots of a row can be checked again: checkpoints name files at the place where they were taken."""
    return not next(p for p in PAIRS if p.name == row.pair).checkpoint


def said(snapshots: Path, row: Outcome, known: str, *, flink_home: str | None = None, jars: Sequence[Path] = ()) -> str:
    """Return the verdict of ``check``, the kinds of its warnings, and the rules of its notes and of its assumptions.

    Parameters
    ----------
    flink_home
        Flink, if the classes of the new job are run.
    jars
        Jars that both jobs need besides their own.
    """
    found = check(snapshots, row, known, flink_home=flink_home, jars=jars)
    kinds = {f.kind for step in found.steps for f in step.findings} - {"not", "unknown", "note"}
    assumed = {a.rule for step in found.steps for a in step.assumptions}
    noted = {f.rule for step in found.steps for f in step.findings if f.kind == "note"} & _NOTED
    words = [*(f"notes-{rule}" for rule in sorted(noted)), *(f"assumes-{rule}" for rule in sorted(assumed))]
    return " ".join([found.verdict, *sorted(kinds), *words])


def check(
    snapshots: Path, row: Outcome, known: str, *, flink_home: str | None = None, jars: Sequence[Path] = ()
) -> Check:
    """Check a pair with what is known of the new job."""
    pair = next(p for p in PAIRS if p.name == row.pair)
    old, new = (jar_of(snapshots, pair.job, side) for side in SIDES)
    claims = "execution.state-recovery.claim-mode" in pair.new_config
    has_new = known == "savepoint"
    return st.check(
        load(stored(snapshots, "old", pair, row.written_by, row.backend)),
        load(stored(snapshots, "new", pair, row.release, row.backend)) if has_new else None,
        flink_version=row.release,
        backend="heap" if row.backend == "hashmap" else "rocksdb",
        jars=() if known == "jar" else (old, *jars),
        other_jars=(new, *jars),
        run=flink_home is not None,
        flink_home=flink_home,
        claim_mode="claim" if claims else None,
    )


_UIDS: Final = sorted({uid for p in HERE.rglob("*.*") for uid in re.findall(r'uid\("(\w+)"\)', p.read_text())})


def load(path: Path) -> st.Savepoint:
    """Open a snapshot with the uids of its job."""
    ids = {o.state.operator_id for o in st.load(str(path))._inventory.operators.values()}
    return st.load(str(path), uids=[uid for uid in _UIDS if operator_id_for_uid(uid) in ids])


def table() -> list[Outcome]:
    """Return the outcomes stored in the repository."""
    with TABLE.open(newline="") as f:
        return [Outcome(**row) for row in csv.DictReader(f, delimiter="\t")]


#: Rules whose notes are about what the pairs change.
_NOTED: Final = {"O4"}
#: Rules whose assumptions are about what the pairs of a topic change.
_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "Patterns": ("W7", "W8"),
    "Windows": ("W3", "W4"),
    "Flights": ("U4", "U5"),
    "Uids": ("O4",),
    "Changelogs": ("H9",),
}


def judge(row: Outcome, known: str) -> str:
    """Return how right a verdict is.

    ``right``, ``unknown``, ``assumed`` or ``noted`` (a false ``fully`` that says what it takes for granted, or what may be wrong), ``mild`` (Flink
    refuses what it only warns of), ``comfort`` (a false ``fully``), ``alarm`` (a false ``not``) or ``needless`` (a warning about the same results).
    """
    verdict, *more = getattr(row, known).split()
    named = {f"assumes-{rule}" for rule in _RULES.get(row.topic, ())} & set(more)
    # Without anything of the old job, it says that the states and their types are taken to be the same.
    named |= {"assumes-O1"} & set(more) if known == "jar" else set()
    warned = bool({"loses", "may_change", "later"} & set(more))
    if verdict == "unknown":
        return "unknown"
    if row.flink == "same":
        return "alarm" if verdict == "not" else "needless" if warned else "right"
    if verdict == "not" or (warned and row.flink != "refused"):
        return "right"
    if warned:
        return "mild"
    return "assumed" if named else "noted" if any(word.startswith("notes-") for word in more) else "comfort"


def main() -> None:
    """Run all pairs in all releases, and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="append", help="run only pairs whose names begin so (may be repeated)")
    parser.add_argument("--verdicts", action="store_true", help="only check all pairs again, and keep what Flink did")
    options = parser.parse_args()
    wanted = [p for p in PAIRS if not options.job or p.name.startswith(tuple(options.job))]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        snapshots = unpack(SNAPSHOTS, work / "snapshots") if SNAPSHOTS.exists() else work / "snapshots"
        names = {p.name for p in wanted}
        kept = table() if TABLE.exists() else []
        if options.verdicts:
            rows = [checked(snapshots, r) if r.pair in names and is_stored(r) else r for r in kept]
        else:
            rows = [*(r for r in kept if r.pair not in names), *outcomes(snapshots, work, wanted)]
            pack(snapshots, SNAPSHOTS)
    order = [p.name for p in PAIRS]
    rows.sort(key=lambda r: (order.index(r.pair), r.written_by, r.release, r.backend))
    with TABLE.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(Outcome.__dataclass_fields__), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows({n: getattr(row, n) for n in Outcome.__dataclass_fields__} for row in rows)


if __name__ == "__main__":
    main()
