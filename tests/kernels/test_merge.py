"""Merge of blocks of table files, compared with a merge of lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.errors import FormatError
from statetool.formats.rocksdb.table_runs import PlainBlocks, Run, merge_runs
from statetool.kernels.core.arrays import frozen
from statetool.kernels.rocksdb.merge import DELETION, MERGE, SINGLE_DELETION, VALUE

KINDS = (VALUE, MERGE, DELETION, SINGLE_DELETION)
#: Keys with equal beginnings of any length around eight bytes, which are compared as numbers.
KEYS = st.one_of(
    st.binary(max_size=3),
    st.builds(
        bytes.__add__, st.sampled_from([b"", b"a", b"aaaaaaa", b"aaaaaaaa", b"\xff" * 17]), st.binary(max_size=3)
    ),
)


class Entry(NamedTuple):
    key: bytes
    sequence: int
    kind: int
    value: bytes


def run_of(entries: Sequence[Entry]) -> Run:
    keys = [e.key + (e.sequence << 8 | e.kind).to_bytes(8, "little") for e in entries]
    key_edges, edges = np.cumsum([0, *map(len, keys)]), np.cumsum([0, *(len(e.value) for e in entries)])
    return Run(
        keys=frozen(np.frombuffer(b"".join(keys), dtype=np.uint8)), key=key_edges[:-1].copy(),
        key_end=key_edges[1:] - 8, tag=np.array([e.sequence << 8 | e.kind for e in entries], dtype=np.uint64),
        data=frozen(np.frombuffer(b"".join(e.value for e in entries), dtype=np.uint8)), value=edges[:-1].copy(),
        value_end=edges[1:].copy(),
    )  # fmt: skip


def failure(block: int, words: str) -> FormatError:
    return FormatError(f"block {block}: {words}")


def blocks_of(runs: Sequence[Sequence[Sequence[Entry]]], interval: int = 3) -> PlainBlocks:
    """Return the blocks of runs, given as lists of blocks."""
    blocks = [run_of(block).encode(interval) for run in runs for block in run]
    edges = np.cumsum([0, *map(len, blocks)])
    data = frozen(np.concatenate([np.empty(0, dtype=np.uint8), *blocks]))
    firsts = np.cumsum([0, *map(len, runs)])
    return PlainBlocks.measure(data, edges[:-1].copy(), edges[1:].copy(), firsts, failure)


def merged(entries: list[Entry]) -> list[tuple[bytes, bytes]]:
    """Return what remains of entries, as RocksDB does with the merge operator of Flink."""
    remaining = []
    ordered = sorted(entries, key=lambda e: (e.key, -e.sequence))
    for key, versions in groupby(ordered, key=lambda e: e.key):
        operands: list[bytes] = []
        for version in versions:
            if version.kind in (VALUE, MERGE):
                operands.append(version.value)
            if version.kind != MERGE:
                break
        if operands:
            remaining.append((key, b",".join(reversed(operands))))
    return remaining


def result(
    blocks: PlainBlocks, low: bytes, high: bytes, *, behind_low: bool, with_high: bool
) -> list[tuple[bytes, bytes]]:
    s = blocks.merge(low, high, behind_low=behind_low, with_high=with_high, final=True)
    data = s.data.tobytes()
    starts = [0, *s.value_end.tolist()]
    assert s.key.tolist() == starts[:-1]  # one after another
    assert len(data) == starts[-1]
    columns = zip(s.key.tolist(), s.key_end.tolist(), s.value_end.tolist(), strict=True)
    return [(data[a:b], data[b:c]) for a, b, c in columns]


@given(
    st.lists(st.tuples(KEYS, st.sampled_from(KINDS), st.binary(max_size=12), st.integers(0, 4)), max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    KEYS,
    KEYS,
    st.booleans(),
    st.booleans(),
)
def test_what_remains_in_a_range(
    written: list[tuple[bytes, int, bytes, int]],
    cuts: list[int],
    low: bytes,
    high: bytes,
    behind: bool,
    inclusive: bool,
) -> None:
    low, high = min(low, high), max(low, high)
    entries = [(Entry(key, n, kind, value), run) for n, (key, kind, value, run) in enumerate(written)]

    def may_be_read(block: list[Entry]) -> bool:
        return block[0].key < high or (inclusive and block[0].key == high)

    runs = []
    for number in range(5):
        run = sorted((e for e, own in entries if own == number), key=lambda e: (e.key, -e.sequence))
        edges = sorted({0, len(run), *(cut % (len(run) + 1) for cut in cuts)})
        blocks = [run[a:b] for a, b in pairwise(edges)]
        needed = [
            block for i, block in enumerate(blocks) if i == 0 or blocks[i - 1][-1].key < high or may_be_read(block)
        ]
        runs.append(needed)
    inside = [
        e
        for e, _ in entries
        if (e.key > low or (e.key == low and not behind)) and (e.key < high or (e.key == high and inclusive))
    ]
    assert result(blocks_of(runs), low, high, behind_low=behind, with_high=inclusive) == merged(inside)


def test_a_kind_that_is_no_entry_is_named_by_its_block_only_if_it_decides() -> None:
    odd = Entry(b"b", 3, 15, b"")
    with pytest.raises(FormatError, match="block 1: an entry that is no value, merge operand or deletion"):
        blocks_of([[[Entry(b"a", 1, VALUE, b"x")], [odd]]]).merge(
            b"", b"c", behind_low=False, with_high=False, final=True
        )
    hidden = blocks_of([[[odd]], [[Entry(b"b", 4, DELETION, b"")]]])
    assert result(hidden, b"", b"c", behind_low=False, with_high=False) == []


def test_selected_entries_are_merged_and_an_odd_kind_is_named_by_its_file() -> None:
    tables: list[Any] = [SimpleNamespace(stream=SimpleNamespace(file=name)) for name in ("1.sst", "2.sst")]
    old, new = [Entry(b"a", 1, VALUE, b"x"), Entry(b"b", 2, VALUE, b"y")], [Entry(b"a", 3, MERGE, b"z")]
    s = merge_runs([(run_of(old), tables[0]), (run_of(new), tables[1])])
    assert s.data.tobytes() == b"ax,zby"
    with pytest.raises(FormatError, match="no value, merge operand or deletion") as caught:
        merge_runs([(run_of(old), tables[0]), (run_of([Entry(b"a", 3, 15, b"")]), tables[1])])
    assert caught.value.where.file == "2.sst"


def test_a_key_without_room_for_its_tag() -> None:
    plain = frozen(
        np.frombuffer(bytes([0, 3, 0]) + b"abc" + (0).to_bytes(4, "little") + (1).to_bytes(4, "little"), np.uint8)
    )
    blocks = PlainBlocks.measure(plain, np.array([0]), np.array([len(plain)]), np.array([0, 1]), failure)
    with pytest.raises(FormatError, match="block 0: a key is too short"):
        blocks.merge(b"", b"z", behind_low=False, with_high=False, final=True)
