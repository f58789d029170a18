"""Clean up beside real jobs that keep files in state, at random, and restore all that is left in real Flink.

``python -m tests.cleanup_check [--rounds 100] [--flink 2.3.0] [--kinds rocksdb,write-ahead,file-sink,iceberg,paimon] [--seed 0] [--first N] [--seconds N]``:
in a round, one to three jobs of a kind take checkpoints and savepoints, each from a snapshot of an earlier one. Some snapshots are then deleted
or damaged, strays and links are put beside them, and volumes are away. ``orphans --delete`` cleans up, or refuses. Each snapshot that is
left is restored: Flink compares all state with the input of the job, and its sinks must write what was pending. If that fails, the same
snapshot is restored as it was before the clean-up. If that succeeds, the clean-up is at fault. If not, the snapshot is restored in the
world that its own job left, where it must succeed (but for FLINK-39964, which ``verify`` must name), and then in the world that each later
job left, before any damage: the first that fails names the job that replaced it. Jobs that fork from an earlier snapshot write, commit and
delete the same files and numbers again in another way, so Flink itself has taken from the snapshot what it needs. If no job did, the damage
of the check has, and ``verify`` must say so.
``verify`` must never call sound what Flink refuses.
Prints each fault with the steps of its round, and finally the figures; exits 0 only without faults. ``--first N`` repeats a round.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import statetool
from statetool.errors import DirectoryInUseError, FormatError, OptionError, SnapshotNotFoundError, StatetoolError
from tests.support.cleanup.jobs import KINDS, Job, Kind
from tests.support.cleanup.scenes import Scene, build_scene, damage, litter
from tests.support.flink.machine import FlinkMachine
from tests.support.snapshots.trees import age

#: Seconds in which sinks write what was pending. A busy machine gets more at a second try.
_PATIENCE_S: Final = (30, 180)
#: Flink writes checkpoints that it cannot restore after it has claimed a native savepoint. ``verify`` names it.
_CLAIMED: Final = "FLINK-39964"


@dataclass
class Figures:
    """Numbers of a run, by kind of job."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        yield from (f"{number:8,} {name}" for name, number in self.counts.items())
        yield from (f"{number:8,} refused: {name}" for name, number in self.refusals.items())
        yield f"{len(self.faults):8,} faults"


class CleanupCheck:
    """Rounds of a kind of job in one Flink.

    Parameters
    ----------
    work
        Folder for the files of a round, which are removed at its end.
    """

    def __init__(self, flink: FlinkMachine, kind: Kind, work: Path) -> None:
        self.figures = Figures()
        self._job = Job(flink, kind, work)
        self._work = work

    def run_round(self, seed: str) -> None:
        """Run a round; its faults go to the figures."""
        r = random.Random(seed)
        world = self._work / "world"
        for folder in self._work.iterdir():
            shutil.rmtree(folder)
        world.mkdir()
        self.figures.counts["rounds"] += 1
        scene = build_scene(r, self._job, world, lambda number: copy_tree(world, self._work / f"job-{number}"))
        damage(r, scene)
        litter(r, scene)
        age(world)
        copy_tree(world, self._work / "before")
        trash = self._clean_up(r, scene)
        copy_tree(world, self._work / "cleaned")
        for path in scene.snapshots():
            self._check_restore(scene, path, seed)
        put_back(self._work / "cleaned", world)
        for root, trash_id in trash:
            statetool.restore_deleted(root, trash_id)
        if contents(world) != contents(self._work / "before"):
            self._fault(scene, seed, "restored trash gives other files than before")

    def _clean_up(self, r: random.Random, scene: Scene) -> list[tuple[str, str]]:
        """Clean up directories of a scene, and return the trash folders."""
        trash: list[tuple[str, str]] = []
        targets = list(scene.directories)
        if scene.layout == "below":
            targets.append(scene.top / "checkpoints")
        moved_all = True
        for target in r.sample(targets, len(targets)):
            if r.random() < 0.4:
                link = scene.world / f"link-{target.name}"
                if not link.is_symlink():
                    link.symlink_to(target)
                target = link
            self._refuse_unseen(r, scene, target)
            retained = [str(scene.world / "savepoints")] if scene.savepoints and r.random() < 0.5 else []
            try:
                done = statetool.delete_orphans(str(target), min_age="1d", retained=retained)
            except (DirectoryInUseError, FormatError, OptionError, SnapshotNotFoundError) as error:
                self.figures.refusals[f"{type(error).__name__}: {error.message.split('/')[0][:60]}"] += 1
                moved_all = False
                continue
            self.figures.counts["clean-ups"] += 1
            self.figures.counts["files moved"] += len(done.moved)
            scene.steps.append(f"cleaned up {target}, moved {[f.path for f in done.moved]}")
            if done.trash_id:
                trash.append((str(target), done.trash_id))
            if r.random() < 0.3:
                self._delete_oldest(scene, target, trash)
        if moved_all and (left := [f for f in scene.lost if f.exists()]):
            self.figures.counts["strays kept"] += len(left)
        return trash[::-1]

    def _delete_oldest(self, scene: Scene, target: Path, trash: list[tuple[str, str]]) -> None:
        """Delete the oldest checkpoint of a directory, if it is not the only one."""
        found = sorted((int(p.parent.name[4:]), p.parent) for p in target.resolve().glob("chk-*/_metadata"))
        if len(found) < 2:
            return
        retained = [str(scene.world / "savepoints")] if scene.savepoints else []
        try:
            done = statetool.delete_checkpoint(str(target), str(found[0][1]), min_age="1d", retained=retained)
        except (DirectoryInUseError, FormatError, OptionError, SnapshotNotFoundError) as error:
            self.figures.refusals[f"{type(error).__name__}: {error.message.split('/')[0][:60]}"] += 1
            return
        self.figures.counts["checkpoints deleted"] += 1
        scene.steps.append(f"deleted {found[0][1]}, moved {[f.path for f in done.moved]}")
        trash.append((str(target), done.trash_id))

    def _refuse_unseen(self, r: random.Random, scene: Scene, target: Path) -> None:
        """Unmount the volume of a job, or leave a link to nothing, and check that the clean-up refuses."""
        choices: list[Path] = [d for d in scene.directories if d.is_symlink() and d.resolve() != target.resolve()]
        if r.random() > 0.4 or not (choices or scene.layout != "below"):
            return
        if choices:
            volume = r.choice(choices).resolve()
            away, link = volume.with_name("away"), None
            volume.rename(away)
        else:
            link = scene.top / "unmounted"
            link.symlink_to(scene.world / "no such volume")
        try:
            moved = statetool.delete_orphans(str(target), min_age="1d").moved
        except OptionError:
            self.figures.counts["refused while a volume was away"] += 1
        except (FormatError, SnapshotNotFoundError):
            self.figures.counts["refused for another reason while a volume was away"] += 1
        else:
            raise AssertionError(f"{target} was cleaned up while a volume was away, moved {moved}: {scene.steps}")
        finally:
            if link is None:
                away.rename(volume)
            else:
                link.unlink()

    def _check_restore(self, scene: Scene, path: str, seed: str) -> None:
        newest = path == scene.newest
        fault = self._restore(scene, path, "cleaned", newest=newest, patience_s=_PATIENCE_S[0])
        verification = statetool.verify(path) if Path(path, "_metadata").exists() else None
        if not fault:
            self.figures.counts["restores"] += 1
            if verification is not None and any(p.severity == "error" for p in verification.problems):
                self._fault(scene, seed, f"{path} restores, verify says {verification.problems[:2]}")
            return
        before = self._restore(scene, path, "before", newest=newest, patience_s=_PATIENCE_S[0])
        if before:
            sound = verification is not None and all(p.severity == "note" for p in verification.problems)
            named = "" if verification is None else " ".join(p.problem for p in verification.problems)
            self._explain(scene, path, seed, before, sound=sound, named=named)
            return
        if again := self._restore(scene, path, "cleaned", newest=newest, patience_s=_PATIENCE_S[1]):
            self._fault(scene, seed, f"{path} restored before the clean-up, and no longer: {again[-1500:]}")
        else:
            self.figures.counts["restores at the second try"] += 1

    def _explain(self, scene: Scene, path: str, seed: str, fault: str, *, sound: bool, named: str) -> None:
        """Find out by real restores what has taken a snapshot that did not restore before the clean-up either."""
        refused = fault.startswith("Flink ")
        if refused and sound:
            self._fault(scene, seed, f"{path} does not restore, verify says that it is sound: {fault[-600:]}")
        own = scene.job_of(path)
        for number in range(own, len(scene.directories)):
            failed = self._restore(scene, path, f"job-{number}", newest=False, patience_s=_PATIENCE_S[number == own])
            if failed and number == own and _CLAIMED in named:
                self.figures.counts[f"never restorable, and verify says so: {_CLAIMED}"] += 1
                return
            if failed and number == own:
                self._fault(scene, seed, f"{path} does not even restore in what its own job left: {failed[-600:]}")
                return
            if failed:
                how = "Flink refuses it" if refused else "Flink restores it, and its sinks lose numbers"
                self.figures.counts[f"superseded by a later job, before any damage or clean-up: {how}"] += 1
                lines = "\n    ".join(
                    (*scene.steps[:1], *(s for s in scene.steps if s.startswith("job ")), shortened(failed))
                )
                print(f"round {seed}: {path} of job {own} was superseded by job {number}\n    {lines}", flush=True)
                return
        self.figures.counts["damaged by the check"] += 1
        if sound:
            self._fault(
                scene, seed, f"{path} restores without the damage, verify says that it is sound: {fault[-600:]}"
            )

    def _restore(self, scene: Scene, path: str, world: str, *, newest: bool, patience_s: float) -> str:
        put_back(self._work / world, scene.world)
        root = scene.world / "restored"
        return self._job.restore(root, path, newest=newest, patience_s=patience_s)

    def _fault(self, scene: Scene, seed: str, words: str) -> None:
        self.figures.faults.append(words)
        steps = "\n    ".join(scene.steps)
        print(f"FAULT in round {seed}: {words}\n    {steps}", flush=True)
        kept = Path(tempfile.mkdtemp(prefix="cleanup-fault-"))
        for name in ("before", "cleaned"):
            copy_tree(self._work / name, kept / name)
        print(f"    kept in {kept}", flush=True)


def shortened(failure: str) -> str:
    """Return the causes of a Java exception, without its stack."""
    causes = [line for line in failure.splitlines() if not line.lstrip().startswith(("at ", "..."))]
    return " / ".join(causes[-3:])[-700:]


def copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


def put_back(saved: Path, world: Path) -> None:
    """Make a folder what it was when it was saved."""
    shutil.rmtree(world)
    copy_tree(saved, world)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return the files and links in a folder, but for those that clean-up and the check make."""
    found: dict[str, bytes | str] = {}
    for at, folders, names in os.walk(folder):
        for name in (*names, *(f for f in folders if Path(at, f).is_symlink())):
            path = Path(at, name)
            relative = path.relative_to(folder)
            if ".statetool-trash" not in relative.parts and not relative.name.startswith("link-"):
                found[str(relative)] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found


def main(arguments: Sequence[str]) -> int:
    """Run rounds of all kinds; return 0 only without faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each kind")
    parser.add_argument("--flink", default="2.3.0", choices=sorted(KINDS["rocksdb"].jar_sets))
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="seconds of each kind")
    options = parser.parse_args(arguments)
    faults = 0
    for name in options.kinds.split(","):
        kind = KINDS[name]
        if options.flink not in kind.jar_sets:
            print(f"{name} does not run on Flink {options.flink}", flush=True)
            continue
        faults += len(
            run(name, kind, options.flink, options.rounds, options.seed, options.seconds, options.first).faults
        )
    return min(faults, 1)


def run(
    name: str, kind: Kind, version: str, rounds: int, seed: int, seconds: float = float("inf"), first: int = 0
) -> Figures:
    """Run rounds of a kind and print its figures."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        flink = kind.machine(version, Path(work))
        folder = Path(work, "round")
        folder.mkdir()
        check = CleanupCheck(flink, kind, folder)
        try:
            for number in itertools.takewhile(
                lambda _: time.monotonic() - begin < seconds, range(first, first + rounds)
            ):
                try:
                    check.run_round(f"{name} {seed} {number}")
                except (AssertionError, OSError, StatetoolError):
                    check.figures.faults.append(traceback.format_exc())
                    print(f"round {name} {seed} {number}:\n{check.figures.faults[-1]}", flush=True)
        finally:
            flink.close()
    print(f"{name} on Flink {version}, {time.monotonic() - begin:,.0f} s")
    print("\n".join(check.figures.lines()), flush=True)
    return check.figures
