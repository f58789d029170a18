"""Serializer of Fluss's sink (``org.apache.fluss.flink.sink.state``), as confirmed by bytes of release 0.9 (version 1).

``WriterStateSerializer``: the offset of each bucket after which a restored sink undoes its writes. Version 1: i4 1, i4 count, each i8 table, bucket.
Version 2 (sources of August 2026): i4 2, i8 table, i4 count, each bucket. A bucket is boolean and i8 partition, i4 bucket, i8 offset. The snapshot,
version 3, is empty.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.simple import SimpleType, simple_class
from statetool.serializers.typeutils.composite import sequence
from statetool.types import ListType, Scalar, StructType

_PACKAGE: Final = "org.apache.fluss.flink.sink.state"
_OFFSET: Final = StructType.of(
    table_id=Scalar("int64"), partition_id=Scalar("int64"), bucket=Scalar("int32"), offset=Scalar("int64")
)
_LEAST_OFFSET_BYTES: Final = 13


def _decode(c: Cursor) -> tuple[int, int | None, list[tuple[int, int | None, int, int]]]:
    start = c.pos
    version = c.i4()
    if version not in (1, 2):
        raise c.fail(f"version {version} of the state of a writer of Fluss is not 1 or 2", pos=start)
    table = c.i8() if version == 2 else None
    offsets = []
    for _ in range(c.count("offsets", at_least=_LEAST_OFFSET_BYTES)):
        of_table = c.i8() if table is None else table
        offsets.append((of_table, c.i8() if c.bool() else None, c.i4(), c.i8()))
    return version, table, offsets


def _encode(out: Output, value: Any) -> None:
    version, table, offsets = sequence(value, "the state of a writer of Fluss", 3)
    if version not in (1, 2) or (version == 2) != (table is not None):
        raise EncodeError(
            f"version {version!r} and table {table!r}: version 1 has no table of its own, version 2 has one"
        )
    out.i4(version)
    if table is not None:
        out.i8(table)
    out.i4(len(offsets))
    for offset in offsets:
        of_table, partition, bucket, at = sequence(offset, "an offset of Fluss", 4)
        if table is None:
            out.i8(of_table)
        elif of_table != table:
            raise EncodeError(f"an offset of table {of_table} in the state of table {table}")
        out.bool(partition is not None)
        if partition is not None:
            out.i8(partition)
        out.i4(bucket)
        out.i8(at)


_WRITER: Final = SimpleType(
    name="WriterState",
    logical=StructType.of(version=Scalar("int32"), table_id=Scalar("int64"), offsets=ListType(_OFFSET)),
    length=-1,
    decode=_decode,
    encode=_encode,
)
SNAPSHOTS: Final = {f"{_PACKAGE}.WriterStateSerializer$WriterStateSerializerSnapshot": simple_class(_WRITER)}
