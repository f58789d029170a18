"""Restores of what each verb writes, by real Flink: by release, API of the state, backend and verb.

``python -m tests.support.flink.verb_matrix [RELEASE ...] [--verbs rescale,merge] [--steps 'up;down']`` restores and adds a line per restore to
``verb_matrix.tsv`` as soon as it is done, for all releases or for some. Lines that are there already are kept, so a run that was
interrupted goes on: delete lines to repeat them. One JVM per release serves all restores. All take about an hour of one core.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final, Literal, TypeAlias

import statetool
from statetool.errors import StatetoolError
from tests.support.flink import forms
from tests.support.flink.forms import Api
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.verb_cases import CASES, Expected, Request, write_case
from tests.support.flink.versions import release_of
from tests.support.flink.zoo_cases import sources_of

TABLE: Final = Path(__file__).with_suffix(".tsv")
RELEASES: Final = ("1.20.5", "2.0.2", "2.1.3", "2.2.1", "2.3.0")
RESTORED: Final = "restored"
Backend: TypeAlias = Literal["rocksdb", "heap", "forst"]
#: The API of the state and the backend of the jobs. The heap backend has no asynchronous state of its own.
JOBS: Final[tuple[tuple[Api, Backend], ...]] = (
    ("sync", "rocksdb"), ("sync", "forst"), ("async", "forst"), ("sync", "heap"), ("async", "rocksdb"),
)  # fmt: skip
_MOST_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A restore of what a verb wrote, or of the checkpoint after another step."""

    name: str
    text: str
    after: str | None = None
    format: Literal["native", "same"] = "native"
    parallelism: int
    claims: bool = False
    ingests: bool = False


#: Bases have two subtasks. Each job changes its lists before its checkpoint, and its timers fire after it.
STEPS: Final = (
    Step(name="savepoint", text="the savepoint, at the same parallelism", parallelism=2),
    Step(
        name="checkpoint, up", text="an incremental checkpoint of that job, which changed its state, at a higher one, claimed, ingested by RocksDB",
        after="savepoint", parallelism=3, claims=True, ingests=True,
    ),
    Step(
        name="checkpoint, down", text="one of the latter job, at a lower one, not claimed", after="checkpoint, up",
        parallelism=1,
    ),
    Step(name="up", text="the savepoint, at a higher one, ingested by RocksDB", parallelism=3, ingests=True),
    Step(name="down", text="the savepoint, at a lower one, claimed", parallelism=1, claims=True),
    Step(name="same", text='the copy with `format="same"`', parallelism=2, format="same"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One restore, and what Flink said: ``restored`` if all values and timers were as expected."""

    release: str
    state: Api
    backend: Backend
    verb: str
    step: str
    outcome: str

    @property
    def is_restored(self) -> bool:
        return self.outcome == RESTORED


def rows() -> list[Row]:
    """Return the table."""
    with TABLE.open(encoding="utf-8", newline="") as f:
        return [Row(**row) for row in csv.DictReader(f, delimiter="\t")]  # type: ignore[arg-type]


def jobs_of(release: str) -> list[tuple[Api, Backend]]:
    """Return the APIs and backends that a release has."""
    return [job for job in JOBS if release_of(release) >= (2, 0) or job in (("sync", "rocksdb"), ("sync", "heap"))]


def make_base(machine: FlinkMachine, folder: Path, state: Api, backend: Backend) -> tuple[Path, Expected]:
    """Let a job of a release write a native savepoint; return its path and expected content."""
    base, whole = forms.make_base(machine, folder / "made", state, _option(backend))
    if release_of(machine.version) != (2, 0) or (state, backend) != ("async", "forst"):
        return base, whole
    # Flink 2.0 does not describe the keys of asynchronous maps.
    expected, left_out = forms.without(whole, "map", "kept map")
    statetool.drop(str(base), str(folder / "base"), states=left_out)
    return folder / "base", expected


def _option(backend: Backend) -> str:
    return "hashmap" if backend == "heap" else backend


class Chain:
    """The steps of one verb, each of which restores what an earlier one left."""

    def __init__(self, machine: FlinkMachine, state: Api, backend: Backend) -> None:
        self.machine, self.state, self.backend = machine, state, backend
        self.left: dict[str, tuple[Path, Expected]] = {}

    def write(self, verb: str, folder: Path, base: Path, expected: Expected, format: str) -> None:
        """Write a copy, of which steps start."""
        folder.mkdir(parents=True)
        style = {"format": format} | ({"backend": self.backend} if format == "native" else {})
        request = Request(
            base=str(base), target=str(folder / "target"), work=folder, style=style, release=self.machine.version,
            backend=self.backend,
        )  # fmt: skip
        self.left[format] = (folder / "target", write_case(verb, request, expected))

    def run(self, step: Step) -> str:
        """Return the outcome of a step."""
        place = self.left.get(step.after or step.format)
        if place is None:
            return f"no snapshot: {step.after or step.format} failed"
        snapshot, expected = place
        mode = "CLAIM" if step.claims else "NO_CLAIM"
        config = dict.fromkeys(("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"), mode)
        config["state.backend.rocksdb.use-ingest-db-restore-mode"] = json.dumps(step.ingests)
        try:
            found = forms.restore(
                self.machine, snapshot, expected, self.state, backend=_option(self.backend),
                parallelism=step.parallelism, config=config, append=True,
            )  # fmt: skip
        except (FlinkRefusedError, StatetoolError) as error:
            return f"refused: {last_line(error)}"
        self.left[step.name] = (found.checkpoint, forms.appended(expected))
        return f"differs: {last_line(found.differences[0])}" if found.differences else RESTORED


def last_line(text: object) -> str:
    """Return the innermost cause in a stack trace, or the last line of a message, cut to fit into a table."""
    causes = [line for line in str(text).splitlines() if line.startswith("Caused by")] or str(text).splitlines()
    return " ".join(causes[-1].split())[:_MOST_CHARACTERS]


def _restores(
    release: str, verbs: Sequence[str], steps: Sequence[Step], done: set[tuple[str, ...]], work: Path
) -> Iterator[Row]:
    """Yield the rows of a release whose verbs have steps that are not done."""
    machine = FlinkMachine(release, work, sources_of(release))
    try:
        for state, backend in jobs_of(release):
            asked = [v for v in verbs if any((release, state, backend, v, s.name) not in done for s in steps)]
            if not asked:
                continue
            base, expected = make_base(machine, work / f"{state}-{backend}", state, backend)
            for verb in asked:
                folder = work / f"{state}-{backend}-{verb}"
                chain, failures = Chain(machine, state, backend), {}
                for format in sorted({step.format for step in steps}):
                    try:
                        chain.write(verb, folder / format, base, expected, format)
                    except Exception as error:  # noqa: BLE001 - it is a row, and the next one is asked
                        failures[format] = f"not written: {type(error).__name__}: {last_line(error)}"
                for step in steps:
                    outcome = failures.get(step.format) or chain.run(step)
                    yield Row(release=release, state=state, backend=backend, verb=verb, step=step.name, outcome=outcome)
                shutil.rmtree(folder)
    finally:
        machine.close()


def _place(row: Row) -> tuple[str, ...]:
    return (row.release, row.state, row.backend, row.verb, row.step)


def _store(found: list[Row]) -> None:
    order = {step.name: n for n, step in enumerate(STEPS)}
    found.sort(
        key=lambda r: (
            RELEASES.index(r.release),
            JOBS.index((r.state, r.backend)),
            [*CASES].index(r.verb),
            order[r.step],
        )
    )
    with TABLE.open("w", encoding="utf-8", newline="") as f:
        lines = csv.writer(f, delimiter="\t", lineterminator="\n")
        lines.writerow(field.name for field in fields(Row))
        lines.writerows(map(astuple, found))


def main() -> None:
    """Restore, and add the lines to the table."""
    parser = argparse.ArgumentParser(prog="tests.support.flink.verb_matrix")
    parser.add_argument("releases", nargs="*", default=list(RELEASES))
    parser.add_argument("--verbs", default=",".join(CASES))
    parser.add_argument("--steps", default=";".join(step.name for step in STEPS), help="separated by semicolons")
    given = parser.parse_args()
    verbs, names = given.verbs.split(","), given.steps.split(";")
    steps = [step for step in STEPS if step.name in names]
    for release in given.releases:
        done = {_place(row) for row in rows()} if TABLE.exists() else set()
        with tempfile.TemporaryDirectory() as work:
            for row in _restores(release, verbs, steps, done, Path(work)):
                print(*astuple(row), sep="\t", flush=True)
                # Another process may have added rows of another release.
                kept = [r for r in rows() if _place(r) != _place(row)] if TABLE.exists() else []
                _store([*kept, row])


if __name__ == "__main__":
    main()
