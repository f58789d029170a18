"""Bytes composed from connectors' sources, for connectors without bytes of a job."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro

from statetool.connectors import registry
from statetool.connectors.connector import SinkConnector, SplitConnector
from statetool.connectors.model import HeldSplit, PendingCommit, SourceBytes, SourceState
from statetool.connectors.wire import read_version
from statetool.io.output import Output

NULL_STREAM = bytes.fromhex("aced000570")


def packed(*parts: Any) -> bytes:
    """Concatenate texts by ``writeUTF``, booleans, (size, number) tuples, and raw bytes."""
    out = Output()
    for part in parts:
        match part:
            case str():
                out.utf(part)
            case bool():
                out.bool(part)
            case bytes():
                out += part
            case (size, number):
                out += int(number).to_bytes(size, "big", signed=True)
    return bytes(out)


def framed(data: bytes) -> bytes:
    """Return bytes with their i4 length before them."""
    return packed((4, len(data)), data)


def java_object(cls: str, fields: Mapping[str, int]) -> bytes:
    """Return a Java stream of an object with fields of type ``long``."""
    described = b"".join(b"J" + packed(name) for name in fields)
    head = b"\xac\xed\0\5sr" + packed(cls, (8, 1)) + b"\x02" + packed((2, len(fields))) + described + b"xp"
    return head + b"".join(packed((8, value)) for value in fields.values())


def recognised(
    version: int, splits: Iterable[bytes], enumerator: tuple[int, bytes]
) -> tuple[SplitConnector, SourceState]:
    """Return the only connector that reads splits and an enumerator."""
    held = tuple(HeldSplit(subtask=0, version=version, data=data) for data in splits)
    given = SourceBytes(held=held, enumerator_version=enumerator[0], enumerator=enumerator[1])
    (recognised_source,) = registry.recognise(given)
    return recognised_source


def committed(version: int, data: bytes) -> tuple[str, PendingCommit]:
    """Return the only connector that reads a committable, and the result."""
    readable = []
    for connector in registry.sink_connectors():
        if version in connector.committable_versions and (pending := _pending(connector, version, data)) is not None:
            readable.append((connector.name, pending))
    ((name, pending),) = readable
    return name, pending


def _pending(connector: SinkConnector, version: int, data: bytes) -> PendingCommit | None:
    from statetool.errors import StatetoolError

    try:
        return connector.pending(read_version(data, version, connector.read_committable, "a committable"))
    except StatetoolError:
        return None


def manifest(path: str, rows: int) -> bytes:
    """Return an Iceberg manifest in the format of ``AvroEncoderUtil``."""
    fields = [
        ("manifest_path", "string", path),
        ("manifest_length", "long", 7),
        ("added_rows_count", ["null", "long"], rows),
    ]
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": n, "type": t, "field-id": 500 + i} for i, (n, t, _) in enumerate(fields)],
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(schema)), {n: v for n, _, v in fields})
    return b"\xc2\x01" + packed(json.dumps(schema)) + out.getvalue()
