"""In-flight data: buffers, and records cut by them at arbitrary positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statetool
from statetool.errors import FormatError, OptionError
from statetool.formats.channel_state import Channel, Side, in_flight_row, read_buffers, read_records
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import ByteStreamHandle, ChannelHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.stream import Stream
from tests.support.corpora.archives import unpack
from tests.support.flink import in_flight_cases
from tests.support.snapshots.build import STRING
from tests.support.snapshots.canonical import encoded, serializer

TEXT = serializer(STRING)


def number(n: int, size: int = 4) -> bytes:
    return n.to_bytes(size, "big", signed=True)


def record(value: str, timestamp: int | None = None) -> bytes:
    head = b"\1" if timestamp is None else b"\0" + number(timestamp, 8)
    return head + encoded(TEXT, value)


def watermark(timestamp: int) -> bytes:
    return b"\2" + number(timestamp, 8)


def attributes(*, backlog: bool) -> bytes:
    return b"\5" + bytes([backlog])


def framed(elements: Sequence[bytes]) -> bytes:
    return b"".join(number(len(e)) + e for e in elements)


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    buffers = []
    for size in sizes:
        buffers.append(data[:size])
        data = data[size:]
    return [*buffers, data]


def stream_of(buffers: Sequence[bytes]) -> tuple[Stream, tuple[int, ...]]:
    raw, offsets = bytearray(4), []
    for buffer in buffers:
        offsets.append(len(raw))
        raw += number(len(buffer)) + buffer
    return Stream(file="a-file", start=100, size_bytes=len(raw), inline=bytes(raw)), tuple(offsets)


elements = st.lists(
    st.one_of(
        st.builds(record, st.text("ab\u00e9", max_size=9), st.none() | st.integers(0, 99)),
        st.builds(watermark, st.integers(0, 9)),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=80)
@given(elements, st.lists(st.integers(0, 30), max_size=6), st.integers(1, 60), st.data())
def test_records_come_out_as_they_were_cut(
    drawn: list[bytes], sizes: list[int], batch_bytes: int, data: st.DataObject
) -> None:
    whole = framed(drawn)
    stop = data.draw(st.integers(0, len(whole)))
    stream, offsets = stream_of(cut(whole[:stop], sizes))
    channel = Channel(side="input", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream)
    with stream.open() as f:
        batches = list(read_records(read_buffers(f, channel), side="input", batch_bytes=batch_bytes))
    values = [r.data[a:b] for r in batches for a, b in r.places]
    assert framed(values) + b"".join(r.tail for r in batches) == whole[:stop]
    assert all(not r.head for r in batches)
    assert not any(r.tail for r in batches[:-1])
    row = in_flight_row(channel, "op")
    assert (row.elements, row.cut_bytes, row.size_bytes) == (len(values), stop - len(framed(values)), stop)


@pytest.mark.parametrize("count", [2, 3, 100])
@pytest.mark.parametrize("first", [record("abc"), b"\0" + number(-(1 << 63), 8) + number(5465, 8), record("z" * 70, 5)])
def test_an_output_may_start_anywhere_in_a_record(first: bytes, count: int) -> None:
    """Also inside the length of the record: the rest of it then looks like the length of a very long one."""
    sent = [first, *(b"\0" + number(-(1 << 63), 8) + number(5465 + i, 8) for i in range(1, count))]
    whole = framed(sent)
    for start in range(len(first) + 5):
        stream, offsets = stream_of(cut(whole[start:], [50]))
        channel = Channel(side="output", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream)
        row = in_flight_row(channel, "op")
        expected = (count - 1, len(first) + 4 - start) if start else (count, 0)
        assert (row.elements, row.cut_bytes) == expected, start


@pytest.mark.parametrize("start", range(21))
@pytest.mark.parametrize("held", [1, 2, 37, 222])
def test_a_number_that_looks_like_the_length_of_some_records_hides_none(held: int, start: int) -> None:
    """The last four bytes of the first record are such a number, if they are taken for a length."""
    sent = [b"\0" + number(-(1 << 63), 8) + number(21 * (held + i), 8) for i in range(250)]
    stream, offsets = stream_of([framed(sent)[start:]])
    row = in_flight_row(Channel(side="output", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream), "op")
    assert (row.elements, row.cut_bytes) == ((249, 21 - start) if start else (250, 0))


def test_a_record_that_holds_others_is_one() -> None:
    """Lengths within a record are no records, also if it is the longest one."""
    nested = [b"\1" + number(3) + framed([b"\1" + b"q" * size for size in sizes]) for sizes in ((9, 9, 9), (1, 2, 3))]
    for sent in (nested, nested[:1], [nested[0], *nested[1:] * 99]):
        stream, offsets = stream_of([framed(sent)])
        row = in_flight_row(Channel(side="output", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream), "op")
        assert (row.elements, row.cut_bytes) == (len(sent), 0)


def test_an_output_may_start_with_a_record_that_is_longer_than_its_data() -> None:
    whole = framed([record("a\0\0\0\1b" * 50)])
    for stop in range(1, len(whole)):
        stream, offsets = stream_of([whole[:stop]])
        channel = Channel(side="output", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream)
        row = in_flight_row(channel, "op")
        assert (row.elements, row.cut_bytes) == (0, stop)


def snapshot(folder: Path, side: Side, buffers: Sequence[bytes]) -> statetool.Operator:
    stream, offsets = stream_of(buffers)
    handle = ChannelHandle(
        subtask=0,
        gate=1,
        channel=2,
        offsets=offsets,
        size_bytes=stream.size_bytes,
        stream=ByteStreamHandle(name="channels", data=stream.inline or b""),
    )
    channels = {"input_channels": (handle,)} if side == "input" else {"output_channels": (handle,)}
    operator = OperatorState(
        operator_id=operator_id_for_uid("op"),
        parallelism=1,
        max_parallelism=8,
        subtasks=(SubtaskState(index=0, **channels),),  # type: ignore[arg-type]
    )
    (folder / "_metadata").write_bytes(
        write_metadata(SnapshotMetadata(version=3, checkpoint_id=1, operators=(operator,)))
    )
    return statetool.load(str(folder), uids=["op"])["op"]


def test_attributes_of_records_are_summed_up(tmp_path: Path) -> None:
    sent = [attributes(backlog=True), record("a"), record("\5\1"), attributes(backlog=False), record("b", 7)]
    op = snapshot(tmp_path, "input", cut(framed(sent), [3, 9, 1]))
    (row,) = op.in_flight().to_pylist()
    assert (row["elements"], row["attributes"], row["backlog_attributes"], row["backlog"]) == (5, 2, 1, False)
    rows = op.in_flight(side="input", like="String").to_pylist()
    assert [r["marker"]["backlog"] for r in rows if r["element"] == "record_attributes"] == [True, False]
    (row,) = snapshot(tmp_path, "input", [framed([record("a"), attributes(backlog=True)])]).in_flight().to_pylist()
    assert (row["attributes"], row["backlog_attributes"], row["backlog"]) == (1, 1, True)
    (row,) = snapshot(tmp_path, "input", [framed([record("a")])]).in_flight().to_pylist()
    assert (row["attributes"], row["backlog_attributes"], row["backlog"]) == (0, 0, None)


@pytest.mark.parametrize("release", ["v1_20_5", "v2_3_0"])
def test_attributes_that_flink_wrote_are_summed_up(tmp_path: Path, release: str) -> None:
    """From a real job, whose source first reported backlog and then its end (``tests/support/flink/in_flight_cases.py``)."""
    folder = unpack(in_flight_cases.ARCHIVE, tmp_path) / release
    assert in_flight_cases.found(folder) == in_flight_cases.ELEMENTS
    source = statetool.load(str(folder), uids=["source"])["source"]
    (row,) = source.in_flight().to_pylist()
    assert (row["elements"], row["attributes"], row["backlog_attributes"], row["backlog"]) == (7, 2, 1, False)
    # Hand-made elements have the same bytes as those of Flink's serializer.
    flags = [attributes(backlog=b) for b in (True, False)]
    b, c, d = (record(text, -(1 << 63)) for text in "bcd")
    by_hand = [flags[0], b, flags[1], c, b"\4" + number(-1), b"\4" + number(0), d]
    assert framed(by_hand) in (folder / "_metadata").read_bytes()


def test_an_output_may_start_with_the_end_of_a_record(tmp_path: Path) -> None:
    data = framed([record("the record that was cut"), record("a", 5), watermark(7), record("goes on")])
    op = snapshot(tmp_path, "output", cut(data[9:-3], [4, 20]))
    rows = op.in_flight(side="output", like="String").to_pylist()
    assert [(r["value"], r["timestamp"], r["element"]) for r in rows[1:-1]] == [
        ("a", 5, "record"),
        (None, 7, "watermark"),
    ]
    first = len(framed([record("the record that was cut")]))
    assert rows[0]["part"] == data[9:first]
    assert rows[-1]["part"] == framed([record("goes on")])[:-3]
    assert {(r["subtask"], r["gate"], r["channel"]) for r in rows} == {(0, 1, 2)}
    (row,) = op.in_flight().to_pylist()
    assert (row["side"], row["buffers"], row["elements"]) == ("output", 3, 2)
    assert row["cut_bytes"] == len(rows[0]["part"]) + len(rows[-1]["part"])


def test_records_of_another_type_are_refused(tmp_path: Path) -> None:
    op = snapshot(tmp_path, "input", [framed([record("text")])])
    with pytest.raises(FormatError, match="input 1/2 of subtask 0"):
        op.in_flight(side="input", like="Long")
    with pytest.raises(OptionError, match="needs a side"):
        op.in_flight(like="String")


def test_bytes_that_are_no_records_are_refused(tmp_path: Path) -> None:
    op = snapshot(tmp_path, "input", [b"\0\0\0\3xyz"])
    with pytest.raises(FormatError, match="is not the start of a stream element"):
        op.in_flight()


@pytest.mark.parametrize(
    ("offsets", "version", "message"),
    [((900,), 0, "a buffer at 900"), ((4,), 0, "are left"), ((4,), 1, "does not start with version 0")],
)
def test_damaged_buffers_are_refused(offsets: tuple[int, ...], version: int, message: str) -> None:
    raw = number(version) + number(99) + b"abc"
    stream = Stream(file="a-file", start=0, size_bytes=len(raw), inline=raw)
    channel = Channel(side="input", subtask=0, gate=0, channel=0, offsets=offsets, stream=stream)
    with pytest.raises(FormatError, match=message):
        in_flight_row(channel, "op")
