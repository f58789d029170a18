"""Optional values, or one of two values: ``Nullable``, ``Option``, ``Either``, ``Try``, CoGroup's ``Union``.

``Nullable``: bool is null, then padding zero bytes or the value (outer payload: i32 padding). ``Option``: bool is some.
``Either``: bool is left. ``Try``: bool is success. ``Union``: u8 1 or 2.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import EitherOf, Flagged, Op, PerRecord, Struct
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.composite import CompositeSerializer, composite, inside, sequence
from statetool.serializers.typeutils.tuples import scala_hash, scala_product_hash
from statetool.types import LogicalType, StructType


class NullableSerializer(CompositeSerializer):
    """``NullableSerializer``."""

    nullable = True
    steps = ("value",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.padding = self.outer or 0
        if self.padding:
            self.length = 1 + self.padding

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> int:
        padding = c.i4()
        if padding < 0:
            raise c.fail(f"negative padding {padding}", pos=c.pos - 4)
        return padding

    def write_outer(self, out: Output) -> None:
        out.i4(self.padding)

    @property
    def logical(self) -> LogicalType:
        return self.nested[0].logical

    def decode(self, c: Cursor) -> Any:
        if not c.bool():
            return self.nested[0].decode(c)
        if any(c.take(self.padding, "padding")):
            raise c.fail("padding after a null is not zero", pos=c.pos - self.padding)
        return None

    def encode(self, out: Output, value: Any) -> None:
        out.bool(value is None)
        if value is None:
            out += bytes(self.padding)
        else:
            self.nested[0].encode(out, value)

    def hash_code(self, value: Any) -> int:
        return 0 if value is None else self.nested[0].hash_code(value)

    def program(self) -> Op:
        return Flagged(self.nested[0].program(), null_flag=1, padding=self.padding)


def _optional_type(part: Serializer) -> LogicalType:
    """Return the type of an optional value: a one-field struct if ``None`` is a valid value of the part."""
    return StructType.of(value=part.logical) if part.none_is_value else part.logical


def _wrap(part: Serializer, value: Any) -> Any:
    return (value,) if part.none_is_value else value


def _unwrap(part: Serializer, value: Any) -> Any:
    return sequence(value, part.type_name, 1)[0] if part.none_is_value else value


def _optional_program(part: Serializer) -> Op:
    return Struct(("value",), (part.program(),)) if part.none_is_value else part.program()


class OptionSerializer(CompositeSerializer):
    """``ScalaOptionSerializer``: None is null, ``Some(None)`` a struct of null."""

    nullable = True
    none_is_value = True
    steps = ("some",)

    @property
    def logical(self) -> LogicalType:
        return _optional_type(self.nested[0])

    def decode(self, c: Cursor) -> Any:
        start = c.pos
        if not c.bool():
            return None
        value = _wrap(self.nested[0], self.nested[0].decode(c))
        if value is None:
            raise c.fail("Some(null) cannot be told from None", pos=start)
        return value

    def encode(self, out: Output, value: Any) -> None:
        out.bool(value is not None)
        if value is not None:
            self.nested[0].encode(out, _unwrap(self.nested[0], value))

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.12; for None, the hash of its name."""
        if value is None:
            return 2433880
        return scala_product_hash([scala_hash(self.nested[0], _unwrap(self.nested[0], value))])

    def program(self) -> Op:
        if self.nested[0].nullable and not self.nested[0].none_is_value:
            return PerRecord(self.decode)
        return Flagged(_optional_program(self.nested[0]), null_flag=0)


class EitherSerializer(CompositeSerializer):
    """``EitherSerializer`` (Java and Scala): struct of two fields, one of them null."""

    arity = 2
    steps = ("left", "right")

    @property
    def logical(self) -> LogicalType:
        return StructType.of(**{name: _optional_type(s) for name, s in self.children()})

    def read_side(self, c: Cursor) -> int:
        """Read a flag for the side that follows."""
        return 0 if c.bool() else 1

    def write_side(self, out: Output, side: int) -> None:
        """Append the flag for the side that follows."""
        out.bool(side == 0)

    def decode(self, c: Cursor) -> tuple[Any, Any]:
        start = c.pos
        side = self.read_side(c)
        with inside(self.steps[side]):
            value = _wrap(self.nested[side], self.nested[side].decode(c))
        if value is None:
            raise c.fail(f"a null inside {self.steps[side]} cannot be told from the other side", pos=start)
        return (value, None) if side == 0 else (None, value)

    def encode(self, out: Output, value: Any) -> None:
        side = self._side(value)
        self.write_side(out, side)
        with inside(self.steps[side]):
            self.nested[side].encode(out, _unwrap(self.nested[side], value[side]))

    def _side(self, value: Any) -> int:
        if sum(v is not None for v in sequence(value, "choice of two", 2)) != 1:
            raise EncodeError(f"exactly one of {' and '.join(self.steps)} must be there, found {value!r}")
        return 0 if value[0] is not None else 1

    def hash_code(self, value: Any) -> int:
        """``Either.hashCode`` of Flink: the hash of the value."""
        side = self._side(value)
        return self.nested[side].hash_code(value[side])

    def program(self) -> Op:
        if any(part.nullable and not part.none_is_value for part in self.nested):
            return PerRecord(self.decode)
        left, right = map(_optional_program, self.nested)
        return EitherOf(left, right)


class ScalaEitherSerializer(EitherSerializer):
    """``EitherSerializer`` of Scala."""

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.12, of ``Left`` or ``Right``."""
        side = self._side(value)
        return scala_product_hash([scala_hash(self.nested[side], _unwrap(self.nested[side], value[side]))])


class ConfigEitherSerializer(EitherSerializer):
    """Up to Flink 1.6, Java's and Scala's ``Either`` had the same snapshots, but different hash codes."""

    def hash_code(self, value: Any) -> int:
        return CompositeSerializer.hash_code(self, value)


class TrySerializer(ScalaEitherSerializer):
    """``ScalaTrySerializer``."""

    steps = ("success", "failure")

    def hash_code(self, value: Any) -> int:
        """``productHash`` of a ``Success``; the hash of a ``Failure`` is not reproducible."""
        return super().hash_code(value) if self._side(value) == 0 else CompositeSerializer.hash_code(self, value)

    def program(self) -> Op:
        return PerRecord(self.decode)


class UnionSerializer(ConfigEitherSerializer):
    """``CoGroupedStreams.UnionSerializer``."""

    steps = ("one", "two")

    def read_side(self, c: Cursor) -> int:
        side = c.u1()
        if side not in (1, 2):
            raise c.fail(f"side {side} of a union is not 1 or 2", pos=c.pos - 1)
        return side - 1

    def write_side(self, out: Output, side: int) -> None:
        out.u1(side + 1)

    def program(self) -> Op:
        return PerRecord(self.decode)


SNAPSHOTS: Final = {
    "NullableSerializer$NullableSerializerSnapshot": composite(NullableSerializer, outer_versions=(1, 2)),
    "NullableSerializer$NullableSerializerConfigSnapshot": composite(NullableSerializer, outer_versions=(1, 2)),
    "ScalaOptionSerializerSnapshot": composite(OptionSerializer, outer_versions=(1, 2)),
    "ScalaOptionSerializerConfigSnapshot": composite(OptionSerializer, outer_versions=(1, 2)),
    "JavaEitherSerializerSnapshot": composite(EitherSerializer),
    "ScalaEitherSerializerSnapshot": composite(ScalaEitherSerializer),
    "EitherSerializerSnapshot": composite(EitherSerializer),
    "EitherSerializerConfigSnapshot": composite(ConfigEitherSerializer),
    "ScalaTrySerializerSnapshot": composite(TrySerializer, outer_versions=(1, 2)),
    "ScalaTrySerializerConfigSnapshot": composite(TrySerializer, outer_versions=(1, 2)),
    "CoGroupedStreams$UnionSerializerSnapshot": composite(UnionSerializer, outer_versions=(1, 2)),
    "CoGroupedStreams$UnionSerializerConfigSnapshot": composite(UnionSerializer, outer_versions=(1, 2)),
}
