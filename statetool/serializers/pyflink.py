"""State of Python operators: byte arrays in which PyFlink's coders wrote values.

Keyed state of Python jobs is list state (value state has one value in it) and map state of ``byte[]``. An array of a list state
holds one value after another, all that were added together; one of a map state a single one. Inside of them: numbers big-endian, text and ``BIG_DEC`` (as text) as i32 length and UTF-8, dates i32 days, times i32 milliseconds, timestamps
i64 milliseconds, lists and arrays as Flink's (a flag before each element but in primitive arrays), maps with a null flag before
each value, rows with Flink's mask, pickles as i32 length and bytes. Follows ``pyflink.fn_execution.coder_impl_slow``.

Pickles are never loaded unless the user says so (``unsafe_pickle=True``): loading runs what they say.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from statetool.errors import DecodeError, EncodeError, OptionError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.basic import TYPES
from statetool.serializers.collections import ListSerializer
from statetool.serializers.composite import CompositeSerializer, inside, sequence
from statetool.serializers.masks import read_mask, write_mask
from statetool.serializers.row import KIND_FIELD, ROW_KINDS
from statetool.serializers.temporal import TYPES as TEMPORAL
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
from statetool.types.declared import TypeContext
from statetool.types.python_types import PythonType

_NUMBERS: Final = {
    "BOOLEAN": "Boolean", "BYTE": "Byte", "SHORT": "Short", "INT": "Int", "LONG": "Long", "BIG_INT": "Long",
    "FLOAT": "Float", "DOUBLE": "Double", "INSTANT": "Instant",
}  # fmt: skip
_BY_NAME: Final = {t.name: t for t in (*TYPES, *TEMPORAL)}
_BYTE_ARRAY: Final = "BytePrimitiveArray"


@dataclass(frozen=True, slots=True)
class Coder:
    """One of PyFlink's coders."""

    logical: LogicalType
    decode: Callable[[Cursor], Any]
    encode: Callable[[Output, Any], None]


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
        found = Decimal(_read_text(c))
    except InvalidOperation as e:
        raise c.fail("not the text of a Decimal", pos=start) from e
    if not found.is_finite():
        raise c.fail(f"{found} cannot be shown as a decimal", pos=start)
    return found


def _read_millis_of_day(c: Cursor) -> int:
    return c.i4() * 1_000_000


def _write_millis_of_day(out: Output, value: Any) -> None:
    if value % 1_000_000:
        raise EncodeError(f"{value} ns is finer than the milliseconds that PyFlink keeps")
    out.i4(value // 1_000_000)


_STRING: Final = Coder(Scalar("string"), _read_text, _write_text)
_OTHERS: Final = {
    "STRING": _STRING,
    "CHAR": _STRING,
    "BIG_DEC": Coder(BigDecimalType(), _read_decimal, lambda out, v: _write_text(out, str(v))),
    "SQL_DATE": Coder(DateType(), Cursor.i4, Output.i4),
    "SQL_TIME": Coder(Scalar("time"), _read_millis_of_day, _write_millis_of_day),
    "SQL_TIMESTAMP": Coder(TimestampType("ms", zoned=False), Cursor.i8, Output.i8),
}
_BYTES: Final = Coder(Scalar("binary"), lambda c: c.bytes4("bytes"), lambda out, v: out.bytes4(v))


def coder_of(kind: PythonType, *, unsafe_pickle: bool) -> Coder:
    """Return the coder of a type."""
    if kind.name in _NUMBERS:
        spec = _BY_NAME[_NUMBERS[kind.name]]
        return Coder(spec.logical, spec.decode, spec.encode)
    if kind.name in _OTHERS:
        return _OTHERS[kind.name]
    if kind.name == "PICKLED_BYTE_ARRAY":
        return Coder(Scalar("string"), _unpickle, _refuse_pickle) if unsafe_pickle else _BYTES
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


def _unpickle(c: Cursor) -> str:
    raw = c.bytes4("pickle")
    try:
        value = pickle.loads(raw)
        return json.dumps(value, default=repr, ensure_ascii=True)
    except Exception as e:
        raise DecodeError(
            f"a pickle that cannot be loaded: {e}", hint="leave unsafe_pickle out to see its bytes"
        ) from e


def _refuse_pickle(out: Output, value: Any) -> None:
    raise EncodeError(
        "values that were unpickled cannot be written", hint="leave unsafe_pickle out to carry their bytes over"
    )


def _tuple(parts: list[Coder]) -> Coder:
    def decode(c: Cursor) -> tuple[Any, ...]:
        values = []
        for i, part in enumerate(parts):
            with inside(f"f{i}"):
                values.append(part.decode(c))
        return tuple(values)

    def encode(out: Output, value: Any) -> None:
        for part, item in zip(parts, sequence(value, "tuple", len(parts)), strict=True):
            part.encode(out, item)

    return Coder(StructType(tuple(Field(f"f{i}", p.logical) for i, p in enumerate(parts))), decode, encode)


def _row(parts: list[Coder], given: tuple[str, ...]) -> Coder:
    names = given or tuple(f"f{i}" for i in range(len(parts)))

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
    return Coder(StructType((*fields, Field(KIND_FIELD, Scalar("string")))), decode, encode)


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

    return Coder(ListType(element.logical), decode, encode)


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

    return Coder(MapType(key.logical, item.logical), decode, encode)


class PythonSerializer(Serializer):
    """A byte array of Flink in which a coder of PyFlink wrote one value, or (``many``) a list of values."""

    def __init__(self, array: Serializer, kind: PythonType, *, many: bool, unsafe_pickle: bool) -> None:
        super().__init__(array.snapshot_class, array.snapshot_version)
        self.legacy_bytes, self.proxy_bytes = array.legacy_bytes, array.proxy_bytes
        self._array = array
        self._kind = kind
        self._many = many
        self._coder = coder_of(kind, unsafe_pickle=unsafe_pickle)

    @property
    def type_name(self) -> str:
        return f"Python {self._kind}{', ...' if self._many else ''}"

    @property
    def logical(self) -> LogicalType:
        return ListType(self._coder.logical) if self._many else self._coder.logical

    def decode(self, c: Cursor) -> Any:
        inner = c.slice(c.i4(), "byte array")
        if self._many:
            return list(self._values(inner))
        value = self._coder.decode(inner)
        inner.expect_end(f"a {self._kind}")
        return value

    def _values(self, c: Cursor) -> Iterator[Any]:
        while c.left:
            start = c.pos
            yield self._coder.decode(c)
            if c.pos == start:
                raise c.fail(f"a {self._kind} that takes no bytes", pos=start)

    def encode(self, out: Output, value: Any) -> None:
        inner = Output()
        try:
            for item in sequence(value, self.type_name) if self._many else (value,):
                self._coder.encode(inner, item)
        except (TypeError, AttributeError, ValueError) as e:
            if isinstance(e, StatetoolError):
                raise
            raise EncodeError(f"{value!r} is not a {self._kind}: {e}") from e
        out.bytes4(inner)

    def skip(self, c: Cursor) -> None:
        c.skip(c.i4())

    def write_payload(self, out: Output) -> None:
        self._array.write_payload(out)


def declared_in_python(name: str, value: Serializer, context: TypeContext) -> Serializer:
    """Return the serializer of a state's value with the Python types that the user declared for the state.

    Raises
    ------
    OptionError
        The state does not hold as many byte arrays as types were given.
    """
    kinds = dict(context.python).get(name)
    if kinds is None:
        return value
    left = iter(kinds)
    found = _replaced(value, left, context)
    arrays = sum(1 for s in _leaves(found) if isinstance(s, PythonSerializer))
    if arrays != len(kinds):
        raise OptionError(f"state {name!r} is {value.type_name}: it holds {arrays} byte arrays, not {len(kinds)}")
    return found


def _leaves(serializer: Serializer) -> Iterator[Serializer]:
    if not serializer.children():
        yield serializer
    for _, child in serializer.children():
        yield from _leaves(child)


def _replaced(
    serializer: Serializer, kinds: Iterator[PythonType], context: TypeContext, *, many: bool = False
) -> Serializer:
    if serializer.type_name == _BYTE_ARRAY:
        kind = next(kinds, None)
        if kind is None:
            return serializer
        return PythonSerializer(serializer, kind, many=many, unsafe_pickle=context.unsafe_pickle)
    if not isinstance(serializer, CompositeSerializer):
        return serializer
    many = many or isinstance(serializer, ListSerializer)
    found = copy.copy(serializer)
    found.nested = tuple(_replaced(s, kinds, context, many=many) for s in serializer.nested)
    return found
