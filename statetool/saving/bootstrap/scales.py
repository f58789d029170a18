"""Scales of decimals, from companion columns back into the values that are written (:mod:`statetool.columns.companions`)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow, is_valid, spread_values
from statetool.columns.coerce import list_parts, map_parts
from statetool.columns.companions import is_list
from statetool.columns.from_plain import scale_of
from statetool.columns.types import BIG_DECIMAL, SCALED_DECIMAL, has_scales
from statetool.errors import EncodeError, StatetoolError
from statetool.types import BigDecimalType, ListType, LogicalType, MapType, PresentType, StructType, TtlType


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
        case ListType(element) if is_list(array.type) and is_list(scales.type):
            counts, elements = list_parts(present)
            scale_counts, inner = list_parts(_without_nulls(own))
            _check_counts(counts, scale_counts)
            joined = _inside("element", elements, inner, element, exact)
            return spread_values(_list_array(counts, joined), valid)
        case MapType(key, value) if pa.types.is_map(array.type) or is_list(array.type):
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
        case ListType(element) if is_list(kind):
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
