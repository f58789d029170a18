"""Restore operator state: list, union and broadcast states, element by element.

Follows ``OperatorStateRestoreOperation`` and ``DefaultOperatorStateBackend``, which keeps list and broadcast states in two maps, and reads
all elements with the old serializer before the job registers a state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.declared_states import check_declared_states
from statetool.compatibility.restore import Pair, Restore, hidden_values
from statetool.compatibility.states import Hidden, Job, RanStates, element_verdicts, of_error
from statetool.compatibility.steps.keyed_state import SAME_STATES, refuse_generic_types
from statetool.compatibility.steps.step import Found, Result, StateFound, Step, is_unknown, per_pair, refuses
from statetool.compatibility.stream_code import check_asynchronous_functions
from statetool.compatibility.verdicts import NEW, A, Level, Remedy
from statetool.errors import UNREAD, several
from statetool.formats.metadata.handles import ByteStreamHandle, streams_of
from statetool.snapshot.operator import OperatorInventory


def _irrelevant(restore: Restore) -> str:
    stored = any(
        s.managed_operator is not None or s.raw_operator is not None
        for o in restore.old.metadata.operators
        for s in o.subtasks
    )
    return "" if stored else "no operator has operator state"


def element_results(
    old: OperatorInventory,
    new: OperatorInventory | None,
    job: Job,
    hidden: Hidden | None = None,
    ran: RanStates | None = None,
) -> Iterator[Result]:
    """Yield the results of an operator's operator state. Without ``hidden``, the values that no header describes are read again."""
    try:
        if hidden is None:
            hidden = hidden_values(old, new, job)[1]
    except UNREAD:
        hidden = {}  # reported by the step of keyed state
    try:
        states = None if new is None else new.operator_states
        for verdict in element_verdicts(old.operator_states, states, job, hidden, ran or {}, old.label):
            yield StateFound(rule="E4", operator=old, scope="operator", verdict=verdict)
    except UNREAD as error:
        yield Found(
            rule="S3",
            resolution=of_error(Level.UNKNOWN, error, "statetool cannot read its operator state"),
            operator=old,
        )


def _states(restore: Restore) -> Iterator[Result]:
    """E2 to E4: modes and serializers."""
    for pair in restore.pairs:
        try:
            hidden = restore.hidden(pair)[1]
        except UNREAD:
            hidden = {}
        yield from element_results(pair.old, pair.new, restore.job, hidden, restore.ran(pair))
    if not restore.has_snapshot:
        yield SAME_STATES


def _declared(restore: Restore, pair: Pair) -> Iterator[Result]:
    """E2 to E4 and Z4 without a snapshot of the new job: its code declares other states than the snapshot has."""
    yield from check_declared_states(restore, pair, keyed=False)


def _generic_types(restore: Restore, pair: Pair) -> Iterator[Result]:
    """S4: a job that forbids generic types is not built if it has one."""
    yield from refuse_generic_types(restore, pair, {} if pair.new is None else pair.new.listed_elements)


def _compressed(restore: Restore, pair: Pair) -> Iterator[Result]:
    """E1: compressed lists of Flink 1.18.0 and 1.18.1 have one offset for the elements of a chunk (FLINK-34063)."""
    if pair.old.elements.are_unflushed:
        text = "Flink 1.18.0 and 1.18.1 wrote wrong offsets of compressed lists (FLINK-34063), with which Flink fails or reads elements twice."
        yield refuses("E1", text, Remedy("Write a copy with right offsets.", ("convert", A, NEW)), pair.old)


def _raw(restore: Restore, pair: Pair) -> Iterator[Result]:
    """E6: raw operator state is read by the operator's own code."""
    size = sum(s.raw_operator is not None for s in pair.old.state.subtasks)
    if size and pair.new is not None and pair.old.state.name != pair.new.state.name:
        text = f"{several(size, 'subtask')} with raw operator state, which only the code of the operator reads."
        yield is_unknown("E6", text, "Restore a copy of the job from this snapshot to find out.", pair.old)


#: The mode of union state, which each subtask gets whole.
_UNION: Final = 1
#: Default of ``pekko.framesize``.
_FRAME_BYTES: Final = 10 << 20


def _inline(restore: Restore) -> Iterator[Result]:
    """R2: each subtask is deployed with its inline state, and with all union state (``TaskDeploymentDescriptor``)."""
    config = restore.options.config
    frame = _FRAME_BYTES if config is None else config.size("pekko.framesize") or _FRAME_BYTES
    for pair in restore.pairs:
        inline = [
            (stream.size_bytes, any(part.mode == _UNION for part in handle.states))
            for subtask in pair.old.state.subtasks
            if (handle := subtask.managed_operator) is not None
            for stream in streams_of(handle)
            if isinstance(stream, ByteStreamHandle)
        ]
        size = sum(n for n, to_all in inline if to_all) + max((n for n, to_all in inline if not to_all), default=0)
        if size > frame:
            text = f"Each subtask is deployed with {several(size, 'byte')} of state that is stored in _metadata, more than a message may have ({frame:,})."
            yield refuses("R2", text, Remedy("Set a larger pekko.framesize.", is_final=True), pair.old)


STEP: Final = Step(
    name="operator_state",
    title="Operator state",
    follows="OperatorStateRestoreOperation, DefaultOperatorStateBackend",
    irrelevant=_irrelevant,
    checks=(
        _states,
        per_pair(_declared),
        per_pair(check_asynchronous_functions),
        per_pair(_generic_types),
        per_pair(_compressed),
        per_pair(_raw),
        _inline,
    ),
)
