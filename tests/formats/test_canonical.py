from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statetool.errors import FormatError
from statetool.formats.backends import canonical
from statetool.formats.backends.canonical import StreamLayout, is_larger, open_large, read_entries
from statetool.formats.compression import read_chunks, stream_chunks
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.stream import Stream
from statetool.io.files import BYTES_READ
from tests.support.snapshots.canonical import Entry, key_group_bytes, snappy

Rows = list[tuple[int, int, bytes, bytes]]
HEADER = b"header"
WAYS = ["whole", "windows", "sections", "find"]


def stream_of(groups: Sequence[tuple[int, bytes]], *, compressed: bool = False) -> tuple[Stream, list[KeyGroupRange]]:
    """Concatenate key groups."""
    data = bytearray(HEADER)
    ranges = []
    for number, raw in groups:
        raw = snappy(raw, block=50) if compressed else raw
        ranges.append(KeyGroupRange(number, len(data), len(raw)))
        data += raw
    return Stream(file="a-file", start=1000, size_bytes=len(data), inline=bytes(data)), ranges


def rows_of(*batches: EntryBatch) -> Rows:
    rows = []
    for b in batches:
        raw = bytes(b.data)
        for i in range(len(b)):
            key, value = raw[b.key[i] : b.key_end[i]], raw[b.value[i] : b.value_end[i]]
            rows.append((int(b.group[i]), int(b.state[i]), key, value))
    return rows


entries = st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=40)), min_size=1, max_size=6)
states = st.lists(entries, min_size=1, max_size=4)


@pytest.fixture(autouse=True)
def _few_entries_per_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "STRIDE", 2)
    monkeypatch.setattr(canonical, "_MOST_FOUND", 2)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(states, min_size=1, max_size=5), st.booleans(), st.booleans(), st.integers(1, 200))
def test_every_way_to_walk_finds_the_same_entries(
    groups: list[list[list[Entry]]], wide: bool, compressed: bool, window: int
) -> None:
    prefix = 2 if wide else 1
    numbers = [7 + i * (5000 if wide else 20) for i in range(len(groups))]
    raw = [(n, key_group_bytes(n, prefix, enumerate(states))) for n, states in zip(numbers, groups, strict=True)]
    stream, ranges = stream_of(raw, compressed=compressed)
    layout = StreamLayout(prefix=prefix, states=4, compressed=compressed)
    wanted = [
        (n, s, k, v)
        for n, states in zip(numbers, groups, strict=True)
        for s, state_entries in enumerate(states)
        for k, v in state_entries
    ]
    with stream.open() as f:
        assert rows_of(read_entries(f, ranges, layout)) == wanted
        assert rows_of(*(read_entries(f, [r], layout) for r in ranges)) == wanted
        for r in ranges:
            own = [w for w in wanted if w[0] == r.number]
            with open_large(f, r, layout) as group:
                assert rows_of(*group.windows(window)) == own
                for most in (1 << 22, 1):
                    sections = group.sections(window, most=most)
                    assert [s.state for s in sections] == sorted({w[1] for w in own})
                    for section in sections:
                        of_state = [w for w in own if w[1] == section.state]
                        assert section.entries == len(of_state)
                        assert len(section.starts) == (1 if most == 1 else section.entries)
                        assert section.size_bytes == sum(prefix + 8 + len(k) + len(v) for _, _, k, v in of_state)
                        assert section.ordered == ([w[2] for w in of_state] == sorted(w[2] for w in of_state))
                        for first, stop in combinations(range(section.entries + 1), 2):
                            batch, ends = group.entries([(section, first, stop)])
                            assert ends == [stop - first]
                            assert rows_of(batch) == of_state[first:stop]
                    check_find(group, own, window)
                    together, ends = group.entries([(s, 0, s.entries) for s in sections])
                    assert rows_of(together) == own
                    assert ends[-1] == len(own)
        if len(ranges) > 2:
            assert rows_of(read_entries(f, [ranges[0], ranges[2]], layout)) == [
                w for w in wanted if w[0] in (numbers[0], numbers[2])
            ]


def check_find(group: canonical.LargeKeyGroup, own: Rows, window: int) -> None:
    """Compare the entries that begin with some keys, in all states and in one."""
    keys = [b"", b"absent!", *(k[:size] for _, _, k, _ in own[:2] for size in (1, len(k)))]
    sections = group.sections(window)
    for wanted in ([keys[0]], keys[1:2], keys[2:], [own[-1][2] + b"x"]):
        expected = [w for w in own if w[1] != 1 and w[2].startswith(tuple(wanted))]
        search = canonical.key_search(wanted, [0, -1, 0, 0])
        found, batches = group.find(search, window)
        assert rows_of(*batches) == expected
        assert [(s.state, s.ordered, s.entries, s.end) for s in found] == [
            (s.state, s.ordered, s.entries, s.end) for s in sections
        ]
        for section, full in zip(found, sections, strict=True):
            assert section.starts.tolist() == full.starts[:: section.stride].tolist()
            only = canonical.key_search(wanted, [0 if n == section.state else -1 for n in range(4)])
            assert rows_of(*group.find_in(section, only, window)) == [
                w for w in own if w[1] == section.state and w[2].startswith(tuple(wanted))
            ]


def one_group() -> bytes:
    return key_group_bytes(5, 1, [(0, [(b"key", b"value"), (b"k2", b"")]), (1, [(b"x", b"yz")])])


@pytest.mark.parametrize(
    ("at", "new", "message", "offset"),
    [
        (0, b"\0\2", "state id that the header does not have", 0),
        (2, b"\0\0\0\0", "length does not fit", 2),
        (2, b"\x7f\xff\xff\xff", "length does not fit", 2),
        (2, b"\xff\xff\xff\xff", "length does not fit", 2),
        (6, b"\6", "does not start with the number of its key group", 6),
        (10, b"\0\0\1\0", "length does not fit", 10),
        (30, b"\0\7", "state id that the header does not have", 30),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_damage_is_named_with_its_place(at: int, new: bytes, message: str, offset: int, way: str) -> None:
    raw = bytearray(one_group())
    raw[at : at + len(new)] = new
    check_refused(bytes(raw), message, offset, way=way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", range(1, len(one_group())))
def test_every_truncation_is_noticed(size: int, way: str) -> None:
    check_refused(one_group()[:size], "ends inside an entry|does not fit", None, way=way)


def test_a_key_group_without_entries_has_no_sections() -> None:
    assert canonical._EntryIndex(1).sections(2) == []


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("at", [2, 3, 4, 5, 6, 10, 11, 12, 13])
def test_a_key_group_that_changes_while_it_is_read_is_noticed(tmp_path: Path, at: int, stride: int) -> None:
    """Bytes of the first entry: the length of its key, the number of the key group, and the length of its value."""
    file = tmp_path / "f"
    file.write_bytes(one_group())
    stream = Stream(file=str(file), start=0, size_bytes=len(one_group()))
    with (
        stream.open() as f,
        open_large(
            f, KeyGroupRange(5, 0, len(one_group())), StreamLayout(prefix=1, states=2, compressed=False)
        ) as group,
    ):
        first, second = group.sections(most=3 // stride)
        assert first.stride == stride
        batch, _ = group.entries([(first, 0, 2), (second, 0, 1)])
        assert rows_of(batch) == [(5, 0, b"key", b"value"), (5, 0, b"k2", b""), (5, 1, b"x", b"yz")]
        raw = bytearray(one_group())
        raw[at] ^= 1
        file.write_bytes(raw)
        with pytest.raises(FormatError, match="changed while it was read") as caught:
            group.entries([(first, 0, 2), (second, 0, 1)])
        assert caught.value.where.key_group == 5
        file.write_bytes(raw[:20])
        with pytest.raises(FormatError, match="truncated while it was read") as truncated:
            group.entries([(first, 0, 2), (second, 0, 1)])
    assert truncated.value.where.file == str(file)


@pytest.mark.parametrize("way", WAYS)
def test_bytes_behind_the_terminator_are_noticed(way: str) -> None:
    check_refused(one_group() + b"\0", "trail after the end of the key group", len(one_group()), way=way)


def check_refused(raw: bytes, message: str, offset: int | None, *, way: str) -> None:
    stream, ranges = stream_of([(5, raw)])
    layout = StreamLayout(prefix=1, states=2, compressed=False)
    with stream.open() as f, open_large(f, ranges[0], layout) as group:
        ways: dict[str, Callable[[], object]] = {
            "whole": lambda: read_entries(f, ranges, layout),
            "windows": lambda: list(group.windows(11)),
            "sections": lambda: group.sections(11),
            "find": lambda: group.find(canonical.key_search([b"k"], [0, 0]), 11),
        }
        with pytest.raises(FormatError, match=message) as caught:
            ways[way]()
    assert caught.value.where.file == "a-file"
    assert caught.value.where.key_group == 5
    if offset is not None:
        assert caught.value.where.offset == 1000 + len(HEADER) + offset


def test_neighbouring_key_groups_are_one_read() -> None:
    groups = [(n, key_group_bytes(n, 2, [(0, [(b"k", b"v")])])) for n in range(32_768)]
    stream, ranges = stream_of(groups)
    reads = []
    with stream.open() as f:
        read_at = f.read_at
        f.read_at = lambda offset, length: reads.append(length) or read_at(offset, length)  # type: ignore[method-assign, func-returns-value]
        batch = read_entries(f, ranges, StreamLayout(prefix=2, states=1, compressed=False))
    assert np.array_equal(batch.group, np.arange(32_768))
    assert reads == [sum(len(raw) for _, raw in groups)]


def test_a_file_is_not_copied(tmp_path: Path) -> None:
    raw = one_group()
    (tmp_path / "f").write_bytes(raw)
    stream = Stream(file=str(tmp_path / "f"), start=0, size_bytes=len(raw))
    BYTES_READ.total = 0
    with stream.open() as f:
        batch = read_entries(f, [KeyGroupRange(5, 0, len(raw))], StreamLayout(prefix=1, states=2, compressed=False))
    assert BYTES_READ.total == len(raw)
    assert not batch.data.flags.owndata


# ---- compression --------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.binary(min_size=1, max_size=3000), st.integers(1, 400), st.integers(1, 500))
def test_chunks_are_the_same_in_blocks(raw: bytes, chunk_bytes: int, block: int) -> None:
    region = memoryview(snappy(raw, block=chunk_bytes) + b"\1\7\0\0csumraw" + b"\xfe\3\0\0pad")
    whole = list(read_chunks(region, base=0))
    assert b"".join(c.data for c in whole) == raw + b"raw"

    def read(offset: int, length: int) -> memoryview:
        assert length <= max(2 * block, 2 * chunk_bytes + 100)
        return region[offset : offset + length]

    assert list(stream_chunks(read, len(region), base=0, block=block)) == whole


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (b"", "empty"),
        (snappy(b"x" * 100)[:-1], "only"),
        (snappy(b"x")[:12], "cut off"),
        (b"\xff\6\0\0sNaPpX", "identifier"),
        (b"\x02\0\0\0", "may not be skipped"),
        (b"\0\3\0\0abc", "without its checksum"),
        (b"\0\x09\0\0csum\xff\xff\xff\x7f\0", "claims more than"),
        (b"\0\x06\0\0csum\x05\0", "damaged"),
    ],
)
def test_damaged_compression_is_named_with_its_place(region: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(read_chunks(memoryview(region), base=0))
    with pytest.raises(FormatError, match=message) as caught:
        list(stream_chunks(lambda o, n: memoryview(region)[o : o + n], len(region), base=50, block=7))
    assert caught.value.where.offset is not None
    assert caught.value.where.offset >= 50


def test_an_empty_compressed_key_group_is_damage() -> None:
    stream, ranges = stream_of([(5, b"")], compressed=True)
    with stream.open() as f, pytest.raises(FormatError):
        read_entries(f, ranges, StreamLayout(prefix=1, states=1, compressed=True))


def test_the_size_of_a_compressed_key_group_counts_uncompressed() -> None:
    raw = key_group_bytes(5, 1, [(0, [(b"k", bytes(1 << 20))])])
    data = HEADER + snappy(raw)
    stream = Stream(file="f", start=0, size_bytes=len(data), inline=data)
    group = KeyGroupRange(5, len(HEADER), len(data) - len(HEADER))
    layout = StreamLayout(prefix=1, states=1, compressed=True)
    assert group.size_bytes < len(raw) / 15
    with stream.open() as f:
        assert is_larger(f, group, layout, len(raw) - 1)
        assert not is_larger(f, group, layout, len(raw))
