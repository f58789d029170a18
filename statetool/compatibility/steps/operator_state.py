"""Restore operator state: list, union and broadcast states, element by element.

Follows ``OperatorStateRestoreOperation`` and ``DefaultOperatorStateBackend``, which keeps list and broadcast states in two maps, and reads
all elements with the old serializer before the job registers a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from statetool.compatibility.declared_states import check_declared_states
from statetool.compatibility.restore import Pair, Restore, hidden_values
from statetool.compatibility.states import Hidden, Job, RanStates, element_verdicts, of_error
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.keyed_state import SAME_STATES, refuse_generic_types
from statetool.compatibility.steps.step import (
    Found,
    Result,
    StateFound,
    Step,
    guarded,
    is_unknown,
    may_change,
    per_pair,
    refuses,
)
from statetool.compatibility.stream_code import check_asynchronous_functions, check_choices
from statetool.compatibility.verdicts import NEW, A, Level, Remedy
from statetool.connectors.elements import OperatorBytes
from statetool.errors import UNREAD, several
from statetool.formats.metadata.handles import ByteStreamHandle, streams_of
from statetool.formats.state_meta import StateMetaInfo
from statetool.io import files
from statetool.io.cursor import Cursor
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
    yield from check_choices(restore, pair, keyed=False)


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
#: Operator state that is read to compare the elements of all subtasks.
_MOST_BYTES: Final = 16 << 20
_MOST_FILES: Final = 4
#: Union states of Flink's functions that take one of the elements: the highest counter (``StreamingFileSinkHelper``).
_REPLACED: Final = frozenset({"max-part-counter"})


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


def _copies(restore: Restore, pair: Pair) -> Iterator[Result]:
    """P7: each subtask gets the whole union state; a function that adds all of it to its own has each element once more per subtask after each restore."""
    parts = [p for s in pair.old.state.subtasks if s.managed_operator is not None for p in s.managed_operator.states]
    for name in dict.fromkeys(p.name for p in parts if p.mode == _UNION and p.name not in _REPLACED):
        sizes = [len(p.offsets) for p in parts if p.name == name]
        subtasks = len(sizes)
        if subtasks < 2 or subtasks < pair.old.state.parallelism or len(set(sizes)) > 1 or not sizes[0]:
            continue
        assumption = Assumption(
            rule="P7",
            text=f"the function of {pair.old.label.display} does not add all elements of its union state {name} to its own when it is restored",
            option="statetool head, which shows the elements of each subtask",
        )
        if not _is_small(pair.old):
            yield assumption
            continue
        counts = Counter(e.data for e in OperatorBytes(pair.old).elements(name))
        if any(number % subtasks for number in counts.values()):
            continue
        if all(number % subtasks**2 == 0 for number in counts.values()):
            text = f"Union state {name} has each element {min(counts.values())} times in {subtasks} subtasks: its function adds what it restores to what it has, and each restore multiplies the elements by the parallelism."
            yield may_change("P7", text, "Write a copy in which each element is stored once.", pair.old)
        else:
            yield assumption


def _is_small(operator: OperatorInventory) -> bool:
    """Return True if the operator state of all subtasks can be read without many requests."""
    streams = [s for t in operator.state.subtasks if (h := t.managed_operator) is not None for s in streams_of(h)]
    in_files = [s for s in streams if not isinstance(s, ByteStreamHandle)]
    is_near = files.is_local(operator.metadata_file) or len(in_files) <= _MOST_FILES
    return is_near and sum(s.size_bytes for s in streams) <= _MOST_BYTES


def _broadcast(restore: Restore) -> Iterator[Result]:
    """P8: with another parallelism, a subtask gets the broadcast state of any other (``RoundRobinOperatorStateRepartitioner``)."""
    for operator in (p.old for p, _ in restore.parallelism_changes):
        for name, meta in operator.listed_elements.items():
            if meta.kind != "broadcast":
                continue
            if not _is_small(operator):
                text = f"all subtasks of {operator.label.display} have the same entries in the broadcast state {name}"
                yield Assumption(rule="P8", text=text, option="statetool head, which shows the entries of each subtask")
                continue
            copies = [_entries(e.data, meta) for e in OperatorBytes(operator).elements(name)]
            if any(copy != copies[0] for copy in copies):
                text = f"The subtasks have different entries in the broadcast state {name}. With another parallelism, each subtask gets the copy of any of them."
                yield may_change("P8", text, "Restore with the old parallelism.", operator)


def _entries(data: bytes, meta: StateMetaInfo) -> Counter[bytes]:
    """Return the bytes of each entry of a broadcast state (``HeapBroadcastState``)."""
    c = Cursor(data)
    entries: Counter[bytes] = Counter()
    for _ in range(c.i4()):
        start = c.pos
        meta.serializers["KEY_SERIALIZER"].decode(c)
        meta.value.decode(c)
        entries[data[start : c.pos]] += 1
    return entries


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
        per_pair(_copies),
        guarded(_broadcast),
    ),
)
