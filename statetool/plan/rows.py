"""Rows of the metadata tables: operators, states, files, key groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from statetool.formats.metadata import SubtaskState
from statetool.formats.metadata.handles import Handle, streams_of
from statetool.formats.state_meta import StateMeta
from statetool.plan.parts import key_group_sizes
from statetool.serializers.base import Serializer
from statetool.serializers.runtime import TtlSerializer

if TYPE_CHECKING:
    from statetool.plan.operator import OperatorInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """One state as users see it."""

    operator: str
    name: str
    scope: Literal["keyed", "operator"]
    kind: str
    key_type: str | None
    namespace_type: str | None
    value_type: str
    ttl: bool
    readable: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator, as in ``statetool info``."""

    operator: str
    name: str
    uid: str
    operator_id: str
    parallelism: int
    max_parallelism: int
    subtasks: int
    fully_finished: bool
    coordinator_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file, or inline piece, that a subtask's state lies in."""

    operator: str
    subtask: int
    slot: str
    path: str
    start: int
    size_bytes: int
    inline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupRow:
    """One key group of one subtask; ``size_bytes`` is on disk, header excluded, 0 for an empty one.

    Where it is mixed with others (RocksDB's files), offset and size are not known.
    """

    operator: str
    subtask: int
    key_group: int
    offset: int | None
    size_bytes: int | None


def uses_ttl(serializer: Serializer) -> bool:
    """Tell whether values, elements or map values carry the time of their last access."""
    return isinstance(serializer, TtlSerializer) or any(uses_ttl(s) for _, s in serializer.children())


def state_info(
    operator: OperatorInventory, meta: StateMeta, scope: Literal["keyed", "operator"], key: Serializer | None
) -> StateInfo:
    """Return a state as a row; ``key`` is the serializer of keyed state."""
    involved = [*meta.serializers.values(), *([key] if key is not None else [])]
    reason = "; ".join(dict.fromkeys(r for s in involved for r in _opaque_reasons(s)))
    if scope == "operator" and "KEY_SERIALIZER" in meta.serializers:
        key = meta.serializers["KEY_SERIALIZER"]
    found = scope == "keyed" and operator.key_found
    return StateInfo(
        operator=operator.label,
        name=meta.name,
        scope=scope,
        kind=meta.kind,
        key_type=None if key is None else f"{key.type_name}{' (found by key groups)' if found else ''}",
        namespace_type=meta.namespace.type_name if meta.namespace is not None else None,
        value_type=meta.value.type_name,
        ttl=uses_ttl(meta.value),
        readable=not reason,
        reason=reason,
    )


def operator_row(operator: OperatorInventory) -> OperatorRow:
    """Return the operator as a row."""
    coordinator = operator.state.coordinator
    pieces = [p for s in operator.state.subtasks for h in _slots(s) for p in streams_of(h)]
    return OperatorRow(
        operator=operator.label,
        name=operator.state.name,
        uid=operator.uid,
        operator_id=operator.state.operator_id,
        parallelism=operator.state.parallelism,
        max_parallelism=operator.state.max_parallelism,
        subtasks=len(operator.state.subtasks),
        fully_finished=operator.state.fully_finished,
        coordinator_bytes=sum(p.size_bytes for p in streams_of(coordinator)),
        state_bytes=sum(p.size_bytes for p in pieces),
    )


def file_rows(operator: OperatorInventory) -> list[FileRow]:
    """Every piece of state and where it lies."""
    rows = []
    for subtask in operator.state.subtasks:
        slots = (
            ("managed operator", subtask.managed_operator),
            ("raw operator", subtask.raw_operator),
            ("managed keyed", subtask.managed_keyed),
            ("raw keyed", subtask.raw_keyed),
            *(("input channel", h) for h in subtask.input_channels),
            *(("output channel", h) for h in subtask.output_channels),
        )
        for slot, handle in slots:
            for piece in streams_of(handle):
                stream = operator.resolve(piece)
                if stream is not None:
                    rows.append(
                        FileRow(
                            operator=operator.label,
                            subtask=subtask.index,
                            slot=slot,
                            path=stream.file,
                            start=stream.start,
                            size_bytes=stream.size_bytes,
                            inline=stream.inline is not None,
                        )
                    )
    return rows


def key_group_rows(operator: OperatorInventory) -> list[KeyGroupRow]:
    """Every key group; in RocksDB's files only their numbers are known."""
    rows = []
    for native in operator.native_parts:
        for key_group in native.key_groups:
            rows.append(
                KeyGroupRow(
                    operator=operator.label, subtask=native.subtask, key_group=key_group, offset=None, size_bytes=None
                )
            )
    for part in operator.keyed_parts:
        for key_group, offset, size in key_group_sizes(part):
            rows.append(
                KeyGroupRow(
                    operator=operator.label, subtask=part.subtask, key_group=key_group, offset=offset, size_bytes=size
                )
            )
    return rows


def _slots(s: SubtaskState) -> tuple[Handle, ...]:
    return (s.managed_operator, s.raw_operator, s.managed_keyed, s.raw_keyed, *s.input_channels, *s.output_channels)


def _opaque_reasons(serializer: Serializer) -> Iterable[str]:
    if serializer.framed_only:
        missing = "" if serializer.children() else serializer.what_is_missing
        yield f"{serializer.type_name}: {missing}" if missing else serializer.type_name
    for _, child in serializer.children():
        yield from _opaque_reasons(child)
