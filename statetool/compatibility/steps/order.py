"""The steps of a restore, in Flink's order."""

from __future__ import annotations

from typing import Final

from statetool.compatibility.steps import (
    channels,
    claim,
    coordinators,
    files,
    finished,
    first_checkpoint,
    keyed_state,
    metadata,
    operator_state,
    operators,
    parallelism,
    patterns,
    plans,
    sinks,
    sources,
    timers,
    windows,
)
from statetool.compatibility.steps.step import Step

STEPS: Final[tuple[Step, ...]] = (
    plans.STEP,
    files.STEP,
    metadata.STEP,
    operators.STEP,
    parallelism.STEP,
    finished.STEP,
    channels.STEP,
    coordinators.STEP,
    operator_state.STEP,
    keyed_state.STEP,
    timers.STEP,
    windows.STEP,
    patterns.STEP,
    sources.STEP,
    sinks.STEP,
    claim.STEP,
    first_checkpoint.STEP,
)
