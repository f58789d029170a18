"""Values of ``Value``, ``CopyableValue`` and ``Writable`` classes whose ``write(DataOutput)`` the user declared.

The fields are stored in the order of ``write``, each in the format of its type's ``DataOutput`` method: numbers big-endian, ``String`` as
``writeUTF``, ``byte[]`` as i32 length and bytes, ``org.apache.flink.types.StringValue`` and Flink's other value classes in their usual
format, a declared class as its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError, OptionError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Fixed, Op, PerRecord, Struct
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType
from statetool.serializers.typeutils.arrays import BYTES
from statetool.serializers.typeutils.basic import TYPES
from statetool.serializers.typeutils.composite import inside, sequence
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import JavaType

_FIXED: Final = dict(
    zip(
        ("boolean", "byte", "short", "int", "long", "float", "double", "char"),
        ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "Char"),
        strict=True,
    )
)
_BY_NAME: Final = {t.name: t for t in TYPES}
#: Nussknacker's sketch of distinct values, which writes an i32 length and bytes.
SKETCH: Final = "pl.touk.nussknacker.engine.flink.util.transformer.aggregate.HyperLogLogPlusWrapper"
#: Value classes of Flink, by class name.
FLINK_VALUES: Final = {f"org.apache.flink.types.{t.name}": t for t in TYPES if t.name.endswith("Value")}
_UTF: Final = SimpleType(name="UTF", logical=Scalar("string"), length=-1, decode=Cursor.utf, encode=Output.utf)
_BYTES: Final = JavaType("[]", (JavaType("byte"),))


def _field_type(kind: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> SimpleType | _Fields:
    if kind.name in _FIXED:
        return _BY_NAME[_FIXED[kind.name]]
    if kind.name == "java.lang.String":
        return _UTF
    if kind == _BYTES:
        return BYTES
    if kind.name in FLINK_VALUES:
        return FLINK_VALUES[kind.name]
    declared = context.find(kind.name)
    if declared is not None and kind.name not in enclosing:
        return _Fields(declared, context, enclosing)
    raise OptionError(
        f"{kind} is not a type that DataOutput writes",
        hint="use a primitive, String, byte[], a Flink value or a declared class",
    )


class _Fields:
    """Fields of a class in the order in which they are written."""

    def __init__(self, declared: ClassDeclaration, context: TypeContext, enclosing: tuple[str, ...] = ()) -> None:
        self.name = declared.name
        self.parts = [(n, _field_type(t, context, (*enclosing, declared.name))) for n, t in declared.fields]
        self.logical: LogicalType = StructType(tuple(Field(n, p.logical) for n, p in self.parts))

    @property
    def op(self) -> Op | None:
        ops = [p.op for _, p in self.parts]
        if any(not isinstance(op, Fixed | Struct) for op in ops):
            return None
        return Struct(tuple(n for n, _ in self.parts), tuple(op for op in ops if op is not None))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        values = []
        for name, part in self.parts:
            with inside(name):
                values.append(part.decode(c))
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        for (name, part), item in zip(self.parts, sequence(value, self.name, len(self.parts)), strict=True):
            with inside(name):
                if item is None:
                    raise EncodeError("DataOutput cannot write a null")
                encode: Callable[[Output, Any], None] = part.encode
                encode(out, item)


class DataOutputSerializer(Serializer):
    """A class whose fields the user declared in the order of its ``write`` method."""

    def __init__(
        self, name: str, version: int, declared: ClassDeclaration, context: TypeContext, interface: str
    ) -> None:
        super().__init__(name, version)
        self.type_class = declared.name
        self.interface = interface
        self._fields = _Fields(declared, context)
        self._declared = context.within(declared.name)

    def declarations(self) -> tuple[ClassDeclaration, ...]:
        return self._declared

    @property
    def type_name(self) -> str:
        return f"{self.interface} {self.type_class}"

    @property
    def logical(self) -> LogicalType:
        return self._fields.logical

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return self._fields.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self._fields.encode(out, value)

    def hash_code(self, value: Any) -> int:
        raise UnsupportedError(f"hashCode() of {self.type_class} is user code")

    def program(self) -> Op:
        return self._fields.op or PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        out.utf(self.type_class)
