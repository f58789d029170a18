"""Layout of the heap backend: kernels compared with the serializers, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.formats.backends.canonical import StreamLayout, is_larger
from statetool.formats.heap import walk as heap_walk
from statetool.formats.heap.walk import heap_windows, read_heap
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.kernels.entries import heap as kernel
from tests.support.snapshots.build import INT, LONG, NULL_VALUE, STRING, kryo, list_of, map_of, pojo, tuple_of
from tests.support.snapshots.canonical import composite_key, encoded, keyed, serializer, snappy, timers

TEXT: Final = serializer(STRING)
NUMBER: Final = serializer(INT)
PET: Final = pojo("Pet", {"name": STRING, "age": INT}, registered={"Cat": pojo("Cat", {"name": STRING, "age": INT})})
STATES: Final = (
    keyed("value", "value", tuple_of(STRING, LONG)),
    keyed("list", "list", list_of(STRING), STRING),
    keyed("nothings", "list", list_of(NULL_VALUE)),
    keyed("map", "map", map_of(STRING, INT)),
    keyed("wide map", "map", map_of(INT, STRING), STRING),
    timers("_timer_state/event_t", STRING, INT),
    keyed("pet", "value", PET),
)
Entry = tuple[int, bytes, bytes]
Rows = list[tuple[int, int, bytes, bytes]]


@dataclass
class Group:
    """A key group: sections of heap entries, and the same entries in canonical form."""

    number: int
    sections: list[tuple[int, list[bytes]]] = field(default_factory=list)
    canonical: Rows = field(default_factory=list)

    def bytes(self, *, compressed: bool) -> bytes:
        body = b""
        for state, entries in self.sections:
            section = state.to_bytes(2, "big") + count(len(entries)) + b"".join(entries)
            body += snappy(section, block=30) if compressed else section
        return count(self.number) + body


def count(n: int) -> bytes:
    return n.to_bytes(4, "big")


def text(value: str) -> bytes:
    return encoded(TEXT, value)


def number(value: int) -> bytes:
    return encoded(NUMBER, value)


words = st.text("ab\u00e9\U0001f600", max_size=6)
small = st.integers(0, 200)


@st.composite
def heap_entry(draw: st.DrawFn, state: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Draw an entry of a state, and the equivalent canonical entries."""
    key = draw(words)
    match STATES[state].name:
        case "value":
            value = text(draw(words)) + bytes(7) + b"\1"
            return b"\0" + text(key) + value, [(composite_key(text(key)), value)]
        case "list":
            namespace, items = draw(words), [text(w) for w in draw(st.lists(words, max_size=4))]
            whole = composite_key(text(key), text(namespace), ambiguous=True)
            raw = text(namespace) + text(key) + count(len(items)) + b"".join(items)
            return raw, [(whole, b",".join(items))] if items else []
        case "nothings":
            n = draw(st.integers(0, 3))
            return b"\0" + text(key) + count(n), [(composite_key(text(key)), b"," * (n - 1))] if n else []
        case "map":
            pairs = draw(st.dictionaries(words, st.none() | small, max_size=4))
            values = {text(k): b"\1" if v is None else b"\0" + number(v) for k, v in pairs.items()}
            raw = b"\0" + text(key) + count(len(pairs)) + b"".join(k + v for k, v in values.items())
            return raw, [(composite_key(text(key), b"\0", k), v) for k, v in values.items()]
        case "wide map":
            namespace, texts = draw(words), draw(st.dictionaries(small, words, max_size=3))
            values = {number(k): b"\0" + text(v) for k, v in texts.items()}
            raw = text(namespace) + text(key) + count(len(texts)) + b"".join(k + v for k, v in values.items())
            return raw, [(composite_key(text(key), text(namespace), k, ambiguous=True), v) for k, v in values.items()]
        case "pet":
            # Kernels do not support registered subclasses.
            flags = draw(st.sampled_from([b"\2", b"\x08\0\2"]))
            value = flags + b"\0" + text(key) + b"\1"
            return b"\0" + text(key) + value, [(composite_key(text(key)), value)]
    timer = draw(small).to_bytes(8, "big") + text(key) + number(7)
    return timer, [(timer, b"")]


@st.composite
def key_groups(draw: st.DrawFn) -> list[Group]:
    groups = [Group(n) for n in sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=4)))]
    for group in groups:
        for state in draw(st.permutations(range(len(STATES)))):
            drawn = draw(st.lists(heap_entry(state), max_size=3))
            group.sections.append((state, [raw for raw, _ in drawn]))
            group.canonical += [(group.number, state, *entry) for _, entries in drawn for entry in entries]
    return groups


def stream_of(groups: Sequence[Group], *, compressed: bool) -> tuple[Stream, list[KeyGroupRange]]:
    data, ranges = bytearray(b"header"), []
    for group in groups:
        raw = group.bytes(compressed=compressed)
        ranges.append(KeyGroupRange(group.number, len(data), len(raw)))
        data += raw
    return Stream(file="a-file", start=1000, size_bytes=len(data), inline=bytes(data)), ranges


def header_of(states: Sequence[StateMetaInfo] = STATES, *, compressed: bool = False) -> KeyedHeader:
    return KeyedHeader(version=6, compressed=compressed, key=TEXT, states=tuple(states), size_bytes=0)


def rows_of(*batches: EntryBatch) -> Rows:
    rows = []
    for b in batches:
        raw = bytes(b.data)
        for i in range(len(b)):
            key, value = raw[b.key[i] : b.key_end[i]], raw[b.value[i] : b.value_end[i]]
            rows.append((int(b.group[i]), int(b.state[i]), key, value))
    return rows


@settings(max_examples=40)
@given(groups=key_groups(), compressed=st.booleans(), window=st.integers(1, 60))
def test_every_way_to_walk_finds_the_same_entries(groups: list[Group], compressed: bool, window: int) -> None:
    stream, ranges = stream_of(groups, compressed=compressed)
    header = header_of(compressed=compressed)
    wanted = [entry for group in groups for entry in group.canonical]
    with stream.open() as f:
        assert rows_of(read_heap(f, ranges, header)) == wanted
        assert rows_of(*(b for r in ranges for b in heap_windows(f, r, header, window=window))) == wanted
        if len(ranges) > 2:
            assert rows_of(read_heap(f, [ranges[0], ranges[2]], header)) == groups[0].canonical + groups[2].canonical


@settings(max_examples=60)
@given(groups=key_groups(), at=st.integers(6, 400), new=st.binary(min_size=1, max_size=3))
def test_kernels_read_damaged_bytes_as_the_serializers_do(groups: list[Group], at: int, new: bytes) -> None:
    stream, ranges = stream_of(groups, compressed=False)
    raw = bytearray(stream.inline or b"")
    raw[at : at + len(new)] = new[: max(0, len(raw) - at)]
    damaged = Stream(file="a-file", start=1000, size_bytes=len(raw), inline=bytes(raw))
    with pytest.MonkeyPatch.context() as patch, damaged.open() as f:
        fast = attempt(f, ranges)
        programs = heap_walk.programs_of

        def unknown(header: KeyedHeader) -> Any:
            known = programs(header)
            known.states[:, kernel.KIND] = kernel.UNKNOWN
            return known

        patch.setattr(heap_walk, "programs_of", unknown)
        slow = attempt(f, ranges)
    if isinstance(fast, str):
        assert isinstance(slow, str)
    elif not isinstance(slow, str):
        # Errors that only decoding finds, such as a lone surrogate, are found later by kernels.
        assert fast == slow


def attempt(f: Any, ranges: Sequence[KeyGroupRange]) -> Rows | str:
    try:
        return rows_of(read_heap(f, ranges, header_of()))
    except StatetoolError as error:
        return str(error)


def one_group(*sections: tuple[int, list[bytes]]) -> tuple[Stream, list[KeyGroupRange]]:
    return stream_of([Group(5, list(sections))], compressed=False)


def entry(value: bytes) -> bytes:
    return b"\0" + text("k") + value


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([(9, [])], "a state id that the header does not have"),
        ([(0, []), (0, [])], "or that came before"),
        ([(0, [entry(text("v"))])], "more bytes"),
        ([(3, [entry(count(1) + text("u") + b"\2")])], "boolean"),
        ([(2, [entry(b"\xff" * 4)])], "count -1"),
    ],
)
def test_damage_is_placed(sections: list[tuple[int, list[bytes]]], message: str) -> None:
    stream, ranges = one_group(*sections)
    with stream.open() as f:
        with pytest.raises(FormatError, match=message) as caught:
            read_heap(f, ranges, header_of())
        assert caught.value.where.file == "a-file"
        assert caught.value.where.key_group == 5
        assert caught.value.where.offset is not None
        with pytest.raises(FormatError, match=message):
            list(heap_windows(f, ranges[0], header_of(), window=3))


def test_the_number_of_the_key_group_is_checked() -> None:
    stream, ranges = one_group((0, []))
    wrong = [KeyGroupRange(6, ranges[0].offset, ranges[0].size_bytes)]
    with stream.open() as f, pytest.raises(FormatError, match="expected the number of the key group"):
        read_heap(f, wrong, header_of())


def test_a_value_without_an_end_is_named() -> None:
    states = (*STATES, keyed("kryo", "value", kryo("com.acme.Order")))
    stream, ranges = one_group((0, []), (len(STATES), [entry(b"?")]))
    with stream.open() as f, pytest.raises(UnknownSerializerError) as caught:
        read_heap(f, ranges, header_of(states))
    assert caught.value.where.state == "kryo"


@pytest.mark.parametrize("compressed", [False, True])
def test_large_compressed_groups_are_told_by_their_plain_size(compressed: bool) -> None:
    entries = [b"\0" + text("a" * 50) + text("a" * 50) + bytes(8)] * 20
    stream, ranges = stream_of([Group(5, [(0, entries)])], compressed=compressed)
    layout = StreamLayout(prefix=1, states=7, compressed=compressed, heap=header_of(compressed=compressed))
    with stream.open() as f:
        assert is_larger(f, ranges[0], layout, 1000)
        assert not is_larger(f, ranges[0], layout, 5000)
