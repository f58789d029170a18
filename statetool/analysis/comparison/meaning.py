"""Meaning of bytes: equal bytes are equal values if the same serializer wrote them, or two that read bytes alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.equal_types import is_text_only, snapshot_bytes
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.types.declared import TypeContext

_SEED: Final = 0x9E3779B97F4A7C15


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
