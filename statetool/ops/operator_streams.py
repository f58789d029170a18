"""Write operator state again: states left out, or the elements of subtasks that are no more given to others.

Elements pass through undecoded. Their ends are known by the offsets alone; where the stream is compressed, an element is a row of
whole chunks, which are copied as they are. Follows ``DefaultOperatorStateBackendSnapshotStrategy`` and
``RoundRobinOperatorStateRepartitioner``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.compression import STREAM_START
from statetool.formats.described import learn_states
from statetool.formats.metadata.handles import (
    OperatorStreamHandle,
    StatePartitions,
)
from statetool.formats.operator_state import OperatorHeader, write_operator_header
from statetool.formats.state_meta import StateMeta, write_m6
from statetool.formats.stream import Stream
from statetool.io.output import Output
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import OperatorPart, element_ends
from statetool.write.publish import StagedFile, Staging
from statetool.write.streams import StreamOutput

_COPY_BYTES: Final = 8 << 20
_KINDS: Final = {"list": 0, "union": 1, "broadcast": 2}


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of one state that lie in one stream: where each starts and ends."""

    stream: Stream
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStreamJob:
    """The operator state of one new subtask; picklable and self-contained.

    Attributes
    ----------
    header
        Bytes of the new stream up to its first element.
    states
        Name, index into :data:`~statetool.formats.metadata.handles.MODES`, and elements of each state.
    """

    subtask: int
    header: bytes
    states: tuple[tuple[str, int, tuple[Elements, ...]], ...]


@dataclass(frozen=True, slots=True)
class NewOperatorStream:
    """A new subtask's operator state."""

    subtask: int
    handle: OperatorStreamHandle
    file: StagedFile | None


def plan_operator_streams(
    operator: OperatorInventory, parallelism: int, *, without: Collection[str] = ()
) -> list[OperatorStreamJob] | None:
    """Plan new operator streams, ``None`` where the old ones can stay.

    Raises
    ------
    UnsupportedError
        Two subtasks describe a state differently, or only some of them compress.
    FormatError
        An offset outside of its stream.
    """
    parts = operator.operator_parts
    shrinks = any(p.subtask >= parallelism for p in parts)
    loses = any(name in without for p in parts for name in operator.operator_states)
    if not (shrinks or loses):
        return None
    headers = {p.subtask: operator.operator_header(p) for p in parts}
    for other in headers.values():
        for header in headers.values():
            learn_states(header.states, other.states)
    metas = _joined(operator, [m for h in headers.values() for m in h.states if m.name not in without])
    if not metas:
        return []
    first = next(iter(headers.values()))
    if any(h.compressed != first.compressed for h in headers.values()):
        raise UnsupportedError(
            "operator state is compressed in some subtasks only", hint="take a new savepoint of the job"
        ).at(operator=operator.label)
    header = OperatorHeader(version=max(first.version, 5), compressed=first.compressed, states=metas, size_bytes=0)
    raw = write_operator_header(header, version=header.version) + (STREAM_START if first.compressed else b"")
    ranges = [(p.subtask, p.stream, _ranges(operator, p)) for p in parts]
    subtasks = range(parallelism) if shrinks else [p.subtask for p in parts]
    dealt = {m.name: _dealt(m, ranges, parallelism, shrinks=shrinks) for m in metas}
    return [
        OperatorStreamJob(
            subtask=i,
            header=raw,
            states=tuple((m.name, _KINDS[m.kind], tuple(dealt[m.name].get(i, ()))) for m in metas),
        )
        for i in subtasks
    ]


def _joined(operator: OperatorInventory, metas: Sequence[StateMeta]) -> tuple[StateMeta, ...]:
    found: dict[str, StateMeta] = {}
    described: dict[str, bytes] = {}
    for meta in metas:
        out = Output()
        write_m6(out, meta)
        raw = bytes(out)
        found.setdefault(meta.name, meta)
        if described.setdefault(meta.name, raw) != raw:
            raise UnsupportedError("two subtasks describe this operator state differently").at(
                operator=operator.label, state=meta.name
            )
    return tuple(found.values())


def _ranges(operator: OperatorInventory, part: OperatorPart) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Return where the elements of each state are: each ends where the next one of the stream starts."""
    try:
        end_of = element_ends(part)
    except FormatError as error:
        raise error.at(operator=operator.label) from None
    return {name: tuple((o, end_of[o]) for o in offsets) for name, offsets in part.offsets.items()}


def _dealt(
    meta: StateMeta,
    ranges: Sequence[tuple[int, Stream, Mapping[str, tuple[tuple[int, int], ...]]]],
    parallelism: int,
    *,
    shrinks: bool,
) -> dict[int, list[Elements]]:
    """Return the elements of one state by new subtask."""
    dealt: dict[int, list[Elements]] = {}
    here = [(subtask, stream, some[meta.name]) for subtask, stream, some in ranges if some.get(meta.name)]
    if meta.kind == "list" and shrinks:
        # Evenly, as Flink does: the first ones get one more.
        flat = [(stream, at) for _, stream, some in here for at in some]
        each, more = divmod(len(flat), parallelism)
        position = 0
        for i in range(parallelism):
            n = each + (i < more)
            for stream, at in flat[position : position + n]:
                dealt.setdefault(i, []).append(Elements(stream, (at,)))
            position += n
        return dealt
    for subtask, stream, some in here:
        if meta.kind == "broadcast" and subtask >= parallelism:
            continue  # every subtask holds all of it
        dealt.setdefault(subtask % parallelism, []).append(Elements(stream, some))
    return dealt


def write_operator_stream(job: OperatorStreamJob, staging: Staging) -> NewOperatorStream:
    """Write one subtask's operator state."""
    partitions = []
    with StreamOutput(staging, "operator") as out:
        out.write(job.header)
        for name, mode, pieces in job.states:
            offsets = []
            for piece in pieces:
                with piece.stream.open() as f:
                    for start, end in piece.ranges:
                        offsets.append(out.size_bytes)
                        for at in range(start, end, _COPY_BYTES):
                            out.write(f.read_at(at, min(_COPY_BYTES, end - at)))
            partitions.append(StatePartitions(name=name, mode=mode, offsets=tuple(offsets)))
        out.complete()
    handle = OperatorStreamHandle(states=tuple(partitions), stream=out.written.handle())
    return NewOperatorStream(job.subtask, handle, out.written.file)
