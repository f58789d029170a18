"""Checksums of short inputs; tests/formats/test_native.py compares those of complete blocks with RocksDB's."""

from __future__ import annotations

import numpy as np
import pytest

from statetool.kernels.rocksdb.checksums import CRC32C, XXH3, first_bad_block, masked_crc32c

VECTORS = [(b"", 0x2D06800538D394C2), (b"a", 0xE6C632B61E964E1F), (b"abc", 0x78AF5F94892F3950)]


def test_crc32c_is_masked() -> None:
    crc = 0xE3069283  # the CRC-32C check value for the nine digits
    assert masked_crc32c(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize(("raw", "wanted"), VECTORS)
def test_blocks_are_checked_with_their_compression(raw: bytes, wanted: int) -> None:
    for compression in (0, 1, 7):
        stored = (wanted & 0xFFFFFFFF) ^ (compression * 0x6B9083D9 & 0xFFFFFFFF)
        block = raw + bytes([compression]) + stored.to_bytes(4, "little")
        data = np.frombuffer(block + block, dtype=np.uint8)
        starts = np.array([0, len(block)])
        assert first_bad_block(data, starts, starts + len(raw), XXH3) == -1
        assert first_bad_block(data, starts, starts + len(raw), CRC32C) == 0
        bad = data.copy()
        bad[-1] ^= 1
        bad.flags.writeable = False
        assert first_bad_block(bad, starts, starts + len(raw), XXH3) == 1
