"""A directory of jobs with snapshots, files that no snapshot needs, damage and links, at random."""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.cleanup.jobs import Job
from tests.support.flink.follower import complete
from tests.support.flink.machine import FlinkRefusedError
from tests.support.snapshots.trees import lose_file

#: Where jobs have their directories: ``DIR/<job id>``, or one that each job is given.
LAYOUTS: Final = ("below", "own", "own-volume")
_OWN: Final = {"execution.checkpointing.create-subdir": "false", "state.checkpoints.create-subdir": "false"}
_MERGING: Final = {
    "execution.checkpointing.file-merging.enabled": "true",
    "execution.checkpointing.file-merging.across-checkpoint-boundary": "true",
}


@dataclass
class Scene:
    """What a round cleans up.

    Attributes
    ----------
    world
        Folder of everything that a job reads or writes.
    directories
        The directories of the jobs.
    lost
        Files that no snapshot names and that a clean-up may move.
    newest
        The last snapshot of jobs that each continued the one before, so that no job has written after it. Empty otherwise.
    savepoints
        The number of the job that took each savepoint.
    """

    world: Path
    layout: str
    directories: list[Path] = field(default_factory=list)
    savepoints: dict[str, int] = field(default_factory=dict)
    lost: list[Path] = field(default_factory=list)
    newest: str = ""
    steps: list[str] = field(default_factory=list)

    @property
    def top(self) -> Path:
        return self.world / "top"

    def snapshots(self) -> list[str]:
        """Return the paths of all snapshots with metadata."""
        found = [path for folder in self.directories for _, path in complete(folder)]
        return [*found, *(s for s in self.savepoints if Path(s, "_metadata").exists())]

    def job_of(self, snapshot: str) -> int:
        """Return the number of the job that took a snapshot."""
        return (
            self.savepoints[snapshot] if snapshot in self.savepoints else self.directories.index(Path(snapshot).parent)
        )


def build_scene(r: random.Random, job: Job, world: Path, save: Callable[[int], None]) -> Scene:
    """Run one to three jobs, each from a snapshot of an earlier one, and save the world that each leaves, by the number of the job."""
    scene = Scene(world, r.choice(LAYOUTS))
    job.out = world / r.choice(("out", "top/table", "top/checkpoints/table"))
    scene.steps.append(f"layout {scene.layout}, output {job.out.relative_to(world)}")
    before: str | None = None
    last, in_line = "", True
    for number in range(r.choice((1, 2, 2, 3))):
        root, more = scene.top / "checkpoints", dict[str, str]()
        if scene.layout != "below":
            root, more = scene.top / f"job-{number}", dict(_OWN)
            if scene.layout == "own-volume" and r.random() < 0.6:
                volume = world / "volumes" / f"volume-{number}"
                volume.mkdir(parents=True)
                scene.top.mkdir(exist_ok=True)
                root.symlink_to(volume)
        claim, merge = r.random() < 0.5, r.random() < 0.2
        if claim:
            more |= {"execution.savepoint-restore-mode": "CLAIM", "execution.state-recovery.claim-mode": "CLAIM"}
        if merge:
            more |= _MERGING
        in_line &= before in (None, last)
        try:
            job.start(root, before, hold=True, more=more)
        except FlinkRefusedError:
            if before in (None, last):
                raise
            # A job that claimed an earlier snapshot has deleted or replaced what this one needs. Nothing but Flink has run so far.
            scene.steps.append(f"Flink did not start job {number} from {before}")
            before = last
            job.start(root, before, hold=True, more=more)
        try:
            scene.directories.append(root if scene.layout != "below" else root / job.job)
            for _ in range(r.choice((1, 1, 2, 3))):
                last = job.checkpoint()
            if r.random() < 0.4:
                last = job.savepoint(world / "savepoints", native=r.random() < 0.5)
                scene.savepoints[last] = number
        finally:
            job.stop()
        save(number)
        scene.steps.append(f"job {number} from {before}, claim {claim}, merge {merge}")
        before = last if r.random() < 0.6 else r.choice(scene.snapshots())
    scene.newest = last if in_line else ""
    return scene


def damage(r: random.Random, scene: Scene) -> None:
    """Delete snapshots, wholly or in part."""
    for path in map(Path, scene.snapshots()):
        if r.random() > 0.3 or str(path) == scene.newest:
            continue
        own = [f for f in path.iterdir() if f.name != "_metadata"]
        match r.choice(("whole", "metadata", "file", "half")):
            case "whole":
                shutil.rmtree(path)
            case "metadata":
                (path / "_metadata").unlink()
                scene.lost += own
            case "file" if own:
                r.choice(own).unlink()
            case "half":
                (path / "_metadata").unlink()
                for file in r.sample(own, len(own) // 2):
                    file.unlink()
            case _:
                continue
        scene.steps.append(f"damaged {path}")


def litter(r: random.Random, scene: Scene) -> None:
    """Put files beside the snapshots that no one needs, or that are not Flink's."""
    for directory in scene.directories:
        scene.lost.append(lose_file(directory / "shared"))
        if r.random() < 0.5:
            scene.lost.append(lose_file(directory / f"chk-{r.randint(50, 99)}"))
        if r.random() < 0.3:
            lose_file(directory / "taskowned")
        if r.random() < 0.3:
            (directory / "notes.txt").write_text("of a user")
        if r.random() < 0.2:
            (directory / "shared" / f"{uuid.uuid4()}.tmp").write_bytes(b"")
