"""Damage savepoints and read them: the result must be rows or a ``StatetoolError`` with a location, never anything else.

``python -m tests.damage_check DIR [--kinds canonical] [--truncations 200] [--changes 2000] [--seed 1]``: each case is truncated at many
positions and, separately, has single bytes changed. After each damage, every table of the possibly affected operators is read. The check
fails if a read takes more than 60 s of CPU time, or if the process grows by more than 512 MB.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import statetool
from statetool.errors import StatetoolError
from tests.support.checks.corpus_check import Case, find_cases

LIMIT_BYTES = 512 << 20
SECONDS = 60
OPTIONS: dict[str, Any] = {"nanos": "always", "decimals": "string"}


class Damage:
    """One case in a separate folder, where files are damaged and repaired."""

    def __init__(self, case: Case, folder: Path, seed: int) -> None:
        self.choice = random.Random(seed)
        self.folder = folder / case.folder.name
        for part in ("snapshot", "dstl"):  # changelogs are stored next to the checkpoint root
            if (case.folder / part).exists():
                shutil.copytree(case.folder / part, self.folder / part)
        self.metadata = self.folder / "snapshot" / str(case.info["metadata"])
        self.files = sorted(p for p in self.folder.rglob("*") if p.is_file())
        whole = statetool.load(str(self.metadata))
        self.users: dict[str, list[str]] = {}
        for row in whole.metadata_rows("files"):
            self.users.setdefault(Path(row.path).name, []).append(row.operator)
        self.pieces = [r for r in whole.metadata_rows("files") if r.inline]
        self.with_place = 0

    def touched(self, file: Path, offset: int, *, cut: bool) -> list[str] | None:
        """Return the operators that the damage may affect, ``None`` for all."""
        if file != self.metadata:
            return self.users.get(file.name, [])
        if cut:
            return None
        inside = [r.operator for r in self.pieces if r.start <= offset < r.start + r.size_bytes]
        return inside or None

    def try_read(self, operators: list[str] | None, *, limit: int = 4) -> None:
        """Read everything that the damage may affect; a ``StatetoolError`` that names a file is a valid result."""
        try:
            savepoint = statetool.load(str(self.metadata))
        except StatetoolError as error:
            self.check(error)
            return
        names = list(savepoint.operators) if operators is None else [o for o in operators if o in savepoint]
        if operators is None:
            names = self.choice.sample(names, min(limit, len(names)))
        for name in dict.fromkeys(names):
            try:
                tables = savepoint[name].tables
            except StatetoolError as error:
                self.check(error)
                continue
            for table in tables:
                try:
                    for _ in savepoint[name].batches(table, **OPTIONS):
                        pass
                except StatetoolError as error:
                    self.check(error)

    def check(self, error: StatetoolError) -> None:
        """Check that the error names a file."""
        assert str(error)
        if error.where.file is not None:
            self.with_place += 1

    def run(self, truncations: int, changes: int, dice: random.Random) -> None:
        """Apply all damage to this case."""
        weights = [max(1, p.stat().st_size) for p in self.files]
        for cut in [True] * truncations + [False] * changes:
            (file,) = dice.choices(self.files, weights)
            good = file.read_bytes()
            offset = dice.randrange(len(good)) if good else 0
            if cut:
                file.write_bytes(good[:offset])
            else:
                bad = bytearray(good)
                bad[offset] ^= dice.randrange(1, 256)
                file.write_bytes(bad)
            # Not by the clock, of which a busy machine takes more, and which limits the whole test.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                self.try_read(self.touched(file, offset, cut=cut))
            except BaseException:
                print(f"{file} {'cut at' if cut else 'changed at'} {offset}", file=sys.stderr)
                raise
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                file.write_bytes(good)


def too_long(*_: object) -> None:
    """Fail, as a handler of signals.

    Raises
    ------
    AssertionError
        Always.
    """
    raise AssertionError(f"a read takes more than {SECONDS} s of CPU time")


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def check_damage(cases: list[Case], *, truncations: int, changes: int, seed: int) -> None:
    """Damage cases; raise an error for any result other than a ``StatetoolError``.

    Raises
    ------
    AssertionError
        Memory grew above the limit.
    """
    dice = random.Random(seed)
    signal.signal(signal.SIGPROF, too_long)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            damage = Damage(case, Path(folder), seed)
            damage.try_read(None, limit=1000)
            before = peak_bytes()
            damage.run(truncations, changes, dice)
            grown = peak_bytes() - before
            assert grown < LIMIT_BYTES, f"{case.folder.name}: memory grew by {grown >> 20} MB"
            print(f"{case.folder.name}: {damage.with_place} errors, memory grew by {grown >> 20} MB", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.damage_check")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kinds", default="canonical")
    parser.add_argument("--truncations", type=int, default=200)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    cases = find_cases(given.directory, set(given.kinds.split(",")))
    check_damage(cases, truncations=given.truncations, changes=given.changes, seed=given.seed)
