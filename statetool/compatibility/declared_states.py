"""States that the code of the new job declares, for a check without a snapshot of it.

A job declares a state by a descriptor with its name (``new ListStateDescriptor<>("orders", Order.class)``). If the old jar declares a state of the
snapshot, the new jar must declare the same: its kind, its mode, its types and its time to live. States of Flink's own operators have no descriptor in a jar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.rules.serializers import switch_ttl
from statetool.compatibility.states import another_kind
from statetool.compatibility.steps.step import Found, Result, is_unknown, loses
from statetool.compatibility.verdicts import Remedy
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import all_parts
from statetool.serializers.runtime import TtlSerializer
from statetool.types.declared import ClassSource
from statetool.types.flink_calls import DeclaredState, declared_states

_ASK: Final = Remedy("Pass a savepoint of the new job (B), which has its states.")


@dataclass(frozen=True)
class _Declared:
    """The states that the code of a job declares."""

    source: ClassSource

    @cached_property
    def states(self) -> tuple[DeclaredState, ...]:
        return tuple(declared_states(self.source.flink_calls()))

    def named(self, name: str) -> list[DeclaredState]:
        return [s for s in self.states if s.name == name]

    @property
    def has_computed(self) -> bool:
        """Whether the code computes the name of a state."""
        return any(s.name is None for s in self.states)


def check_declared_states(restore: Restore, pair: Pair, *, keyed: bool) -> Iterator[Result]:
    """Yield what the code of the new job declares otherwise than the snapshot has it."""
    classes = restore.job.classes
    if restore.has_snapshot or classes is None or classes.new.source is None:
        return
    before = None if classes.old.source is None else _Declared(classes.old.source)
    after = _Declared(classes.new.source)
    metas = {n: m for n, (_, m) in pair.old.listed_keyed.items()} if keyed else dict(pair.old.listed_elements)
    for name, meta in metas.items():
        if meta.kind != "timers":
            yield from _check(restore, pair, meta, before, after, keyed=keyed)


def _check(
    restore: Restore, pair: Pair, meta: StateMetaInfo, before: _Declared | None, after: _Declared, *, keyed: bool
) -> Iterator[Result]:
    old = pair.old
    of_old = None if before is None else before.named(meta.name)
    of_new = after.named(meta.name)
    if of_old == [] or (of_old is None and not of_new):
        return  # A state of Flink's own operators, or one whose name the code computes.
    if not of_new:
        yield from _gone(pair, meta, after)
        return
    fitting = [s for s in of_new if _fits(s, meta, keyed=keyed)]
    if not fitting:
        yield _otherwise(pair, meta, of_new[0], is_known=of_old is not None, keyed=keyed)
        return
    types = [{s.types for s in found if _fits(s, meta, keyed=keyed)} for found in (of_old or (), fitting)]
    if types[0] and types[0] != types[1]:
        shown = [" or ".join(sorted(", ".join(t) for t in side)) for side in types]
        text = f"The code of the old job declares {meta.name} with {shown[0]}, that of the new job with {shown[1]}."
        yield is_unknown("K4" if keyed else "E4", text, _ASK, old)
    has_ttl = any(isinstance(p, TtlSerializer) for p in all_parts(meta.value))
    if keyed and all(s.has_ttl != has_ttl for s in fitting):
        switched = switch_ttl(may_switch=restore.job.ttl_may_switch, on=not has_ttl).inside(meta.name)
        if of_old is not None and any(s.has_ttl == has_ttl for s in of_old):
            yield Found(rule="K6", resolution=switched, operator=old)
        else:
            yield is_unknown("K6", f"{switched.reason} So the code of the new job declares it.", _ASK, old)


def _gone(pair: Pair, meta: StateMetaInfo, after: _Declared) -> Iterator[Result]:
    text = f"The code of the old job declares the state {meta.name}, and that of the new job does not"
    if after.has_computed:
        yield is_unknown("Z4", f"{text}, unless it computes the name.", _ASK, pair.old)
    else:
        remedy = Remedy("If it was renamed, rename it in a copy of the snapshot (statetool state rename).")
        yield loses("Z4", f"{text}: Flink carries it along, and its values are not used.", remedy, pair.old)


def _otherwise(pair: Pair, meta: StateMetaInfo, declared: DeclaredState, *, is_known: bool, keyed: bool) -> Result:
    """Return the finding about a state whose name the code of the new job only has for another kind of state."""
    is_other_scope = (declared.mode not in ("", "keyed")) if keyed else declared.mode == "keyed"
    kind = declared.kind if keyed else _mode(declared)
    if not is_known or not (kind or is_other_scope):
        text = f"The code of the new job declares {meta.name} as {declared.mode or 'another'} state of the kind {declared.kind}, and the snapshot has {meta.kind} state of that name."
        return is_unknown("K3" if keyed else "E2", text, _ASK, pair.old)
    if is_other_scope:
        scopes = ("keyed state", "operator state") if keyed else ("operator state", "keyed state")
        text = f"{meta.name} is {scopes[0]} in the snapshot, and the code of the new job declares it as {scopes[1]}: the old values are not used."
        return loses("K8", text, None, pair.old)
    rule = "K3" if keyed else "E3" if "broadcast" in (kind, meta.kind) else "E2"
    return Found(rule=rule, resolution=another_kind(meta.kind, kind).inside(meta.name), operator=pair.old)


def _fits(declared: DeclaredState, meta: StateMetaInfo, *, keyed: bool) -> bool:
    if keyed:
        return declared.mode in ("", "keyed") and declared.kind == meta.kind
    if not declared.mode:
        return (declared.kind == "map") == (meta.kind == "broadcast") and declared.kind in ("list", "map")
    return declared.mode == meta.kind


def _mode(declared: DeclaredState) -> str:
    """Return the mode of operator state; empty if the code does not show it."""
    return declared.mode if declared.mode != "keyed" else ""
