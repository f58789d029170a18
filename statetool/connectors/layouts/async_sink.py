"""Sinks based on ``AsyncSinkBase``: the requests that a writer has accepted and not yet sent.

Writer state, version 1 (2 of ClickHouse; ``AsyncSinkWriterStateSerializer``): i8 -1, i4 count, each i8 size (as the sink measures it), the request. A restored
writer sends the requests first. Requests:

* Kinesis Streams: size bytes of data, i4 length and partition key. SQS: size bytes of UTF-8 body, i4 length and id (a UUID). The lengths
  count characters, so Flink cannot restore a partition key outside of ASCII.
* Firehose: size bytes of data.
* DynamoDB (size 0): u1 kind (0 put, 1 delete), i4 count, each utf name, value: u1 type and its content.
* Elasticsearch 8: size bytes by Kryo (2 in Flink 1.x, 5 in Flink 2). They name the class of the operation first.
* HTTP (``com.getindata``): utf method, size bytes of body.
* ClickHouse: i4 1, i4 length (-1: none) and bytes, whose length is the size; in version 2, instead i4 2, i4 count, each utf column, value: u1
  type and its content.

Requests of Kinesis Streams and SQS have the same layout. If all keys are UUIDs, the state does not tell which of the two it is.

Follows flink-connector-aws 3.0 to 6.0, flink-http-connector 0.9 to 0.25, and from their sources, as confirmed by bytes of serializers that were
compiled from these, flink-connector-elasticsearch 3.1 and 4.0 and flink-connector-clickhouse 0.1 and 0.2.
"""

from __future__ import annotations

import math
import re
import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SinkConnector
from statetool.connectors.model import PendingCommit
from statetool.connectors.wire import read_version
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.kryo.codecs import iso
from statetool.serializers.typeutils.basic import to_decimal

_IDENTIFIER: Final = -1
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KINDS: Final = ("put", "delete")
_METHOD: Final = re.compile(r"[A-Z]{3,16}")
#: Kryo writes the class of the operation by its name, whose last byte has the highest bit set.
_OPERATION: Final = re.compile(rb"\x01{1,2}\x00co\.elastic\.clients\.elasticsearch\.core\.bulk\.([A-Za-z]+[\xc1-\xfa])")
#: The column of a request of ClickHouse that consists of bytes.
_RAW: Final = "__clickhouse_raw__"
_SECOND: Final = 1_000_000_000
#: Values of DynamoDB may be nested as deep as its own limit.
_DEEPEST: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedRequest:
    """A request that a writer has not sent: its fields, and its bytes with the size before them."""

    fields: Mapping[str, Any]
    data: bytes


class AsyncSink(SinkConnector):
    """A sink based on ``AsyncSinkBase``. A subclass reads its requests."""

    writer_versions: ClassVar[frozenset[int]] = frozenset({1})

    @abstractmethod
    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        """Return the fields of a request; ``size`` is its stored size."""

    def read_writer(self, version: int, c: Cursor) -> tuple[BufferedRequest, ...]:
        start = c.pos
        if (identifier := c.i8()) != _IDENTIFIER:
            raise c.fail(f"expected the identifier -1 of buffered requests, not {identifier}", pos=start)
        return tuple(self._read(c) for _ in range(c.count("requests", at_least=8)))

    def _read(self, c: Cursor) -> BufferedRequest:
        start = c.pos
        fields = self.read_request(c, c.i8())
        end = c.pos
        c.pos = start
        return BufferedRequest(fields=fields, data=c.take(end - start))

    def summarize_writer(self, writer: Sequence[BufferedRequest]) -> Mapping[str, int]:
        return {"buffered_requests": len(writer), "size_bytes": sum(len(r.data) for r in writer)}

    def buffered(self, writer: Sequence[BufferedRequest]) -> tuple[PendingCommit, ...]:
        return tuple(
            PendingCommit(
                name="", status="buffered", subtask=-1, size_bytes=len(r.data), expires=False, fields=r.fields
            )
            for r in writer
        )

    def without_buffered(self, version: int, data: bytes, dropped: frozenset[int]) -> bytes:
        writer: Sequence[BufferedRequest] = read_version(data, version, self.read_writer, "the state of a writer")
        remaining = [r.data for n, r in enumerate(writer) if n not in dropped]
        out = Output()
        out.i8(_IDENTIFIER)
        out.i4(len(remaining))
        out += b"".join(remaining)
        return bytes(out)


class KinesisStreamsSink(AsyncSink):
    """Sink to streams of Kinesis."""

    name: ClassVar[str] = "kinesis-streams-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        return _read_keyed(c, size)


class SqsSink(AsyncSink):
    """Sink to queues of SQS."""

    name: ClassVar[str] = "sqs-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        request = _read_keyed(c, size)
        if not _UUID.fullmatch(request["key"]) or "text" not in request:
            raise c.fail("expected a UUID after the text of a message", pos=start)
        return request


class FirehoseSink(AsyncSink):
    """Sink to Firehose."""

    name: ClassVar[str] = "firehose-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        data = c.take(size)
        if _OPERATION.match(data):
            raise c.fail("expected data of Firehose, not an operation of Elasticsearch", pos=start)
        return _payload(data)


class HttpSink(AsyncSink):
    """HTTP sink of GetInData."""

    name: ClassVar[str] = "http-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        method = c.utf()
        if not _METHOD.fullmatch(method):
            raise c.fail(f"{method!r} is not a method of HTTP", pos=start)
        return {"method": method, **_payload(c.take(size))}


class Elasticsearch8Sink(AsyncSink):
    """Sink to Elasticsearch 8. Kryo writes objects of its client, which stay bytes beside the name of the operation."""

    name: ClassVar[str] = "elasticsearch8-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        data = c.take(size)
        found = _OPERATION.match(data)
        if found is None:
            raise c.fail("expected an operation of Elasticsearch's client in Kryo", pos=start)
        name = found[1]
        return {"operation": (name[:-1] + bytes((name[-1] & 0x7F,))).decode("ascii"), "kryo": data}


class ClickHouseSink(AsyncSink):
    """Sink to ClickHouse."""

    name: ClassVar[str] = "clickhouse-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({1, 2})

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        match c.i4():
            case 1:
                length = c.i4()
                if length != size:
                    raise c.fail(f"expected a length of {size}, not {length}", pos=start + 4)
                return _payload(c.take(max(length, 0)))
            case 2:
                row = _read_row(c, 0)
                raw = row.get(_RAW)
                return _payload(raw) if len(row) == 1 and isinstance(raw, bytes) else {"row": row}
            case kind:
                raise c.fail(f"kind {kind} of a request to ClickHouse is not known", pos=start)


class DynamoDbSink(AsyncSink):
    """Sink to DynamoDB."""

    name: ClassVar[str] = "dynamodb-sink"

    def read_request(self, c: Cursor, size: int) -> Mapping[str, Any]:
        start = c.pos
        kind = c.u1()
        if size != 0 or kind >= len(_KINDS):
            raise c.fail(f"expected a request of size 0 and kind 0 or 1, not {size} and {kind}", pos=start)
        return {"kind": _KINDS[kind], "item": _read_item(c, 0)}


def _read_keyed(c: Cursor, size: int) -> Mapping[str, Any]:
    data, start = c.take(size), c.pos
    raw = c.bytes4("a key")
    try:
        key = raw.decode("ascii")
    except UnicodeDecodeError:
        raise c.fail("expected a key in ASCII", pos=start) from None
    return {**_payload(data), "key": key}


def _payload(data: bytes) -> Mapping[str, Any]:
    """Return the content of a request as ``text`` if it is UTF-8, otherwise as ``data``."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"data": data}


def _read_item(c: Cursor, depth: int) -> Mapping[str, Any]:
    return {c.utf(): _read_value(c, depth) for _ in range(c.count("attributes", at_least=3))}


def _read_value(c: Cursor, depth: int) -> Mapping[str, Any]:
    """Return a value in the form of DynamoDB's JSON: its type and content."""
    if depth > _DEEPEST:
        raise c.fail(f"values are nested deeper than {_DEEPEST}")
    start = c.pos
    match c.u1():
        case 0:
            return {"S": c.utf()}
        case 1:
            return {"N": c.utf()}
        case 2:
            return {"BOOL": c.bool()}
        case 3:
            return {"NULL": True}
        case 4:
            return {"B": c.bytes4("a value")}
        case 5:
            return {"SS": [c.utf() for _ in range(c.count("texts", at_least=2))]}
        case 6:
            return {"NS": [c.utf() for _ in range(c.count("numbers", at_least=2))]}
        case 7:
            return {"BS": [c.bytes4("a value") for _ in range(c.count("values", at_least=4))]}
        case 8:
            return {"L": [_read_value(c, depth + 1) for _ in range(c.count("values"))]}
        case 9:
            return {"M": _read_item(c, depth + 1)}
        case kind:
            raise c.fail(f"type {kind} of a value of DynamoDB is not known", pos=start)


def _read_row(c: Cursor, depth: int) -> Mapping[str, Any]:
    return {c.utf(): _read_cell(c, depth) for _ in range(c.count("columns", at_least=3))}


def _read_cell(c: Cursor, depth: int) -> Any:
    """Return a value of ClickHouse: text for numbers with digits after the point, dates and times."""
    if depth > _DEEPEST:
        raise c.fail(f"values are nested deeper than {_DEEPEST}")
    start = c.pos
    match c.u1():
        case 0:
            return None
        case 1:
            return c.bool()
        case 2:
            return c.i1()
        case 3:
            return c.i2()
        case 4:
            return c.i4()
        case 5:
            return c.i8()
        case 6 | 7 as kind:
            number = c.f4() if kind == 6 else c.f8()
            return number if math.isfinite(number) else str(number)
        case 8:
            return _read_big(c)
        case 9:
            scale = c.i4()
            return str(to_decimal(_read_big(c), scale))
        case 10:
            return c.utf()
        case 11:
            return c.bytes4("a value")
        case 12:
            return str(uuid.UUID(bytes=c.take(16)))
        case 13:
            return iso.date_text(c.i4())
        case 14:
            return _read_time(c, start)
        case 15:
            return f"{_read_time(c, start)}Z[{c.utf()}]"
        case 16 | 18:
            return [_read_cell(c, depth + 1) for _ in range(c.count("values"))]
        case 17:
            return _read_row(c, depth + 1)
        case kind:
            raise c.fail(f"type {kind} of a value of ClickHouse is not known", pos=start)


def _read_big(c: Cursor) -> int:
    start = c.pos
    raw = c.bytes4("a number")
    if not raw:
        raise c.fail("a number without bytes", pos=start)
    return int.from_bytes(raw, "big", signed=True)


def _read_time(c: Cursor, start: int) -> str:
    seconds, nanos = c.i8(), c.i4()
    if not 0 <= nanos < _SECOND:
        raise c.fail(f"{nanos} ns are not a part of a second", pos=start)
    return iso.date_time_text(seconds * _SECOND + nanos)
