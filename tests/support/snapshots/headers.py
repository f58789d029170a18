"""Hand-made headers of keyed state with serializers that statetool does not know."""

from __future__ import annotations

from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.table import snapshot_reader


def proxied(name: str, payload: bytes = b"", version: int = 3) -> bytes:
    out = Output()
    out.i4(2)
    out.utf(name)
    out.i4(version)
    return bytes(out) + payload


LONG = "org.apache.flink.api.common.typeutils.base.LongSerializer$LongSerializerSnapshot"


VOID = "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot"


def header_with(unknown: bytes, *, as_key: bool) -> bytes:
    """Return a header of two states, one with an unknown serializer."""
    long = snapshot_reader().proxied(Cursor(proxied(LONG)))
    void = snapshot_reader().proxied(Cursor(proxied(VOID)))
    states = tuple(
        StateMetaInfo(
            name=name,
            backend_type=0,
            options={"KEYED_STATE_TYPE": "VALUE"},
            serializers={"VALUE_SERIALIZER": long, "NAMESPACE_SERIALIZER": void},
        )
        for name in ("first", "second")
    )
    raw = write_keyed_header(KeyedHeader(version=6, compressed=False, key=long, states=states, size_bytes=0))
    known = proxied(LONG)
    at = raw.index(known) if as_key else raw.index(known, raw.index(b"first"))
    return raw[:at] + unknown + raw[at + len(known) :]
