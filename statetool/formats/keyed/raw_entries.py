"""Timers in raw keyed state (:mod:`statetool.formats.keyed.raw_timers`) as entry batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.canonical import KeyGroupRange
from statetool.formats.keyed.entries import Int64s, RebuiltBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.raw_timers import TIMESTAMP_BYTES, RawTimers, parse_raw_timers
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.kernels.codes import MESSAGES, OK
from statetool.kernels.program import Fixed, Struct
from statetool.kernels.skip import compile_skip, element_positions
from statetool.kernels.timers import flip_timers
from statetool.serializers.runtime import TimerSerializer


def read_raw_timers(f: OpenStream, groups: Sequence[KeyGroupRange], header: KeyedHeader) -> Iterator[RebuiltBatch]:
    """Read the timers of some key groups, a batch for each.

    Parameters
    ----------
    header
        From :func:`read_raw_header`.

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
            found = parse_raw_timers(region, base=base, key=header.key, find=_edges)
            if unknown := {t.state for t in found} - ids.keys():
                raise FormatError(f"timers {', '.join(sorted(unknown))}, which other key groups do not have").at(
                    offset=base
                )
            yield _batch(region, found, ids, group.number, f.stream.file)
        except StatetoolError as error:
            raise error.at(file=f.stream.file, key_group=group.number) from None


def _edges(c: Cursor, timer: TimerSerializer, n: int) -> Int64s:
    """Return where each timer starts, and the last one ends."""
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
    none = np.empty(0, dtype=np.int64)
    data = np.frombuffer(c.data, dtype=np.uint8)
    code, _ = element_positions(data, prog, none, pos, end, counts, edges, none, scratch, after)
    if code != OK:
        raise c.fail(f"timers: {MESSAGES[int(code)][0]}")
    c.pos = edges[n] = int(after[0])
    return edges


def _batch(
    region: memoryview, found: list[RawTimers[Int64s]], ids: dict[str, int], key_group: int, file: str
) -> RebuiltBatch:
    none = np.empty(0, dtype=np.int64)
    starts = np.concatenate([t.found[:-1] for t in found] or [none])
    ends = np.concatenate([t.found[1:] for t in found] or [none])
    state = np.concatenate([np.full(len(t.found) - 1, ids[t.state], dtype=np.int64) for t in found] or [none])
    key_end = np.cumsum(ends - starts)
    key = key_end - (ends - starts)
    data = np.empty(int(key_end[-1]) if len(key_end) else 0, dtype=np.uint8)
    flip_timers(np.frombuffer(region, dtype=np.uint8), starts, ends, key, data)
    data.flags.writeable = False
    return RebuiltBatch(
        data=data, state=state, group=np.full(len(key), key_group, dtype=np.int64), key=key, key_end=key_end,
        value=key_end, value_end=key_end, regions=(), file=file,
    )  # fmt: skip
