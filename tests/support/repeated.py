"""Tests that repeat what other tests of their step execute: ``python -m tests.support.repeated [STEP ...]`` finds them again.

The steps ``lowest`` and ``uncompiled`` of ``.ci/run`` leave them out. All of them run compiled and on the newest versions, in ``.ci/quick``
and ``.ci/full``. A test is left out only if ``repeated.tsv`` names it, so new tests always run.
"""

from __future__ import annotations

import heapq
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import click

from tests.support.recorder import ROOT, load_records

STEPS: Final = ("lowest", "uncompiled")
FILE: Final = Path(__file__).with_suffix(".tsv")
HEADER: Final = """\
# Tests that the steps `lowest` and `uncompiled` of .ci/run leave out: other tests of the step execute the same. They run in the steps `quick`
# and `full`. In `lowest`, the same is all lines, all calls of dependencies and kernels by the kind of their first argument, and all functions
# by the kinds of their arguments and results. In `uncompiled`, it is all lines, and both ways of each branch. A line is a test, or a test function
# with all its parameters.
# Written by: python -m tests.support.repeated
"""
#: CPU seconds, while recorded, from which on leaving out a test is worth a line.
WORTH: Final = 0.2
#: Tests of kernels, and of engines of SQL. What they find depends on the data, not on the lines.
ALWAYS: Final = ("tests/kernels/", "tests/tables/sql/", "tests/cli/test_sql.py")
#: Damaged bytes find indexes out of bounds, which numba would hide, and dependencies that crash. Both depend on the bytes.
DAMAGE: Final = re.compile("damage|hostile|truncat|corrupt|broken|cut_|_cut")


class Candidate(NamedTuple):
    """A test, what it executes as bits of a number, and its CPU seconds."""

    test: str
    executed: int
    seconds: float


def function_of(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]


def read_repeated(step: str) -> frozenset[str]:
    """Return the tests and test functions that a step leaves out."""
    lines = (line.split("\t", 1) for line in FILE.read_text().splitlines() if not line.startswith("#"))
    return frozenset(test for of, test in lines if of == step)


def choose(kept: int, candidates: Iterable[Candidate]) -> tuple[list[str], list[str]]:
    """Return the tests that run and those that repeat them: first those that add most for their time.

    Parameters
    ----------
    kept
        What the tests that always run execute.
    """
    heap = [(-c.executed.bit_count() / c.seconds, c) for c in candidates]
    heapq.heapify(heap)
    run: list[str] = []
    repeated: list[str] = []
    while heap:
        _, candidate = heapq.heappop(heap)
        added = (candidate.executed & ~kept).bit_count()
        if not added:
            repeated.append(candidate.test)
            continue
        value = -added / candidate.seconds
        if heap and value > heap[0][0]:  # others may add more by now
            heapq.heappush(heap, (value, candidate))
            continue
        run.append(candidate.test)
        kept |= candidate.executed
    return run, repeated


def by_function(repeated: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Replace tests by their function if all of its tests are repeated."""
    left: dict[str, int] = defaultdict(int)
    for test in tests:
        left[function_of(test)] += 1
    repeated = list(repeated)
    for test in repeated:
        left[function_of(test)] -= 1
    return sorted({test if left[function_of(test)] else function_of(test) for test in repeated})


def find_repeated(step: str, folder: Path) -> list[str]:
    """Return the tests and test functions of a recorded run that repeat others."""
    numbers: dict[Hashable, int] = {}
    kept, candidates, tests, spent = 0, [], [], 0.0
    for record in load_records(folder):
        bits = [numbers.setdefault(name, len(numbers)) for name in record.names]
        for test, (found, seconds, apart) in record.tests.items():
            executed = bits_of(bits[number] for number in found)
            tests.append(test)
            spent += seconds
            always = test.startswith(ALWAYS) or apart or DAMAGE.search(test)
            if always or seconds < WORTH:
                kept |= executed
            else:
                candidates.append(Candidate(test, executed, seconds))
    _, repeated = choose(kept, candidates)
    saved = {c.test: c.seconds for c in candidates}
    click.echo(
        f"{step}: {len(repeated):,} of {len(tests):,} tests repeat others: "
        f"{sum(saved[test] for test in repeated):,.0f} of {spent:,.0f} CPU seconds"
    )
    return by_function(repeated, tests)


def bits_of(numbers: Iterable[int]) -> int:
    """Return a number with these bits."""
    bits = bytearray()
    for number in numbers:
        byte, bit = divmod(number, 8)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << bit
    return int.from_bytes(bits, "little")


def record(step: str, folder: Path) -> None:
    """Run all tests of a step and record what they execute. The lowest Python that can do so is 3.12."""
    python = subprocess.run([ROOT / ".ci" / "python", "3.12"], check=True, capture_output=True, text=True)
    environment = {**os.environ, "CI": "true", "STATETOOL_LOWEST_PYTHON": python.stdout.strip()}
    options = ["--no-cov"] if step == "uncompiled" else []
    subprocess.run([ROOT / ".ci" / step, f"--record={folder}", *options], check=True, env=environment)


@click.command()
@click.argument("steps", nargs=-1, type=click.Choice(STEPS))
@click.option("--records", type=click.Path(path_type=Path), help="Folder that keeps the records of each step.")
def main(steps: tuple[str, ...], records: Path | None) -> None:
    """Find the tests that repeat others, and write repeated.tsv."""
    found = {step: sorted(read_repeated(step)) for step in STEPS}
    with tempfile.TemporaryDirectory() as work:
        for step in steps or STEPS:
            folder = (records or Path(work)) / step
            if not folder.exists():
                record(step, folder)
            found[step] = find_repeated(step, folder)
    lines = [f"{step}\t{test}\n" for step, tests in found.items() for test in tests]
    FILE.write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    sys.exit(main())
