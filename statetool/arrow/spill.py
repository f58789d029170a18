"""Put the entries of each key of a huge key group together with bounded memory, by way of local disk.

The entries are dealt out by the hash of their key into files on local disk, each small enough to be held; a file is a row of
small canonical key groups (one for each window that was read), so it is read back by the same walk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from statetool.arrow.keyed import KeyedTable
from statetool.formats.keyed.canonical import KeyGroupRange, StreamLayout, read_entries, read_windows
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.stream import OpenStream, Stream
from statetool.kernels.walk import hash_ranges, pack_entries


def spilled(
    f: OpenStream, group: KeyGroupRange, layout: StreamLayout, table: KeyedTable, *, memory_bytes: int
) -> Iterator[EntryBatch]:
    """Yield the entries of one key group such that all entries of a key are in one batch.

    Only states of ``table`` are kept. Memory: about ``memory_bytes``, or the largest single key where that is more.
    """
    parts = max(2, -(-group.size_bytes * 4 // memory_bytes))
    plain = StreamLayout(prefix=layout.prefix, states=layout.states, compressed=False)
    with tempfile.TemporaryDirectory(prefix="statetool-") as folder:
        paths = [Path(folder) / f"{i}" for i in range(parts)]
        ranges: list[list[KeyGroupRange]] = [[] for _ in paths]
        with ExitStack() as stack:
            files = [stack.enter_context(p.open("wb")) for p in paths]
            for window in read_windows(f, group, layout, window=max(1 << 20, memory_bytes // 8)):
                for part, blob in _deal(window, table, layout.prefix, parts):
                    ranges[part].append(KeyGroupRange(group.number, files[part].tell(), len(blob)))
                    files[part].write(blob)
        for path, found in zip(paths, ranges, strict=True):
            if found:
                stream = Stream(file=str(path), start=0, size_bytes=path.stat().st_size)
                with stream.open() as spill:
                    yield read_entries(spill, found, plain)
            path.unlink()


def _deal(window: EntryBatch, table: KeyedTable, prefix: int, parts: int) -> Iterator[tuple[int, memoryview]]:
    """Yield a small canonical key group for each part that gets entries of this window."""
    target = np.full(len(window), -1, dtype=np.int64)
    for name, number in table.ids.items():
        meta = table.metas[name]
        index = np.flatnonzero(window.state == number)
        if not len(index) or meta.kind == "timers":
            continue
        _, keys = table.split_all(window, meta)
        hashes = np.empty(len(index), dtype=np.int64)
        hash_ranges(window.data, keys.key, keys.key_end, window.group[index], hashes)
        target[index] = (hashes.view(np.uint64) >> np.uint64(33)).astype(np.int64) % parts
    for part in range(parts):
        order = np.flatnonzero(target == part)
        if len(order):
            order = order[np.argsort(window.state[order], kind="stable")]
            states = window.state[order]
            last = np.ones(len(order), dtype=np.uint8)
            last[:-1] = states[1:] != states[:-1]
            columns = (window.state, window.key, window.key_end, window.value, window.value_end)
            size = pack_entries(window.data, order, last, *columns, prefix, np.empty(0, dtype=np.uint8))
            out = np.empty(size, dtype=np.uint8)
            pack_entries(window.data, order, last, *columns, prefix, out)
            yield part, out.data
