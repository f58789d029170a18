"""Pairs of jobs that are unknown by rules alone, checked again with a run of the classes of both jars (``job_pairs.py``).

``python -m tests.support.flink.job_runs`` runs them all and writes ``job_runs.tsv`` again; ``--job NAME`` runs some and keeps the other rows.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs
from tests.support.flink.job_pairs import Outcome
from tests.support.flink.pairs import short
from tools.flink_jars import DEFAULT_VERSIONS, flink_jars
from tools.maven import maven_jars

TABLE: Final = Path(__file__).with_name("job_runs.tsv")
#: What is known of the new job: a savepoint of it and both jars, or both jars.
KNOWN: Final = ("savepoint", "jars")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """The verdict of ``check --run`` on a pair, with the kinds of its warnings; ``not stored`` if a checkpoint cannot be checked elsewhere."""

    pair: str
    written_by: str
    release: str
    backend: str
    known: str
    verdict: str


def unknown(rows: Sequence[Outcome]) -> list[tuple[Outcome, str]]:
    """Return the rows that are unknown without a run, with what is known."""
    return [(row, known) for row in rows for known in KNOWN if getattr(row, known).startswith("unknown")]


def run(snapshots: Path, row: Outcome, known: str) -> JobRun:
    """Check a row again with a run."""
    verdict = "not stored"
    if job_pairs.is_stored(row):
        version = next(v for v in DEFAULT_VERSIONS if short(v) == row.release)
        home = str(flink_jars(version)[0].parent.parent)
        # Kryo registers a class of Avro in the jobs in Scala, which ran with its jars.
        more = maven_jars(f"flink-avro-{version}") if row.topic in ("Avros", "Scalas") else ()
        verdict = job_pairs.said(snapshots, row, known, flink_home=home, jars=more)
    return JobRun(
        pair=row.pair, written_by=row.written_by, release=row.release, backend=row.backend, known=known, verdict=verdict
    )


def judged(row: Outcome, known: str, runs: Sequence[JobRun]) -> str:
    """Return how right the verdict on a row is if those that are unknown are decided by a run."""
    place = (row.pair, row.written_by, row.release, row.backend, known)
    found = [r.verdict for r in runs if (r.pair, r.written_by, r.release, r.backend, r.known) == place]
    decided = [v for v in found if v != "not stored"]
    return job_pairs.judge(replace(row, **{known: decided[0]}) if decided else row, known)


def table() -> list[JobRun]:
    """Return the verdicts stored in the repository."""
    with TABLE.open(newline="") as f:
        return [JobRun(**row) for row in csv.DictReader(f, delimiter="\t")]


def _runs(snapshots: Path, wanted: Sequence[tuple[Outcome, str]], kept: Sequence[JobRun]) -> Iterator[JobRun]:
    for row, known in unknown(job_pairs.table()):
        if (row, known) in wanted:
            yield run(snapshots, row, known)
        else:
            place = (row.pair, row.written_by, row.release, row.backend, known)
            yield from (r for r in kept if (r.pair, r.written_by, r.release, r.backend, r.known) == place)


def main() -> None:
    """Run all pairs that are unknown, and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="append", help="run only pairs whose names begin so (may be repeated)")
    options = parser.parse_args()
    names = tuple(options.job or ("",))
    wanted = [(row, known) for row, known in unknown(job_pairs.table()) if row.pair.startswith(names)]
    kept = table() if TABLE.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        found = list(_runs(unpack(job_pairs.SNAPSHOTS, Path(folder) / "snapshots"), wanted, kept))
    with TABLE.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(JobRun.__dataclass_fields__), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows({n: getattr(r, n) for n in JobRun.__dataclass_fields__} for r in found)


if __name__ == "__main__":
    main()
