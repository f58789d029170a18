"""Erase, keep, purge, drop and remove at random, and compare what is left with what was asked.

``python -m tests.removal_check DIR [--conditions 2000] [--key-lists 2000] [--others 1000] [--seed 0] [--seconds N] [--spark] [--time-zones UTC,Asia/Tokyo]``:
DIR contains snapshots at any depth. Each trial reads all rows of a snapshot before and after one command, value by value, and evaluates the
request in plain Python (``tests/support/removal``). A command must leave exactly these rows, with the same bytes, or refuse with an error.
Prints each fault with the call that shows it, and finally the numbers of trials, refusals and faults; exits 0 only without faults.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import statetool
from statetool.errors import StatetoolError
from statetool.types import Scalar
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.removal import edits
from tests.support.removal.compare import differences, key_group_contents, stored
from tests.support.removal.derived import derive
from tests.support.removal.rows import read_rows
from tests.support.removal.trials import KeyTrials, Snapshot, Trial, refused_patterns

#: Trials of all kinds take turns.
_ROUNDS = 100
#: An error that says that the command itself is wrong.
_BUG = re.compile(r"report this as a bug|proved|still has|internal", re.IGNORECASE)
#: Documented refusals: fields whose names differ only in case, and a tuple of pairs that is given as the key of a map.
_STRICT = re.compile(r"SQL does not distinguish|fits? the type of no operator")
#: Errors of values that SQL has no type for, or that nothing declares: no command can evaluate a condition on them.
_UNDECODABLE = re.compile(
    r"more than 38 digits|cannot be decoded|does not describe|not valid UTF-8|out of range|duplicate key"
)


@dataclass
class Figures:
    """Numbers of a run."""

    trials: Counter[str] = field(default_factory=Counter)
    compared_rows: int = 0
    removed_rows: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    required: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def fault_count(self) -> int:
        """Number of faults."""
        return sum(map(len, self.faults.values()))


class RemovalCheck:
    """Random trials on the snapshots of a folder.

    Parameters
    ----------
    only
        Use paths that this returns True for.
    """

    def __init__(
        self, root: Path, seed: int, spark: Any = None, only: Callable[[Path], bool] = lambda path: True
    ) -> None:
        self.r = random.Random(seed)
        self.root = root
        self.spark = spark
        self.figures = Figures()
        self.paths = sorted(p.parent for p in root.rglob("_metadata") if only(p.parent))
        self.keys = KeyTrials(self.r, spark)
        self._patterns = refused_patterns()
        self._turn = 0
        self._open: collections.OrderedDict[Path, Snapshot] = collections.OrderedDict()
        #: Operators with readable keys, by the name of their key's type.
        self.by_key: dict[str, list[tuple[Path, str]]] = defaultdict(list)
        self.unreadable: Counter[str] = Counter()
        self._survey()

    def _survey(self) -> None:
        for path in list(self.paths):
            try:
                snapshot = self.open(path)
                operators = snapshot.rows.items()
            except (StatetoolError, AssertionError) as error:
                self.unreadable[re.sub(r"\d+", "N", str(error))[:100]] += 1
                self.paths.remove(path)
                continue
            for operator_id, operator in operators:
                if operator.unread or operator.key is None or not operator.rows:
                    continue
                if operator.undecoded:
                    self.unreadable[re.sub(r"\d+", "N", operator.undecoded)[:100]] += 1
                    continue
                if operator.key.logical != Scalar("null"):
                    self.by_key[operator.key.type_name].append((path, operator_id))

    def open(self, path: Path) -> Snapshot:
        """Return a snapshot with its contents; the latest ones stay in memory."""
        if path not in self._open:
            self._open[path] = Snapshot(path, self.root)
            if len(self._open) > 400:
                self._open.popitem(last=False)
        return self._open[path]

    def draw_operator(self) -> tuple[Snapshot, str]:
        """Draw an operator: types of keys are equally likely."""
        path, operator_id = self.r.choice(self.by_key[self.r.choice(sorted(self.by_key))])
        return self.open(path), operator_id

    def draw_snapshot(self) -> Snapshot:
        """Draw a snapshot."""
        return self.open(self.r.choice(self.paths))

    # ---- trials -----------------------------------------------------------------------------

    def conditions(self, count: int) -> None:
        """Try conditions."""
        for _ in range(count):
            if self.r.random() < 0.1:
                self.run(self.keys.refused_condition(*self.draw_operator(), next(self._patterns)))
            else:
                self.run(self.keys.condition(*self.draw_operator()))

    def key_lists(self, count: int) -> None:
        """Try lists of keys."""
        for _ in range(count):
            self.run(self.keys.keys(*self.draw_operator()))

    def others(self, count: int) -> None:
        """Try the other commands that remove."""
        r = self.r
        draws: Sequence[Callable[[], Trial | None]] = (
            lambda: edits.removal_of_value(r, *self.draw_operator()),
            lambda: edits.removal_of_value(r, *self.draw_operator()),
            lambda: edits.purge(r, self.draw_snapshot(), self.spark),
            lambda: edits.purge(r, self.draw_operator()[0], self.spark),
            lambda: edits.drop(r, self.draw_snapshot()),
            lambda: edits.transform(r, *self.draw_operator()),
            lambda: edits.forget(r, self.draw_snapshot()),
            lambda: edits.remove_splits(r, self.draw_snapshot()),
        )
        made = 0
        for _ in range(20 * count):
            self._turn += 1
            trial = draws[self._turn % len(draws)]()
            if trial is not None:
                self.run(trial)
                made += 1
                if made == count:
                    return

    # ---- one trial --------------------------------------------------------------------------

    def run(self, trial: Trial) -> None:
        """Run a trial and count its result."""
        name = f"{trial.verb} {trial.kind.split(':')[0]}".strip()
        self.figures.trials[name] += 1
        folder = Path(tempfile.mkdtemp(prefix="statetool-removal-"))
        target = folder / "new"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                done = trial.run(str(target))
        except StatetoolError as error:
            self._refused(trial, name, error, target)
        except Exception as error:  # noqa: BLE001 - any other error is a fault
            self._fault(name, f"ends in {type(error).__name__}: {str(error)[:150]}", trial)
        else:
            if trial.refusal == "always":
                self._fault(trial.kind if "refused" in trial.kind else name, "must be refused, and is not", trial)
            else:
                self._compare(trial, name, done, target)
        finally:
            shutil.rmtree(folder)

    def _refused(self, trial: Trial, name: str, error: StatetoolError, target: Path) -> None:
        reason = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", error.message.splitlines()[0])[:90]
        self.figures.refusals[f"{name}: {reason}"] += 1
        if trial.refusal == "always":
            self.figures.required[name] += 1
        if (target / "_metadata").exists():
            self._fault(name, "refuses, but leaves a complete snapshot", trial)
        if _BUG.search(f"{error.message} {error.hint}"):
            self._fault(name, f"ends in: {error.message[:150]}", trial)
        elif trial.refusal == "never" and not (_UNDECODABLE.search(error.message) or _STRICT.search(error.message)):
            self._fault(name, f"refuses what it can do: {error.message[:200]}", trial)

    def _compare(self, trial: Trial, name: str, done: Any, target: Path) -> None:
        try:
            savepoint = statetool.load(str(target), declarations=CLASSES)
            after = read_rows(savepoint)
        except (StatetoolError, AssertionError) as error:
            self._fault(name, f"writes what cannot be read: {str(error)[:150]}", trial)
            return
        before = trial.snapshot.rows
        self.figures.compared_rows += sum(sum(o.rows.values()) for o in before.values())
        self.figures.removed_rows += sum(
            sum((o.rows - after[i].rows).values()) if i in after else sum(o.rows.values()) for i, o in before.items()
        )
        expected = trial.expect(after)
        problems = list(differences(before, after, expected))
        if not problems:
            problems += trial.check(done, after)
            problems += self._bytes(before, after, done)
        for problem in problems[:3]:
            self._fault(name, problem, trial)

    @staticmethod
    def _bytes(before: Any, after: Any, done: Any) -> Iterator[str]:
        """Yield where bytes changed that the plan says are kept."""
        plan = getattr(done, "plan", None)
        if plan is None or not hasattr(plan, "operators"):
            return
        forms = {row.operator_id: row.form for row in plan.operators}
        for operator_id, new in after.items():
            old = before[operator_id]
            form = forms.get(operator_id, "unchanged")
            if form == "unchanged" and stored(old.inventory) != stored(new.inventory):
                yield f"{old.inventory.label.display}: bytes changed, and the plan says unchanged"
            if form == "in place":
                changed = {row.key_group for row in (old.rows - new.rows)}
                a, b = key_group_contents(old.inventory), key_group_contents(new.inventory)
                if a is not None and b is not None:
                    wrong = [g for g in {*a, *b} - changed if a.get(g) != b.get(g)]
                    if wrong:
                        yield f"{old.inventory.label.display}: bytes of key groups {wrong[:5]} changed without need"

    def _fault(self, name: str, problem: str, trial: Trial) -> None:
        key = f"{name}: {re.sub(r'[0-9a-f]{32}|[0-9]+', 'N', problem)[:60]}"
        self.figures.faults[key].append(f"{problem}\n    {trial.command}")
        if len(self.figures.faults[key]) <= 3:
            print(f"FAULT {name}: {problem}\n    {trial.command}", flush=True)


def report(check: RemovalCheck, seconds: float) -> None:
    """Print the numbers of a run."""
    figures = check.figures
    operators = sum(map(len, check.by_key.values()))
    print(
        f"snapshots={len(check.paths)} operators={operators} key_types={len(check.by_key)} unreadable={sum(check.unreadable.values())}"
    )
    for name, n in sorted(figures.trials.items()):
        print(f"  trials {name}: {n}")
    for name, n in figures.refusals.most_common():
        print(f"  refused {n}: {name}")
    for name, problems in sorted(figures.faults.items()):
        print(f"  FAULTS {len(problems)}: {name}")
    print(
        f"trials={sum(figures.trials.values())} compared_rows={figures.compared_rows} removed_rows={figures.removed_rows} "
        f"refusals={sum(figures.refusals.values())} required_refusals={sum(figures.required.values())} "
        f"faults={figures.fault_count} time_zone={os.environ.get('TZ', 'default')} seconds={seconds:.0f}"
    )


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="tests.removal_check")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--conditions", type=int, default=2000)
    parser.add_argument("--key-lists", type=int, default=2000)
    parser.add_argument("--others", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="time after which no trials start")
    parser.add_argument("--spark", action="store_true", help="run the commands in Spark tasks")
    parser.add_argument("--time-zones", default="", help="comma-separated; one process each")
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument(
        "--derive", type=int, metavar="N", help="use derived snapshots: large ones, and N rescaled copies"
    )
    given = parser.parse_args(arguments)
    if given.time_zones:
        zones = given.time_zones.split(",")
        at = arguments.index("--time-zones") if "--time-zones" in arguments else None
        rest = [a for i, a in enumerate(arguments) if at is None or i not in (at, at + 1)]
        rest = [a for a in rest if not a.startswith("--time-zones=")]
        command = [sys.executable, "-m", "tests.removal_check", *rest]
        return max(subprocess.run(command, env={**os.environ, "TZ": zone}, check=False).returncode for zone in zones)
    spark = None
    if given.spark:
        from statetool.spark.session import local_session

        spark = local_session(cores="2")
    began = time.monotonic()
    if given.derive is not None:
        with tempfile.TemporaryDirectory(prefix="statetool-derived-") as folder:
            derive(given.directory, Path(folder), given.derive, given.seed)
            return run_check(Path(folder), given, spark, began)
    return run_check(given.directory, given, spark, began)


def run_check(directory: Path, given: argparse.Namespace, spark: Any, began: float) -> int:
    """Run all trials, print the numbers and return the exit code."""
    check = RemovalCheck(directory, given.seed, spark, lambda path: bool(re.search(given.only, str(path))))
    counts = (given.conditions, given.key_lists, given.others)
    for number in range(_ROUNDS):
        if time.monotonic() - began < given.seconds:
            portions = [count * (number + 1) // _ROUNDS - count * number // _ROUNDS for count in counts]
            for draw, portion in zip((check.conditions, check.key_lists, check.others), portions, strict=True):
                draw(portion)
    report(check, time.monotonic() - began)
    return 1 if check.figures.fault_count else 0
