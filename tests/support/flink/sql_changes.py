"""Changed SQL queries, each judged by real Flink: what ``check`` and ``migrate`` say, and what the new query makes of the result.

For each pair, the old query reads the first half of the rows and is stopped with a savepoint. statetool plans the change from that savepoint and
one of the new query, and converts the state. The new query is restored from the result and reads the second half. It must then have
the same results as the new query that reads all rows from the start. The converted state must also equal the state of the new query
after the first half.

``python -m tests.support.flink.sql_changes`` runs all pairs in both releases and backends (about ten minutes), and writes ``sql_changes.tsv``.
``--pair NAME`` runs some and keeps the other lines. ``--derive`` only derives the verdicts again, from the stored savepoints.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import statetool
from statetool.errors import StatetoolError, UnknownNameError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.sql_plans.compiled_plan import CompiledPlan
from statetool.sql_plans.ranks import STATE_OF
from tests.support.corpora.archives import unpack
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.sql import Query, run_query
from tests.support.flink.sql_pairs import PAIRS
from tests.support.flink.sql_queries import BY_KIND, FIRST_PAIRS, HALVES, INPUTS, Pair
from tests.support.flink.zoo_cases import pack

RESULTS: Final = Path(__file__).with_name("sql_changes.tsv")
#: Savepoints after the first half, and plans.
ARCHIVE: Final = Path(__file__).with_name("sql_changes.tar.xz")
RELEASES: Final = ("1.20.5", "2.1.3", "2.3.0")
BACKENDS: Final = ("hashmap", "rocksdb")
#: Releases and backends that judge the first pairs, and those of them with joins and Top-N.
COMBINATIONS: Final = (
    ("1.20.5", "hashmap"),
    ("1.20.5", "rocksdb"),
    ("2.1.3", "hashmap"),
    ("2.3.0", "hashmap"),
    ("2.3.0", "rocksdb"),
)
OF_JOINS: Final = (("1.20.5", "rocksdb"), ("2.1.3", "hashmap"), ("2.3.0", "hashmap"))
#: The same for all others, of which one in three is judged twice: a run takes seconds.
OF_OTHERS: Final = ((("2.3.0", "hashmap"),), (("2.3.0", "hashmap"), ("2.1.3", "hashmap")), (("2.3.0", "hashmap"),))
COLUMNS: Final = ("flink", "backend", "pair", "verdict", "reason", "flink_says")
_QUIET_MS: Final = 300


@dataclass(frozen=True, slots=True)
class Judgement:
    """What statetool says of a pair, and what Flink does with the result.

    Attributes
    ----------
    verdict
        ``restores`` (as it is), ``converted``, ``asks`` (for a choice of the user, given in the pair), ``refused``, or ``unknown``.
    reason
        The steps or the refusal.
    flink_says
        ``same`` or ``other`` results than the new query from the start, or ``fails``; of the converted state, or of the old one if refused. ``other
        state``: converted state that is not that of the new query after the first half.
    is_thin
        Whether no result came of the second half, which only a slow machine or a query without changes has.
    """

    verdict: str
    reason: str
    flink_says: str
    is_thin: bool = False


class Runs:
    """Runs of queries in one release and backend. Each half of a query runs once."""

    def __init__(self, flink: FlinkMachine, backend: str, work: Path) -> None:
        self.flink, self.backend, self.work = flink, backend, work
        self.quiet_ms = _QUIET_MS

    def run(self, sql: str, config: Mapping[str, str], halves: str, snapshot: Path | None = None) -> dict[str, Any]:
        """Run a query over the first half of the rows, the second, or both. Keeps a savepoint of the first half."""
        tables = tuple(i for i in INPUTS if i.name in sql)
        rows = {i.name: [row for half in halves for row in HALVES[half][i.name]] for i in tables}
        name = f"run-{uuid4().hex[:12]}"
        return run_query(
            self.flink,
            Query(inputs=tables, sql=sql),
            rows,
            results=0,
            backend=self.backend,
            planned=True,
            config=dict(config),
            snapshot=snapshot,
            savepoint=self.work / name if halves == "1" else None,
            quiet_ms=self.quiet_ms,
        )

    def kept(self, sql: str, config: Mapping[str, str], halves: str) -> dict[str, Any]:
        """Return the answer of a run from the start, which is made once per folder."""
        file = self.work / f"{folder_of(sql, config)}-{halves}.json"
        if not file.exists():
            file.write_text(json.dumps(self.run(sql, config, halves)))
        answer: dict[str, Any] = json.loads(file.read_text())
        return answer

    def savepoint(self, sql: str, config: Mapping[str, str]) -> statetool.Savepoint:
        """Return the savepoint of a query after the first half, opened with its plan."""
        answer = self.kept(sql, config, "1")
        folder = self.work / folder_of(sql, config)
        if not folder.exists():
            folder.mkdir()
            shutil.copy(Path(answer["savepoint"].removeprefix("file:")) / "_metadata", folder)
            (folder / "plan.json").write_text(answer["plan"])
        return open_savepoint(folder)


def folder_of(sql: str, config: Mapping[str, str]) -> str:
    """Return the folder of the savepoint of a query."""
    return f"query-{hashlib.sha1(_key(sql, config).encode()).hexdigest()[:10]}"


def combinations_of(pair: Pair) -> tuple[tuple[str, str], ...]:
    """Return the releases and backends that judge a pair."""
    if pair not in FIRST_PAIRS:
        return OF_OTHERS[PAIRS.index(pair) % len(OF_OTHERS)]
    return OF_JOINS if pair.name.startswith(("join: ", "top: ")) else COMBINATIONS


def _key(sql: str, config: Mapping[str, str]) -> str:
    return json.dumps([sql, *sorted(config.items())])


def open_savepoint(folder: Path) -> statetool.Savepoint:
    """Return a stored savepoint, opened with its plan."""
    return statetool.load(str(folder), columns_from_plan=str(folder / "plan.json"))


def judge(runs: Runs, pair: Pair) -> Judgement:
    """Run a pair and compare."""
    old, new = runs.savepoint(pair.old, pair.old_config), runs.savepoint(pair.new, pair.new_config)
    target = runs.work / f"converted-{uuid4().hex[:12]}"
    try:
        verdict, reason = decide(old, new, pair, target, (runs.flink.version, runs.backend))
    except StatetoolError as error:
        return Judgement("error", _short(error), "")
    source = target if target.exists() else Path(old.path)
    try:
        after = runs.run(pair.new, pair.new_config, "2", snapshot=source)["results"]
    except FlinkRefusedError:
        return Judgement(verdict, reason, "fails")
    before, both = (runs.kept(pair.new, pair.new_config, halves)["results"] for halves in ("1", "12"))
    says = "same" if _table([*before, *after]) == _table(both) else "other"
    if verdict == "converted" and target.exists() and difference_of_states(target, new):
        says += ", other state"
    return Judgement(verdict, reason, says, is_thin=not after or len(both) <= len(before))


def decide(
    old: statetool.Savepoint, new: statetool.Savepoint, pair: Pair, target: Path | None, job: tuple[str, str]
) -> tuple[str, str]:
    """Return the verdict on a pair with the reason, and write what is converted to ``target``. ``job`` is its release and backend."""
    match = _by_kind(old, new) if pair.match == BY_KIND else pair.match
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backend: Literal["heap", "rocksdb"] = "rocksdb" if job[1] == "rocksdb" else "heap"
        checked = statetool.check(old, new, match=match, flink_version=job[0].rpartition(".")[0], backend=backend)
        if checked.ok:
            if target is not None and match is not None:
                changes = dict(match) if isinstance(match, Mapping) else statetool.match(old, new).changes
                statetool.change_uids(old, str(target), changes)
            return "restores", ""
        choices: dict[str, Any] = {
            "to": new,
            "match": match,
            "fills": {_named(old, name): value for name, value in pair.fills.items()},
            "accept": [_named(old, name) for name in pair.accept],
        }
        try:
            plan = statetool.migrate(old, "/nowhere", **choices, dry_run=True)
        except UnknownNameError:  # nothing needs what the pair accepts
            plan = statetool.migrate(old, "/nowhere", to=new, match=match, dry_run=True)
        if target is not None and not plan.is_open and (plan.states or plan.keys or plan.operators):
            statetool.migrate(old, str(target), **choices)
    open_rows = [f"{row.step}: {row.text}" for row in plan.rows if row.needs != "nothing"]
    if plan.is_open:
        return "refused", " | ".join([*plan.refused, *open_rows])
    if not plan.states and not plan.keys and not plan.operators:
        return "unknown", " | ".join(checked.warnings) or checked.reason
    return ("asks" if pair.fills or pair.accept else "converted"), " | ".join(row.text for row in plan.rows)


def _by_kind(old: statetool.Savepoint, new: statetool.Savepoint) -> dict[str, str] | None:
    """Return the operators whose ids differ: the first join is the first join of the new query, and so on."""
    ids: list[dict[tuple[str, int], str]] = []
    for savepoint in (old, new):
        plan = CompiledPlan.read(str(Path(savepoint.path) / "plan.json"))
        own = {o.state.operator_id for o in savepoint.inventory.operators.values()}
        seen: Counter[str] = Counter()
        found = {}
        for node in sorted(plan.nodes):
            kind = plan.kind(node)
            operator_id = operator_id_for_uid(f"{node}_{kind}")
            if operator_id in own and kind not in ("sink", ""):
                found[kind, seen[kind]] = operator_id
                seen[kind] += 1
        ids.append(found)
    changes = {before: ids[1][name] for name, before in ids[0].items() if ids[1].get(name, before) != before}
    return changes or None


def _named(savepoint: statetool.Savepoint, step: str) -> str:
    """Return the name of a step as a snapshot has it: before Flink 2.0, snapshots store no uids."""
    uid, _, rest = step.partition(".")
    ids = {o.state.operator_id: o.label for o in savepoint.inventory.operators.values()}
    return f"{ids.get(operator_id_for_uid(uid), uid)}.{rest}"


def _table(results: list[dict[str, Any]]) -> list[str]:
    """Return the rows that remain after all changes. Retracting a row that is not there leaves a negative count, which no right run has."""
    rows: Counter[str] = Counter()
    for change in results:
        rows[json.dumps(change["$row"], sort_keys=True)] += 1 if change["kind"] in ("INSERT", "UPDATE_AFTER") else -1
    return sorted(f"{count} {row}" for row, count in rows.items() if count)


def difference_of_states(target: Path, new: statetool.Savepoint) -> str:
    """Return the first difference between converted keyed state and that of the new query."""
    converted, new = statetool.load(str(target)), statetool.load(str(new.path))
    for name, operator in new.operators.items():
        if not {"accState", "left-records", *STATE_OF.values(), "deduplicate-state"} & set(operator.states):
            continue
        del name
        own = converted[operator.operator_id]
        for state in (s for s in operator.states if not s.startswith("_timer")):
            rows = [sorted(map(repr, o.to_arrow(state).to_pylist())) for o in (own, operator)]
            if rows[0] != rows[1]:
                found = (
                    next((a, b) for a, b in zip(*rows, strict=False) if a != b)
                    if len(rows[0]) == len(rows[1])
                    else [len(r) for r in rows]
                )
                return f"{state}: {found}"
    return ""


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:400]


def rows(
    flink: FlinkMachine, work: Path, names: frozenset[str], backends: tuple[str, ...] = BACKENDS
) -> Iterator[dict[str, str]]:
    """Yield a line per pair and backend."""
    for backend in backends:
        pairs = [pair for pair in PAIRS if (flink.version, backend) in combinations_of(pair)]
        folder = work / flink.version / backend
        folder.mkdir(parents=True, exist_ok=True)
        runs = Runs(flink, backend, folder)
        for pair in pairs:
            if not names or any(pair.name.startswith(name) for name in names):
                done = judge(runs, pair)
                is_wrong = done.flink_says.startswith("other") and done.verdict != "refused"
                if is_wrong or done.is_thin:  # unless the machine was only slow
                    patient = Runs(flink, backend, Path(tempfile.mkdtemp(dir=folder)))
                    patient.quiet_ms = 4 * _QUIET_MS
                    done = judge(patient, pair)
                line = (flink.version, backend, pair.name, done.verdict, done.reason, done.flink_says)
                yield dict(zip(COLUMNS, line, strict=True))


def store(work: Path, release: str, archive: Path) -> None:
    """Add the savepoints and plans of a release to the archive, whose verdicts a unit test compares with the table."""
    root = work / "archive"
    root.mkdir(exist_ok=True)
    if archive.exists():
        unpack(archive, root)
    folders = {folder.name: folder for backend in BACKENDS for folder in (work / release / backend).glob("query-*")}
    for folder in (folders[name] for name in sorted(folders) if not name.endswith(".json")):
        shutil.copytree(folder, root / release / folder.name, dirs_exist_ok=True)
    pack(root, archive)


def derive_again(known: dict[tuple[str, ...], dict[str, str]], folder: Path) -> None:
    """Derive the verdicts again from the stored savepoints, and print those that changed: Flink has to judge these pairs again."""
    root = unpack(ARCHIVE, folder)
    for pair in PAIRS:
        for release in dict.fromkeys(release for release, _ in combinations_of(pair)):
            sides = [root / release / folder_of(*s) for s in ((pair.old, pair.old_config), (pair.new, pair.new_config))]
            for backend in (b for r, b in combinations_of(pair) if r == release):
                old, new = map(open_savepoint, sides)
                verdict, reason = decide(old, new, pair, None, (release, backend))
                line = known[release, backend, pair.name]
                if line["verdict"] != verdict:
                    print(release, backend, pair.name, line["verdict"], "->", verdict)
                line |= {"verdict": verdict, "reason": reason}


def shares(rows: Iterable[Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    """Return how many pairs are decided, and how many of those whose state Flink refuses or takes for another are converted."""
    verdicts: dict[str, set[str]] = {}
    for row in rows:
        says = row["flink_says"].partition(",")[0]
        is_lost = row["verdict"] == "refused" and says in ("fails", "other")
        verdicts.setdefault(row["pair"], set()).add("lost" if is_lost else row["verdict"])
    undecided = sum(bool(v & {"unknown", "error"}) for v in verdicts.values())
    converted = sum(bool(v & {"converted", "asks"}) for v in verdicts.values())
    changed = sum(bool(v & {"converted", "asks", "lost"}) for v in verdicts.values())
    return {"decided": (len(verdicts) - undecided, len(verdicts)), "converted": (converted, changed)}


def main() -> None:
    """Run pairs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pair", action="append", default=[], help="run only the pairs that begin with this (may be repeated)"
    )
    parser.add_argument("--release", action="append", default=[], help="run only this release (may be repeated)")
    parser.add_argument("--backend", action="append", default=[], help="run only this backend (may be repeated)")
    parser.add_argument("--write", help="another file")
    parser.add_argument("--keep", help="a folder that keeps the runs from the start for the next call")
    parser.add_argument("--derive", action="store_true", help="derive the verdicts again, without Flink")
    options = parser.parse_args()
    target = Path(options.write or RESULTS)
    known = {}
    if target.exists():
        with target.open(newline="") as file:
            known = {tuple(r[c] for c in COLUMNS[:3]): r for r in csv.DictReader(file, delimiter="\t")}
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as folder:
        if options.derive:
            derive_again(known, Path(folder))
        for release in () if options.derive else options.release or RELEASES:
            flink = FlinkMachine(release, Path(folder))
            for line in rows(flink, Path(folder), frozenset(options.pair), tuple(options.backend) or BACKENDS):
                known[tuple(line[c] for c in COLUMNS[:3])] = line
                print(*line.values(), sep="\t", flush=True)
            flink.close()
            store(Path(folder), release, target.with_suffix(".tar.xz"))
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[key] for key in sorted(known))
    print(shares(known.values()))


if __name__ == "__main__":
    main()
