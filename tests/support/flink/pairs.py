"""Restore results of Flink for pairs of a savepoint and a new job, and the verdicts of ``check`` (``pair_states.py``, ``pair_suites.py``).

The new job's snapshot is a savepoint that the job itself took with empty state. ``python -m tests.support.flink.pairs`` runs all jobs, and writes
``pairs.tsv`` and those savepoints (``pairs.tar.xz``) again. ``--libraries`` does the same for Avro, Protobuf and Thrift, whose jars Maven
fetches, ``--suite`` for single suites.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import statetool as st
from statetool.compatibility.verdicts import Verdict
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.compile import files_of, make_jar
from tests.support.corpora.archives import unpack
from tests.support.flink import judge
from tests.support.flink.machine import JAVA, FlinkMachine, FlinkRefusedError
from tests.support.flink.pair_messages import MESSAGE_VALUES, MESSAGES, generate_classes
from tests.support.flink.pair_states import State
from tests.support.flink.pair_suites import FLINK_AVRO, SUITES, Suite
from tests.support.flink.zoo_cases import pack
from tools.flink_jars import DEFAULT_VERSIONS, compiled
from tools.maven import maven_jars

TABLE: Final = Path(__file__).with_name("pairs.tsv")
SNAPSHOTS: Final = Path(__file__).with_name("pairs.tar.xz")
BEFORE: Final = Path(__file__).with_name("before")
#: New classes of the suites of many kinds, which need a release with which their pairs are restored.
KINDS: Final = Path(__file__).with_name("kinds")
AVRO: Final = Path(__file__).with_name("avro")
BACKENDS: Final = ("rocksdb", "hashmap")
#: Sets of jars from Maven.
LIBRARIES: Final = (FLINK_AVRO, MESSAGES)
Rows = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a pair, or of a complete job.

    Attributes
    ----------
    flink
        ``same``: same values. ``kept``: fields were added or removed, all others are the same. ``other``: other values. ``lost``: state was
        dropped. ``restored``: restored, but the previous values are unknown. ``refused``: Flink refused to restore.
    with_jars, warnings_with_jars
        Verdict and warnings if ``check`` has the jars of both jobs.
    """

    suite: str
    pair: str
    written_by: str
    release: str
    backend: str
    flink: str
    verdict: str
    warnings: str
    with_jars: str
    warnings_with_jars: str


# ---- savepoints


def old_savepoint(suite: Suite, snapshots: Path, release: str, work: Path) -> Path:
    """Return the savepoint of the old job: one written by Flink, or one written here."""
    if suite.by_flink:
        return snapshots / "old" / suite.name / release
    folder = work / suite.name / release
    if not folder.exists():
        writer = st.SavepointWriter.new()
        for uid, state in suite.states(new=False).items():
            writer = writer.with_operator(
                uid, state.bootstrap(), parallelism=1, max_parallelism=state.max_parallelism or 128
            )
        writer.write(str(folder), flink_version=release)
    return folder


def new_savepoint(suite: Suite, snapshots: Path, release: str) -> Path:
    """Return the savepoint that the new job took with empty state."""
    return snapshots / "new" / suite.name / release


def take_new(flink: FlinkMachine, suite: Suite, snapshots: Path) -> None:
    """Let the new job run without state and take its savepoint."""
    requests = [s.request(uid) for uid, s in suite.states(new=True).items()]
    _take(flink, requests, new_savepoint(suite, snapshots, short(flink.version)), suite.parallelism, suite.after)


def take_old(flink: FlinkMachine, suite: Suite, snapshots: Path) -> None:
    """Let the old job write values of the old classes and take its savepoint; its values are stored next to it."""
    requests = [s.request(uid, fill=True) for uid, s in suite.states(new=False).items()]
    target = snapshots / "old" / suite.name / short(flink.version)
    rows = _take(flink, requests, target, 1, suite.before)
    target.with_suffix(target.suffix + ".json").write_text(json.dumps(rows, indent=0, sort_keys=True))


def take_written(flink: FlinkMachine, suite: Suite, snapshots: Path) -> None:
    """Take the savepoint of the old job; of a suite of many kinds without the operators whose values it cannot write."""
    while True:
        try:
            take_old(flink, suite, snapshots)
            return
        except FlinkRefusedError as error:
            refused = set(re.findall(r"for operator (\S+) \(", str(error)))
            if not suite.by_jars or not refused:
                raise
            suite = replace(suite, pairs=tuple(p for p in suite.pairs if p.name not in refused))


def _take(
    flink: FlinkMachine, requests: list[dict[str, Any]], target: Path, parallelism: int, config: Mapping[str, str]
) -> Rows:
    with tempfile.TemporaryDirectory() as work:
        answer = flink.call(
            "restore",
            operators=requests,
            backend="hashmap",
            parallelism=parallelism,
            savepoint=work,
            config=dict(config),
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(answer["savepoint"]).rename(target)
    return rows_of(answer)


# ---- restores


def rows_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of each operator; for union and broadcast state, which all subtasks have, those of the first one."""
    found: dict[str, list[Any]] = {}
    for subtask in sorted(answer["opened"], key=lambda s: s["subtask"]):
        states = [*subtask.get("states", {}).values()]
        states += [
            rows
            for rows in subtask["operator_states"].values()
            if subtask["operator"] not in ("union", "broadcast") or not subtask["subtask"]
        ]
        found.setdefault(subtask["operator"], []).extend(judge.normal(row) for rows in states for row in rows)
    return {name: sorted(rows, key=lambda r: json.dumps(r, sort_keys=True)) for name, rows in found.items()}


def restore(
    flink: FlinkMachine, snapshot: Path, states: Mapping[str, State], backend: str, *, parallelism: int = 1, allow: bool = True,
    config: Mapping[str, str] | None = None, again: bool = False,
) -> Rows | None:  # fmt: skip
    """Restore states in one job; ``None`` if Flink refuses. With ``again``, its own savepoint is restored in an identical job."""
    with tempfile.TemporaryDirectory() as work:
        try:
            answer = flink.call(
                "restore",
                snapshot=str(snapshot),
                operators=[s.request(uid) for uid, s in states.items()],
                backend=backend,
                parallelism=parallelism,
                allow_non_restored=allow,
                config=dict(config or {}),
                savepoint=work if again else None,
            )
        except FlinkRefusedError as error:
            # What takes too long, or ends Flink itself, is not refused.
            if "waited too long" in str(error) or f"Flink {flink.version} ended:" in str(error):
                raise
            return None
        return restore(flink, Path(answer["savepoint"]), states, backend) if again else rows_of(answer)


def restore_each(
    flink: FlinkMachine, snapshot: Path, states: Mapping[str, State], backend: str, *, again: bool = False,
    config: Mapping[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Restore each state. States in one job are refused or restored together, so halves are tried after a refusal."""
    rows = restore(flink, snapshot, states, backend, again=again, config=config) if states else {}
    if rows is not None:
        return dict(rows)
    if len(states) == 1:
        return dict.fromkeys(states)
    names = list(states)
    found: dict[str, Any] = {}
    for half in (names[: len(names) // 2], names[len(names) // 2 :]):
        found |= restore_each(flink, snapshot, {n: states[n] for n in half}, backend, again=again, config=config)
    return found


def restore_one_by_one(
    flink: FlinkMachine, snapshot: Path, states: Mapping[str, State], backend: str
) -> dict[str, Any]:
    """Restore each state in a job where an operator that cannot read its keyed state fails without the others.

    If its backend cannot be created, the whole job fails, and is started without it.
    """
    left, found = dict(states), dict[str, Any]()
    while left:
        requests = [s.request(uid) | {"alone": True} for uid, s in left.items()]
        try:
            answer = flink.call(
                "restore",
                snapshot=str(snapshot),
                operators=requests,
                backend=backend,
                allow_non_restored=True,
                parallelism=1,
            )
        except FlinkRefusedError as error:
            refused = [uid for uid in left if operator_id_for_uid(uid) in str(error)] or list(left)[: len(left) == 1]
            if not refused:
                raise
            found |= dict.fromkeys(refused)
            left = {uid: s for uid, s in left.items() if uid not in refused}
            continue
        failed = {s["operator"] for s in answer["opened"] if "failed" in s}
        rows = rows_of(answer)
        return found | {uid: None if uid in failed else rows.get(uid) for uid in left}
    return found


def content_of(flink: FlinkMachine, suite: Suite, snapshot: Path) -> Rows:
    """Return the content of the savepoint, as far as a job can read it unchanged."""
    if suite.by_flink:
        rows: Rows = json.loads(snapshot.with_suffix(snapshot.suffix + ".json").read_text())
        return rows
    # Old versions of classes do not exist here: their content is that of the pair in which nothing changed.
    states = {p.name: p.old for p in suite.pairs if p.old is not None and p.known and not p.like}
    found = restore(flink, snapshot, states, "hashmap")
    assert found is not None, "a savepoint is restored unchanged"
    return {p.name: found.get(p.like or p.name) for p in suite.pairs if p.known}


def word(before: Any, after: Any) -> str:
    """Return the result of comparing values.

    Examples
    --------
    >>> word([{"a": 1}], [{"a": 1}]), word([{"a": 1}], [{"a": 1, "b": 0}]), word([{"a": 1}], [{"a": 2}])
    ('same', 'kept', 'other')
    """
    if after is None:
        return "refused"
    if before is None:
        return "restored"
    before, after = _unmarked(before), _unmarked(after)
    after = _without_new_fields(before, after)
    if not (_names_classes(before) and _names_classes(after)):
        # The harness names the class of a record, and not that of the same class as a POJO.
        before, after = _without_classes(before), _without_classes(after)
    return "same" if before == after else "kept" if _kept(before, after) else "other"


def _unmarked(value: Any) -> Any:
    """Return values without the mark of those of classes that Flink would leave to Kryo: the same class may become a POJO."""
    if isinstance(value, dict):
        return (
            _unmarked(value["value"])
            if value.keys() == {"$kryo", "value"}
            else {n: _unmarked(v) for n, v in value.items()}
        )
    return [_unmarked(v) for v in value] if isinstance(value, list) else value


def _without_new_fields(before: Any, after: Any, *, in_message: bool = False) -> Any:
    """Return values without the fields of messages that the old class does not have: classes of messages evolve by new fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = before.keys() if in_message else after.keys()
        return {
            n: _without_new_fields(before.get(n), v, in_message=in_message or n == "$message")
            for n, v in after.items()
            if n in names
        }
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_without_new_fields(b, a, in_message=in_message) for b, a in zip(before, after, strict=True)]
    return after


def _names_classes(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and "$class" in value) or any(map(_names_classes, inner))


def _without_classes(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _without_classes(v) for n, v in value.items() if n != "$class"}
    return [_without_classes(v) for v in value] if isinstance(value, list) else value


def _kept(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return all(_kept(before[n], after[n]) for n in before.keys() & after.keys())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_kept, before, after))
    return bool(before == after)


def backends(suite: Suite) -> tuple[str, ...]:
    """Return the backends that restore a suite: operators, limits and registrations behave alike in all."""
    return BACKENDS[:1] if suite.whole else BACKENDS


def suites(*, libraries: bool, with_kinds: bool = False) -> list[Suite]:
    """Return the suites whose jars Maven fetches, or all others. Those of many kinds, which take minutes, are left out unless wanted."""
    return [s for s in SUITES if bool(s.libraries) == libraries and (with_kinds or not s.by_jars)]


def outcomes(
    flink: FlinkMachine, snapshots: Path, work: Path, written_by: str, wanted: Sequence[Suite]
) -> Iterator[Outcome]:
    """Restore all pairs of suites in a release, from savepoints of another release or its own."""
    release = short(flink.version)
    for suite in wanted:
        old = old_savepoint(suite, snapshots, written_by, work)
        before = content_of(flink, suite, old)
        for backend in backends(suite):
            said = verdicts(suite, snapshots, work, written_by, release, backend)
            with_jars = verdicts(suite, snapshots, work, written_by, release, backend, with_jars=True)
            alone = [n for n, (verdict, _) in said.items() if verdict == "not"]
            done = _restored(flink, suite, old, backend, before, alone=alone)
            for name in with_jars:
                verdict, warnings = said.get(name, ("", ""))
                yield Outcome(
                    suite=suite.name, pair=name, written_by=written_by, release=release, backend=backend,
                    flink=done[name], verdict=verdict, warnings=warnings,
                    with_jars=with_jars[name][0], warnings_with_jars=with_jars[name][1],
                )  # fmt: skip


def results_again(
    flink: FlinkMachine, snapshots: Path, work: Path, written_by: str, wanted: Sequence[Suite]
) -> dict[tuple[str, str, str], str]:
    """Restore the pairs of the table again, and return the results by suite, pair and backend.

    Each refused pair needs a job of its own. A pair that both backends refuse is restored on one of them: on one from a savepoint of the same
    release, on the other from a savepoint of another release.
    """
    kept = results(written_by, short(flink.version))
    found: dict[tuple[str, str, str], str] = {}
    for suite in wanted:
        old = old_savepoint(suite, snapshots, written_by, work)
        before = content_of(flink, suite, old)
        for turn, backend in enumerate(backends(suite), start=written_by == short(flink.version)):
            on = {b: {n for n in suite.states(new=True) if kept.get((suite.name, n, b)) == "refused"} for b in BACKENDS}
            refused_by_both = on["rocksdb"] & on["hashmap"]
            left_out = {n for i, n in enumerate(suite.states(new=True)) if n in refused_by_both and (i + turn) % 2}
            done = _restored(flink, suite, old, backend, before, alone=on[backend], left_out=left_out)
            found |= {(suite.name, name, backend): result for name, result in done.items()}
    return found


def results(written_by: str, release: str) -> dict[tuple[str, str, str], str]:
    """Return what Flink did by suite, pair and backend, as the table says."""
    rows = [r for r in table() if (r.written_by, r.release) == (written_by, release)]
    return {(r.suite, r.pair, r.backend): r.flink for r in rows}


def _restored(
    flink: FlinkMachine, suite: Suite, old: Path, backend: str, before: Rows, *, alone: Collection[str],
    left_out: Collection[str] = (),
) -> dict[str, str]:  # fmt: skip
    """Return the result of each pair, or of the job; those that should be refused are tried alone."""
    states = {n: s for n, s in suite.states(new=True).items() if n not in left_out}
    if suite.whole:
        rows = restore(
            flink, old, states, backend, parallelism=suite.parallelism, allow=suite.allow, config=suite.after
        )
        if rows is None:
            return {suite.name: "refused"}
        if set(suite.states(new=False)) - set(states):
            return {suite.name: "lost"}
        words = [word(before[n], rows[n]) for n in states if n in before]
        return {suite.name: next((w for w in ("other", "kept") if w in words), "same")}
    if suite.by_jars:
        found = restore_one_by_one(flink, old, states, backend)
        return {name: word(before.get(name), found[name]) for name in states}
    options: dict[str, Any] = {"again": suite.again, "config": suite.after}
    found = restore_each(flink, old, {n: s for n, s in states.items() if n not in alone}, backend, **options)
    for name in states:
        if name in alone:
            found |= restore_each(flink, old, {name: states[name]}, backend, **options)
    return {name: word(before.get(name), found[name]) for name in states}


# ---- verdicts


def verdicts(
    suite: Suite, snapshots: Path, work: Path, written_by: str, release: str, backend: str, *, with_jars: bool = False
) -> dict[str, tuple[Verdict, str]]:
    """Return the result of ``check`` for each pair, or for the complete job: verdict and kinds of warnings."""
    if suite.by_jars and not with_jars:
        return {}  # Without the jars, nothing is known of the new job.
    jars, other_jars = jars_of(suite, snapshots) if with_jars else ((), ())
    # Savepoints of 1.20 store only ids.
    uids = written(suite, snapshots, written_by) if suite.by_jars else suite.states(new=False)
    found = st.check(
        st.load(str(old_savepoint(suite, snapshots, written_by, work)), uids=uids),
        None if suite.by_jars else st.load(str(new_savepoint(suite, snapshots, release)), uids=suite.states(new=True)),
        flink_version=release,
        backend="heap" if backend == "hashmap" else "rocksdb",
        jars=jars,
        other_jars=other_jars,
    )
    each = {
        o.uid: (o.verdict, {w.kind for w in o.warnings} | {w.kind for s in o.states for w in s.warnings})
        for o in found.operators
        if suite.whole or o.uid in suite.states(new=True)
    }
    if suite.whole:
        each = {suite.name: (found.verdict, set().union(*(kinds for _, kinds in each.values())))}
    return {name: (verdict, " ".join(sorted(kinds))) for name, (verdict, kinds) in each.items()}


def written(suite: Suite, snapshots: Path, written_by: str) -> list[str]:
    """Return the pairs of which the old job wrote values: the Kryo of Flink 1.x does not write all classes."""
    rows = (snapshots / "old" / suite.name / written_by).with_suffix(Path(written_by).suffix + ".json")
    return sorted(suite.states(new=False).keys() & json.loads(rows.read_text()).keys())


def jars_of(suite: Suite, snapshots: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the classes of the old job and of the new one. Those of old jobs that did not run exist nowhere."""
    old, new = (jar_of(snapshots, side) for side in ("old", "new"))
    return ((old,) if suite.by_flink else ()), (new,)


def jar_of(snapshots: Path, side: str) -> Path:
    """Return the classes of a side as a jar, whose index statetool keeps: each command would read a folder again."""
    jar = snapshots.with_name(f"{snapshots.name}-{side}.jar")
    return jar if jar.exists() else make_jar(jar, files_of(snapshots / "classes" / side))


def _keep_classes(snapshots: Path, work: Path, *, generated: bool) -> None:
    """Store the classes of both jobs with the savepoints, so that tests without Flink have them."""
    version = min(DEFAULT_VERSIONS)
    for side, sources in (("old", (BEFORE,)), ("new", (JAVA, KINDS))):
        target = snapshots / "classes" / side
        if generated:
            generate_classes(target, work / side, new=side == "new")
            continue
        classes = compiled(version, *sources)
        for package in ("evolved", "corpus"):
            shutil.rmtree(target / package, ignore_errors=True)
            if (classes / package).exists():
                shutil.copytree(classes / package, target / package)


# ---- the table


def short(version: str) -> str:
    """Return a release without its patch."""
    return ".".join(version.split(".")[:2])


def versions_before(version: str) -> list[str]:
    """Return the versions whose savepoints this version restores here, ending with its own."""
    return sorted(v for v in DEFAULT_VERSIONS if tuple(map(int, v.split("."))) <= tuple(map(int, version.split("."))))


def releases_before(version: str) -> list[str]:
    """Return the releases of those versions."""
    return list(map(short, versions_before(version)))


def table() -> list[Outcome]:
    """Return the outcomes stored in the repository."""
    with TABLE.open(newline="") as f:
        return [
            Outcome(**{"with_jars": "", "warnings_with_jars": "", **row}) for row in csv.DictReader(f, delimiter="\t")
        ]


def machine(
    version: str, work: Path, *, before: bool = False, libraries: Collection[str] = (), snapshots: Path | None = None
) -> FlinkMachine:
    """Start a release: with the classes of old jobs, with sets of jars from Maven and the classes that need them."""
    old = BEFORE if before else None
    if not libraries:
        return FlinkMachine(version, work, () if before else (KINDS,), old)
    snapshots = snapshots or unpack(SNAPSHOTS, work / "snapshots")
    jars, sources = [snapshots / "classes" / ("old" if before else "new")], []
    for jar_set, source in ((FLINK_AVRO, AVRO), (MESSAGES, MESSAGE_VALUES)):
        if jar_set in libraries:
            jars += maven_jars(f"{jar_set}-{version}" if jar_set == FLINK_AVRO else jar_set)
            sources.append(source)
    return FlinkMachine(version, work, tuple(sources), old, jars)


def _run_all(snapshots: Path, work: Path, wanted: Sequence[Suite]) -> Iterator[Outcome]:
    """Take the savepoints of suites, and restore their pairs in all releases."""
    _keep_classes(snapshots, work, generated=any(MESSAGES in s.libraries for s in wanted))
    for suite in wanted:
        for side in ("old", "new"):
            shutil.rmtree(snapshots / side / suite.name, ignore_errors=True)
    for version in sorted(DEFAULT_VERSIONS):
        by_flink = [s for s in wanted if s.by_flink]
        for libraries in dict.fromkeys(s.libraries for s in by_flink):
            flink = machine(version, work, before=True, libraries=libraries, snapshots=snapshots)
            for suite in by_flink:
                if suite.libraries == libraries:
                    take_written(flink, suite, snapshots)
            flink.close()
        flink = machine(version, work, libraries=LIBRARIES if wanted[0].libraries else (), snapshots=snapshots)
        for suite in wanted:
            if not suite.by_jars:
                take_new(flink, suite, snapshots)
        for old in releases_before(version):
            yield from outcomes(flink, snapshots, work, old, wanted)
        flink.close()


def _check_again(snapshots: Path, work: Path) -> Iterator[Outcome]:
    """Check all pairs of the table again, and keep what Flink did with them."""
    by_name = {s.name: s for s in SUITES}
    checked: dict[tuple[str, ...], Any] = {}
    for row in table():
        job = (row.suite, row.written_by, row.release, row.backend)
        if job not in checked:
            arguments = (by_name[row.suite], snapshots, work, row.written_by, row.release, row.backend)
            checked[job] = verdicts(*arguments), verdicts(*arguments, with_jars=True)
        (verdict, warnings), (with_jars, warnings_with_jars) = (said.get(row.pair, ("", "")) for said in checked[job])
        yield replace(
            row, verdict=verdict, warnings=warnings, with_jars=with_jars, warnings_with_jars=warnings_with_jars
        )


def main() -> None:
    """Take all savepoints, restore all pairs in all releases, and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--libraries", action="store_true", help="run the suites of Avro, Protobuf and Thrift, with jars from Maven"
    )
    parser.add_argument(
        "--suite", action="append", help="run only this suite (may be repeated), and keep all other rows"
    )
    parser.add_argument(
        "--verdicts", action="store_true", help="only check all pairs again, and keep what Flink did with them"
    )
    options = parser.parse_args()
    wanted = [
        s for s in suites(libraries=options.libraries, with_kinds=True) if not options.suite or s.name in options.suite
    ]
    names = {s.name for s in wanted}
    with tempfile.TemporaryDirectory() as folder:
        work, snapshots = Path(folder), unpack(SNAPSHOTS, Path(folder) / "snapshots")
        if options.verdicts:
            rows = list(_check_again(snapshots, work))
        else:
            rows = [*(r for r in table() if r.suite not in names), *_run_all(snapshots, work, wanted)]
            pack(snapshots, SNAPSHOTS)
    order = [s.name for s in SUITES]
    rows.sort(key=lambda r: (r.release, r.written_by, order.index(r.suite)))
    with TABLE.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(Outcome.__dataclass_fields__), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows({n: getattr(row, n) for n in Outcome.__dataclass_fields__} for row in rows)


if __name__ == "__main__":
    main()
