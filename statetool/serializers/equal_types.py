"""Equal types: serializers of two snapshots whose values mean the same."""

from __future__ import annotations

from typing import Final

from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import unwrap
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.types import ListType, MapType, Scalar

#: Classes whose values are text.
_TEXT: Final = {f"java.{n}" for n in ("lang.String", "lang.Character", "util.UUID", "util.Currency", "util.Locale")}
#: Fields of POJOs that Flink 2.x writes with serializers of its own, instead of with Kryo.
_COLLECTIONS: Final = {"java.util.List": ListType, "java.util.Set": ListType, "java.util.Map": MapType}


def snapshot_bytes(serializer: Serializer) -> bytes:
    """Return the snapshot bytes of a serializer."""
    out = Output()
    serializer.write_snapshot(out)
    return bytes(out)


def is_text_only(serializer: Serializer) -> bool:
    """Return True if values are JSON text because the fields of their class are unknown. Only Kryo can recreate objects from it."""
    if not isinstance(serializer, KryoSerializer) or serializer.logical != Scalar("string"):
        return False
    declared = serializer.context.find(serializer.type_class)
    return serializer.type_class not in _TEXT and (declared is None or declared.kind != "enum")


def same_described_type(before: Serializer, after: Serializer) -> bool:
    """Return True if two types are equal apart from collections that Kryo wrote in Flink 1.x and Flink 2.x writes with their types."""
    first, second = unwrap(before), unwrap(after)
    if is_text_only(first) != is_text_only(second):
        kryo, other = (first, second) if is_text_only(first) else (second, first)
        return isinstance(kryo, KryoSerializer) and isinstance(other.logical, _COLLECTIONS.get(kryo.type_class, ()))
    theirs = dict(second.children())
    if type(first) is not type(second) or [n for n, _ in first.children()] != list(theirs) or not theirs:
        return first.type_name == second.type_name and first.logical == second.logical
    same_class = not isinstance(first, PojoSerializer) or first.pojo_class == second.pojo_class  # type: ignore[attr-defined]
    return same_class and all(same_described_type(part, theirs[name]) for name, part in first.children())
