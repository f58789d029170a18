"""Case classes, ``Option`` and ``Either`` of flink-scala-api.

``ScalaCaseClassSerializerSnapshot`` is a composite snapshot. Outer version 2: utf class. Version 3: utf class, bool immutable.
Values of version 3: i32 arity, then the fields; null is the arity -2147483648, then as many zero bytes as the fields take if all of them
have a fixed size. Version 2: see :mod:`statetool.serializers.libraries.flinkx.parts`. Follows ``CaseClassSerializer``, ``OptionSerializer`` and
``EitherSerializer`` of flink-scala-api 1.1.4 to 2.2.4.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, SnapshotClass, SnapshotReader, check_version
from statetool.serializers.libraries.flinkx.parts import ArityChoice, build_both
from statetool.serializers.typeutils.composite import CompositeSerializer
from statetool.serializers.typeutils.options import OptionSerializer, ScalaEitherSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer, scala_hash, scala_product_hash
from statetool.types.java_hash import hash_string

NULL: Final = -(1 << 31)
_VERSIONS: Final = (3,)


class FlinkxCaseClassSerializer(TupleSerializer):
    """Fields ``_1`` .. in order; ``outer`` is the class and whether it is immutable (version 3)."""

    prefix = "_"
    first = 1

    @property
    def type_name(self) -> str:
        return f"CaseClass {self.outer[0]}"

    def write_outer(self, out: Output) -> None:
        out.utf(self.outer[0])
        if self.outer_version > 2:
            out.bool(self.outer[1])

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.13 and 3."""
        name = simple_name(self.outer[0])
        if not self.nested:
            return hash_string(name)
        parts = zip(self.nested, value, strict=True)
        return scala_product_hash(
            [0 if v is None and not s.none_is_value else scala_hash(s, v) for s, v in parts], class_name=name
        )


class ArityCaseClassSerializer(FlinkxCaseClassSerializer):
    """With the arity before the fields."""

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Any, ...]) -> None:
        super().__init__(name, version, outer_version, outer, nested)
        self._padding = max(self.length, 0)
        self.nullable = outer_version > 2
        if self.nullable and self.length >= 0:
            self.length += 4

    def decode(self, c: Cursor) -> Any:
        if not self.nested and self.outer_version < 3:
            return ()
        arity = c.i4()
        if arity == NULL and self.nullable:
            if any(c.take(self._padding, "padding")):
                raise c.fail("padding after a null is not zero", pos=c.pos - self._padding)
            return None
        if arity != len(self.nested):
            raise c.fail(f"{arity} fields of {self.outer[0]}, whose snapshot has {len(self.nested)}", pos=c.pos - 4)
        return super().decode(c)

    def encode(self, out: Output, value: Any) -> None:
        if value is None and self.nullable:
            out.i4(NULL)
            out += bytes(self._padding)
            return
        if self.nested or self.outer_version > 2:
            out.i4(len(self.nested))
        super().encode(out, value)

    def program(self) -> Op:
        return PerRecord(self.decode)


class FlinkxOptionSerializer(OptionSerializer):
    """``OptionSerializer``: bool is some."""

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.13 and 3; for None, the hash of its name."""
        if value is None:
            return hash_string("None")
        inner = value[0] if self.nested[0].none_is_value else value
        return scala_product_hash([scala_hash(self.nested[0], inner)], class_name="Some")


class FlinkxEitherSerializer(ScalaEitherSerializer):
    """``EitherSerializer``: bool is left."""

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.13 and 3, of ``Left`` or ``Right``."""
        side = self._side(value)
        part = self.nested[side]
        inner = value[side][0] if part.none_is_value else value[side]
        return scala_product_hash([scala_hash(part, inner)], class_name=("Left", "Right")[side])


def simple_name(class_name: str) -> str:
    """Return the name of a Scala class in its source, as ``productPrefix`` has it.

    Examples
    --------
    >>> simple_name("com.acme.Shapes$Circle"), simple_name("com.acme.Point$")
    ('Circle', 'Point')
    """
    return class_name.rpartition(".")[2].rstrip("$").rpartition("$")[2]


def read_composite(c: Cursor, name: str, outer_versions: tuple[int, ...]) -> int:
    """Read the start of a composite snapshot and return the outer version."""
    if c.i4() != COMPOSITE_MAGIC:
        raise c.fail(f"expected the magic number of a composite snapshot in {name}", pos=c.pos - 4)
    outer_version = c.i4()
    check_version(c, f"{name} outer", outer_version, outer_versions)
    return outer_version


def _read_case_class(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    outer_version = read_composite(c, name, _CASE_CLASS_VERSIONS)
    outer = (c.utf(), c.bool() if outer_version > 2 else False)

    def build(cls: type[FlinkxCaseClassSerializer], parts: tuple[Serializer, ...]) -> Serializer:
        return cls(name, version, outer_version, outer, parts)

    parts = reader.nested(c)
    if outer_version > 2:
        return build_both(lambda p: build(ArityCaseClassSerializer, p), parts)
    plain = build(FlinkxCaseClassSerializer, tuple(p.plain if isinstance(p, ArityChoice) else p for p in parts))
    with_arity = tuple(p.with_arity if isinstance(p, ArityChoice) else p for p in parts)
    return ArityChoice(plain, build(ArityCaseClassSerializer, with_arity))


def _read_parts(cls: type[CompositeSerializer], outer_versions: tuple[int, ...]) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        outer_version = read_composite(c, name, outer_versions)
        parts = reader.nested(c)
        if len(parts) != cls.arity:
            raise c.fail(f"{name} has {len(parts)} nested serializers, expected {cls.arity}")
        return build_both(lambda p: cls(name, version, outer_version, None, p), parts)

    return SnapshotClass(read, _VERSIONS, outer_versions=outer_versions)


_CASE_CLASS_VERSIONS: Final = (2, 3)
SNAPSHOTS: Final = {
    "ScalaCaseClassSerializerSnapshot": SnapshotClass(_read_case_class, _VERSIONS, outer_versions=_CASE_CLASS_VERSIONS),
    "ScalaOptionSerializerSnapshot": _read_parts(FlinkxOptionSerializer, (2,)),
    "ScalaEitherSerializerSnapshot": _read_parts(FlinkxEitherSerializer, (1,)),
}
