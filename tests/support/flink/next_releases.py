"""Savepoints of ForSt that ``upgrade`` and ``migrate`` wrote for a later release, restored by its real Flink.

``python -m tests.support.flink.next_releases [RELEASE ...]`` restores and writes ``next_releases.tsv``, for all later releases or for some. Each
base is a native savepoint of the release before, and that of 2.0 is also restored by 2.3. The steps are those of
:mod:`tests.support.flink.verb_matrix`: the copy, and two incremental checkpoints of the jobs that were restored. All take about ten minutes
of one core.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final, get_args

from tests.support.flink.forms import Api
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.verb_matrix import RESTORED, STEPS, Chain, last_line, make_base
from tests.support.flink.zoo_cases import sources_of

TABLE: Final = Path(__file__).with_suffix(".tsv")
#: The release that wrote the base, and the release that restores the copy.
PAIRS: Final = (("2.0.2", "2.1.3"), ("2.1.3", "2.2.1"), ("2.2.1", "2.3.0"), ("2.0.2", "2.3.0"))
VERBS: Final = ("upgrade", "migrate")
CHAIN: Final = tuple(step for step in STEPS if step.name in ("savepoint", "checkpoint, up", "checkpoint, down"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One restore, and what Flink said."""

    base: str
    release: str
    state: Api
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


def _restores(old: str, new: str, work: Path) -> Iterator[Row]:
    """Yield the rows of a pair of releases."""
    bases = {}
    before = FlinkMachine(old, work, sources_of(old))
    try:
        for state in get_args(Api):
            bases[state] = make_base(before, work / old / state, state, "forst")
    finally:
        before.close()
    machine = FlinkMachine(new, work, sources_of(new))
    try:
        for state, (base, expected) in bases.items():
            for verb in VERBS:
                chain, failure = Chain(machine, state, "forst"), ""
                try:
                    chain.write(verb, work / new / f"{state}-{verb}", base, expected, "native")
                except Exception as error:  # noqa: BLE001 - it is a row, and the next one is asked
                    failure = f"not written: {type(error).__name__}: {last_line(error)}"
                for step in CHAIN:
                    outcome = failure or chain.run(step)
                    yield Row(base=old, release=new, state=state, verb=verb, step=step.name, outcome=outcome)
    finally:
        machine.close()


def main() -> None:
    """Restore, and replace the lines of the pairs in the table."""
    for old, new in PAIRS:
        if sys.argv[1:] and new not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as work:
            found = []
            for row in _restores(old, new, Path(work)):
                print(*astuple(row), sep="\t", flush=True)
                found.append(row)
        kept = [row for row in rows() if (row.base, row.release) != (old, new)] if TABLE.exists() else []
        kept = sorted([*kept, *found], key=lambda row: PAIRS.index((row.base, row.release)))
        with TABLE.open("w", encoding="utf-8", newline="") as f:
            lines = csv.writer(f, delimiter="\t", lineterminator="\n")
            lines.writerow(field.name for field in fields(Row))
            lines.writerows(map(astuple, kept))


if __name__ == "__main__":
    main()
