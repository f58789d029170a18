"""Contents of a ``_metadata`` file, field by field as on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from statetool.formats.metadata.handles import (
    AnyChannelHandle,
    Handle,
    KeyedHandle,
    OperatorHandle,
    StreamHandle,
    replace_channel,
    replace_keyed,
    replace_operator,
    replace_stream,
)

MAGIC: Final = 0x4960672D
MASTER_STATE_MAGIC: Final = 0xC96B1696 - (1 << 32)
VERSIONS: Final = range(2, 8)
#: The newest version that a release of Flink writes (statetool.saving.versions has what each release reads).
NEWEST_RELEASED: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterState:
    """State of a master hook (almost always absent)."""

    version: int
    name: str
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskState:
    """State of one subtask of an operator.

    ``duration_ms`` is stored only in version 2. ``ref_checkpoint_id`` (version 7) is the older checkpoint whose state a regional checkpoint
    reused for the subtask: its handles refer to files of that checkpoint, which Flink must keep.
    """

    index: int
    finished: bool = False
    managed_operator: OperatorHandle = None
    raw_operator: OperatorHandle = None
    managed_keyed: KeyedHandle = None
    raw_keyed: KeyedHandle = None
    input_channels: tuple[AnyChannelHandle, ...] = ()
    output_channels: tuple[AnyChannelHandle, ...] = ()
    duration_ms: int = -1
    ref_checkpoint_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """State of one operator. ``name`` and ``uid`` are stored since version 5, empty if not set."""

    operator_id: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskState, ...]
    name: str = ""
    uid: str = ""
    coordinator: StreamHandle = None
    fully_finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotMetadata:
    """Complete contents of a ``_metadata`` file.

    ``properties`` is the Java stream of ``CheckpointProperties`` that ends files since version 4, exactly as read.
    """

    version: int
    checkpoint_id: int
    operators: tuple[OperatorState, ...]
    master_states: tuple[MasterState, ...] = ()
    properties: bytes = b""


def replace_streams(operator: OperatorState, change: Callable[[StreamHandle], StreamHandle]) -> OperatorState:
    """Return the operator with all of its stream handles changed, including nested ones."""
    return replace(
        operator,
        coordinator=replace_stream(operator.coordinator, change),
        subtasks=tuple(
            replace(
                s,
                managed_operator=replace_operator(s.managed_operator, change),
                raw_operator=replace_operator(s.raw_operator, change),
                managed_keyed=replace_keyed(s.managed_keyed, change),
                raw_keyed=replace_keyed(s.raw_keyed, change),
                input_channels=tuple(replace_channel(h, change) for h in s.input_channels),
                output_channels=tuple(replace_channel(h, change) for h in s.output_channels),
            )
            for s in operator.subtasks
        ),
    )


def handles_of(metadata: SnapshotMetadata) -> Iterator[Handle]:
    """Yield every handle of a snapshot."""
    for operator in metadata.operators:
        yield from operator_handles(operator)


def operator_handles(operator: OperatorState) -> Iterator[Handle]:
    """Yield every handle of an operator."""
    yield operator.coordinator
    for subtask in operator.subtasks:
        yield from subtask_handles(subtask)


def subtask_handles(subtask: SubtaskState) -> Iterator[Handle]:
    """Yield every handle of a subtask."""
    yield from (subtask.managed_operator, subtask.raw_operator, subtask.managed_keyed, subtask.raw_keyed)
    yield from subtask.input_channels
    yield from subtask.output_channels
