"""The table of the documentation that says in which releases real Flink restored what each verb writes in the native formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tests.support.flink.forms import Api
from tests.support.flink.verb_cases import CASES
from tests.support.flink.verb_matrix import JOBS, RELEASES, STEPS, Backend, Row, jobs_of, rows

_BACKENDS: Final[dict[Backend, str]] = {"rocksdb": "RocksDB", "heap": "heap", "forst": "ForSt"}
_APIS: Final[dict[Api, str]] = {"sync": "", "async": ", asynchronous"}


def verb_table() -> str:
    """Return Markdown: a row per verb, a column per backend and API of the state; then a row per restore."""
    found = rows()
    titles = [f"{_BACKENDS[backend]}{_APIS[state]}" for state, backend in JOBS]
    lines = [f"| verb | {' | '.join(titles)} |", "|---|" + "---|" * len(titles)]
    for verb in CASES:
        cells = [
            _restored([r for r in found if (r.verb, r.state, r.backend) == (verb, state, backend)])
            for state, backend in JOBS
        ]
        lines.append(f"| `{verb}` | {' | '.join(cells)} |")
    restored = sum(row.is_restored for row in found)
    lines += ["", f"{restored:,} of {len(found):,} restores gave all values and timers.", ""]
    lines += ["| restore | tried in Flink |", "|---|---|"]
    for step in STEPS:
        lines.append(f"| {step.text} | {', '.join(_tried([row for row in found if row.step == step.name]))} |")
    return "\n".join(lines)


def _restored(asked: list[Row]) -> str:
    """Return the releases in which all restores succeeded."""
    return _releases({row.release for row in asked} - {row.release for row in asked if not row.is_restored})


def _tried(found: list[Row]) -> Iterator[str]:
    """Yield the releases in which a restore was tried."""
    for release in RELEASES:
        number = sum(row.release == release for row in found)
        if number:
            is_whole = number == len(CASES) * len(jobs_of(release))
            yield _releases([release]) + ("" if is_whole else " in part")


def _releases(found: Iterable[str]) -> str:
    return ", ".join(release.rpartition(".")[0] for release in sorted(set(found), key=RELEASES.index))
