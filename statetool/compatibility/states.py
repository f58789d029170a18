"""Whether states of one operator are restored: what backends let through of what serializers say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from statetool.compatibility.rules import resolve
from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, StateVerdict, combined
from statetool.errors import UnsupportedError
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMeta
from statetool.saving.available import check_available
from statetool.saving.versions import Target
from statetool.serializers.base import Serializer
from statetool.serializers.runtime import unwrap
from statetool.snapshot.state_tables import Scope

Backend = Literal["heap", "rocksdb", "unknown"]
#: What values mean that no header describes, by scope and state.
Hidden = Mapping[tuple[Scope, str], Resolution]
_KEYS: Final = "keys and namespaces cannot be migrated: keep their type, or write the state anew with the new keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What restores: the backend and the release of the new job; ``target`` is ``None`` where no release is known."""

    backend: Backend
    target: Target | None

    @property
    def ttl_may_switch(self) -> bool | None:
        """Whether values are migrated when time to live is switched on or off."""
        if self.target is None or self.target.release is None:
            return None
        return int(self.target.release.partition(".")[0]) >= 2


def check_key(old: Serializer, new: Serializer | None, job: Job) -> Resolution:
    """Return whether the keys of an operator are read."""
    found = _release(old, (), job)
    if new is not None:
        found = combined([found, _unmigrated(resolve(old, new).inside("key"))])
    return found


def check_keyed(old: StateMeta, new: StateMeta, job: Job) -> Resolution:
    """Return whether a keyed state is restored into another one."""
    if old.kind != new.kind:
        return Resolution(
            Level.INCOMPATIBLE, f"a {old.kind} state became a {new.kind} state", "give the new state another name"
        )
    found = [_release(None, (old,), job)]
    if old.namespace is not None and new.namespace is not None:
        found.append(_unmigrated(resolve(old.namespace, new.namespace).inside("namespace")))
    found.append(_values(old, new, job))
    return combined(found)


def _values(old: StateMeta, new: StateMeta, job: Job) -> Resolution:
    if old.kind == "timers":
        return _unmigrated(resolve(old.value, new.value))
    if old.kind not in ("list", "map") or len(old.parts) != len(new.parts) or not old.parts:
        return resolve(old.value, new.value, ttl_may_switch=job.ttl_may_switch)
    *keys, (before, after) = zip(old.parts, new.parts, strict=True)
    value = resolve(before, after, ttl_may_switch=job.ttl_may_switch).inside("value" if keys else "element")
    if not keys:
        return value
    return combined([value, _map_key(resolve(*map(unwrap, keys[0])).inside("map key"), value, job)])


def _map_key(key: Resolution, value: Resolution, job: Job) -> Resolution:
    """RocksDB migrates the values of maps, never their keys; on heap all is read as objects before."""
    migrates = max(key.level, value.level) == Level.AFTER_MIGRATION
    if job.backend == "heap" or key.level == Level.AS_IS or not migrates:
        return key
    remedy = "RocksDB does not migrate the keys of maps: keep their type"
    reason = key.reason or "the map's keys are described otherwise"
    return replace(key, level=Level.INCOMPATIBLE, reason=reason, remedy=remedy)


def _unmigrated(found: Resolution) -> Resolution:
    if found.level != Level.AFTER_MIGRATION:
        return found
    return replace(found, level=Level.INCOMPATIBLE, remedy=_KEYS)


def check_elements(old: StateMeta, new: StateMeta, job: Job) -> Resolution:
    """Return whether an operator state is restored into another one."""
    if old.kind != new.kind:
        remedy = "Flink restores by name and mode: keep it, or give the new state another name"
        return Resolution(Level.INCOMPATIBLE, f"a {old.kind} state became a {new.kind} state", remedy)
    found = [_release(None, (old,), job)]
    for role, before in old.serializers.items():
        after = new.serializers.get(role)
        if after is not None:
            step = "key" if role == "KEY_SERIALIZER" else "value"
            found.append(resolve(before, after).inside(step))
    return combined(found)


def _release(key: Serializer | None, metas: tuple[StateMeta, ...], job: Job) -> Resolution:
    """Return whether the release has all serializers."""
    if job.target is None:
        return Resolution(Level.AS_IS)
    try:
        check_available(key, metas, job.target)
    except UnsupportedError as error:
        return Resolution(Level.INCOMPATIBLE, error.message, error.hint or "")
    return Resolution(Level.AS_IS)


def verdict_of(name: str, found: Resolution) -> StateVerdict:
    """Return what is found of a state as a row."""
    return StateVerdict(
        name=name, verdict=found.level.verdict, reason=found.reason, remedy=found.remedy, warnings=found.warnings
    )


def keyed_verdicts(
    old: Mapping[str, tuple[KeyedHeader, StateMeta]],
    new: Mapping[str, tuple[KeyedHeader, StateMeta]] | None,
    job: Job,
    hidden: Hidden,
) -> Iterator[StateVerdict]:
    """Yield the verdicts of an operator's keyed states; ``new`` is ``None`` where only a release is known."""
    metas = None if new is None else {n: m for n, (_, m) in new.items()}
    for name, (_, meta) in old.items():
        if metas is None:
            yield verdict_of(name, _release(None, (meta,), job))
        elif name in metas:
            yield verdict_of(name, _and(check_keyed(meta, metas[name], job), hidden.get(("keyed", name))))
        else:
            yield _unused(name, meta, {n: m for n, m in metas.items() if n not in old}, job)


def element_verdicts(
    old: Mapping[str, StateMeta], new: Mapping[str, StateMeta] | None, job: Job, hidden: Hidden
) -> Iterator[StateVerdict]:
    """Yield the verdicts of an operator's operator states."""
    for name, meta in old.items():
        if new is None:
            yield verdict_of(name, _release(None, (meta,), job))
        elif name in new:
            yield verdict_of(name, _and(check_elements(meta, new[name], job), hidden.get(("operator", name))))
        else:
            yield _unused(name, meta, {n: m for n, m in new.items() if n not in old}, job)


def _and(found: Resolution, other: Resolution | None) -> Resolution:
    return found if other is None else combined([found, other])


def _unused(name: str, meta: StateMeta, fresh: Mapping[str, StateMeta], job: Job) -> StateVerdict:
    """A state that the new job does not register is carried along and not read."""
    found = _release(None, (meta,), job)
    if meta.kind == "timers":
        return verdict_of(name, found)
    alike = [n for n, m in fresh.items() if m.kind == meta.kind and m.value.type_name == meta.value.type_name]
    text = "the new job does not read it: it stays in the state, and its values are not used"
    remedy = f"if it was renamed to {' or '.join(alike)}: SavepointWriter.rename_state does that" if alike else ""
    warning = CheckWarning(kind="loses", text=text)
    return verdict_of(name, combined([found, Resolution(Level.AS_IS, text, remedy, (warning,))]))
