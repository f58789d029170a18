"""Serializers of Nussknacker (``pl.touk.nussknacker``), as confirmed by bytes of the classes of release 1.18.1, compiled from its sources.

``TypedJavaMapSerializer`` and ``TypedScalaMapSerializer``: for each field bool is null, then the value. The snapshot, version 1, is
i32 n, n times: utf name, versioned snapshot. The names are sorted. Read in releases 1.3.0 to 1.18.1.

``ScalaCaseClassSerializer`` and ``OptionSerializer`` have the bytes and the snapshots of Flink's, in packages of Nussknacker. Read in
releases 1.9.2 to 1.18.1.

``FixedValueTypeInformationHelper.NullSerializer``: null (the parent of a context without one), without any bytes. Its snapshot is an anonymous
class, which the compilers of Scala 2.12 and 2.13 number in the same way.

Aggregations keep a ``SortedMap`` of buckets by their start, which Kryo writes. ``HyperLogLogPlusWrapper``, a sketch of distinct values, is i32
length and bytes, as a ``Value`` and for Kryo.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Constant, Op, PerRecord, Struct
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_class
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.typeutils import options, tuples
from statetool.serializers.typeutils.composite import after_flag, check_last, inside, read_null, sequence
from statetool.types import Field, LogicalType, Scalar, StructType

_NUSSKNACKER: Final = "pl.touk.nussknacker.engine"


class TypedMapSerializer(Serializer):
    """A map whose keys are known, each with its own type: a struct whose fields may be null."""

    def __init__(self, name: str, version: int, fields: tuple[tuple[str, Serializer], ...]) -> None:
        super().__init__(name, version)
        self.fields = fields
        self._framed_only = any(part.needs_frame for _, part in fields)

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        return self.fields

    @property
    def replaceable(self) -> bool:
        return True

    def with_child(self, step: str, part: Serializer) -> Serializer:
        changed = copy.copy(self)
        changed.fields = tuple((name, part if name == step else old) for name, old in self.fields)
        return changed

    @property
    def needs_frame(self) -> bool:
        return self._framed_only

    @property
    def type_name(self) -> str:
        return f"Map<{', '.join(f'{name}: {part.type_name}' for name, part in self.fields)}>"

    @property
    def logical(self) -> LogicalType:
        return StructType(tuple(Field(name, part.logical) for name, part in self.fields))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        values = []
        for i, (name, part) in enumerate(self.fields, 1):
            with inside(name):
                if c.bool():
                    values.append(read_null(c, part))
                    continue
                check_last(c, part, last=i == len(self.fields))
                values.append(part.decode(c))
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        values = sequence(value, self.type_name, len(self.fields))
        for (name, part), item in zip(self.fields, values, strict=True):
            is_null = item is None and not part.none_is_value
            out.bool(is_null)
            if not is_null:
                with inside(name):
                    part.encode(out, item)

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return Struct(tuple(name for name, _ in self.fields), tuple(after_flag(part, 1) for _, part in self.fields))

    def write_payload(self, out: Output) -> None:
        out.i4(len(self.fields))
        for name, part in self.fields:
            out.utf(name)
            part.write_snapshot(out)


def _read_typed_map(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    fields = tuple((c.utf(), reader.snapshot(c)) for _ in range(c.count("fields", at_least=8)))
    if len(dict(fields)) < len(fields):
        raise c.fail(f"{name} has two fields of one name", pos=start)
    return TypedMapSerializer(name, version, fields)


def _encode_nothing(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds one value")


def _decode_nothing(c: Cursor) -> None:
    """Read no bytes."""


_NULL: Final = SimpleType(
    name="Null", logical=Scalar("null"), length=0, op=Constant(0), nullable=True,
    decode=_decode_nothing, encode=_encode_nothing,
)  # fmt: skip
_TYPED: Final = f"{_NUSSKNACKER}.process.typeinformation.internal.typedobject"
_FIXED: Final = f"{_NUSSKNACKER}.flink.typeinformation.FixedValueTypeInformationHelper"
_CASE_CLASS: Final = f"{_NUSSKNACKER}.flink.api.typeinfo.caseclass.ScalaCaseClassSerializerSnapshot"
_OPTION: Final = f"{_NUSSKNACKER}.flink.api.typeinfo.option.ScalaOptionSerializerSnapshot"
#: An entry point per Java package.
TYPED_MAPS: Final = {
    f"{_TYPED}.Typed{kind}MapSerializerSnapshot": SnapshotClass(_read_typed_map, (1,)) for kind in ("Java", "Scala")
}
FIXED_VALUES: Final = {f"{_FIXED}$NullSerializer$$anon$5": simple_class(_NULL)}
CASE_CLASSES: Final = {_CASE_CLASS: tuples.SNAPSHOTS["ScalaCaseClassSerializerSnapshot"]}
OPTIONS: Final = {_OPTION: options.SNAPSHOTS["ScalaOptionSerializerSnapshot"]}
