"""Claim the snapshot: who owns its files after the restore.

Follows ``CheckpointCoordinator.restoreSavepoint`` and ``SharedStateRegistryImpl``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, note
from statetool.compatibility.verdicts import NEW, A, Remedy


def _irrelevant(restore: Restore) -> str:
    properties = restore.properties
    if restore.options.mode is None and properties is not None and properties.kind == "savepoint":
        return "no job claims a savepoint unless it is told to"
    return ""


def _owner(restore: Restore) -> Iterator[Result]:
    """G4, G6, M10: when Flink deletes the files of the snapshot, and when they must not be deleted."""
    mode = restore.options.mode
    if mode is None:
        yield Assumption(rule="G6", text="the claim mode is NO_CLAIM, Flink's default", option="--claim-mode")
    elif mode == "claim":
        text = "Flink owns the snapshot (CLAIM), and deletes it when a newer checkpoint replaces it: you cannot go back to it."
        yield note("G4", text, Remedy("Keep a copy.", ("copy", A, NEW)))
    elif mode == "legacy":
        text = "In claim mode LEGACY, later checkpoints may refer to files of the snapshot at any time: it must never be deleted."
        yield note("G6", text, "Use CLAIM or NO_CLAIM.")
    elif restore.properties is None or restore.properties.kind == "checkpoint":
        text = "The job needs the files of the checkpoint until its own first checkpoint is complete: keep the old job from deleting them."
        yield note("M10", text, Remedy("Or restore a copy.", ("copy", A, NEW)))


STEP: Final = Step(
    name="claim",
    title="Claim",
    follows="CheckpointCoordinator, SharedStateRegistryImpl",
    irrelevant=_irrelevant,
    checks=(_owner,),
)
