"""Restore verdicts on the states of one operator, from the resolutions of their serializers and the rules of backends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statetool.compatibility.classes.trial import NewClasses
from statetool.compatibility.releases import shown_releases, ttl_may_switch
from statetool.compatibility.rules.kryo import resolve_releases
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.running.results import Ran
from statetool.compatibility.verdicts import (
    NEW,
    A,
    B,
    CheckWarning,
    Level,
    Remedy,
    Resolution,
    StateVerdict,
    combine,
    migration_remedy,
)
from statetool.errors import StatetoolError, UnsupportedError, article, sentence
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.saving.available import check_available
from statetool.saving.versions import Target, parse_release
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import unwrap
from statetool.snapshot.state_tables import Scope

Backend = Literal["heap", "rocksdb", "forst", "unknown"]
#: Backends that users can name.
BACKENDS: Final[tuple[Backend, ...]] = ("heap", "rocksdb", "forst")
#: Resolutions of values that no header describes, by scope and state.
Hidden = Mapping[tuple[Scope, str], Resolution]
#: Results of a run of the new job's classes, by scope and state; the keys of an operator have the name ``""``.
RanStates = Mapping[tuple[Scope, str], Ran]
KEEP_KEYS: Final = Remedy(
    "Flink migrates neither keys nor namespaces: keep their type, or bootstrap the state with the new keys."
)
NAME_BACKEND: Final = Remedy(
    "Name the backend of the new job (heap or rocksdb).", ("check", A, B, "--backend", "rocksdb")
)
_CHECK_NEW: Final = Remedy("Check against a savepoint of the new job.", ("check", A, B))
_KEEP_MAP_KEYS: Final = migration_remedy(
    "Or write a copy of the snapshot with the new keys.", "RocksDB does not migrate the keys of maps: keep their type."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Backend and release of the new job.

    Attributes
    ----------
    may_be_forst
        The backend is RocksDB or ForSt: the snapshot of the new job has databases, which both write.
    releases
        The releases that the job may have, as far as the user or its snapshot tells, oldest first.
    kryo
        The Kryo of the release (2 or 5), if no snapshot of the new job shows it.
    classes
        The classes of both jobs, if the jar of the new one is known.
    """

    backend: Backend
    may_be_forst: bool = False
    releases: tuple[str, ...] = ()
    kryo: int | None = None
    classes: NewClasses | None = None

    @property
    def ttl_may_switch(self) -> bool | None:
        """Whether values are migrated when time to live is switched on or off; ``None`` if unknown."""
        backends = ("heap", "rocksdb") if self.backend == "unknown" else (self.backend,)
        return ttl_may_switch(self.releases, backends)


def check_key(old: Serializer, new: Serializer | None, job: Job) -> Resolution:
    """Check whether the new job reads the keys of an operator."""
    if new is None:
        return _in_release_alone(old, (), job)
    return combine([_in_release(old, (), job), _without_migration(resolve(old, new).inside("key"))])


def check_keyed(old: StateMetaInfo, new: StateMetaInfo, job: Job) -> Resolution:
    """Check whether a keyed state can be restored into another one."""
    if old.kind != new.kind:
        return another_kind(old.kind, new.kind)
    resolutions = [_in_release(None, (old,), job)]
    if old.namespace is not None and new.namespace is not None:
        resolutions.append(_without_migration(resolve(old.namespace, new.namespace).inside("namespace")))
    resolutions.append(_values(old, new, job))
    return combine(resolutions)


def another_kind(old: str, new: str) -> Resolution:
    """Return the resolution of a state that became another kind of state.

    Flink keeps broadcast state apart from lists (``DefaultOperatorStateBackend``): the old state is carried along, and the new one starts
    empty. Snapshots store both under one name, so the positions of one replace those of the other.
    """
    text = f"The {old} state became {article(new)} state."
    if "broadcast" not in (old, new):
        remedy = migration_remedy(
            f"Or write a copy of the snapshot with {article(new)} state.", f"Keep the {old} state."
        )
        return Resolution.because(Level.INCOMPATIBLE, text, remedy)
    text = f"{text} Flink keeps the two apart: the old values are not used, and the new state starts empty."
    other_name = Remedy(
        "Give the new state another name: later snapshots keep only one of two states with the same name."
    )
    warning = CheckWarning(kind="loses", message=text, remedy=other_name)
    return Resolution.because(Level.AS_IS, text, other_name, warning)


def _values(old: StateMetaInfo, new: StateMetaInfo, job: Job) -> Resolution:
    if old.kind == "timers":
        return _without_migration(resolve(old.value, new.value))
    if old.kind not in ("list", "map") or len(old.parts) != len(new.parts) or not old.parts:
        return resolve(old.value, new.value, ttl_may_switch=job.ttl_may_switch)
    *keys, (old_value, new_value) = zip(old.parts, new.parts, strict=True)
    value = resolve(old_value, new_value, ttl_may_switch=job.ttl_may_switch).inside("value" if keys else "element")
    if not keys:
        return value
    return combine([value, _map_key(resolve(*map(unwrap, keys[0])).inside("map key"), value, job)])


def _map_key(key: Resolution, value: Resolution, job: Job) -> Resolution:
    """Check whether the keys of a map are read.

    RocksDB migrates a map's values, never its keys (``checkMapStateKeySchemaCompatibility``). The heap backend reads all as objects.
    """
    migrates = max(key.level, value.level) == Level.AFTER_MIGRATION
    if job.backend == "heap" or key.level == Level.AS_IS or not migrates:
        return key
    if job.backend == "unknown":
        reason = "RocksDB refuses this change of the map's keys, the heap backend migrates it."
        return combine([key, Resolution.because(Level.UNKNOWN, reason, NAME_BACKEND)])
    return key.as_refused(_KEEP_MAP_KEYS, "The serializer of the map's keys is described differently.")


def _without_migration(resolution: Resolution) -> Resolution:
    if resolution.level not in (Level.AFTER_MIGRATION, Level.INCOMPATIBLE):
        return resolution
    return resolution.as_refused(KEEP_KEYS)


def check_elements(old: StateMetaInfo, new: StateMetaInfo, job: Job) -> Resolution:
    """Check whether an operator state can be restored into another one."""
    if old.kind != new.kind and "broadcast" in (old.kind, new.kind):
        return combine([_in_release(None, (old,), job), another_kind(old.kind, new.kind)])
    if old.kind != new.kind:
        return another_kind(old.kind, new.kind)
    resolutions = [_in_release(None, (old,), job)]
    for role, before in old.serializers.items():
        after = new.serializers.get(role)
        if after is not None:
            step = "key" if role == "KEY_SERIALIZER" else "value"
            resolutions.append(resolve(before, after).inside(step))
    return combine(resolutions)


def _in_release(key: Serializer | None, metas: tuple[StateMetaInfo, ...], job: Job) -> Resolution:
    """Check whether the release of the new job has all serializers, and reads what Kryo wrote."""
    found = []
    ends = [parse_release(r) for r in dict.fromkeys([*job.releases[-1:], *job.releases[:1]])]
    missing = [error for target in ends if (error := _missing_class(key, metas, target)) is not None]
    if missing:
        # Classes come and go once: if the first and the last release have them, so do those between.
        is_certain = len(missing) == len(ends)
        reason = "" if is_certain else f"B may be of Flink {shown_releases(job.releases)}"
        found.append(of_error(Level.INCOMPATIBLE if is_certain else Level.UNKNOWN, missing[0], reason))
    if job.kryo is not None:
        serializers = [*([] if key is None else [key]), *(s for m in metas for s in m.serializers.values())]
        parts = [p for s in serializers for p in all_parts(s) if isinstance(p, KryoSerializer)]
        found += [resolve_releases(p, job.kryo, _CHECK_NEW) for p in parts]
    return combine(found)


def _missing_class(key: Serializer | None, metas: tuple[StateMetaInfo, ...], target: Target) -> UnsupportedError | None:
    try:
        check_available(key, metas, target, kryo=False)
    except UnsupportedError as error:
        return error
    return None


def of_error(level: Level, error: StatetoolError, reason: str = "") -> Resolution:
    """Return the resolution of an error. ``reason`` is its consequence for the check."""
    place = str(replace(error.where, operator=None, state=None))
    message = f"{error.message} [{place}]" if place else error.message
    return Resolution.because(level, sentence(f"{reason}: {message}" if reason else message), sentence(error.hint))


def _in_release_alone(key: Serializer | None, metas: tuple[StateMetaInfo, ...], job: Job) -> Resolution:
    """Check whether any job of the release reads the state, if no snapshot of the new job is known."""
    serializers = [*([] if key is None else [key]), *(s for m in metas for s in m.serializers.values())]
    unknown = [p.type_name for s in serializers for p in all_parts(s) if isinstance(p, OpaqueSerializer)]
    resolutions = [
        Resolution.because(
            Level.UNKNOWN,
            f"Only a job that has the serializer class can read {name}.",
            _CHECK_NEW,
        )
        for name in dict.fromkeys(unknown)
    ]
    return combine([_in_release(key, metas, job), *resolutions])


def verdict_of(name: str, resolution: Resolution) -> StateVerdict:
    """Convert the resolution of a state to a verdict."""
    return StateVerdict(
        name=name,
        verdict=resolution.level.verdict,
        reason=resolution.reason,
        remedy=resolution.remedy,
        causes=resolution.causes,
        warnings=resolution.warnings,
    )


def merge_verdicts(found: Sequence[StateVerdict]) -> StateVerdict:
    """Return one verdict on a state from those of several rules."""
    if len(found) == 1:
        return found[0]
    levels = (max((c.level for c in v.causes), default=Level.AS_IS) for v in found)
    parts = [Resolution(level, v.causes, v.warnings) for level, v in zip(levels, found, strict=True)]
    return verdict_of(found[0].name, combine(parts))


def keyed_verdicts(
    old: Mapping[str, tuple[KeyedHeader, StateMetaInfo]],
    new: Mapping[str, tuple[KeyedHeader, StateMetaInfo]] | None,
    job: Job,
    hidden: Hidden,
    ran: RanStates,
    uid: str,
) -> Iterator[StateVerdict]:
    """Yield the verdicts on an operator's keyed states. ``new`` is ``None`` if only a release is known."""
    metas = None if new is None else {n: m for n, (_, m) in new.items()}
    for name, (_, meta) in old.items():
        if metas is None:
            yield verdict_of(name, _in_release_alone(None, (meta,), job))
        elif name in metas:
            place: tuple[Scope, str] = ("keyed", name)
            yield verdict_of(name, _whole(check_keyed(meta, metas[name], job), hidden.get(place), ran.get(place)))
        else:
            yield _unused_verdict(name, meta, {n: m for n, m in metas.items() if n not in old}, job, uid)


def element_verdicts(
    old: Mapping[str, StateMetaInfo],
    new: Mapping[str, StateMetaInfo] | None,
    job: Job,
    hidden: Hidden,
    ran: RanStates,
    uid: str,
) -> Iterator[StateVerdict]:
    """Yield the verdicts on an operator's operator states."""
    for name, meta in old.items():
        if new is None:
            yield verdict_of(name, _in_release_alone(None, (meta,), job))
        elif name in new:
            place: tuple[Scope, str] = ("operator", name)
            yield verdict_of(name, _whole(check_elements(meta, new[name], job), hidden.get(place), ran.get(place)))
        else:
            yield _unused_verdict(name, meta, {n: m for n, m in new.items() if n not in old}, job, uid)


def _whole(resolution: Resolution, hidden: Resolution | None, ran: Ran | None) -> Resolution:
    """Return the resolution with that of values that no header describes, and with what a run decides."""
    whole = resolution if hidden is None else combine([resolution, hidden])
    return whole if ran is None else ran.apply(whole)


def _unused_verdict(
    name: str, meta: StateMetaInfo, fresh: Mapping[str, StateMetaInfo], job: Job, uid: str
) -> StateVerdict:
    """Return the verdict on a state that the new job does not register: Flink carries it along and does not read it."""
    resolution = _in_release(None, (meta,), job)
    if job.classes is not None:
        resolution = combine([resolution, job.classes.resolve_header(meta.serializers.values())])
    if meta.kind == "timers":
        return verdict_of(name, resolution)
    check = check_elements if meta.namespace is None else check_keyed
    levels = {n: check(meta, m, job).level for n, m in fresh.items() if m.kind == meta.kind}
    alike = [n for n, level in levels.items() if level <= Level.AFTER_MIGRATION]
    sure = bool(alike)
    alike = alike or [n for n, level in levels.items() if level == Level.UNKNOWN]
    text = "The new job does not register this state: Flink carries it along, and its values are not used."
    remedy = None
    if alike:
        # Which of several it is, only the user knows.
        new_name = alike[0] if len(alike) == 1 else "NEW_NAME"
        renamed = f"If it was renamed to {' or '.join(alike)}, rename it in a copy of the snapshot{'' if sure else ' and check again'}."
        remedy = Remedy(renamed, ("state", "rename", A, NEW, "--uid", uid, "--state", name, "--to", new_name))
    warning = CheckWarning(kind="loses", message=text, remedy=remedy)
    return verdict_of(name, combine([resolution, Resolution.because(Level.AS_IS, text, remedy, warning)]))
