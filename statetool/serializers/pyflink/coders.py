"""PyFlink's coders: the encoding of values in Python operators.

Numbers are big-endian; text and ``BIG_DEC`` (as text) are i32 length and UTF-8; dates are i32 days, times i32 milliseconds, timestamps i64
milliseconds. Lists and arrays are those of Flink (a flag before each element, except in primitive arrays), maps have a null flag before
each value, rows have Flink's mask, and pickles are i32 length and bytes. Follows ``pyflink.fn_execution.coder_impl_slow``.

Pickles are never loaded unless the user allows it (``unsafe_pickle=True``), because loading a pickle runs code that it contains.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from statetool.errors import DecodeError, EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values import program as ir
from statetool.serializers.runtime import TIME_WINDOW
from statetool.serializers.typeutils.basic import TYPES
from statetool.serializers.typeutils.composite import inside, sequence
from statetool.serializers.typeutils.masks import read_mask, write_mask
from statetool.serializers.typeutils.row import KIND_FIELD, ROW_KINDS
from statetool.serializers.typeutils.temporal import TYPES as TEMPORAL
from statetool.types import (
    BigDecimalType,
    DateType,
    Field,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
)
from statetool.types.python_types import PythonType

#: Types written in the format of a Flink serializer.
_OF_FLINK: Final = {
    "BOOLEAN": "Boolean", "BYTE": "Byte", "SHORT": "Short", "INT": "Int", "LONG": "Long", "BIG_INT": "Long",
    "FLOAT": "Float", "DOUBLE": "Double", "INSTANT": "Instant", "TIME_WINDOW": "TimeWindow",
}  # fmt: skip
_BY_NAME: Final = {t.name: t for t in (*TYPES, *TEMPORAL, TIME_WINDOW)}


@dataclass(frozen=True, slots=True)
class Coder:
    """One of PyFlink's coders; ``op`` is ``None`` if kernels do not support it."""

    logical: LogicalType
    decode: Callable[[Cursor], Any]
    encode: Callable[[Output, Any], None]
    op: ir.Op | None

    @property
    def program(self) -> ir.Op:
        """Program of the values, record by record if kernels do not support them."""
        return self.op if self.op is not None else ir.PerRecord(self.decode)


def _read_text(c: Cursor) -> str:
    start = c.pos
    try:
        return c.bytes4("text").decode("utf-8")
    except UnicodeDecodeError as e:
        raise c.fail(f"not UTF-8: {e.reason}", pos=start) from e


def _write_text(out: Output, value: Any) -> None:
    if not isinstance(value, str):
        raise EncodeError(f"{value!r} is not text")
    try:
        out.bytes4(value.encode("utf-8"))
    except UnicodeEncodeError as e:
        raise EncodeError(f"{value!r} is not valid Unicode") from e


def _read_decimal(c: Cursor) -> Decimal:
    start = c.pos
    try:
        decimal = Decimal(_read_text(c))
    except InvalidOperation as e:
        raise c.fail("not the text of a Decimal", pos=start) from e
    if not decimal.is_finite():
        raise c.fail(f"{decimal} cannot be shown as a decimal", pos=start)
    return decimal


def _read_millis_of_day(c: Cursor) -> int:
    return c.i4() * 1_000_000


def _write_millis_of_day(out: Output, value: Any) -> None:
    if value % 1_000_000:
        raise EncodeError(f"{value} ns is finer than the milliseconds that PyFlink keeps")
    out.i4(value // 1_000_000)


_STRING: Final = Coder(Scalar("string"), _read_text, _write_text, ir.Counted(text=True))
_OF_PYFLINK: Final = {
    "STRING": _STRING,
    "CHAR": _STRING,
    "BIG_DEC": Coder(BigDecimalType(), _read_decimal, lambda out, v: _write_text(out, str(v)), None),
    "SQL_DATE": Coder(DateType(), Cursor.i4, Output.i4, ir.Fixed("i32")),
    "SQL_TIME": Coder(Scalar("time"), _read_millis_of_day, _write_millis_of_day, ir.Clock("millis")),
    "SQL_TIMESTAMP": Coder(TimestampType("ms", zoned=False), Cursor.i8, Output.i8, ir.Epoch("ms")),
}
_BYTES: Final = Coder(Scalar("binary"), lambda c: c.bytes4("bytes"), lambda out, v: out.bytes4(v), ir.Counted())


def coder_of(kind: PythonType, *, unsafe_pickle: bool) -> Coder:
    """Return the coder of a type."""
    if kind.name in _OF_FLINK:
        spec = _BY_NAME[_OF_FLINK[kind.name]]
        return Coder(spec.logical, spec.decode, spec.encode, spec.op)
    if kind.name in _OF_PYFLINK:
        return _OF_PYFLINK[kind.name]
    if kind.name == "PICKLED_BYTE_ARRAY":
        return Coder(Scalar("string"), _unpickle, refuse_pickle, None) if unsafe_pickle else _BYTES
    if kind.name == "PRIMITIVE_ARRAY" and kind.args[0].name == "BYTE":
        return _BYTES
    parts = [coder_of(a, unsafe_pickle=unsafe_pickle) for a in kind.args]
    match kind.name:
        case "TUPLE":
            return _tuple(parts)
        case "ROW":
            return _row(parts, kind.names)
        case "MAP":
            return _map(*parts)
    return _list(parts[0], flagged=kind.name != "PRIMITIVE_ARRAY")


def unpickle(raw: bytes) -> str:
    """Load a pickle, which runs code that it contains, and return JSON of its value; objects without a JSON form become their ``repr``.

    Raises
    ------
    DecodeError
        It cannot be loaded.
    """
    try:
        value = _Unpickler(io.BytesIO(raw)).load()
        return json.dumps(value, default=repr, ensure_ascii=True)
    except Exception as e:
        raise DecodeError(f"a pickle that cannot be loaded: {e}", hint="omit unsafe_pickle to see its bytes") from e


class _Unpickler(pickle.Unpickler):
    """Unpickler that loads PyFlink's rows (accumulators are rows) without PyFlink, as dicts of their fields and row kind."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "pyflink.common.types" and name in ("_create_row", "RowKind"):
            return _create_row if name == "_create_row" else int
        return super().find_class(module, name)


def _create_row(names: list[str] | None, values: tuple[Any, ...], kind: int | None) -> dict[str, Any]:
    named = names or [f"f{i}" for i in range(len(values))]
    return {**dict(zip(named, values, strict=True)), KIND_FIELD: ROW_KINDS[kind or 0]}


def _unpickle(c: Cursor) -> str:
    return unpickle(c.bytes4("pickle"))


def refuse_pickle(out: Output, value: Any) -> None:
    """Raise an error: a pickle cannot be made from its decoded text."""
    raise EncodeError(
        "values that were unpickled cannot be written", hint="omit unsafe_pickle to carry their bytes over"
    )


def _tuple(parts: list[Coder]) -> Coder:
    names = tuple(f"f{i}" for i in range(len(parts)))

    def decode(c: Cursor) -> tuple[Any, ...]:
        values = []
        for name, part in zip(names, parts, strict=True):
            with inside(name):
                values.append(part.decode(c))
        return tuple(values)

    def encode(out: Output, value: Any) -> None:
        for part, item in zip(parts, sequence(value, "tuple", len(parts)), strict=True):
            part.encode(out, item)

    fields = tuple(Field(n, p.logical) for n, p in zip(names, parts, strict=True))
    op = ir.Struct(names, tuple(p.program for p in parts))
    return Coder(StructType(fields), decode, encode, op)


def _row(parts: list[Coder], declared_names: tuple[str, ...]) -> Coder:
    names = declared_names or tuple(f"f{i}" for i in range(len(parts)))

    def decode(c: Cursor) -> tuple[Any, ...]:
        mask = read_mask(c, len(parts) + 2)
        values = []
        for name, part, null in zip(names, parts, mask[2:], strict=True):
            with inside(name):
                values.append(None if null else part.decode(c))
        return (*values, ROW_KINDS[mask[0] + 2 * mask[1]])

    def encode(out: Output, value: Any) -> None:
        *values, kind = sequence(value, "row", len(parts) + 1)
        if kind not in ROW_KINDS:
            raise EncodeError(f"{kind!r} is not a row kind")
        number = ROW_KINDS.index(kind)
        write_mask(out, [bool(number & 1), bool(number & 2), *(v is None for v in values)])
        for part, item in zip(parts, values, strict=True):
            if item is not None:
                part.encode(out, item)

    fields = [Field(n, p.logical) for n, p in zip(names, parts, strict=True)]
    op = ir.Masked(names, tuple(p.program for p in parts), row_kind=True)
    return Coder(StructType((*fields, Field(KIND_FIELD, Scalar("string")))), decode, encode, op)


def _list(element: Coder, *, flagged: bool) -> Coder:
    def decode(c: Cursor) -> list[Any]:
        n = c.count("elements")
        with inside("element"):
            return [element.decode(c) if not flagged or c.bool() else None for _ in range(n)]

    def encode(out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "list")))
        for item in value:
            if flagged:
                out.bool(item is not None)
            if item is not None or not flagged:
                element.encode(out, item)

    op = ir.Repeated(ir.Flagged(element.program, null_flag=0) if flagged else element.program)
    return Coder(ListType(element.logical), decode, encode, ir.or_per_record(op, decode))


def _map(key: Coder, item: Coder) -> Coder:
    def decode(c: Cursor) -> list[tuple[Any, Any]]:
        return [(key.decode(c), None if c.bool() else item.decode(c)) for _ in range(c.count("map entries"))]

    def encode(out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "map")))
        for k, v in value:
            key.encode(out, k)
            out.bool(v is None)
            if v is not None:
                item.encode(out, v)

    op = ir.Pairs(key.program, ir.Flagged(item.program, null_flag=1))
    return Coder(MapType(key.logical, item.logical), decode, encode, ir.or_per_record(op, decode))
