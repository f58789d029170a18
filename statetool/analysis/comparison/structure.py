"""Differences in the descriptions of an operator: its states, their kinds and types, its parallelism."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from statetool.analysis.comparison.prose import different_part, first_difference, look_alike
from statetool.analysis.comparison.records import StructureDifference
from statetool.errors import several
from statetool.formats.metadata.handles import streams_of
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.equal_types import same_described_type, snapshot_bytes
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.snapshot.metadata_tables import file_rows, operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.types import StructType


def operator_differences(
    old: OperatorInventory | None, new: OperatorInventory | None, states: Sequence[str] | None
) -> Iterator[Iterator[StructureDifference]]:
    """Yield the differences in the descriptions of an operator, by part. ``states`` are the compared states, ``None`` for all.

    An error in one part is raised while its differences are consumed, and does not affect the others.
    """
    operator = old if old is not None else new
    assert operator is not None
    difference = _Differences(operator.label)
    if old is None or new is None:
        yield _only_one(difference, operator, is_old=new is None)
        return
    yield _properties(difference, old, new)
    yield _keys(difference, old, new)
    yield _keyed_differences(difference, old, new, states)
    yield _elements(difference, old, new, states)
    yield _uncompared_differences(difference, old, new)


def description_notes(
    old: OperatorInventory, new: OperatorInventory, states: Sequence[str] | None
) -> Iterator[StructureDifference]:
    """Yield notes about the key type and the subclasses that only one side describes, before each side learns from the other."""
    difference = _Differences(old.label)
    keys = [o.keyed.key if o.listed_keyed else None for o in (old, new)]
    unknown = [isinstance(key, OpaqueSerializer) for key in keys]
    if None not in keys and unknown[0] != unknown[1]:
        texts = ("unknown" if isinstance(key, OpaqueSerializer) else key.type_name for key in keys if key is not None)
        yield difference(None, "description of keys", *texts, severity="note")
    metas = [{n: m for n, (_, m) in o.listed_keyed.items()} | dict(o.listed_elements) for o in (old, new)]
    for name in (
        metas[0].keys() & metas[1].keys() if states is None else [n for n in states if all(n in m for m in metas)]
    ):
        before, after = (_subclasses(m[name]) for m in metas)
        if before != after:
            shown = (", ".join(sorted(names)) or "none" for names in (before, after))
            yield difference(name, "description of subclasses", *shown, severity="note")


def _subclasses(meta: StateMetaInfo) -> set[str]:
    pojos = (p for s in meta.serializers.values() for p in all_parts(s) if isinstance(p, PojoSerializer))
    return {name for pojo in pojos for name, _ in (*pojo.registered, *pojo.others)}


def _only_one(difference: _Differences, operator: OperatorInventory, *, is_old: bool) -> Iterator[StructureDifference]:
    count = len(operator.listed_keyed) + len(operator.listed_elements)
    words = several(count, "state") + (", and some that cannot be listed" if operator.unread else "")
    before, after = (words, None) if is_old else (None, words)
    yield difference(None, "operator", before, after, severity="difference" if count or operator.unread else "note")


def _properties(
    difference: _Differences, old: OperatorInventory, new: OperatorInventory
) -> Iterator[StructureDifference]:
    for what in ("uid", "parallelism", "max_parallelism"):
        first, second = (getattr(operator_row(o), what) for o in (old, new))
        if first != second:
            texts = (None if value is None else str(value) for value in (first, second))
            yield difference(None, what, *texts, severity="note")


def _keys(difference: _Differences, old: OperatorInventory, new: OperatorInventory) -> Iterator[StructureDifference]:
    before, after = old.keyed.key, new.keyed.key
    if before is not None and after is not None:
        yield from _serializers(difference, None, "key type", before, after)


def _keyed_differences(
    difference: _Differences, old: OperatorInventory, new: OperatorInventory, wanted: Sequence[str] | None
) -> Iterator[StructureDifference]:
    before, after = ({n: m for n, (_, m) in o.keyed_states.items()} for o in (old, new))
    yield from _states(difference, before, after, wanted)


def _elements(
    difference: _Differences, old: OperatorInventory, new: OperatorInventory, wanted: Sequence[str] | None
) -> Iterator[StructureDifference]:
    yield from _states(difference, old.operator_states, new.operator_states, wanted)


class _Differences:
    """Creates the differences of one operator."""

    def __init__(self, operator: str) -> None:
        self.operator = operator

    def __call__(
        self,
        state: str | None,
        what: str,
        before: str | None,
        after: str | None,
        *,
        severity: Literal["difference", "note"] = "difference",
    ) -> StructureDifference:
        return StructureDifference(
            severity=severity, operator=self.operator, state=state, what=what, before=before, after=after
        )


def _states(
    difference: _Differences,
    old: Mapping[str, StateMetaInfo],
    new: Mapping[str, StateMetaInfo],
    wanted: Sequence[str] | None,
) -> Iterator[StructureDifference]:
    for name in dict.fromkeys((*old, *new)):
        if wanted is not None and name not in wanted:
            continue
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            # A job has timer queues as soon as it requests a timer service.
            queue = any(m is not None and m.kind == "timers" for m in (before, after))
            severity: Literal["difference", "note"] = "note" if queue else "difference"
            yield difference(name, "state", _description(before), _description(after), severity=severity)
            continue
        if before.kind != after.kind:
            yield difference(name, "kind", before.kind, after.kind)
        for role in dict.fromkeys((*before.serializers, *after.serializers)):
            first, second = before.serializers.get(role), after.serializers.get(role)
            what = role.removesuffix("_SERIALIZER").replace("_", " ").lower()
            if first is None or second is None:
                types = (None if s is None else _type(s) for s in (first, second))
                yield difference(name, f"{what} type", *types)
            else:
                yield from _serializers(difference, name, f"{what} type", first, second)


def _serializers(
    difference: _Differences, state: str | None, what: str, before: Serializer, after: Serializer
) -> Iterator[StructureDifference]:
    if before.type_name != after.type_name or before.logical != after.logical:
        severity: Literal["difference", "note"] = "note" if same_described_type(before, after) else "difference"
        yield difference(state, what, *_types(before, after), severity=severity)
    elif snapshot_bytes(before) != snapshot_bytes(after):
        first, second = (f"{s.snapshot_class} version {s.snapshot_version}" for s in (before, after))
        if first == second:
            first, second = (f"{first}, {text}" for text in _digests(snapshot_bytes(before), snapshot_bytes(after)))
        yield difference(state, f"{what}: serializer", first, second, severity="note")


def _digests(before: bytes, after: bytes) -> tuple[str, str]:
    """Return the sizes and digests of two contents, and the byte from which they differ."""
    first, second = (
        f"{several(len(content), 'byte')}, SHA-256 {hashlib.sha256(content).hexdigest()[:16]}"
        for content in (before, after)
    )
    return first, f"{second}, different from byte {first_difference(before, after)}"


def _description(meta: StateMetaInfo | None) -> str | None:
    return None if meta is None else f"{meta.kind} of {meta.value.type_name}"


def _type(serializer: Serializer) -> str:
    """Return the type of a serializer, with the names of its fields."""
    logical = serializer.logical
    fields = f" ({', '.join(f.name for f in logical.fields)})" if isinstance(logical, StructType) else ""
    return f"{serializer.type_name}{fields}"


def _types(before: Serializer, after: Serializer) -> tuple[str, str]:
    """Return two types as different texts: types that print alike are followed by the part that differs."""
    first, second = _type(before), _type(after)
    if not look_alike(first, second):
        return first, second
    path, old, new = different_part(before.logical, after.logical)
    return f"{first}, {path or 'type'}: {old}", f"{second}, {path or 'type'}: {new}"


def _uncompared_differences(
    difference: _Differences, old: OperatorInventory, new: OperatorInventory
) -> Iterator[StructureDifference]:
    """Yield differences of operator content that is not compared key by key."""
    for what in ("raw operator", "input channel", "output channel"):
        before, after = (sum(r.size_bytes for r in file_rows(o) if r.slot == what) for o in (old, new))
        if before or after:
            same = ", the same size" if before == after else ""
            sizes = several(before, "byte"), f"{several(after, 'byte')}{same}"
            yield difference(None, f"{what} state, not compared", *sizes, severity="note")
    for o in (old, new):
        if o.keyed.own_raw_subtasks:
            yield difference(None, "raw keyed state, not compared", None, None, severity="note")
            break
    first, second = (_coordinator(o) for o in (old, new))
    if first != second:
        yield difference(None, "coordinator", *_digests(first, second), severity="note")


def _coordinator(operator: OperatorInventory) -> bytes:
    contents = []
    for piece in streams_of(operator.state.coordinator):
        stream = operator.resolve(piece)
        if stream is not None:
            with stream.open() as f:
                contents.append(bytes(f.read_at(0, stream.size_bytes)))
    return b"".join(contents)
