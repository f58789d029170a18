"""Timers in raw keyed state (:mod:`statetool.formats.timers.raw_timers`) as entry batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.entries import RebuiltBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import BATCH_BYTES, KeyGroupRange
from statetool.formats.stream import OpenStream
from statetool.formats.timers.raw_timers import TIMESTAMP_BYTES, parse_raw_timers
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import MESSAGES, OK
from statetool.kernels.entries.timers import flip_timers
from statetool.kernels.values.elements import element_positions
from statetool.kernels.values.program import Fixed, Struct
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.runtime import TimerSerializer
from statetool.types.declared import TypeContext


def read_raw_timers(
    f: OpenStream, groups: Sequence[KeyGroupRange], header: KeyedHeader, types: TypeContext
) -> Iterator[RebuiltBatch]:
    """Read the timers of key groups, a bounded number per batch.

    Parameters
    ----------
    header
        From :func:`~statetool.formats.timers.raw_timers.read_raw_header`.
    types
        Type information from outside the stream.

    Raises
    ------
    FormatError
        Damaged, or other services than in ``header``; with file, offset and key group.
    """
    ids = {m.name: i for i, m in enumerate(header.states)}
    for group in groups:
        region = f.read_at(group.offset, group.size_bytes)
        base = f.stream.start + group.offset
        try:
            services = parse_raw_timers(region, types, base=base, key=header.key, find=_edges)
            if odd := {t.state for t in services} ^ ids.keys():
                text = f"timers {', '.join(sorted(odd))} are not in all key groups of the subtask"
                raise FormatError(text).at(offset=base)
        except StatetoolError as error:
            raise error.at(file=f.stream.file, key_group=group.number) from None
        for timers in services:
            yield from _batches(region, timers.result, ids[timers.state], group.number, f.stream.file)


def _edges(c: Cursor, timer: TimerSerializer, n: int) -> Int64s:
    """Return the start of each timer, and the end of the last one."""
    key, namespace = timer.nested
    prog = compile_skip(Struct(("key", "namespace", "timestamp"), (key.program(), namespace.program(), Fixed("i64"))))
    edges = np.empty(n + 1, dtype=np.int64)
    if prog is None:
        for i in range(n):
            edges[i] = c.pos
            key.skip(c)
            namespace.skip(c)
            c.skip(TIMESTAMP_BYTES)
        edges[n] = c.pos
        return edges
    pos, end, counts = (np.array([v], dtype=np.int64) for v in (c.pos, c.end, n))
    after = pos.copy()
    scratch = np.empty(n, dtype=np.int64)
    empty = np.empty(0, dtype=np.int64)
    data = np.frombuffer(c.data, dtype=np.uint8)
    code, _ = element_positions(data, prog, empty, pos, end, counts, edges, empty, scratch, after)
    if code != OK:
        raise c.fail(f"timers: {MESSAGES[int(code)][0]}")
    c.pos = edges[n] = int(after[0])
    return edges


def _batches(region: memoryview, edges: Int64s, state: int, key_group: int, file: str) -> Iterator[RebuiltBatch]:
    data = np.frombuffer(region, dtype=np.uint8)
    first = 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(edges, edges[first] + BATCH_BYTES, side="right")) - 1)
        key = edges[first:last] - edges[first]
        key_end = edges[first + 1 : last + 1] - edges[first]
        out = np.empty(int(key_end[-1]), dtype=np.uint8)
        flip_timers(data, edges[first:last], edges[first + 1 : last + 1], key, out)
        out.flags.writeable = False
        yield RebuiltBatch(
            data=out,
            state=np.full(len(key), state, dtype=np.int64),
            group=np.full(len(key), key_group, dtype=np.int64),
            key=key,
            key_end=key_end,
            value=key_end,
            value_end=key_end,
            regions=(),
            file=file,
        )
        first = last
