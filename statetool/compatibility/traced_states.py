"""States whose types code computes, for a check without a snapshot of the new job: executing the code of both jobs tells them.

What the old job declares must be what the snapshot has, or the execution is not trusted. It decides only what is unknown otherwise, and only that
Flink refuses, or that values are not used: a state that was not found may be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statetool.compatibility.declared_types import keyed_meta, resolve_information, serializer_of, type_of
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.rules.serializers import resolve, switch_ttl
from statetool.compatibility.states import verdict_of
from statetool.compatibility.steps.step import Result, StateFound, loses, refuses
from statetool.compatibility.verdicts import Level, Remedy, Resolution
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.runtime import TtlSerializer
from statetool.serializers.streaming import BufferEntrySerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import TypeContext
from statetool.types.flink_calls import COMPUTED, GROUPED, JOIN_BUFFERS, DeclaredState
from statetool.types.traced import StreamType, TracedOperator
from statetool.types.type_information import TypeInformation

CONTENTS: Final = "window-contents"
#: States that have the type of a stream.
_OF_STREAMS: Final = (CONTENTS, *GROUPED, *JOIN_BUFFERS)
_BOTH_SIDES: Final = Remedy("Pass a savepoint of the new job (B), which has the types of both sides.", is_final=True)


@dataclass(frozen=True, slots=True)
class TracedPair:
    """An operator of the snapshot, as the code of the old job and that of the new one build it."""

    operator: OperatorInventory
    was: TracedOperator
    now: TracedOperator
    old: TypeContext
    new: TypeContext

    def declared(self, meta: StateMetaInfo, *, keyed: bool) -> tuple[DeclaredState, DeclaredState | None] | None:
        """Return a state as both jobs declare it, the second ``None`` if the new one does not.

        ``None`` if the code of the old job does not declare what the snapshot has, or one of both declares several states of the name.
        """
        of_old, of_new = ([s for s in one.states if s.name == meta.name] for one in (self.was, self.now))
        if len({s.form for s in of_old}) != 1 or len({s.form for s in of_new}) > 1:
            return None
        resolution = _resolve(meta, of_old[0], self.old, keyed=keyed)
        if resolution is None or resolution.level != Level.AS_IS or (keyed and of_old[0].has_ttl != has_ttl(meta)):
            return None
        return of_old[0], of_new[0] if of_new else None

    def record_type(self, name: str) -> tuple[Serializer, TypeInformation] | None:
        """Return the serializer of a state that has the type of a stream, and the type that the new job gives that; ``None`` if not known.

        Also ``None`` if the code of the old job gives none of the inputs a type, or another one than the snapshot has.
        """
        after = [_type_of(found, self.new) for found in self.now.types]
        own = self._records()
        types = {n: (one, kind) for (n, one), kind in zip(own, after, strict=False) if kind is not None}
        return types.get(name)

    def _records(self) -> list[tuple[str, Serializer]]:
        """Return the states that have the types of the inputs, with the serializers of the records; none if the old code gives other types."""
        own = _of_stream(self.operator, self.was)
        before = [_type_of(found, self.old) for found in self.was.types]
        if self.was.method != self.now.method or not len(own) == len(before) == len(self.now.types):
            return []
        found = [resolve_information((one,), (t,), self.old) for (_, one), t in zip(own, before, strict=True) if t]
        return own if found and all(one is not None and one.level == Level.AS_IS for one in found) else []

    def buffers(self) -> dict[str, tuple[Serializer, Serializer]]:
        """Return the serializers of the records in the buffers of an interval join, before and after; none if the code does not tell both sides."""
        own = self._records()
        if tuple(name for name, _ in own) != JOIN_BUFFERS:
            return {}
        given = {found.origin: one for found, (_, one) in zip(self.was.types, own, strict=True) if found}
        after: dict[str, tuple[Serializer, Serializer]] = {}
        for (name, before), found in zip(own, self.now.types, strict=True):
            kind = _type_of(found, self.new)
            # A stream that a method gets has the type that it had.
            now = given.get(found.origin) if found is not None and found.origin else serializer_of(kind, self.new)
            # The configuration of the job registers classes of Kryo.
            if now is None or (kind is not None and any(part.kind == "kryo" for part in kind.walk())):
                return {}
            after[name] = before, now
        return after if len(after) == len(JOIN_BUFFERS) else {}

    def has_same(self, names: Iterable[str], *, keyed: bool) -> bool:
        """Return True if all ways that the code of both jobs can take give states of the operator the same types, and it the same keys."""
        was, now = self.was, self.now
        if (
            not (was.is_whole and now.is_whole)
            or was.method != now.method
            or was.max_parallelism != now.max_parallelism
        ):
            return False
        if keyed and not self._has_same_keys():
            return False
        return all(self._has_same_state(name, keyed=keyed) for name in names)

    def _has_same_keys(self) -> bool:
        was, now = self.was.key, self.now.key
        if was is None or now is None or was.text or now.text:
            return was is not None and was == now
        before, after = _type_of(was, self.old), _type_of(now, self.new)
        return before is not None and before == after

    def _has_same_state(self, name: str, *, keyed: bool) -> bool:
        if name in _OF_STREAMS:
            record = self.record_type(name)
            resolution = None if record is None else resolve_information(record[:1], record[1:], self.new)
            return resolution is not None and resolution.level == Level.AS_IS
        of_old, of_new = ({s.form for s in one.states if s.name == name} for one in (self.was, self.now))
        return (
            len(of_old) == 1
            and of_old == of_new
            and not any(COMPUTED in text for _, _, types, _ in of_old for text in types)
        )


def traced_pair(operator: OperatorInventory, old: TypeContext, new: TypeContext) -> TracedPair | None:
    """Return an operator as the code of both jobs builds it, ``None`` if executing it does not show one of them."""
    if old.source is None or new.source is None:
        return None
    was, now = (_of_id(s.traced_job.operators, operator.state.operator_id) for s in (old.source, new.source))
    return None if was is None or now is None else TracedPair(operator, was, now, old, new)


def _of_id(found: Mapping[str, TracedOperator], operator_id: str) -> TracedOperator | None:
    return next((one for uid, one in found.items() if operator_id_for_uid(uid) == operator_id), None)


def is_traced(restore: Restore, pair: Pair, meta: StateMetaInfo, *, keyed: bool) -> bool:
    """Return True if executed code shows that a state is the same on all ways that it can take, or what Flink does with another one."""
    traced = _pair_of(restore, pair)
    if traced is None:
        return False
    if traced.has_same([meta.name], keyed=keyed):
        return True
    if meta.name in _OF_STREAMS:
        return resolve_stream(restore, pair, meta.name) is not None
    return resolve_traced(restore, pair, meta, keyed=keyed) is not None


def _pair_of(restore: Restore, pair: Pair) -> TracedPair | None:
    classes = restore.job.classes
    if restore.has_snapshot or classes is None:
        return None
    return traced_pair(pair.old, classes.old, classes.new)


def has_ttl(meta: StateMetaInfo) -> bool:
    """Return True if the values of a state have a time to live."""
    return any(isinstance(part, TtlSerializer) for part in all_parts(meta.value))


def resolve_traced_key(restore: Restore, pair: Pair) -> Resolution | None:
    """Return the resolution of the keys of an operator, if executed code shows that Flink refuses them; otherwise ``None``."""
    traced, key = _pair_of(restore, pair), pair.old.keyed.key
    if traced is None or key is None:
        return None
    was, now = _type_of(traced.was.key, traced.old), _type_of(traced.now.key, traced.new)
    before, after = (resolve_information((key,), (t,), types) for t, types in ((was, traced.old), (now, traced.new)))
    is_known = before is not None and before.level == Level.AS_IS
    return after if is_known and after is not None and after.level == Level.INCOMPATIBLE else None


def is_refused(restore: Restore, pair: Pair) -> bool:
    """Return True if executed code shows that Flink refuses an operator, whatever its states are."""
    return resolve_traced_key(restore, pair) is not None or traced_limit(restore, pair) is not None


def traced_metas(operator: OperatorInventory, old: TypeContext, new: TypeContext) -> dict[str, StateMetaInfo]:
    """Return the keyed states of an operator that have another type in the new job, as executed code shows, with that type."""
    traced = traced_pair(operator, old, new)
    found = {} if traced is None else _buffer_metas(traced)
    # Code that was not executed may set a time to live.
    if new.source is None or any(c.name == "enableTimeToLive" for c in new.source.flink_calls()):
        return found
    for name, (_, meta) in operator.listed_keyed.items() if traced is not None else ():
        assert traced is not None
        ttl = has_ttl(meta)
        was, now = traced.declared(meta, keyed=True) or (None, None)
        types: list[TypeInformation | None] = []
        if was is not None and now is not None:
            types = [type_of(text, new) for text in now.types] if was.has_ttl == now.has_ttl == ttl else []
        elif name not in JOIN_BUFFERS and not ttl and (record := traced.record_type(name)) is not None:
            types = [record[1]]
        target = keyed_meta(meta, meta.kind, types, new, ttl=ttl) if types else None
        if target is not None:
            found[name] = target
    return found


def _buffer_metas(traced: TracedPair) -> dict[str, StateMetaInfo]:
    """Return the buffers of an interval join with the types that executed code gives their records, if it tells both."""
    metas = {name: traced.operator.listed_keyed[name][1] for name in JOIN_BUFFERS if traced.buffers()}
    changed = {name: _with_record(metas[name].value, now) for name, (_, now) in traced.buffers().items()}
    return {
        name: replace(metas[name], serializers={**metas[name].serializers, "VALUE_SERIALIZER": whole})
        for name, whole in changed.items()
        if whole is not None
    }


def _with_record(serializer: Serializer, record: Serializer) -> Serializer | None:
    """Return the serializer of a buffer with that of its records replaced, ``None`` if it has none."""
    if isinstance(serializer, BufferEntrySerializer):
        return serializer.with_child("element", record)
    changed = ((step, _with_record(part, record)) for step, part in serializer.children())
    return next((serializer.with_child(step, part) for step, part in changed if part is not None), None)


def resolve_traced(restore: Restore, pair: Pair, meta: StateMetaInfo, *, keyed: bool) -> Result | None:
    """Return what Flink does with a state of which executed code shows that it has another type, or is not used; otherwise ``None``."""
    traced = _pair_of(restore, pair)
    declared = None if traced is None else traced.declared(meta, keyed=keyed)
    if traced is None or declared is None:
        return None
    now = declared[1]
    if now is None:
        return _renamed(pair, meta, traced.was, traced.now)
    resolution = _resolve(meta, now, traced.new, keyed=keyed)
    if resolution is not None and resolution.level == Level.AS_IS and keyed and has_ttl(meta) != now.has_ttl:
        switched = switch_ttl(may_switch=restore.job.ttl_may_switch, on=now.has_ttl)
        return StateFound(rule="K6", operator=pair.old, scope="keyed", verdict=verdict_of(meta.name, switched))
    if resolution is None or resolution.level != Level.INCOMPATIBLE:
        return None
    verdict = verdict_of(meta.name, resolution)
    if keyed:
        return StateFound(rule="K4", operator=pair.old, scope="keyed", verdict=verdict)
    return StateFound(rule="E4", operator=pair.old, scope="operator", verdict=verdict)


def resolve_stream(restore: Restore, pair: Pair, name: str) -> Resolution | None:
    """Return the resolution of a state that has the type of its stream, if executed code shows that Flink refuses it; otherwise ``None``."""
    traced = _pair_of(restore, pair)
    found = None if traced is None else traced.record_type(name)
    if traced is None or found is None:
        return None
    before, kind = found
    resolution = resolve_information((before,), (kind,), traced.new)
    return resolution if resolution is not None and resolution.level == Level.INCOMPATIBLE else None


def check_traced_streams(restore: Restore, pair: Pair, names: Sequence[str]) -> Iterator[Result]:
    """Yield the states with the type of their stream that Flink refuses, as executed code shows."""
    traced = _pair_of(restore, pair)
    buffers = {} if traced is None else traced.buffers()
    for name in names:
        resolution = resolve(*buffers[name]) if name in buffers else resolve_stream(restore, pair, name)
        if resolution is None or resolution.level != Level.INCOMPATIBLE:
            continue
        if name in JOIN_BUFFERS and not buffers:
            # One side alone must neither be converted nor left out.
            yield refuses("K4", f"{name}: {'; '.join(c.text for c in resolution.causes)}", _BOTH_SIDES, pair.old)
        else:
            yield StateFound(rule="K4", operator=pair.old, scope="keyed", verdict=verdict_of(name, resolution))


def traced_limit(restore: Restore, pair: Pair) -> int | None:
    """Return the max parallelism that executed code sets for an operator, if the snapshot has another one; otherwise ``None``."""
    traced = _pair_of(restore, pair)
    before = pair.old.state.max_parallelism
    if traced is None or before == 1 or traced.was.max_parallelism not in (None, before):
        return None
    return None if traced.now.max_parallelism == before else traced.now.max_parallelism


def _renamed(pair: Pair, meta: StateMetaInfo, was: TracedOperator, now: TracedOperator) -> Result | None:
    """Return that a state is not used if the function declares another one of the same form instead."""
    form = next(s.form for s in was.states if s.name == meta.name)
    old_names, new_names = ({s.name for s in one.states} for one in (was, now))
    fresh = [s.name for s in now.states if s.form == form and s.name not in old_names]
    if None in new_names or len(fresh) != 1 or len(old_names - new_names) != 1:
        return None
    text = f"Executed, the code of the old job declares the state {meta.name}, and that of the new job {fresh[0]}: Flink carries the old one along, and its values are not used."
    remedy = Remedy("If it was renamed, rename it in a copy of the snapshot (statetool state rename).")
    return loses("Z4", text, remedy, pair.old)


def _of_stream(operator: OperatorInventory, was: TracedOperator) -> list[tuple[str, Serializer]]:
    """Return the states that have the types of the inputs of an operator, with the serializers of the records, in the order of the inputs."""
    metas = {name: meta for name, (_, meta) in operator.listed_keyed.items()}
    if all(name in metas for name in JOIN_BUFFERS):
        values = [all_parts(metas[name].value) for name in JOIN_BUFFERS]
        entries = [p.nested[0] for parts in values for p in parts if isinstance(p, BufferEntrySerializer)]
        return list(zip(JOIN_BUFFERS, entries, strict=False))
    own = [m for n, m in metas.items() if n in (CONTENTS, *GROUPED)]
    if len(own) != 1 or (own[0].kind == "aggregating") != (was.method == "aggregate"):
        return []
    parts = own[0].parts or (own[0].value,)
    return [(own[0].name, parts[0])] if len(parts) == 1 else []


def _type_of(found: StreamType | None, types: TypeContext) -> TypeInformation | None:
    if found is None or found.text:
        return None if found is None else type_of(found.text, types)
    if types.source is None or not found.function:
        return None
    return types.source.argument_information(found.function, found.interface, found.index, types.kryo)


def _resolve(meta: StateMetaInfo, state: DeclaredState, types: TypeContext, *, keyed: bool) -> Resolution | None:
    """Return the resolution of a state into one that code declares, ``None`` if its kind is another one, or its type is not known."""
    if state.mode != ("keyed" if keyed else meta.kind) or (keyed and state.kind != meta.kind):
        return None
    key = meta.serializers.get("KEY_SERIALIZER")
    before = meta.parts or (meta.value,) if keyed else (meta.value,) if key is None else (key, meta.value)
    texts = state.types[-1:] if meta.kind in ("reducing", "aggregating", "folding") else state.types
    return resolve_information(before, [type_of(text, types) for text in texts], types)
