"""Flip bytes of small native savepoints: ``verify --deep`` finds each, or the same entries are read.

``python -m tests.flip_check [--only 2,4] [--kinds table] [--processes 2]`` flips every byte and writes the number of outcomes for each kind
of file of each savepoint to ``flips.tsv``, beside the other lines that it has. All take about half an hour of one core.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa

import statetool
from statetool.errors import StatetoolError
from statetool.formats.backends.column_families import family_name
from tests.support.snapshots.keyed_content import content_of
from tests.support.snapshots.native import read_by_rocksdb
from tests.support.snapshots.trees import replace_file

#: ``silent``: other entries are read, and nothing is found. ``refused``: nothing is found, and RocksDB does not open it.
Outcome: TypeAlias = Literal["found", "harmless", "silent", "refused"]
TABLE: Final = Path(__file__).with_name("flips.tsv")
#: Kinds of files with checksums over all that is read.
CHECKED: Final = ("table", "manifest")
_KEYS: Final = 12


def _states(n: int, *, long: bool = False) -> dict[str, Any]:
    """Return states of a table with ``n`` keys; long values fill several compressed blocks."""
    texts = [f"text {i} " * (200 if long else 1) for i in range(n)]
    return {
        "key": pa.array([f"key-{i}" for i in range(n)]),
        "text": pa.array(texts),
        "some": pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int64())),
        "counts": pa.array([[("a", i), ("b", i + 1)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
    }


@dataclass(frozen=True)
class Small:
    """A small native savepoint."""

    backend: Literal["rocksdb", "forst", "heap"]
    max_parallelism: int = 4
    timers: bool = False
    long: bool = False
    states: tuple[str, ...] = ("text",)

    def write(self, target: Path) -> None:
        """Write it, with all state in files."""
        columns = _states(_KEYS, long=self.long)
        columns = {name: columns[name] for name in ("key", *self.states)}
        moments = {"key": columns["key"], "timestamp": range(_KEYS), "domain": ["event"] * _KEYS}
        state = statetool.bootstrap_keyed_state(
            pa.table(columns), key="key", timers=pa.table(moments) if self.timers else None
        )
        writer = statetool.SavepointWriter.new(max_parallelism=self.max_parallelism)
        writer = writer.with_operator("op", state, parallelism=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of timers
            writer.write(str(target), flink_version="2.3", format="native", backend=self.backend, inline_bytes=0)


SAVEPOINTS: Final = (
    Small("rocksdb", states=("text", "some", "counts")),
    Small("rocksdb", timers=True),
    Small("rocksdb", long=True),
    Small("rocksdb", max_parallelism=129),
    Small("forst", states=("some", "counts")),
    Small("forst", timers=True),
    Small("forst", long=True),
    Small("heap", states=("text", "some", "counts")),
    Small("heap", timers=True),
    Small("heap", max_parallelism=129),
)


def kind_of(file: Path) -> str:
    """Return the kind of a file: the part of its name between its first word and its random digits."""
    return file.name if file.name == "_metadata" else "-".join(file.name.split("-")[1:-5])


class Flipper:
    """A native savepoint in which bytes are flipped and repaired."""

    def __init__(self, savepoint: Small, folder: Path) -> None:
        self._folder = folder
        self._backend = savepoint.backend
        savepoint.write(folder / "savepoint")
        self._target = folder / "savepoint"
        self._content = content_of(str(self._target))
        assert self._content
        assert statetool.verify(str(self._target), deep=True).ok
        self.files = sorted(self._target.iterdir())

    def places(self) -> Iterator[tuple[Path, int]]:
        """Yield each byte of each file."""
        for file in self.files:
            yield from ((file, offset) for offset in range(file.stat().st_size))

    def flip(self, file: Path, offset: int, bits: int) -> tuple[str, Outcome]:
        """Flip bits of one byte. Return the kind of the file, and what happens."""
        kind = kind_of(file)
        good = file.read_bytes()
        bad = bytearray(good)
        bad[offset] ^= bits
        replace_file(file, bytes(bad))
        try:
            return kind, self._outcome(kind)
        finally:
            replace_file(file, good)

    def _outcome(self, kind: str) -> Outcome:
        try:
            if not statetool.verify(str(self._target), deep=True).ok:
                return "found"
        except StatetoolError:
            return "found"
        try:
            if content_of(str(self._target)) != self._content:
                return "silent"
        except StatetoolError:
            return "silent"
        return "harmless" if kind not in CHECKED or self._opens() else "refused"

    def _opens(self) -> bool:
        """Return True if RocksDB reads the same entries."""
        for operator in statetool.load(str(self._target))._inventory.operators.values():
            for stored in operator.keyed.managed:
                owned = stored.owned_database()
                assert owned is not None
                folder = Path(tempfile.mkdtemp(dir=self._folder))
                for name, stream in owned.files.files:
                    with stream.open() as f:
                        (folder / name).write_bytes(f.read_at(0, stream.size_bytes))
                try:
                    found = read_by_rocksdb(folder, [family_name(m.name) for m in stored.header().states])
                except Exception:  # noqa: BLE001 - of RocksDB, which has one for all
                    return False
                finally:
                    shutil.rmtree(folder)
                if found != self._families(stored.header().states):
                    return False
        return True

    def _families(self, states: Any) -> dict[str, list[tuple[bytes, bytes]]]:
        """Return the entries that RocksDB should read."""
        wanted: dict[str, list[tuple[bytes, bytes]]] = {family_name(m.name): [] for m in states}
        for (_, state, group, key), value in self._content.items():
            if family_name(state) in wanted:
                wanted[family_name(state)].append((group.to_bytes(self._prefix, "big") + key, value))
        return {name: sorted(entries) for name, entries in wanted.items()}

    @property
    def _prefix(self) -> int:
        (operator,) = statetool.load(str(self._target))._inventory.operators.values()
        return 2 if operator.state.max_parallelism > 128 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcomes of a flip of every byte of the files of one kind of one savepoint."""

    savepoint: int
    backend: str
    kind: str
    found: int
    harmless: int
    silent: int
    refused: int


def rows() -> list[Row]:
    """Return the table."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as f:
        return [
            Row(**{k: v if k in ("backend", "kind") else int(v) for k, v in row.items()})  # type: ignore[arg-type]
            for row in csv.DictReader(f, delimiter="\t")
        ]


def _store(new: Row) -> None:
    kept = {(row.savepoint, row.kind): row for row in rows()} | {(new.savepoint, new.kind): new}
    with TABLE.open("w", encoding="utf-8", newline="") as f:
        lines = csv.writer(f, delimiter="\t", lineterminator="\n")
        lines.writerow(field.name for field in fields(Row))
        lines.writerows(astuple(kept[place]) for place in sorted(kept))


def flip_kind(number: int, kind: str) -> tuple[Row, list[str]]:
    """Flip every byte of the files of one kind of a savepoint. Return the outcomes, and the places of those that are neither found nor harmless."""
    draw = random.Random(f"{number} {kind}")
    outcomes: Counter[Outcome] = Counter()
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        flipper = Flipper(SAVEPOINTS[number], Path(folder))
        for file, offset in flipper.places():
            if kind_of(file) == kind:
                outcome = flipper.flip(file, offset, draw.randrange(1, 256))[1]
                outcomes[outcome] += 1
                if outcome in ("silent", "refused"):
                    bad.append(f"{number} {kind} {outcome}: byte {offset} of {file.stat().st_size}")
    counts = {outcome: outcomes[outcome] for outcome in get_args(Outcome)}
    return Row(savepoint=number, backend=SAVEPOINTS[number].backend, kind=kind, **counts), bad


def kinds_of(savepoint: Small) -> list[str]:
    """Return the kinds of files of a savepoint."""
    with tempfile.TemporaryDirectory() as folder:
        savepoint.write(Path(folder) / "savepoint")
        return sorted({kind_of(file) for file in (Path(folder) / "savepoint").iterdir()})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.flip_check")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default=",".join(map(str, range(len(SAVEPOINTS)))), help="numbers of savepoints")
    parser.add_argument("--kinds", default="", help="kinds of files, by default all")
    given = parser.parse_args()
    chosen = set(given.kinds.split(",")) if given.kinds else None
    numbers = [int(number) for number in given.only.split(",")]
    asked = [(n, kind) for n in numbers for kind in kinds_of(SAVEPOINTS[n]) if chosen is None or kind in chosen]
    with ProcessPoolExecutor(given.processes) as pool:
        for row, bad in pool.map(flip_kind, *zip(*asked, strict=True)):
            print(row, *bad, sep="\n", flush=True)
            _store(row)
