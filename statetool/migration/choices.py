"""Steps of a migration, and the user's choices for a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Change = Literal[
    "add",
    "drop",
    "rename",
    "widen",
    "narrow",
    "retype",
    "positions",
    "constants",
    "rewrite",
    "rows",
    "merge",
    "impossible",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a type.

    Attributes
    ----------
    path
        Location: ``value`` (for a list ``element``, for a map ``map_key`` and ``map_value``), followed by fields.
    loses
        Whether values are lost, may change or may be refused, so that the step must be accepted.
    asks
        Whether a step that cannot be performed only lacks the old name or the value of a field.
    """

    path: str
    change: Change
    text: str
    loses: bool = False
    asks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The user's choices for one state, by the paths of new fields.

    Attributes
    ----------
    sources
        Old names of renamed fields.
    fills
        Values of added fields, as in JSON.
    constants
        New names of an enum's constants, by their old names.
    accept
        Accepted steps: path and change of each.
    last_access_ms
        Last access of values that get a time to live, in epoch milliseconds.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    accept: frozenset[tuple[str, str]] = frozenset()
    last_access_ms: int | None = None
