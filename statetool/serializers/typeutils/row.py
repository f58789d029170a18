"""``Row``: a bit mask (two bits row kind, then one bit per field: set = null), then the non-null fields.

Outer payload: version 4 has a bool "supports row kind"; in version 3 this is always true, up to version 2 never. Field names are not
stored. Follows ``RowSerializer``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Masked, Op, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.composite import CompositeSerializer, check_last, composite, inside, sequence
from statetool.serializers.typeutils.masks import read_mask, write_mask
from statetool.serializers.typeutils.row_hash import hash_row
from statetool.types import Field, LogicalType, Scalar, StructType

ROW_KINDS: Final = ("+I", "-U", "+U", "-D")
KIND_FIELD: Final = "_kind"


class RowSerializer(CompositeSerializer):
    """Struct of ``f0`` .., and ``_kind`` last if the row kind is stored."""

    arity = None

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Any, ...]) -> None:
        super().__init__(name, version, outer_version, outer, nested)
        self.row_kind = bool(outer) if outer_version >= 4 else outer_version == 3
        self.steps = tuple(f"f{i}" for i in range(len(nested)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return self.steps

    def with_names(self, names: Sequence[str]) -> RowSerializer:
        """Return the serializer with other names for its fields."""
        named = copy.copy(self)
        named.steps = tuple(names)
        return named

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bool | None:
        return c.bool() if outer_version >= 4 else None

    def write_outer(self, out: Output) -> None:
        if self.outer is not None:
            out.bool(self.outer)

    @property
    def logical(self) -> LogicalType:
        fields = [Field(n, s.logical) for n, s in self.children()]
        if self.row_kind:
            fields.append(Field(KIND_FIELD, Scalar("string")))
        return StructType(tuple(fields))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        mask = read_mask(c, len(self.nested) + 2 * self.row_kind)
        nulls = mask[2:] if self.row_kind else mask
        values: list[Any] = []
        try:
            for part, null in zip(self.nested, nulls, strict=True):
                if null:
                    values.append(None)
                else:
                    check_last(c, part, last=all(nulls[len(values) + 1 :]))
                    values.append(part.decode(c))
        except StatetoolError as error:
            raise error.inside(self.steps[len(values)]) from error.__cause__
        if self.row_kind:
            values.append(ROW_KINDS[mask[0] + 2 * mask[1]])
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        values = sequence(value, "row", len(self.nested) + self.row_kind)[: len(self.nested)]
        flags = [v is None for v in values]
        if self.row_kind:
            if value[-1] not in ROW_KINDS:
                raise EncodeError(f"{value[-1]!r} is not a row kind ({', '.join(ROW_KINDS)})")
            kind = ROW_KINDS.index(value[-1])
            flags = [bool(kind & 1), bool(kind & 2), *flags]
        write_mask(out, flags)
        for (step, part), v in zip(self.children(), values, strict=True):
            if v is not None:
                with inside(step):
                    part.encode(out, v)

    def hash_code(self, value: Any) -> int:
        """``Row.hashCode``; rows without a kind are inserts."""
        return hash_row(ROW_KINDS.index(value[-1]) if self.row_kind else 0, self.nested, value)

    def key_forms(self, value: Any) -> tuple[tuple[bytes, int | None], ...]:
        """Accept a key without its kind as well, and a single-field key (like all of PyFlink's keys) as the field alone."""
        return super().key_forms(_whole_row(self, value))

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return Masked(self.steps, tuple(s.program() for s in self.nested), self.row_kind)


def _whole_row(part: Serializer, value: Any) -> Any:
    """Return a key with the omitted row kind and one-field tuple filled in, in rows and in tuples of rows."""
    if isinstance(part, RowSerializer):
        n, values = len(part.nested), value if isinstance(value, (tuple, list)) else None
        if values is not None and len(values) == n + part.row_kind and (not part.row_kind or values[-1] in ROW_KINDS):
            fields, kind = values[:n], values[n:]
        else:
            is_field_alone = n == 1 and (values is None or len(values) != 1)
            fields, kind = (value,) if is_field_alone else values or (), (ROW_KINDS[0],) * part.row_kind
        if len(fields) != n:
            raise EncodeError(f"{value!r} is not a row of {n} fields")
        return (*(_whole_row(p, v) for p, v in zip(part.nested, fields, strict=True)), *kind)
    if isinstance(value, (tuple, list)) and len(value) == len(part.children()):
        return tuple(_whole_row(p, v) for (_, p), v in zip(part.children(), value, strict=True))
    return value


SNAPSHOTS: Final = {
    "RowSerializer$RowSerializerSnapshot": composite(RowSerializer, outer_versions=(1, 2, 3, 4)),
    "RowSerializer$RowSerializerConfigSnapshot": composite(RowSerializer, outer_versions=(1, 2, 3, 4)),
}
