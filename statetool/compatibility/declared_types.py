"""Serializers of the types that the code of a job gives: constants of Flink, such as ``Types.INT``, and classes, such as ``Order.class``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Resolution, combine
from statetool.errors import NO_FINDING, StatetoolError
from statetool.formats.state_meta import KEY_VALUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.java.declaring import flink_types as flink
from statetool.serializers.core.base import Serializer
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import is_written, type_snapshot
from statetool.types.declared import TypeContext
from statetool.types.type_information import SIMPLE, TypeInformation, simple
from statetool.types.type_names import basic_type

_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"
#: ``Types.TUPLE([Types.STRING, Types.INT])``, ``Types.LIST(Types.INT)``.
_COMPOSED: Final = re.compile(r"Types\.(?P<kind>TUPLE|LIST|MAP|EITHER)\((?:\[(?P<elements>.*)\]|(?P<types>.*))\)")
#: ``Types.ROW([Types.INT])``, ``Types.ROW_NAMED(["a"], [Types.INT])``.
_ROW: Final = re.compile(r"Types\.ROW(_NAMED\(\[(?P<names>[^\[\]]*)\], |\()\[(?P<types>.*)\]\)")
_CLASS: Final = re.compile(
    r"(TypeInformation\.of\(|TypeExtractor\.getForClass\(|Types\.POJO\()?(?P<name>[\w.$]+)\.class(?(1)\))"
)
_HINT: Final = re.compile(r"(TypeInformation\.of\()?TypeHint<(?P<type>.*)>(?(1)\))")


def type_of(text: str, types: TypeContext) -> TypeInformation | None:
    """Return the type that a constant in the code of a job gives, ``None`` if the text does not tell.

    Parameters
    ----------
    types
        The classes of the job.
    """
    if (java_class := basic_type(text)) is not None:
        return simple(java_class)
    if (composed := _COMPOSED.fullmatch(text)) is not None:
        return _composed(composed, types)
    if (row := _ROW.fullmatch(text)) is not None:
        parts = [type_of(part, types) for part in _split(row["types"])]
        known = tuple(part for part in parts if part is not None)
        return TypeInformation("row", "org.apache.flink.types.Row", parts=known) if len(known) == len(parts) else None
    if (hint := _HINT.fullmatch(text)) is not None:
        return None if types.source is None else types.source.record_types(types.kryo).get(hint["type"])
    if (found := _CLASS.fullmatch(text)) is None:
        return None
    name = found["name"]
    return simple(name) if name in SIMPLE else types.type_information(name)


def row_names(text: str) -> tuple[str, ...]:
    """Return the names of the fields that a constant gives a row, none for other types."""
    row = _ROW.fullmatch(text)
    return () if row is None else tuple(_split(row["names"] or ""))


def _composed(text: re.Match[str], types: TypeContext) -> TypeInformation | None:
    """Return the type of a tuple, list or map of other types, ``None`` if one of these is not known."""
    arguments = text["elements"] if text["elements"] is not None else text["types"]
    parts = [type_of(part, types) for part in _split(arguments)]
    known = tuple(part for part in parts if part is not None)
    kind = text["kind"].lower()
    if len(known) < len(parts) or (kind == "tuple") != (text["elements"] is not None) or not known:
        return None
    if kind == "tuple":
        return TypeInformation("tuple", f"{_TUPLE}{len(known)}", parts=known)
    if len(known) != (1 if kind == "list" else 2):
        return None
    if kind == "either":
        return TypeInformation("either", parts=known)
    return TypeInformation("map" if kind == "map" else "list", parts=known)


def _split(text: str) -> list[str]:
    """Return the arguments of a call, of which each may be a call."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [one.strip() for one in found if one.strip()]


def serializer_of(found: TypeInformation | None, types: TypeContext) -> Serializer | None:
    """Return the serializer of a type, ``None`` if it is not known."""
    if found is None or not is_written(found):
        return None
    try:
        return snapshot_reader(types).snapshot(Cursor(type_snapshot(found, None, {})))
    except NO_FINDING:
        raise
    except StatetoolError:
        return None


def resolve_types(before: Sequence[Serializer], texts: Sequence[str], types: TypeContext) -> Resolution | None:
    """Return the resolution of serializers into those of the types that code gives, ``None`` if they are not known.

    Types that Kryo writes are not known: the configuration of the job registers classes.
    """
    return resolve_information(before, [type_of(text, types) for text in texts], types)


def resolve_information(
    before: Sequence[Serializer], found: Sequence[TypeInformation | None], types: TypeContext
) -> Resolution | None:
    """Return the resolution of serializers into those of types, ``None`` if they are not known."""
    known = [serializer_of(one, types) for one in found if one is not None and not _has_kryo(one)]
    after = [new for new in known if new is not None]
    if not len(before) == len(found) == len(after):
        return None
    return combine(resolve(_plain(old), new) for old, new in zip(before, after, strict=True))


def _has_kryo(found: TypeInformation) -> bool:
    return any(part.kind == "kryo" for part in found.walk())


def _plain(serializer: Serializer) -> Serializer:
    """Return the serializer of the values without their time to live, which the types of a declaration do not have."""
    plain = unwrap(serializer)
    return unwrap(plain.children()[1][1]) if isinstance(plain, TtlSerializer) else plain


def keyed_meta(
    before: StateMetaInfo, kind: str, found: Sequence[TypeInformation | None], types: TypeContext, *, ttl: bool
) -> StateMetaInfo | None:
    """Return the description that a keyed state gets from the types that code gives, ``None`` if they are not known."""
    parts = _known(found[-1:] if kind in ("reducing", "aggregating", "folding") else found, types)
    if len(parts) != (2 if kind == "map" else 1) or before.backend_type != KEY_VALUE:
        return None
    *keys, value = parts
    value = flink.ttl(value) if ttl else value
    whole = flink.list_of(value) if kind == "list" else flink.map_of(keys[0], value) if kind == "map" else value
    options = {**before.options, "KEYED_STATE_TYPE": kind.upper()}
    return replace(before, options=options, serializers={**before.serializers, "VALUE_SERIALIZER": whole})


def operator_meta(
    before: StateMetaInfo, kind: str, found: Sequence[TypeInformation | None], types: TypeContext
) -> StateMetaInfo | None:
    """Return the description that an operator state gets from the types that code gives, ``None`` if they are not known."""
    parts = _known(found, types)
    names = ("KEY_SERIALIZER", "VALUE_SERIALIZER") if kind == "broadcast" else ("VALUE_SERIALIZER",)
    if len(parts) != len(names) or (kind == "broadcast") != (before.kind == "broadcast"):
        return None
    mode = {"list": "SPLIT_DISTRIBUTE", "union": "UNION", "broadcast": "BROADCAST"}[kind]
    options = {**before.options, "OPERATOR_STATE_DISTRIBUTION_MODE": mode}
    return replace(before, options=options, serializers={**before.serializers, **dict(zip(names, parts, strict=True))})


def _known(found: Sequence[TypeInformation | None], types: TypeContext) -> list[Serializer]:
    """Return the serializers of types; none if one is not known. Which classes Kryo registers, the configuration of the job decides."""
    known = [None if one is None or _has_kryo(one) else serializer_of(one, types) for one in found]
    return [one for one in known if one is not None] if None not in known else []
