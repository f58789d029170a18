"""Companion columns: information that the columns of a table cannot hold themselves.

``x_scale`` has the scale of each ``BigDecimal`` in ``x``. It has the shape of ``x`` with ints in place of the decimals: an int, a list of
ints, a map of the same keys to ints, or a struct of the fields with decimals. For maps whose keys have decimals it is a list of structs of
``key`` and ``value``. ``x_present`` distinguishes a null stored in a state (``None`` of Scala) from an absent state.

Decoded columns hold both inside, as structs (:func:`statetool.columns.types.arrow_type`). Tables show them beside the column, and
:func:`with_scales` inserts them again.
"""

from __future__ import annotations

from collections.abc import Container
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow, is_valid, spread_values
from statetool.columns.coerce import list_parts, map_parts
from statetool.columns.from_plain import scale_of
from statetool.columns.types import BIG_DECIMAL, COMPANION, SCALED_DECIMAL, arrow_type, member_arrays, member_fields
from statetool.errors import EncodeError, StatetoolError
from statetool.types import BigDecimalType, ListType, LogicalType, MapType, PresentType, StructType, TtlType
from statetool.types.options import ReadOptions

SCALE: Final = "_scale"
PRESENT: Final = "_present"
#: Suffixes of the names of companions.
SUFFIXES: Final = (COMPANION, SCALE, PRESENT)


def state_of_companion(name: str, states: Container[str]) -> str | None:
    """Return the state whose companion may have this name."""
    return next((n for s in SUFFIXES if name.endswith(s) and (n := name.removesuffix(s)) in states), None)


def column_of_companion(name: str, schema: pa.Schema, *, known: bool) -> tuple[str, str, str] | None:
    """Return the column of a table whose companion has this name, the content of the companion, and the alternative content.

    Parameters
    ----------
    known
        Whether a table that was read has this companion. In a user's table, decimals may have other columns beside them.
    """
    for suffix, kept, instead in _KEPT:
        column = name.removesuffix(suffix)
        if name.endswith(suffix) and column in schema.names:
            kind = schema.field(column).type
            may_be = {
                COMPANION: pa.types.is_timestamp(kind),
                SCALE: shows_scales(kind) or (known and _has_decimals(kind)),
                PRESENT: known,
            }
            if may_be[suffix]:
                return column, kept, instead
    return None


def needs_companion(name: str, kind: pa.DataType) -> bool:
    """Return True if a column of a type needs a companion of this name: other decimals have the scale of their type."""
    return not name.endswith(SCALE) or shows_scales(kind)


_KEPT: Final = (
    (COMPANION, "its nanoseconds", "fill it with zeros"),
    (SCALE, "the scales of its BigDecimals", "fill it with nulls: as few digits as each number needs"),
    (PRESENT, "what tells its null values from absent states", "fill it with true or false"),
)


def shows_scales(kind: pa.DataType) -> bool:
    """Return True if a column has a decimal in the form in which tables show a ``BigDecimal``."""
    return bool(kind == BIG_DECIMAL) or any(map(shows_scales, _parts(kind)))


def _has_decimals(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) or any(map(_has_decimals, _parts(kind)))


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if _is_list(kind) else []


@lru_cache(maxsize=1024)
def has_scales(logical: LogicalType) -> bool:
    """Return True if values have a ``BigDecimal`` at any depth."""
    match logical:
        case BigDecimalType():
            return True
        case ListType(part) | TtlType(part) | PresentType(part):
            return has_scales(part)
        case MapType(key, value):
            return has_scales(key) or has_scales(value)
        case StructType(fields):
            return any(has_scales(field.type) for field in fields)
    return False


def column_fields(name: str, logical: LogicalType, options: ReadOptions) -> list[pa.Field]:
    """Return the field of a table's column, and those of its companions."""
    if isinstance(logical, PresentType):
        present = [pa.field(name + PRESENT, pa.bool_(), nullable=False)] if options.presence == "companion" else []
        return [*column_fields(name, logical.value, options), *present]
    if options.decimals == "decimal" and has_scales(logical):
        shown, scales = _split_types(logical, options)
        return [pa.field(name, shown), pa.field(name + SCALE, scales)]
    return member_fields(name, logical, options)


def column_arrays(array: pa.Array, logical: LogicalType, options: ReadOptions) -> list[pa.Array]:
    """Return a decoded column and its companions, as :func:`column_fields` names them."""
    if isinstance(logical, PresentType):
        present = [as_arrow(is_valid(array))] if options.presence == "companion" else []
        return [*column_arrays(array.flatten()[0], logical.value, options), *present]
    if options.decimals == "decimal" and has_scales(logical):
        return list(_split(array, logical, options))
    return member_arrays(array, logical, options)


@lru_cache(maxsize=1024)
def _split_types(logical: LogicalType, options: ReadOptions) -> tuple[pa.DataType, pa.DataType]:
    shown, scales = _split(pa.nulls(0, arrow_type(logical, options)), logical, options)
    return shown.type, scales.type


def _split(array: pa.Array, logical: LogicalType, options: ReadOptions) -> tuple[pa.Array, pa.Array]:
    """Return values with plain decimals, and the scales of the decimals."""
    match logical:
        case BigDecimalType():
            decimals, scales = array.flatten()
            return decimals, scales
        case ListType(element):
            elements, scales = _split(array.values, element, options)
            return _same_lists(array, elements), _same_lists(array, scales)
        case MapType(key, value):
            return _split_map(array, key, value, options)
        case StructType(fields):
            parts = [
                (field.type, i == 0)
                for field in fields
                for i, _ in enumerate(member_fields(field.name, field.type, options))
            ]
            return _split_struct(array, [kind if first else None for kind, first in parts], options)
        case TtlType(value) if options.ttl == "raw":
            shown, scales = _split_struct(array, [None, value], options)
            return shown, scales.flatten()[0]
        case TtlType(value):
            return _split(array, value, options)
    raise NotImplementedError(type(logical).__name__)


def _split_map(
    array: pa.MapArray, key: LogicalType, value: LogicalType, options: ReadOptions
) -> tuple[pa.Array, pa.Array]:
    keys, values = array.keys, array.items
    scales: dict[str, pa.Array] = {}
    if has_scales(key):
        keys, scales["key"] = _split(keys, key, options)
    if has_scales(value):
        values, scales["value"] = _split(values, value, options)
    shown = _same_maps(array, keys, values)
    if "key" not in scales:
        return shown, _same_maps(array, keys, scales["value"])
    return shown, _same_lists(array, pa.StructArray.from_arrays(list(scales.values()), names=list(scales)))


def _split_struct(
    array: pa.StructArray, kinds: list[LogicalType | None], options: ReadOptions
) -> tuple[pa.Array, pa.Array]:
    """Split structs; ``kinds`` has the logical type of each field that may have decimals."""
    fields, parts, scale_fields, scales = [], [], [], []
    for field, part, kind in zip(array.type, array.flatten(), kinds, strict=True):
        own = part
        if kind is not None and has_scales(kind):
            own, scale = _split(part, kind, options)
            scales.append(scale)
            scale_fields.append(pa.field(field.name, scale.type))
        parts.append(own)
        fields.append(field.with_type(own.type))
    null = as_arrow(~is_valid(array))
    shown = pa.StructArray.from_arrays(parts, fields=fields, mask=null)
    return shown, pa.StructArray.from_arrays(scales, fields=scale_fields, mask=null)


def _same_lists(array: pa.Array, elements: pa.Array) -> pa.Array:
    """Return lists as long as those of lists or maps."""
    kind = pa.list_(pa.field("element", elements.type))
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[elements]
    )


def _same_maps(array: pa.MapArray, keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return maps as long as those of other maps."""
    kind = pa.map_(keys.type, values.type)
    # PyArrow 16 aborts the process if the nulls of keys and pairs were never counted. Arrow counts them when it is asked.
    assert not keys.null_count
    pairs = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    assert not pairs.null_count
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[pairs]
    )


# ---- writing ------------------------------------------------------------------------------------


def with_scales(array: pa.Array, scales: pa.Array, logical: LogicalType, *, exact: bool = False) -> pa.Array:
    """Return values with their scales inside.

    Parameters
    ----------
    exact
        Refuse numbers without a scale, or with more digits than the scale. Used for keys, whose hash codes depend on the scale.

    Raises
    ------
    EncodeError
        The companion has another shape.
    """
    valid = is_valid(array)
    present = array if valid.all() else array.filter(as_arrow(valid))
    own = scales if valid.all() else scales.filter(as_arrow(valid))
    match logical:
        case BigDecimalType():
            return spread_values(_with_scale(present, own, exact=exact), valid)
        case ListType(element) if _is_list(array.type) and _is_list(scales.type):
            counts, elements = list_parts(present)
            scale_counts, inner = list_parts(_without_nulls(own))
            _check_counts(counts, scale_counts)
            joined = _inside("element", elements, inner, element, exact)
            return spread_values(_list_array(counts, joined), valid)
        case MapType(key, value) if pa.types.is_map(array.type) or _is_list(array.type):
            return spread_values(_map_with_scales(present, _without_nulls(own), key, value, exact), valid)
        case StructType() if pa.types.is_struct(array.type) and pa.types.is_struct(scales.type):
            return spread_values(_struct_with_scales(present, _without_nulls(own), logical, exact), valid)
        case TtlType(value):
            if not _has_last_access(array.type):
                return with_scales(array, scales, value, exact=exact)
            kind = StructType.of(value=value)
            named = pa.StructArray.from_arrays([own], names=["value"])
            return spread_values(_struct_with_scales(present, named, kind, exact), valid)
    if pa.types.is_null(array.type):
        return array
    raise EncodeError(f"scales of type {scales.type} beside values of type {array.type}", hint=_SHAPE_HINT)


_SHAPE_HINT: Final = "change both alike, or drop the companion and give text or decimals with a scale of their own"


def _with_scale(decimals: pa.Array, scales: pa.Array, *, exact: bool) -> pa.Array:
    if not pa.types.is_decimal(decimals.type) and not pa.types.is_integer(decimals.type):
        return decimals  # text includes its scale
    if not pa.types.is_integer(scales.type):
        raise EncodeError(f"scales of type {scales.type}", hint="they are INT, as tables show them")
    if exact:
        for number, scale in zip(decimals.to_pylist(), scales.to_pylist(), strict=True):
            if scale is None or scale_of(Decimal(number).normalize()) > scale:
                shown = "no scale" if scale is None else f"scale {scale}"
                raise EncodeError(
                    f"a key {Decimal(number).normalize():f} with {shown}",
                    hint="pass the scale of the job's BigDecimal: the key group depends on it",
                )
    return pa.StructArray.from_arrays([decimals, scales], names=[f.name for f in SCALED_DECIMAL])


def _map_with_scales(array: pa.Array, scales: pa.Array, key: LogicalType, value: LogicalType, exact: bool) -> pa.Array:
    counts, keys, values = map_parts(array)
    if has_scales(key):
        scale_counts, pairs = list_parts(scales)
        _check_counts(counts, scale_counts)
        keys = _inside("key", keys, _part(pairs, "key"), key, exact)
        if has_scales(value):
            values = _inside("value", values, _part(pairs, "value"), value, exact)
    else:
        scale_counts, scale_keys, own = map_parts(scales)
        _check_counts(counts, scale_counts)
        if not keys.equals(scale_keys):
            raise EncodeError("a map whose scales have other keys, or another order", hint=_SHAPE_HINT)
        values = _inside("value", values, own, value, exact)
    return _list_array(counts, pa.StructArray.from_arrays([keys, values], names=["key", "value"]))


def _struct_with_scales(array: pa.Array, scales: pa.Array, logical: StructType, exact: bool) -> pa.Array:
    names = [f.name for f in array.type]
    type_of = {field.name: field.type for field in logical.fields}
    parts = array.flatten()
    for field, own in zip(scales.type, scales.flatten(), strict=True):
        if field.name not in names:
            raise EncodeError(f"a scale of the field {field.name!r}, which the values do not have", hint=_SHAPE_HINT)
        i = names.index(field.name)
        kind = type_of.get(field.name) or logical.fields[i].type  # fields of rows may have other names
        parts[i] = _inside(field.name, parts[i], own, kind, exact)
    return pa.StructArray.from_arrays(parts, names=names)


def _inside(step: str, array: pa.Array, scales: pa.Array, logical: LogicalType, exact: bool) -> pa.Array:
    try:
        return with_scales(array, scales, logical, exact=exact)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__


def _part(array: pa.StructArray, name: str) -> pa.Array:
    if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
        raise EncodeError(f"scales of type {array.type} for the entries of a map", hint=_SHAPE_HINT)
    return array.flatten()[array.type.get_field_index(name)]


def _without_nulls(scales: pa.Array) -> pa.Array:
    if scales.null_count:
        raise EncodeError("values without their scales", hint=_SHAPE_HINT)
    return scales


def _check_counts(counts: Any, scales: Any) -> None:
    wrong = np.flatnonzero(counts != scales)
    if len(wrong):
        i = int(wrong[0])
        raise EncodeError(f"{counts[i]} values with {scales[i]} scales", hint=_SHAPE_HINT)


def _list_array(counts: Any, elements: pa.Array) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(as_arrow(offsets), elements)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _has_last_access(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {"last_access", "value"} <= {f.name for f in kind}


def unscaled_part(kind: pa.DataType, logical: LogicalType) -> str | None:
    """Return the path of the first ``BigDecimal`` whose column is a decimal(38,18), ``None`` if absent.

    Tables show every ``BigDecimal`` as decimal(38,18). Other decimals come from users and have the scale of their type. Text includes its
    scale.
    """
    match logical:
        case BigDecimalType():
            return "" if kind == BIG_DECIMAL else None
        case ListType(element) if _is_list(kind):
            return _path("element", unscaled_part(kind.value_type, element))
        case MapType(key, value) if pa.types.is_map(kind):
            inner = _path("key", unscaled_part(kind.key_type, key))
            return _path("value", unscaled_part(kind.item_type, value)) if inner is None else inner
        case TtlType(value):
            if _has_last_access(kind):
                kind = kind.field("value").type
            return unscaled_part(kind, value)
        case PresentType(value):
            return unscaled_part(kind, value)
        case StructType(fields) if pa.types.is_struct(kind):
            by_name = {f.name: f.type for f in kind}
            for i, field in enumerate(fields):
                part = by_name.get(field.name, kind[i].type if i < len(kind) else pa.null())
                if (inner := _path(field.name, unscaled_part(part, field.type))) is not None:
                    return inner
    return None


def _path(step: str, inner: str | None) -> str | None:
    return None if inner is None else f"{step}.{inner}".removesuffix(".")
