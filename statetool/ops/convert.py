"""Make a self-contained canonical savepoint of any snapshot that can be read; key groups and subtasks stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statetool.formats.metadata.handles import streams_of
from statetool.ops.jobs import Runner
from statetool.ops.rewrite import OperatorRewrite, is_native, rewrite_snapshot
from statetool.plan.inventory import Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRow:
    """One operator: ``keyed_state`` is ``rewritten`` where it was in a backend's own format, ``copied`` or ``none``."""

    operator: str
    operator_id: str
    keyed_state: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """All operators, and which are rewritten."""

    operators: tuple[ConvertRow, ...]
    rewrites: Mapping[str, OperatorRewrite]


def plan_convert(inventory: Inventory) -> ConvertPlan:
    """Plan a conversion; reads nothing but metadata."""
    rows, rewrites = [], {}
    for operator in inventory.operators.values():
        state = operator.state
        handles = [s.managed_keyed for s in state.subtasks if s.managed_keyed is not None]
        native = any(map(is_native, handles))
        if native:
            rewrites[state.operator_id] = OperatorRewrite(
                max_parallelism=state.max_parallelism, parallelism=state.parallelism
            )
        rows.append(
            ConvertRow(
                operator=operator.label,
                operator_id=state.operator_id,
                keyed_state="rewritten" if native else "copied" if handles else "none",
                size_bytes=sum(p.size_bytes for h in handles for p in streams_of(h)),
            )
        )
    return ConvertPlan(tuple(rows), rewrites)


def run_convert(
    inventory: Inventory, target: str, plan: ConvertPlan, runner: Runner, *, checkpoint_id: int | None = None
) -> str:
    """Write the canonical savepoint; returns the URI of its metadata file.

    Raises
    ------
    TargetExistsError, UnsupportedError, FormatError
    """
    return rewrite_snapshot(inventory, target, plan.rewrites, runner, checkpoint_id=checkpoint_id)
