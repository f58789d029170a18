"""A job whose checkpoints ``follow.py`` folds into a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from statetool.jobs import follow
from tests.support.snapshots.incremental import Job


def follow_a_job(folder: Path, target: str, style: str) -> Iterator[dict[int, bytes]]:
    """Let a job take checkpoints and follow them, and yield the state that the table must have; its columns are ``key`` and ``a``."""
    arguments = [str(folder / "root"), "--uid", "op", "--option", "uids=op", "--offsets", str(folder / "offsets")]
    with Job(folder / "root") as job:
        for number in range(2):
            for key in range(number, number + 3):
                job.put("a", key, bytes([number, key]))
            job.delete("a", number)
            job.checkpoint()
            job.put("a", 10 + number, b"later")
            job.checkpoint()
            assert follow.main([*arguments, "--target", target, "--format", style, "--once"]) == 0
            yield job.truth["a"]
