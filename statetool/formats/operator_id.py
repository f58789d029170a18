"""Operator ids: MurmurHash3 x64 128 (seed 0) of the uid or of the position in the job, as computed by Flink's ``StreamGraphHasherV2``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_M: Final = 0xFFFFFFFFFFFFFFFF
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def operator_id_for_uid(uid: str) -> str:
    """Return the 32 hex digits of the operator id that Flink derives from ``uid``; as in Java, lone surrogates become ``?``."""
    return _murmur3_128(uid.encode("utf-8", "replace")).hex()


def operator_id_for_position(index: int, chained: int, inputs: Iterable[str]) -> str:
    """Return the 32 hex digits of the operator id that Flink derives for an operator without a uid.

    Parameters
    ----------
    index
        Number of operators before it, in the order in which Flink visits them.
    chained
        Number of operators that follow it in its chain.
    inputs
        Ids of the operators before it, in the order of its inputs.
    """
    digest = _murmur3_128(index.to_bytes(4, "little") * (1 + chained))
    for operator_id in inputs:
        digest = bytes((a * 37 ^ b) & 0xFF for a, b in zip(digest, bytes.fromhex(operator_id), strict=True))
    return digest.hex()


def _rotl(x: int, r: int) -> int:
    return (x << r | x >> (64 - r)) & _M


def _fmix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _M
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _M
    return x ^ x >> 33


def _mix1(k: int) -> int:
    return _rotl(k * _C1 & _M, 31) * _C2 & _M


def _mix2(k: int) -> int:
    return _rotl(k * _C2 & _M, 33) * _C1 & _M


def _murmur3_128(data: bytes) -> bytes:
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for i in range(0, whole, 16):
        h1 ^= _mix1(int.from_bytes(data[i : i + 8], "little"))
        h1 = (_rotl(h1, 27) + h2 & _M) * 5 + 0x52DCE729 & _M
        h2 ^= _mix2(int.from_bytes(data[i + 8 : i + 16], "little"))
        h2 = (_rotl(h2, 31) + h1 & _M) * 5 + 0x38495AB5 & _M
    tail = data[whole:]
    h1 ^= _mix1(int.from_bytes(tail[:8], "little"))
    h2 ^= _mix2(int.from_bytes(tail[8:], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & _M
    h2 = h2 + h1 & _M
    h1 = _fmix(h1)
    h2 = _fmix(h2)
    h1 = h1 + h2 & _M
    h2 = h2 + h1 & _M
    return h1.to_bytes(8, "little") + h2.to_bytes(8, "little")
