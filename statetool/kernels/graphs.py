"""Kryo's values rewritten as values of fixed layouts, which the other kernels decode.

A value is walked by a flat program of its declared type (:func:`compile_graph`) and written again: numbers big-endian and in their
full width, strings as counted UTF-8, a flag byte (1: there) in front of all that may be null. What a program does not foresee (another
class, a reference to an object met before, damage) is no error here: such a value is marked, and decoded by the readable reference.
Wire forms: :mod:`statetool.serializers.kryo.wire`; what is written: :class:`statetool.kernels.program.GraphPart`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels import program as ir
from statetool.kernels.decode_text import is_ascii
from statetool.kernels.jit import jit

_UNSERVED: Final = -1
FULL: Final = -2
#: What one step writes at most, strings and bytes apart.
_STEP: Final = 64
_MAX_NAMES: Final = 32
_KINDS: Final = (
    "bool", "i8", "i16", "char", "int", "long", "f32", "f64", "text", "bytes", "big_int", "big_dec", "millis", "timestamp",
    "instant", "date", "time", "date_time", "uuid", "enum", "record", "list", "map", "array",
)  # fmt: skip
(
    _BOOL, _I8, _I16, _CHAR, _INT, _LONG, _F32, _F64, _TEXT, _BYTES, _BIG_INT, _BIG_DEC, _MILLIS, _TIMESTAMP, _INSTANT, _DATE,
    _TIME, _DATE_TIME, _UUID, _ENUM, _RECORD, _LIST, _MAP, _ARRAY,
) = range(len(_KINDS))  # fmt: skip
_MODES: Final = ("body", "nullable", "present", "value")
_BODY, _NULLABLE, _PRESENT, _VALUE = range(len(_MODES))
_I64_MIN: Final = -(1 << 63)
_I32_MIN: Final = -(1 << 31)
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

Words = npt.NDArray[np.int64]
Layout = tuple[Words, Words, npt.NDArray[np.uint8]]


@lru_cache(maxsize=256)
def compile_graph(root: ir.GraphPart) -> Layout:
    """Return a program: its words, its classes int64[m, 5] (id or -1, offset and size of the name, number of the name, whether a
    comparator stands in front), and the names of classes as Kryo writes them."""
    words: list[int] = []
    classes: list[tuple[int, int, int, int, int]] = []
    names: dict[bytes, tuple[int, int]] = {}
    _emit(root, words, classes, names)
    text = np.frombuffer(b"".join(names) or b"\0", dtype=np.uint8)
    return np.array(words, dtype=np.int64), np.array(classes or [(-1, 0, 0, 0, 0)], dtype=np.int64), text


def _emit(
    part: ir.GraphPart,
    words: list[int],
    classes: list[tuple[int, int, int, int, int]],
    names: dict[bytes, tuple[int, int]],
) -> int:
    at = len(words)
    words += [_KINDS.index(part.kind), int(part.reference), len(classes), len(part.classes)]
    for cls in part.classes:
        offset, number = names.setdefault(cls.name, (sum(map(len, names)), len(names)))
        classes.append((-1 if cls.id is None else cls.id, offset, len(cls.name), number, int(cls.sorted)))
    words.append(part.size)
    slots = len(words)
    words += [0] * (2 * len(part.parts))
    for i, (mode, inner) in enumerate(part.parts):
        words[slots + 2 * i] = _MODES.index(mode)
        words[slots + 2 * i + 1] = _emit(inner, words, classes, names)
    return at


@jit
def _number(data, p, end):  # type: ignore[no-untyped-def]
    """Return ``(unsigned number of 32 bits, position after)``; the position is -1 where there is none."""
    value = np.int64(0)
    shift = 0
    while True:
        if p >= end or shift > 28:
            return value, np.int64(-1)
        b = np.int64(data[np.uint64(p)])
        p += 1
        value |= (b & 0x7F) << shift
        if b < 0x80:
            return value, np.int64(p if value <= 0xFFFFFFFF else -1)
        shift += 7


@jit
def _long(data, p, end):  # type: ignore[no-untyped-def]
    """Return ``(64 bits, position after)`` of a number of at most 9 bytes."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while True:
        if p >= end:
            return np.int64(0), np.int64(-1)
        b = np.uint64(data[np.uint64(p)])
        p += 1
        if shift == 56:
            return np.int64(value | (b << shift)), np.int64(p)
        value |= (b & np.uint64(0x7F)) << shift
        if b < 0x80:
            return np.int64(value), np.int64(p)
        shift += np.uint64(7)


@jit
def _unzigzag(v):  # type: ignore[no-untyped-def]
    return np.int64(np.uint64(v) >> np.uint64(1)) ^ -(v & 1)


@jit
def _put4(out, o, v):  # type: ignore[no-untyped-def]
    out[o] = (v >> 24) & 0xFF
    out[o + 1] = (v >> 16) & 0xFF
    out[o + 2] = (v >> 8) & 0xFF
    out[o + 3] = v & 0xFF
    return o + 4


@jit
def _put8(out, o, v):  # type: ignore[no-untyped-def]
    return _put4(out, _put4(out, o, v >> 32), v)


@jit
def _copy(data, p, n, out, o):  # type: ignore[no-untyped-def]
    start, to = np.uint64(p), np.uint64(o)
    for k in range(np.uint64(n)):
        out[to + np.uint64(k)] = data[start + np.uint64(k)]


@jit
def _units(data, p, end, n, out, o):  # type: ignore[no-untyped-def]
    """Write UTF-16 units of 1 to 3 bytes as UTF-8; return ``(position after, place after)``, -1 for a lone surrogate or damage."""
    bad = np.int64(-1)
    high = np.int64(0)
    for _ in range(n):
        if p >= end:
            return bad, o
        u = np.int64(data[p])
        p += 1
        if u >= 0x80:
            more = 1 if u >> 5 == 6 else (2 if u >> 4 == 14 else 0)
            if more == 0 or more > end - p:
                return bad, o
            u &= 0x1F if more == 1 else 0x0F
            for _k in range(more):
                u = (u << 6) | (np.int64(data[p]) & 0x3F)
                p += 1
        low = 0xDC00 <= u <= 0xDFFF
        if (high != 0) != low:
            return bad, o
        if low:
            c = 0x10000 + ((high - 0xD800) << 10) + (u - 0xDC00)
            out[o] = 0xF0 | (c >> 18)
            out[o + 1] = 0x80 | ((c >> 12) & 0x3F)
            out[o + 2] = 0x80 | ((c >> 6) & 0x3F)
            out[o + 3] = 0x80 | (c & 0x3F)
            o += 4
            high = np.int64(0)
        elif 0xD800 <= u <= 0xDBFF:
            high = u
        elif u < 0x80:
            out[o] = u
            o += 1
        elif u < 0x800:
            out[o] = 0xC0 | (u >> 6)
            out[o + 1] = 0x80 | (u & 0x3F)
            o += 2
        else:
            out[o] = 0xE0 | (u >> 12)
            out[o + 1] = 0x80 | ((u >> 6) & 0x3F)
            out[o + 2] = 0x80 | (u & 0x3F)
            o += 3
    return (bad if high != 0 else np.int64(p)), o


@jit
def _text(data, p, end, out, st):  # type: ignore[no-untyped-def]
    """Write a string that is not null as i32 size and UTF-8."""
    if p >= end:
        return np.int64(_UNSERVED)
    o = st[0]
    room = out.shape[0] - o - 4
    first = np.int64(data[p])
    if first < 0x80:
        q = p
        while q < end and data[np.uint64(q)] < 0x80:
            q += 1
        n = q + 1 - p
        if q >= end or n > room:
            return np.int64(_UNSERVED if q >= end else FULL)
        _put4(out, o, n)
        _copy(data, p, n, out, o + 4)
        out[o + 3 + n] &= np.uint8(0x7F)
        st[0] = o + 4 + n
        return np.int64(q + 1)
    n = first & 0x3F
    p += 1
    if first & 0x40:
        rest, p = _number(data, p, end)
        if p < 0:
            return np.int64(_UNSERVED)
        n |= rest << 6
    n -= 1
    if n < 0 or n > end - p:
        return np.int64(_UNSERVED)
    if 3 * n > room:
        return np.int64(FULL)
    if is_ascii(data, p, n):
        _put4(out, o, n)
        _copy(data, p, n, out, o + 4)
        st[0] = o + 4 + n
        return np.int64(p + n)
    p, after = _units(data, p, end, n, out, o + 4)
    if p < 0:
        return np.int64(_UNSERVED)
    _put4(out, o, after - o - 4)
    st[0] = after
    return np.int64(p)


@jit
def _counted(data, p, end, extra, out, st):  # type: ignore[no-untyped-def]
    """Write bytes behind their number plus 1: i32 number plus ``extra``, bytes."""
    n, p = _number(data, p, end)
    n -= 1
    if p < 0 or n < 0 or n > end - p:
        return np.int64(_UNSERVED)
    o = st[0]
    if o + 4 + n > out.shape[0]:
        return np.int64(FULL)
    _copy(data, p, n, out, _put4(out, o, n + extra))
    st[0] = o + 4 + n
    return np.int64(p + n)


@jit
def _class(data, classes, names, first, n, p, end, st):  # type: ignore[no-untyped-def]
    """Read a class: ``(row of classes, position after)``; row -1 for null, position -1 for a class that is none of them."""
    other = np.int64(-1)
    k, p = _number(data, p, end)
    if p < 0 or k == 0:
        return other, p
    if k >= 2:
        for row in range(first, first + n):
            if classes[row, 0] == k - 2:
                return np.int64(row), p
        return other, other
    number, p = _number(data, p, end)
    if p < 0 or number > st[1] or number >= _MAX_NAMES:
        return other, other
    for row in range(first, first + n):
        if number < st[1]:
            if st[2 + number] == classes[row, 3]:
                return np.int64(row), p
            continue
        at, size = classes[row, 1], classes[row, 2]
        if size > end - p:
            continue
        same = True
        for i in range(size):
            if names[at + i] != data[p + i]:
                same = False
                break
        if same:
            st[2 + number] = classes[row, 3]
            st[1] += 1
            return np.int64(row), p + size
    return other, other


@jit
def _fixed(data, p, end, size, little, out, st):  # type: ignore[no-untyped-def]
    if size > end - p:
        return np.int64(_UNSERVED)
    o = st[0]
    for k in range(size):
        out[o + k] = data[p + size - 1 - k] if little else data[p + k]
    st[0] = o + size
    return np.int64(p + size)


@jit
def _date(data, p, end, little, out, st):  # type: ignore[no-untyped-def]
    bad = np.int64(_UNSERVED)
    if little:
        year, p = _number(data, p, end)
        if p < 0 or end - p < 2:
            return bad
        if year > 0x7FFFFFFF:
            year -= 0x100000000
        month, day = np.int64(data[p]), np.int64(data[p + 1])
        p += 2
    else:
        if end - p < 4 or data[p] != 0 or data[p + 2] != 0:
            return bad
        day, month = np.int64(data[p + 1]), np.int64(data[p + 3])
        year, p = _number(data, p + 4, end)
        if p < 0:
            return bad
        year = _unzigzag(year)
    if year == _I32_MIN or month < 1 or month > 12 or day < 1 or day > 31:
        return bad
    o = _put4(out, st[0], year)
    out[o] = month
    out[o + 1] = day
    st[0] = o + 2
    return np.int64(p)


@jit
def _time(data, p, end, little, out, st):  # type: ignore[no-untyped-def]
    bad = np.int64(_UNSERVED)
    hour, minute, second, nano = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if little:
        # The last part that is not 0 is inverted, those behind it are left out.
        for k in range(4):
            if k == 3:
                nano, p = _number(data, p, end)
                if p < 0:
                    return bad
                break
            if p >= end:
                return bad
            b = np.int64(data[p])
            p += 1
            last = b >= 0x80
            if last:
                b = 0xFF - b
            if k == 0:
                hour = b
            elif k == 1:
                minute = b
            else:
                second = b
            if last:
                break
    else:
        if end - p < 2:
            return bad
        hour, minute = np.int64(data[p]), np.int64(data[p + 1])
        nano, p = _number(data, p + 2, end)
        if p < 0 or p >= end:
            return bad
        nano = _unzigzag(nano)
        second = np.int64(data[p])
        p += 1
    if hour > 23 or minute > 59 or second > 59 or nano < 0 or nano > 999999999:
        return bad
    o = st[0]
    out[o] = hour
    out[o + 1] = minute
    out[o + 2] = second
    st[0] = _put4(out, o + 3, nano)
    return np.int64(p)


@jit
def _date_time(data, p, end, little, out, st):  # type: ignore[no-untyped-def]
    for k in range(2):
        if not little:
            if p >= end or data[p] != 1:
                return np.int64(_UNSERVED)
            p += 1
        p = _date(data, p, end, little, out, st) if k == 0 else _time(data, p, end, little, out, st)
        if p < 0:
            return p
    return p


@jit
def _instant(data, kind, p, end, little, out, st):  # type: ignore[no-untyped-def]
    """Write seconds and nanos of an Instant or a Timestamp."""
    bad = np.int64(_UNSERVED)
    if kind == _INSTANT and not little:
        nanos, p = _number(data, p, end)
        if p < 0:
            return bad
        nanos = _unzigzag(nanos)
        seconds, p = _long(data, p, end)
        seconds = _unzigzag(seconds)
    else:
        seconds, p = _long(data, p, end)
        if p < 0:
            return bad
        nanos, p = _number(data, p, end)
        if kind == _TIMESTAMP:
            seconds //= 1000
    if p < 0 or nanos < 0 or nanos > 999999999 or seconds == _I64_MIN:
        return bad
    st[0] = _put4(out, _put8(out, st[0], seconds), nanos)
    return np.int64(p)


@jit
def _uuid(data, p, end, little, out, st):  # type: ignore[no-untyped-def]
    o = _put4(out, st[0], np.int64(36))
    for half in range(2):
        if little:
            if end - p < 8:
                return np.int64(_UNSERVED)
            bits = np.int64(0)
            for k in range(8):
                bits |= np.int64(data[p + k]) << (8 * k)
            p += 8
        else:
            bits, p = _long(data, p, end)
            if p < 0:
                return np.int64(_UNSERVED)
            bits = _unzigzag(bits)
        for k in range(16):
            if k % 4 == 0 and ((half == 0 and k >= 8) or (half == 1 and k <= 4)):
                out[o] = 0x2D
                o += 1
            out[o] = _HEX[(bits >> (60 - 4 * k)) & 0xF]
            o += 1
    st[0] = o
    return np.int64(p)


@jit
def _leaf(data, kind, size, little, p, end, out, st):  # type: ignore[no-untyped-def]
    """Write a value without parts; return the position behind it or the negative of what is wrong."""
    if kind == _TEXT:
        return _text(data, p, end, out, st)
    if kind == _INT or kind == _ENUM:
        v, p = _number(data, p, end)
        v = v - 1 if kind == _ENUM else _unzigzag(v)
        if p < 0 or (kind == _ENUM and (v < 0 or v >= size)):
            return np.int64(_UNSERVED)
        st[0] = _put4(out, st[0], v)
        return p
    if kind == _LONG or kind == _MILLIS:
        v, p = _long(data, p, end)
        if p < 0 or (kind == _MILLIS and v == _I64_MIN):
            return np.int64(_UNSERVED)
        st[0] = _put8(out, st[0], _unzigzag(v) if kind == _LONG else v)
        return p
    if kind == _BOOL:
        if p >= end or data[p] > 1:
            return np.int64(_UNSERVED)
        return _fixed(data, p, end, 1, False, out, st)
    if kind == _I8:
        return _fixed(data, p, end, 1, False, out, st)
    if kind == _I16 or kind == _CHAR:
        return _fixed(data, p, end, 2, little, out, st)
    if kind == _F32:
        return _fixed(data, p, end, 4, little, out, st)
    if kind == _F64:
        return _fixed(data, p, end, 8, little, out, st)
    if kind == _BYTES:
        return _counted(data, p, end, 0, out, st)
    if kind == _BIG_INT or kind == _BIG_DEC:
        before = st[0]
        p = _counted(data, p, end, 4, out, st)
        if p < 0 or st[0] == before + 4:
            return p if p < 0 else np.int64(_UNSERVED)
        if kind == _BIG_DEC:
            scale, p = _number(data, p, end)
            if p < 0:
                return np.int64(_UNSERVED)
            if st[0] + 4 > out.shape[0]:
                return np.int64(FULL)
            st[0] = _put4(out, st[0], _unzigzag(scale))
        return p
    if kind == _DATE:
        return _date(data, p, end, little, out, st)
    if kind == _TIME:
        return _time(data, p, end, little, out, st)
    if kind == _DATE_TIME:
        return _date_time(data, p, end, little, out, st)
    if kind == _UUID:
        return _uuid(data, p, end, little, out, st)
    return _instant(data, kind, p, end, little, out, st)


@jit
def _value(data, prog, classes, names, little, pc, mode, row, p, end, out, st):  # type: ignore[no-untyped-def]
    """Write the value at ``p`` for the part at ``pc``; return the position behind it or the negative of what is wrong.

    ``mode``: only a body, an object that may be null, one that is there (of the class ``row``), a class and its object.
    ``st`` int64: place in ``out``, number of class names so far, their numbers.
    """
    if st[0] + _STEP > out.shape[0]:
        return np.int64(FULL)
    kind = prog[pc]
    if mode != _BODY:
        if mode == _VALUE:
            row, p = _class(data, classes, names, prog[pc + 2], prog[pc + 3], p, end, st)
            if p < 0:
                return np.int64(_UNSERVED)
            if row < 0:
                out[st[0]] = 0
                st[0] += 1
                return p
        if prog[pc + 1] == 1 or mode == _NULLABLE:
            # 1: a new object, or a value without references that is there. Anything above is an object met before.
            if p >= end or data[p] > 1 or (data[p] == 0 and mode != _NULLABLE):
                return np.int64(_UNSERVED)
            p += 1
            if data[p - 1] == 0:
                out[st[0]] = 0
                st[0] += 1
                return np.int64(p)
        out[st[0]] = 1
        st[0] += 1
    if kind < _RECORD:
        return _leaf(data, kind, prog[pc + 4], little, p, end, out, st)
    if kind == _RECORD:
        for k in range(prog[pc + 4]):
            at = pc + 5 + 2 * k
            p = _value(data, prog, classes, names, little, prog[at + 1], prog[at], np.int64(0), p, end, out, st)
            if p < 0:
                return p
        return p
    inner = prog[pc + 5]
    first = np.int64(-1)
    element = prog[pc + 6]
    headed = kind != _ARRAY and classes[row, 4] == 1
    if headed and not little:
        if p >= end or data[p] != 0:
            return np.int64(_UNSERVED)
        p += 1
    flag = False
    if kind == _LIST and little:
        if p >= end:
            return np.int64(_UNSERVED)
        b = np.int64(data[p])
        p += 1
        n = b & 0x3F
        flag = bool(b >= 0x80)
        if b & 0x40:
            rest, p = _number(data, p, end)
            if p < 0:
                return np.int64(_UNSERVED)
            n |= rest << 6
    else:
        n, p = _number(data, p, end)
        if p < 0:
            return np.int64(_UNSERVED)
    if little or kind == _ARRAY:
        n -= 1
    if headed and little:
        if p >= end or data[p] != 0:
            return np.int64(_UNSERVED)
        p += 1
    if n < 0 or n > end - p:
        return np.int64(_UNSERVED)
    if kind == _LIST and little and n > 0:
        if inner == _NULLABLE:
            inner = _NULLABLE if flag else _PRESENT
        elif flag:
            # One class for all, and whether some are null.
            first, p = _class(data, classes, names, prog[element + 2], prog[element + 3], p, end, st)
            if first < 0 or p < 0 or p >= end or data[p] > 1:
                return np.int64(_UNSERVED)
            inner = _NULLABLE if data[p] == 1 else _PRESENT
            p += 1
    if st[0] + _STEP > out.shape[0]:
        return np.int64(FULL)
    st[0] = _put4(out, st[0], n)
    for _ in range(n):
        row = first if first >= 0 else prog[element + 2]
        p = _value(data, prog, classes, names, little, element, inner, row, p, end, out, st)
        if p >= 0 and kind == _MAP:
            other = prog[pc + 8]
            p = _value(data, prog, classes, names, little, other, prog[pc + 7], prog[other + 2], p, end, out, st)
        if p < 0:
            return p
    return p


@jit
def rewrite(data, prog, classes, names, little, pos, end, first, out, st, starts, after, served):  # type: ignore[no-untyped-def]
    """Write the values from number ``first`` on until ``out`` uint8[:] is full; return the number of the next one.

    ``st`` int64[34]: its first word is how much of ``out`` is written. ``starts``, ``after`` int64[n] out: where each value stands in
    ``out``, and the position behind it in ``data``; ``served`` uint8[n] out: 0 for those that are left to the reference.
    """
    for i in range(first, pos.shape[0]):
        before = st[0]
        st[1] = 0
        starts[i] = before
        p = _value(
            data, prog, classes, names, little, np.int64(0), np.int64(_VALUE), np.int64(0), pos[i], end[i], out, st
        )
        if p == FULL:
            st[0] = before
            return i
        served[i] = 1 if p >= 0 else 0
        after[i] = p
        if p < 0:
            st[0] = before
    return pos.shape[0]


def state() -> Words:
    """Return what :func:`rewrite` needs as ``st``."""
    return np.zeros(2 + _MAX_NAMES, dtype=np.int64)


@jit
def split(data, prog, classes, names, little, pos, end, scratch, st, counts, starts, ends):  # type: ignore[no-untyped-def]
    """Find the values of comma-joined lists; ``starts`` and ``ends`` int64[all] out, or empty to count them in ``counts`` int64[n].

    Returns
    -------
    code
        0, or what is wrong: -1 for a value that is left to the reference, -2 where one does not fit ``scratch`` uint8[:].
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        while True:
            before = p
            st[0] = 0
            st[1] = 0
            p = _value(
                data, prog, classes, names, little, np.int64(0), np.int64(_VALUE), np.int64(0), p, end[i], scratch, st
            )
            if p < 0:
                return p
            if starts.shape[0] > 0:
                starts[o] = before
                ends[o] = p
            o += 1
            n += 1
            if p == end[i]:
                break
            if data[p] != 0x2C:
                return np.int64(_UNSERVED)
            p += 1
        counts[i] = n
    return np.int64(0)


__all__ = ["FULL", "Layout", "compile_graph", "rewrite", "split", "state"]
