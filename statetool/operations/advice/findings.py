"""Findings about a configuration, and the pages of Flink's documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["error", "warning", "advice"]
DOCS: Final = "https://nightlies.apache.org/flink/flink-docs-stable/docs/"
CHECKPOINTING: Final = f"{DOCS}dev/datastream/fault-tolerance/checkpointing/"
CHECKPOINTS: Final = f"{DOCS}ops/state/checkpoints/"
BACKPRESSURE: Final = f"{DOCS}ops/state/checkpointing_under_backpressure/"
BACKENDS: Final = f"{DOCS}ops/state/state_backends/"
TUNING: Final = f"{DOCS}ops/state/large_state_tuning/"
SAVEPOINTS: Final = f"{DOCS}ops/state/savepoints/"
RECOVERY: Final = f"{DOCS}ops/state/task_failure_recovery/"
CONFIG: Final = f"{DOCS}deployment/config/"
KAFKA: Final = f"{DOCS}connectors/datastream/kafka/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding about a configuration.

    ``level`` is ``error`` for settings that Flink refuses or that lose state or data, ``warning`` for settings that have no effect or a
    misleading one, and ``advice`` for valid settings with a safer alternative. ``rule`` names the kind of finding, ``key`` is the option as
    written, ``value`` its value (``None``: not set), ``page`` the page of Flink's documentation.
    """

    level: Level
    rule: str
    key: str
    value: str | None
    message: str
    page: str

    @property
    def is_contradiction(self) -> bool:
        """Return True if something is wrong; advice concerns valid settings."""
        return self.level != "advice"
