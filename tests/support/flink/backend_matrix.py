"""Which backend restores which form of keyed state, as real Flink answers: by release, form, and API of the state before and after.

``python -m tests.support.flink.backend_matrix [RELEASE ...]`` asks Flink and writes ``backend_matrix.tsv`` and the archive of the savepoints, for all
releases or for some. States with a time to live are left out: ForSt refuses them whenever the API changes (rules V3 and V6).
"""

from __future__ import annotations

import csv
import re
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args

import statetool
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink import forms
from tests.support.flink.forms import Api
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.versions import release_of
from tests.support.flink.zoo_cases import sources_of

TABLE: Final = Path(__file__).with_suffix(".tsv")
#: Savepoints that Flink wrote, without states that have a time to live: ``RELEASE/API``.
PACKED: Final = HERE / "corpus" / "backends.tar.xz"
RELEASES: Final = ("1.15.4", "1.20.5", "2.0.2", "2.1.3", "2.2.1", "2.3.0")
Form = Literal["canonical", "rocksdb", "forst", "heap"]
Backend = Literal["rocksdb", "forst", "heap"]
#: Forms that can hold asynchronous state.
OF_ASYNCHRONOUS: Final[tuple[Form, ...]] = ("canonical", "forst")
RESTORED: Final = "restored"
DIFFER: Final = "differences"
_CAUSE: Final = re.compile(r"Caused by: ([\w.$]+(?:: [^\n]*)?)")
#: What differs from run to run in a message.
_VARIABLE: Final = re.compile(r"@[0-9a-f]+|[0-9a-f]{32}|/[\w./-]+|\([^)]*\)")
_MOST_CHARACTERS: Final = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One restore: the API of the state in the snapshot, its form, and the backend and API of the job; Flink's answer."""

    release: str
    state: Api
    form: Form
    backend: Backend
    job: Api
    outcome: str

    @property
    def is_restored(self) -> bool:
        return self.outcome == RESTORED


def cells() -> list[Cell]:
    """Return the table."""
    with TABLE.open(encoding="utf-8", newline="") as f:
        return [Cell(**row) for row in csv.DictReader(f, delimiter="\t")]  # type: ignore[arg-type]


def write_forms(savepoint: Path, folder: Path, release: str, state: Api) -> Iterator[tuple[Form, Path]]:
    """Write a savepoint in each form that can hold its state and that a release knows."""
    for form in get_args(Form) if state == "sync" else OF_ASYNCHRONOUS:
        if form == "forst" and not _has_forst(release):
            continue
        target = folder / form
        style: dict[str, Any] = {} if form == "canonical" else {"format": "native", "backend": form}
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # that the state is asynchronous: what Flink says is asked here
            statetool.convert(str(savepoint), str(target), **style)
        yield form, target


def _has_forst(release: str) -> bool:
    return release_of(release) >= (2, 0)


def _apis(release: str) -> tuple[Api, ...]:
    return get_args(Api) if _has_forst(release) else ("sync",)


def _ask(release: str, work: Path) -> Iterator[Cell]:
    """Yield the answers of a release; its savepoints are in ``work`` then."""
    machine = FlinkMachine(release, work, sources_of(release))
    try:
        for state in _apis(release):
            base, whole = forms.make_base(machine, work / "bases" / release / state, state)
            # Flink 2.0 does not describe the keys of asynchronous maps.
            starts = (forms.LIVING, "map") if release_of(release) == (2, 0) else (forms.LIVING,)
            expected, left_out = forms.without(whole, *starts)
            savepoint = work / release / state
            statetool.drop(str(base), str(savepoint), states=left_out)
            for form, path in write_forms(savepoint, work / "forms" / release / state, release, state):
                for backend in get_args(Backend):
                    if backend != "forst" or _has_forst(release):
                        for job in _apis(release):
                            outcome = _outcome(machine, path, expected, backend, job)
                            yield Cell(
                                release=release, state=state, form=form, backend=backend, job=job, outcome=outcome
                            )
    finally:
        machine.close()


def _outcome(machine: FlinkMachine, path: Path, expected: dict[str, Any], backend: Backend, job: Api) -> str:
    name = "hashmap" if backend == "heap" else backend
    try:
        found = forms.restore(machine, path, expected, job, backend=name)
    except FlinkRefusedError as error:
        causes = _CAUSE.findall(str(error))
        text = causes[-1] if causes else str(error)
        return _VARIABLE.sub("...", text.strip())[:_MOST_CHARACTERS]
    return f"{len(found.differences)} {DIFFER}" if found.differences else RESTORED


def _store(found: list[Cell], work: Path) -> None:
    found.sort(key=lambda cell: RELEASES.index(cell.release))
    with TABLE.open("w", encoding="utf-8", newline="") as f:
        rows = csv.writer(f, delimiter="\t", lineterminator="\n")
        rows.writerow(field.name for field in fields(Cell))
        rows.writerows(map(astuple, found))
    with tarfile.open(PACKED, "w:xz") as tar:
        for release in sorted({cell.release for cell in found}):
            tar.add(work / release, release)


def main() -> None:
    """Ask Flink and write the table."""
    releases = sys.argv[1:] or list(RELEASES)
    kept = [c for c in cells() if c.release not in releases] if TABLE.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if kept:
            unpack(PACKED, work)
        for release in releases:
            for cell in _ask(release, work):
                print(*astuple(cell), sep="\t", flush=True)
                kept.append(cell)
            _store(kept, work)
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
