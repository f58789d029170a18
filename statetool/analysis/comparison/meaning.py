"""Meaning of bytes: equal bytes are equal values if the same serializer wrote them, or two that read bytes alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import unwrap
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.types import ListType, MapType, Scalar
from statetool.types.declared import TypeContext

_SEED: Final = 0x9E3779B97F4A7C15
#: Classes whose values are text.
_TEXT: Final = {f"java.{n}" for n in ("lang.String", "lang.Character", "util.UUID", "util.Currency", "util.Locale")}
#: Fields of POJOs that Flink 2.x writes with serializers of its own, instead of with Kryo.
_COLLECTIONS: Final = {"java.util.List": ListType, "java.util.Set": ListType, "java.util.Map": MapType}


def snapshot_bytes(serializer: Serializer) -> bytes:
    """Return the snapshot bytes of a serializer."""
    out = Output()
    serializer.write_snapshot(out)
    return bytes(out)


@dataclass(frozen=True)
class Meaning:
    """The serializers that read the bytes, with their declarations and version of Kryo."""

    parts: tuple[Serializer, ...]
    types: TypeContext

    def same(self, other: Meaning) -> bool:
        """Return True if equal bytes are equal values."""
        return len(self.parts) == len(other.parts) and all(
            self._same(a, b, other.types) for a, b in zip(self.parts, other.parts, strict=True)
        )

    def _same(self, a: Serializer, b: Serializer, types: TypeContext) -> bool:
        if self.types.kryo != types.kryo and any(isinstance(p, KryoSerializer) for p in all_parts(a)):
            return False
        if (self.types.classes, self.types.source, self.types.python) != (types.classes, types.source, types.python):
            return False
        if snapshot_bytes(a) == snapshot_bytes(b):
            return True
        return bool(a.program() == b.program()) and a.logical == b.logical


def is_text_only(serializer: Serializer) -> bool:
    """Return True if values are JSON text because the fields of their class are unknown. Only Kryo can recreate objects from it."""
    if not isinstance(serializer, KryoSerializer) or serializer.logical != Scalar("string"):
        return False
    declared = serializer.context.find(serializer.type_class)
    return serializer.type_class not in _TEXT and (declared is None or declared.kind != "enum")


def uncompared_reason(before: Meaning, after: Meaning) -> str:
    """Return the reason why differing bytes may be equal values, empty if values tell.

    A class that is not declared is shown as bytes or text. Only bytes of the same serializer can be compared.
    """
    if before.same(after):
        return ""
    parts = [part for meaning in (before, after) for s in meaning.parts for part in all_parts(s)]
    unknown = next((p for p in parts if p.needs_frame and not p.children()), next(filter(is_text_only, parts), None))
    if unknown is None:
        return ""
    hint = unknown.missing_declaration_hint
    return f"the content of {unknown.type_name} is unknown{f': {hint}' if hint else ''}"


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


def key_meaning(header: KeyedHeader, meta: StateMetaInfo, types: TypeContext) -> Meaning:
    """Return the meaning of the keys of a state's entries: key, namespace and map key."""
    if meta.kind == "timers":
        return Meaning((header.key, meta.value), types)
    parts = [header.key, *([meta.namespace] if meta.namespace is not None else [])]
    return Meaning((*parts, *(meta.parts[:1] if meta.kind == "map" else ())), types)


@dataclass
class NumberedMeanings:
    """Numbers for meanings. The same meaning has the same number."""

    known: list[Meaning] = field(default_factory=list)

    def number(self, meaning: Meaning) -> int:
        """Return the number of a meaning."""
        for i, other in enumerate(self.known):
            if meaning.same(other):
                return i
        self.known.append(meaning)
        return len(self.known) - 1


class Seeds:
    """Hash seeds by state: the entries of two states, or bytes with two meanings, get different hashes."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._keys: dict[str, NumberedMeanings] = {}
        self._values: dict[str, NumberedMeanings] = {}

    def of(self, header: KeyedHeader, types: TypeContext, wanted: Sequence[str]) -> tuple[npt.NDArray[np.uint64], ...]:
        """Return the seeds of keys and of values by state id, uint64[states] each."""
        keys = np.zeros(len(header.states), dtype=np.uint64)
        values = np.zeros(len(header.states), dtype=np.uint64)
        for i, meta in enumerate(header.states):
            if meta.name not in wanted:
                continue
            name = self._names.setdefault(meta.name, len(self._names) + 1)
            key = self._keys.setdefault(meta.name, NumberedMeanings()).number(key_meaning(header, meta, types))
            value = self._values.setdefault(meta.name, NumberedMeanings()).number(Meaning((meta.value,), types))
            keys[i] = (name * 1_000_003 + key) * _SEED % (1 << 64)
            values[i] = (name * 1_000_003 + value + 500_000) * _SEED % (1 << 64)
        return keys, values

    def keys_differ(self, name: str) -> bool:
        """Return True if equal keys of a state may have different bytes in two sources."""
        return name in self._keys and len(self._keys[name].known) > 1

    def values_differ(self, name: str) -> bool:
        """Return True if equal bytes of a state's values may have different meanings in two sources."""
        return name in self._values and len(self._values[name].known) > 1
