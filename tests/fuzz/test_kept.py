"""Regression test of fuzzing: each stored input is read, or rejected with a ``StatetoolError``, quickly and in little memory."""

from __future__ import annotations

import random
import resource
import time
from collections import Counter

import pytest

from tests.fuzz.kept import kept
from tests.fuzz.targets import TARGETS, guarded

#: Targets that only read bytes; the others write a file and read tables, which takes longer.
QUICK = ("metadata", "java", "snapshots", "headers", "kryo", "connectors", "libraries", "library-snapshots")


def seconds(target: str, data: bytes) -> float:
    """Return the CPU time that an input takes."""
    start = time.process_time()
    guarded(TARGETS[target], data)
    return time.process_time() - start


def check(names: tuple[str, ...]) -> Counter[str]:
    done: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for target, name, data in kept():
        if target in names:
            # The first call may compile kernels, which takes half of this on a fast machine.
            assert any(seconds(target, data) < 20 for _ in range(2)), (target, name)
            done[target] += 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10
    return done


def test_kept_inputs_of_parsers() -> None:
    assert set(check(QUICK)) == set(QUICK)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in QUICK])
def test_changed_files_give_rows_or_our_error(name: str) -> None:
    dice = random.Random(17)
    target = TARGETS[name]
    seed = next(target.seeds())
    for _ in range(20):
        bad = bytearray(seed)
        bad[dice.randrange(len(bad))] ^= dice.randrange(1, 256)
        guarded(target, bytes(bad))


@pytest.mark.parametrize("name", QUICK)
def test_seeds_with_changed_bytes(name: str) -> None:
    """A little unguided fuzzing in each run; ``python -m tests.fuzz`` does more."""
    dice = random.Random(17)
    target = TARGETS[name]
    seeds = [s for s in target.seeds() if 0 < len(s) < 1 << 15]
    read = 0
    for seed in dice.sample(seeds, min(len(seeds), 12)):
        read += guarded(target, seed)
        for _ in range(8):
            bad = bytearray(seed)
            for _ in range(dice.randrange(1, 4)):
                bad[dice.randrange(len(bad))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            guarded(target, bytes(bad[: dice.randrange(1, len(bad) + 1)] if dice.random() < 0.3 else bad))
    assert read
