"""Jobs without uids that differ only in parallelism, chaining or release: which operator of one is which of the other.

``python -m tests.support.flink.unnamed_jobs`` runs each job of ``unnamed/UnnamedJob.java`` and each query in the variants and releases below (about
ten minutes), and writes their ``_metadata``, what the REST API says of their job graphs, and the truth to ``unnamed-jobs.tar.xz``. The
truth is that of the program: it tags its operators, and a query has its operators in the order of the stream graph. ``--job NAME`` runs some and
keeps the others.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import unpack
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.zoo_cases import pack

ARCHIVE: Final = Path(__file__).parents[2] / "corpus" / "unnamed-jobs.tar.xz"
RELEASES: Final = ("1.20.5", "2.1.3", "2.3.0")
#: Parallelism, and whether operators are chained.
VARIANTS: Final = {"base": (1, True), "parallel": (2, True), "unchained": (1, False)}
#: Jobs of which several operators have equal states, and neither a name nor anything before them tells them apart.
TWINS: Final = frozenset(("twin-branches", "twin-joins"))
_JOBS: Final = (
    "sums", "two-states", "three-states", "timers", "windows", "connected", "broadcast", "buffered", "branches", "twin-branches",
)  # fmt: skip
_ROWS: Final = "k INT, v BIGINT, t AS PROCTIME()"
_BOUNDS: Final = "'fields.k.min'='0', 'fields.k.max'='3', 'fields.v.min'='0', 'fields.v.max'='9'"
_TABLES: Final = tuple(
    f"CREATE TABLE {name} ({_ROWS}) WITH ('connector'='datagen', 'rows-per-second'='50', {_BOUNDS})"
    for name in ("orders", "shops", "items", "cities")
)
_JOIN: Final = "SELECT a.k, a.v, b.v FROM {} AS a JOIN {} AS b ON a.k = b.k AND a.v = b.v"
QUERIES: Final[Mapping[str, str]] = {
    "group": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM orders GROUP BY k",
    "join": _JOIN.format("orders", "shops"),
    "twin-joins": f"{_JOIN.format('orders', 'shops')} UNION ALL {_JOIN.format('items', 'cities')}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A job in a variant and a release."""

    job: str
    variant: str
    release: str

    @property
    def folder(self) -> str:
        """Its folder in the archive."""
        return f"{self.release}/{self.job}/{self.variant}"


def runs(jobs: tuple[str, ...] = (*_JOBS, *QUERIES)) -> Iterator[Run]:
    """Yield all runs, by release."""
    for release in RELEASES:
        for job in jobs:
            for variant in VARIANTS:
                yield Run(job, variant, release)


def pairs(jobs: tuple[str, ...] = (*_JOBS, *QUERIES)) -> Iterator[tuple[Run, Run]]:
    """Yield the pairs of runs that differ in one thing: parallelism, chaining, or release."""
    for job in jobs:
        for release in RELEASES:
            for variant in VARIANTS:
                if variant != "base":
                    base, changed = Run(job, "base", release), Run(job, variant, release)
                    yield base, changed
                    yield changed, base
        for old, new in combinations(RELEASES, 2):
            yield Run(job, "base", old), Run(job, "base", new)


def _store(flink: FlinkMachine, run: Run, root: Path) -> None:
    parallelism, chaining = VARIANTS[run.variant]
    more = {"query": QUERIES[run.job], "ddl": _TABLES} if run.job in QUERIES else {}
    answer = flink.call(
        "class", **{"class": "UnnamedJob"}, job=run.job, parallelism=parallelism, chaining=chaining, records=60,
        savepoint=tempfile.mkdtemp(dir=flink.work), **more,
    )  # fmt: skip
    target = root / run.folder
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(Path(answer["savepoint"].removeprefix("file:")) / "_metadata", target)
    (target / "facts.json").write_text(
        json.dumps({"tags": _tags(answer), "graph": _graph(json.loads(answer["graph"]))})
    )


def _tags(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the operator ids by tag. Operators of a query are counted by name: the same query has them in the same order."""
    if answer["tags"]:
        return dict(answer["tags"])
    found: dict[str, str] = {}
    for name, operator_id in answer["nodes"]:
        stem = re.sub(r"\[\d+\]", "", name)
        number = sum(tag.rpartition("#")[0] == stem for tag in found)
        found[f"{stem}#{number}"] = operator_id
    return found


def _graph(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the answer about a job that tell its graph."""
    vertices = [{n: v[n] for n in ("id", "name", "parallelism", "maxParallelism")} for v in answer["vertices"]]
    return {
        "jid": answer["jid"],
        "name": answer["name"],
        "state": answer["state"],
        "vertices": vertices,
        "plan": answer["plan"],
    }


def main() -> None:
    """Run the jobs, and write the archive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="append", help="run only this job (may be repeated)")
    parser.add_argument("--release", action="append", help="run only this release (may be repeated)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        root.mkdir()
        if ARCHIVE.exists():
            unpack(ARCHIVE, root)
        for release in options.release or RELEASES:
            flink = FlinkMachine(release, Path(folder), (Path(__file__).with_name("unnamed"),))
            for run in runs(tuple(options.job) if options.job else (*_JOBS, *QUERIES)):
                if run.release == release:
                    _store(flink, run, root)
                    print(run.folder, flush=True)
            flink.close()
            pack(root, ARCHIVE)


if __name__ == "__main__":
    main()
