"""The Snappy kernel compared with the library: the same bytes, and the same blocks rejected."""

from __future__ import annotations

import cramjam
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statetool.kernels.rocksdb.snappy import plain_blocks

Bytes = npt.NDArray[np.uint8]
#: Bytes around each block that must not be written.
_GUARD = 32
#: Text that repeats at all distances, and bytes that hardly do.
PLAIN = st.lists(
    st.one_of(
        st.binary(max_size=100),
        st.builds(lambda unit, times: unit * times, st.binary(min_size=1, max_size=20), st.integers(1, 40)),
        st.sampled_from([b"a" * 70_000, bytes(range(256)) * 300]),
    ),
    max_size=8,
).map(b"".join)


def uncompressed(blocks: list[bytes], sizes: list[int]) -> tuple[int, list[bytes]]:
    """Return the first block that the kernel rejects, and its output for each."""
    data = np.frombuffer(b"".join(blocks), dtype=np.uint8)
    ends = np.cumsum([len(b) for b in blocks])
    stops = np.cumsum([size + _GUARD for size in sizes])
    starts = stops - np.array(sizes)
    out: Bytes = np.full(int(stops[-1]) + _GUARD, 0xEE, dtype=np.uint8)
    bodies = ends - np.array([len(b) for b in blocks])
    bad = int(plain_blocks(data, bodies, ends, np.ones(len(blocks), dtype=np.uint8), out, starts, stops))
    between = np.ones(len(out), dtype=np.bool_)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        between[start:stop] = False
    assert (out[between] == 0xEE).all()
    return bad, [out[a:b].tobytes() for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]


@given(st.lists(PLAIN, min_size=1, max_size=4))
def test_the_same_bytes(plain: list[bytes]) -> None:
    blocks = [bytes(cramjam.snappy.compress_raw(p)) for p in plain]
    assert uncompressed(blocks, list(map(len, plain))) == (-1, plain)


@given(PLAIN, st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4), st.integers(0, 9))
@example(b"a" * 100, [], 1)
def test_the_same_blocks_are_refused(plain: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    raw = bytearray(cramjam.snappy.compress_raw(plain))
    head = next(i for i, b in enumerate(raw) if b < 0x80) + 1  # the size was already read
    for at, byte in changes:
        if head < len(raw):
            raw[head + at % (len(raw) - head)] = byte
    block = bytes(raw[: max(head, len(raw) - cut)])
    bad, (found,) = uncompressed([block], [len(plain)])
    try:
        expected = bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError:
        assert bad == 0
    else:
        assert (bad, found) == (-1, expected)


@pytest.mark.parametrize("bytes_of_size", [1, 2, 3, 4])
def test_literals_of_all_sizes(bytes_of_size: int) -> None:
    size = 1 << (8 * bytes_of_size - 8) if bytes_of_size < 4 else 70_000
    literal = bytes(i * 7 & 0xFF for i in range(size))
    block = (
        b"\xff\xff\x7f" + bytes([(59 + bytes_of_size) << 2]) + (size - 1).to_bytes(bytes_of_size, "little") + literal
    )
    assert uncompressed([block], [size]) == (-1, [literal])
    assert uncompressed([block[:-1]], [size])[0] == 0


def test_copies_of_all_offsets_and_kinds() -> None:
    literal = bytes(range(60))
    for offset in range(1, 61):
        for kind, size in ((1, 4), (1, 11), (2, 1), (2, 64), (3, 33)):
            tag = [offset >> 8 << 5 | (size - 4) << 2 | 1] if kind == 1 else [(size - 1) << 2 | kind]
            place = offset.to_bytes({1: 1, 2: 2, 3: 4}[kind], "little")
            block = b"\x7f" + bytes([59 << 2]) + literal + bytes(tag) + place
            expected = bytearray(literal)
            for _ in range(size):
                expected.append(expected[-offset])
            assert uncompressed([block], [60 + size]) == (-1, [bytes(expected)])
            # If there is room, a full word is copied after the end of a copy: later output replaces it.
            more = block + bytes([59 << 2]) + literal
            assert uncompressed([more], [120 + size]) == (-1, [bytes(expected) + literal])
    assert uncompressed([block[:-1] + b"\1"], [93])[0] == 0  # before the start
