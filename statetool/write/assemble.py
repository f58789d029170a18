"""The operators of a new snapshot, from the streams of their subtasks."""

from __future__ import annotations

from collections.abc import Mapping

from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.metadata.handles import KeyGroupsHandle, OperatorStreamHandle
from statetool.formats.operator_id import operator_id_for_uid


def operator_of(
    uid: str,
    *,
    operator_id: str | None = None,
    name: str = "",
    parallelism: int,
    max_parallelism: int,
    keyed: Mapping[int, KeyGroupsHandle],
    elements: Mapping[int, OperatorStreamHandle],
) -> OperatorState:
    """Return an operator whose subtasks have these handles."""
    subtasks = tuple(
        SubtaskState(index=i, managed_keyed=keyed.get(i), managed_operator=elements.get(i)) for i in range(parallelism)
    )
    return OperatorState(
        operator_id=operator_id or operator_id_for_uid(uid),
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=subtasks,
        name=name,
        uid=uid,
    )
