"""JSON format of migration plans."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from statetool.errors import OptionError
from statetool.migration.choices import Choices

if TYPE_CHECKING:
    from statetool.migration.plan import MigrationPlan, StateMigration


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenState:
    """The entry of a state in a plan. ``target`` is the state's new description."""

    uid: str
    state: str
    scope: Literal["keyed", "operator"]
    target: bytes
    choices: Choices


def plan_record(plan: MigrationPlan) -> dict[str, Any]:
    """Return a plan as JSON. Of ``steps``, which are for reading, only ``accept`` is parsed again."""
    kryo = next((s.conversion.types.kryo for s in plan.states), None)
    return {
        "version": 1,
        "metadata_version": plan.metadata_version,
        "kryo": kryo,
        "refused": list(plan.refused),
        "states": [_state_record(s) for s in plan.states],
    }


def _state_record(state: StateMigration) -> dict[str, Any]:
    choices = state.choices
    return {
        "uid": state.uid,
        "state": state.state,
        "scope": state.scope,
        "before": state.before,
        "after": state.after,
        "steps": [
            {
                "path": s.path,
                "change": s.change,
                "text": s.text,
                "accept": (s.path, s.change) in choices.accept if s.loses else None,
            }
            for s in state.steps
        ],
        "from": dict(choices.sources),
        "fills": dict(choices.fills),
        "constants": {path: dict(names) for path, names in choices.constants.items()},
        "last_access_ms": choices.last_access_ms,
        "target": base64.b64encode(state.conversion.after).decode(),
    }


def parse_state(entry: Any) -> WrittenState:
    """Parse the entry of a state in a plan.

    Raises
    ------
    OptionError
        The entry is not valid.
    """
    try:
        access = entry.get("last_access_ms")
        choices = Choices(
            sources={str(k): str(v) for k, v in entry.get("from", {}).items()},
            fills=dict(entry.get("fills", {})),
            constants={str(p): {str(a): str(b) for a, b in n.items()} for p, n in entry.get("constants", {}).items()},
            accept=frozenset(
                (str(s["path"]), str(s["change"])) for s in entry.get("steps", ()) if s.get("accept") is True
            ),
            last_access_ms=None if access is None else int(access),
        )
        scope: Literal["keyed", "operator"] = "operator" if entry["scope"] == "operator" else "keyed"
        target = base64.b64decode(entry["target"], validate=True)
        return WrittenState(uid=entry["uid"], state=entry["state"], scope=scope, target=target, choices=choices)
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as e:
        raise OptionError(f"a state of the plan is not as plans have it: {e!r}", hint="write the plan anew") from e
