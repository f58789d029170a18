"""Commands that ``check`` prints for refused jobs: run as printed, and their results restored by Flink with the new job (``job_pairs.py``).

``python -m tests.support.flink.job_remedies`` runs them all and writes ``job_remedies.tsv`` again; ``--job NAME`` runs some and keeps the other rows.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from statetool.cli.main import cli
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs
from tests.support.flink.job_pairs import JobPair, Outcome
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.pairs import short
from tests.support.flink.remedies import printed
from tools.flink_jars import DEFAULT_VERSIONS

TABLE: Final = Path(__file__).with_name("job_remedies.tsv")
#: What is known of the new job: a savepoint of it and both jars, or both jars.
KNOWN: Final = ("savepoint", "jars")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRemedied:
    """A refused job after the printed commands.

    Attributes
    ----------
    commands
        Verbs of the printed commands.
    result
        ``same``: the new job gives the results of the old one. ``empty``: those of a job that starts empty. ``other``: others, such as those of
        a job that computes something else. ``refused`` or ``later``: what Flink did. ``failed``: a command failed. ``choice``: a command needs a
        decision. ``none``: no command.
    """

    pair: str
    written_by: str
    release: str
    backend: str
    known: str
    commands: str
    result: str


def refused(rows: Sequence[Outcome], names: Sequence[str]) -> list[Outcome]:
    """Return the rows of pairs that Flink refuses, or that fail after the restore, on one backend."""
    found = {
        (r.pair, r.written_by, r.release): r
        for r in sorted(rows, key=lambda r: r.backend)
        if r.flink in ("refused", "later") and job_pairs.is_stored(r) and (not names or r.pair.startswith(tuple(names)))
    }
    return list(found.values())


def mend(snapshots: Path, row: Outcome, known: str, work: Path) -> tuple[list[str], Path | str, str]:
    """Run the printed commands; return them, the last snapshot or why there is none, and what was printed."""
    pair = next(p for p in job_pairs.PAIRS if p.name == row.pair)
    old, new = (
        job_pairs.stored(snapshots, side, pair, release, row.backend)
        for side, release in (("old", row.written_by), ("new", row.release))
    )
    jars = [str(job_pairs.jar_of(snapshots, pair.job, side)) for side in job_pairs.SIDES]
    backend = "heap" if row.backend == "hashmap" else "rocksdb"
    paths = [str(old), *([str(new)] if known == "savepoint" else [])]
    commands, output = printed(
        [*paths, "--jar-a", jars[0], "--jar-b", jars[1], "--flink", row.release, "--backend", backend]
    )
    if not commands:
        return [], "none", output
    if any(word in command for command in commands for word in ("--dry-run", "NEW_UID", "NEW_NAME")):
        return [*commands], "choice", output
    mended = str(old)
    for i, command in enumerate(commands):
        words = shlex.split(command)[1:]
        if "NEW" not in words:
            continue
        target = tempfile.mkdtemp(dir=work, prefix=f"{row.pair}-{i}-") + "/mended"
        done = CliRunner().invoke(cli, [{str(old): mended, "NEW": target}.get(word, word) for word in words])
        output += f"\n$ {command}\n{done.output}"
        if not Path(target, "_metadata").exists():
            return [*commands], "failed", output
        mended = target
    return [*commands], "none" if mended == str(old) else Path(mended), output


def verbs(commands: Sequence[str]) -> str:
    """Return the verbs of commands, and the options that accept losses."""
    found = []
    for command in commands:
        words = shlex.split(command)
        found.append(
            " ".join([words[1], *(w for w in words if w in ("--accept", "--dry-run", "--last-access", "--run"))])
        )
    return ", ".join(found)


def run(
    snapshots: Path, work: Path, rows: Sequence[Outcome], versions: Sequence[str] = tuple(sorted(DEFAULT_VERSIONS)), *, simple: bool = False,
) -> Iterator[tuple[JobRemedied, dict[str, Any]]]:  # fmt: skip
    """Run the commands for rows, and restore what they write; yield each result with what it is based on."""
    pairs = {p.name: p for p in job_pairs.PAIRS}
    start = job_pairs.machine_of_jobs if simple else job_pairs.machine
    expected: dict[tuple[str, str], list[str]] = {}
    for version in versions:
        here = dict.fromkeys(r.pair for r in rows if r.written_by == short(version))
        if here:
            flink = start(version, work, "old")
            for name in here:
                expected[name, short(version)] = restored(flink, pairs[name], "old", snapshots, "hashmap")[1]
            flink.close()
    for version in versions:
        release = short(version)
        of_release = [r for r in rows if r.release == release]
        if not of_release:
            continue
        flink = start(version, work, "new")
        empty: dict[str, list[str]] = {}
        for row in of_release:
            pair = pairs[row.pair]
            if row.pair not in empty:
                empty[row.pair] = records(flink, pair, "new", row.backend)[1]
            done: dict[tuple[str, ...], tuple[str, list[str]]] = {}
            for known in KNOWN:
                commands, mended, output = mend(snapshots, row, known, work)
                words = tuple(c for c in commands)
                found: list[str] = []
                result = mended if isinstance(mended, str) else ""
                wanted = expected[row.pair, row.written_by]
                if isinstance(mended, Path):
                    reached, found = done.get(words) or records(flink, pair, "new", row.backend, mended)
                    done[words] = reached, found
                    result = (
                        reached if reached != "done" else "same" if found == wanted else "empty" if found == empty[row.pair] else "other"
                    )  # fmt: skip
                yield JobRemedied(
                    pair=row.pair, written_by=row.written_by, release=release, backend=row.backend, known=known, commands=verbs(commands), result=result,
                ), {"commands": commands, "output": output, "expected": wanted, "empty": empty[row.pair], "found": found}  # fmt: skip
        flink.close()


def restored(flink: FlinkMachine, pair: JobPair, side: str, snapshots: Path, backend: str) -> tuple[str, list[str]]:
    """Restore a stored snapshot of the old job."""
    return records(flink, pair, side, backend, job_pairs.stored(snapshots, "old", pair, short(flink.version), backend))


def records(
    flink: FlinkMachine, pair: JobPair, side: str, backend: str, snapshot: Path | None = None
) -> tuple[str, list[str]]:
    """Let a job run from a snapshot, or empty; return how far it came, and its results or its failure."""
    answer = job_pairs.run(flink, pair, side, backend, pair.after, snapshot=snapshot)
    return str(answer["reached"]), sorted(answer["records"]) if "records" in answer else [answer["failure"]]


def table() -> list[JobRemedied]:
    """Return the results stored in the repository."""
    with TABLE.open(newline="") as f:
        return [JobRemedied(**row) for row in csv.DictReader(f, delimiter="\t")]


def judge(row: JobRemedied, rows: Sequence[JobRemedied]) -> str:
    """Return how right the commands are.

    ``right``: the new job goes on with the values, or starts empty where no command keeps them. ``left out``: it starts empty, and other commands
    keep the values. Otherwise, the result: ``other`` values, ``refused``, ``later``, ``failed``, ``choice`` or ``none``. ``nothing``: no command,
    and none is known that helps.
    """
    of_pair = [r for r in rows if r.pair == row.pair]
    if row.result == "none":
        return "none" if any(r.result in ("same", "empty", "choice") for r in of_pair) else "nothing"
    if row.result not in ("same", "empty"):
        return row.result
    return "right" if _keeps(row) or not any(map(_keeps, of_pair)) else "left out"


def _keeps(row: JobRemedied) -> bool:
    """Return True if commands keep the values: many jobs give the same results without the state that a command drops."""
    return row.result == "same" and not set(row.commands.split(", ")) <= {"drop"}


def main() -> None:
    """Run all commands, and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="append", help="run only pairs whose names begin so (may be repeated)")
    parser.add_argument("--only", action="append", help="run only restores such as 1.20-2.3 (may be repeated)")
    parser.add_argument("--log", type=Path, help="file for commands, outputs and records (JSON lines)")
    options = parser.parse_args()
    rows = refused(job_pairs.table(), options.job or ())
    rows = [r for r in rows if not options.only or f"{r.written_by}-{r.release}" in options.only]
    kept = table() if TABLE.exists() else []
    keys = {(r.pair, r.written_by, r.release) for r in rows}
    found = [r for r in kept if (r.pair, r.written_by, r.release) not in keys]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for result, more in run(unpack(job_pairs.SNAPSHOTS, work / "snapshots"), work, rows):
            found.append(result)
            if options.log is not None:
                import json
                from dataclasses import asdict

                with options.log.open("a") as f:
                    f.write(json.dumps({**asdict(result), **more}) + "\n")
    order = [p.name for p in job_pairs.PAIRS]
    found.sort(key=lambda r: (order.index(r.pair), r.written_by, r.release, r.known))
    with TABLE.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(JobRemedied.__dataclass_fields__), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows({n: getattr(row, n) for n in JobRemedied.__dataclass_fields__} for row in found)


if __name__ == "__main__":
    main()
