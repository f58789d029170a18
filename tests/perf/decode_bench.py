"""Speed of kernels that decode values into Arrow, in MB/s on one core, and relative to the plain decoder.

``python -m tests.perf.decode_bench [NAME ...]``: names of ``CASES``; all of them by default. Kernels are compiled (or loaded) before the
clock starts; the plain decoder is measured on a part of the values.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np

from statetool.columns.decode import as_data, decode_column
from statetool.columns.from_plain import plain_to_arrow
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import serializer_snapshot
from statetool.types.declared import TypeContext, class_of_fields
from statetool.types.java import parse_java_type
from statetool.types.options import ReadOptions
from tests.support.snapshots import build

BATCH: Final = 65_536
_DISTINCT: Final = 1_000
_PLAIN: Final = 2_000
_OPTIONS: Final = ReadOptions(ttl="raw", nanos="truncate")


def _row(*types: SqlType) -> RowDataSerializer:
    name = "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot"
    return RowDataSerializer(name, 3, b"", types, ())


def _sql(root: str, **parts: Any) -> SqlType:
    return SqlType(root=root, **parts)


_ORDER: Final = _row(
    _sql("BIGINT"), _sql("VARCHAR", length=40), _sql("INT"), _sql("DECIMAL", precision=10, scale=2),
    _sql("DECIMAL", precision=38, scale=18), _sql("BOOLEAN"), _sql("TIMESTAMP", precision=3), _sql("TIMESTAMP", precision=9),
    _sql("DOUBLE"),
)  # fmt: skip
_COUNTS: Final = _row(_sql("BIGINT"), _sql("BIGINT"), _sql("DOUBLE"), _sql("INT"))
_NESTED: Final = _row(
    _sql("BIGINT"),
    _sql("ARRAY", parts=(("element", _sql("VARCHAR", length=40)),)),
    _sql("MAP", parts=(("key", _sql("VARCHAR", length=9)), ("value", _sql("BIGINT")))),
    _sql("ROW", parts=(("a", _sql("INT")), ("b", _sql("VARCHAR", length=9)))),
)
_SCHEMA: Final = """{"type": "record", "name": "Order", "fields": [
 {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "note", "type": ["null", "string"]},
 {"name": "amount", "type": "double"}, {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line",
 "fields": [{"name": "sku", "type": "string"}, {"name": "quantity", "type": "int"}]}}},
 {"name": "tags", "type": {"type": "map", "values": "int"}}]}"""

_CHOICES: Final = """{"type": "record", "name": "Choices", "fields": [{"name": "id", "type": "long"},
 {"name": "value", "type": ["null", "long", "string", "double", {"type": "record", "name": "Point", "fields": [
 {"name": "x", "type": "double"}, {"name": "label", "type": "string"}]}]}]}"""
_LISTS: Final = """{"type": "record", "name": "Lists", "fields": [
 {"name": "grid", "type": {"type": "array", "items": {"type": "array", "items": "long"}}},
 {"name": "gaps", "type": {"type": "array", "items": ["null", "long"]}}]}"""


def _order(i: int) -> Any:
    kind = "+I" if i % 3 else "+U"
    price = Decimal(i * 10**17 + 12345).scaleb(-18)
    name = f"customer number {i}"
    return (i, name, i % 7, Decimal(i).scaleb(-2), price, i % 2 == 0, 1_700_000_000_000 + i, i * 10**9 + 7, i / 3, kind)


def _nested(i: int) -> Any:
    return (i, [f"item {i} {k}" for k in range(4)], [("a", i), ("b", None), ("c", 3)], (i, "x" * (i % 12)), "+I")


def _avro(i: int) -> Any:
    lines = [(f"sku-{i}-{k}", k) for k in range(3)]
    return (i, f"customer number {i}", None if i % 2 else "a note", i / 3, lines, [("red", i), ("blue", 2)])


def _choice(i: int) -> Any:
    at = i % 5
    members: tuple[Any, ...] = (i, f"text {i}", i / 3, (i / 7, f"label {i}"))
    return (i, None if at == 4 else tuple(m if k == at else None for k, m in enumerate(members)))


def _lists(i: int) -> Any:
    return ([[1, 2], [3], [], [i]], [k if k % 2 else None for k in range(i % 6)])


def _ttl(value: bytes) -> Serializer:
    name = "org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot"
    return snapshot_reader().snapshot(Cursor(build.composite(name, 2, b"", build.LONG, value)))


_ORDER_CLASS: Final = class_of_fields(
    "com.acme.Order",
    {
        "id": "long", "customer": "String", "note": "String", "quantity": "Integer", "paid": "boolean", "price": "double",
        "at": "java.util.Date", "amount": "BigDecimal", "tags": "List<String>",
    },
)  # fmt: skip


def _kryo(gen: Literal[2, 5]) -> Serializer:
    context = TypeContext(kryo=gen, classes=(_ORDER_CLASS,))
    return snapshot_reader(context).snapshot(
        Cursor(serializer_snapshot(parse_java_type("com.acme.Order"), context, generic=True))
    )


def _kryo_order(i: int) -> Any:
    note = None if i % 2 else "a note"
    return (
        i,
        f"customer number {i}",
        note,
        i % 9,
        True,
        i / 3,
        1_700_000_000_000 + i,
        Decimal(i).scaleb(-2),
        ["red", "blue"],
    )


CASES: Final[dict[str, tuple[Callable[[], Serializer], Callable[[int], Any]]]] = {
    "rowdata-order": (lambda: _ORDER, _order),
    "rowdata-counts": (lambda: _COUNTS, lambda i: (i, None if i % 5 == 0 else i, i / 2, i % 9, "+I")),
    "rowdata-nested": (lambda: _NESTED, _nested),
    "avro": (lambda: AvroSerializer("AvroSerializerSnapshot", 3, "Order", _SCHEMA), _avro),
    "avro-choices": (lambda: AvroSerializer("AvroSerializerSnapshot", 3, "Choices", _CHOICES), _choice),
    "avro-lists": (lambda: AvroSerializer("AvroSerializerSnapshot", 3, "Lists", _LISTS), _lists),
    "ttl-long": (lambda: _ttl(build.LONG), lambda i: (1_700_000_000_000 + i, i)),
    "kryo-2": (lambda: _kryo(2), _kryo_order),
    "kryo-5": (lambda: _kryo(5), _kryo_order),
    "ttl-string": (lambda: _ttl(build.STRING), lambda i: (1_700_000_000_000 + i, f"customer number {i}")),
}


def measure(name: str) -> tuple[float, float]:
    """Return MB/s by kernels, and their speed relative to the plain decoder."""
    make, value = CASES[name]
    s = make()
    chunk, bounds = Output(), [0]
    for i in range(_DISTINCT):
        s.encode(chunk, value(i))
        bounds.append(len(chunk))
    copies = BATCH // _DISTINCT
    starts = np.concatenate([np.array(bounds[:-1], dtype=np.int64) + k * len(chunk) for k in range(copies)])
    ends = np.concatenate([np.array(bounds[1:], dtype=np.int64) + k * len(chunk) for k in range(copies)])
    data = as_data(bytes(chunk) * copies)
    op, logical = s.program(), s.logical
    best = min(_timed(lambda: decode_column(op, logical, data, starts, ends, _OPTIONS)) for _ in range(6))
    some = range(min(_PLAIN, len(starts)))

    def plain() -> None:
        values = [s.decode(Cursor(data.data, int(starts[i]), int(ends[i]))) for i in some]
        plain_to_arrow(values, logical, _OPTIONS)

    slow = _timed(plain) * len(starts) / len(some)
    return len(data) / best / 1e6, slow / best


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(names: list[str]) -> int:
    """Measure the named cases and return the exit code."""
    for name in names or CASES:
        speed, ratio = measure(name)
        print(f"{name:16} {speed:8,.0f} MB/s   {ratio:6,.0f} times the plain path", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
