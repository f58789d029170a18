"""States that the code of the new job declares, for a check without a snapshot of it.

A job declares a state by a descriptor with its name (``new ListStateDescriptor<>("orders", Order.class)``). If the old jar declares a state of the
snapshot, the new jar must declare the same: its kind, its mode, its types and its time to live. States of Flink's own operators have no descriptor in a jar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from statetool.compatibility.classes.job_classes import strings_in_jars
from statetool.compatibility.declared_types import keyed_meta, operator_meta, resolve_types, row_names, type_of
from statetool.compatibility.record_types import has_same_streams
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.rules.serializers import switch_ttl
from statetool.compatibility.states import another_kind, verdict_of
from statetool.compatibility.steps.step import (
    Result,
    StateFound,
    is_open,
    is_unknown,
    kinds_of,
    loses,
    may_change,
    note,
)
from statetool.compatibility.traced_states import has_ttl, resolve_traced
from statetool.compatibility.verdicts import NEW, A, CheckWarning, Level, Remedy, Resolution, migration_remedy
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.streaming import TraversableSerializer
from statetool.serializers.typeutils.options import OptionSerializer, ScalaEitherSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope
from statetool.snapshot.views import EVENT_QUEUE, EVENTS, NFA, NODES
from statetool.types.declared import ClassSource, TypeContext
from statetool.types.flink_calls import (
    COMPUTED,
    GROUPED,
    JOIN_BUFFERS,
    LAMBDA,
    DeclaredState,
    FlinkCall,
    declared_states,
    difference,
    fields_of_states,
    macro_calls,
    makes_type,
    ttl_calls,
)

#: Serializers of Scala whose elements have a type that only macros know.
_OF_MACROS: Final = (OptionSerializer, ScalaEitherSerializer, TraversableSerializer)
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

    @cached_property
    def computed(self) -> Counter[tuple[object, ...]]:
        """States whose names the code computes."""
        return Counter((s.place, *s.form) for s in self.states if s.name is None)

    def ttl_helpers(self, states: list[DeclaredState]) -> Counter[tuple[str, ...]] | None:
        """Return the calls by which methods of the job may set a time to live for states; ``None`` if none sets one."""
        declaring = {s.place for s in self.states}
        setting = Counter(
            (c.place,) for c in self.source.flink_calls() if c.name == "enableTimeToLive" and c.place not in declaring
        )
        if not setting:
            return None
        places = {s.place for s in states}
        used = (c for c in self.source.own_calls() if c.use == "states" and c.place in places)
        return Counter[tuple[str, ...]]((c.owner, c.name, *c.arguments) for c in used) + Counter(setting)

    def has_streams_of(self, other: _Declared) -> bool:
        """Return True if both jobs build their streams by the same calls, with the same arguments."""
        return has_same_streams(*((*s.source.flink_calls(), *s.source.own_calls()) for s in (self, other)))

    def has_names_of(self, other: _Declared, states: list[DeclaredState], name: str) -> bool:
        """Return True if the classes that declare states have the same texts of which a name may be made."""
        places = {s.place.rpartition(".")[0] for s in states}
        own, others = ({t for t in s.source.texts(places) if t and t in name} for s in (self, other))
        return own == others

    def has_types_of(self, other: _Declared) -> bool:
        """Return True if both jobs make the same types, and give their own methods and constructors the same ones."""
        own, others = (
            Counter(
                (c.owner, c.name, *c.arguments)
                for c in (*s.source.flink_calls(), *s.source.own_calls())
                if c.use == "types" or makes_type(c)
            )
            for s in (self, other)
        )
        return own == others


def declared_metas(
    operators: Iterable[OperatorInventory], before: TypeContext, after: TypeContext
) -> dict[tuple[str, Scope, str], StateMetaInfo]:
    """Return the states that the code of the new job declares otherwise than that of the old one, as it declares them, by operator id, scope and name."""
    if before.source is None or after.source is None:
        return {}
    was, now = _Declared(before.source), _Declared(after.source)
    found: dict[tuple[str, Scope, str], StateMetaInfo] = {}
    for operator in operators:
        operator_id = operator.state.operator_id
        for _, meta in operator.listed_keyed.values():
            if meta.kind != "timers" and (target := _declared_meta(meta, was, now, after, keyed=True)) is not None:
                found[operator_id, "keyed", meta.name] = target
        for meta in operator.listed_elements.values():
            if (target := _declared_meta(meta, was, now, after, keyed=False)) is not None:
                found[operator_id, "operator", meta.name] = target
    return found


def _declared_meta(
    meta: StateMetaInfo, was: _Declared, now: _Declared, after: TypeContext, *, keyed: bool
) -> StateMetaInfo | None:
    """Return a state as the code of the new job declares it, ``None`` if it declares the same, or does not tell."""
    of_old, of_new = was.named(meta.name), now.named(meta.name)
    fitting = {s.form for s in of_old if _fits(s, meta, keyed=keyed)}
    forms = {s.form for s in of_new}
    if not fitting or len(forms) != 1 or forms <= fitting or _may_be_another(of_old, of_new, was, now):
        return None
    new = of_new[0]
    types = [type_of(text, after) for text in new.types]
    if keyed:
        # A method that sets a time to live may do so for any state.
        has_helpers = any(side.ttl_helpers(states) is not None for side, states in ((was, of_old), (now, of_new)))
        says_ttl = all(with_ttl == has_ttl(meta) for *_, with_ttl in fitting)
        if has_helpers or not says_ttl or new.mode not in ("", "keyed"):
            return None
        return keyed_meta(meta, new.kind, types, after, ttl=new.has_ttl)
    if new.mode == "keyed" or not (new.mode or _fits(new, meta, keyed=False)):
        return None
    return operator_meta(meta, new.mode or meta.kind, types, after)


def _scope(*, keyed: bool) -> Scope:
    return "keyed" if keyed else "operator"


def check_declared_states(restore: Restore, pair: Pair, *, keyed: bool) -> Iterator[Result]:
    """Yield what the code of the new job declares otherwise than the snapshot has it."""
    classes = restore.job.classes
    if classes is None or classes.new.source is None:
        return
    before = None if classes.old.source is None else _Declared(classes.old.source)
    after = _Declared(classes.new.source)
    metas = {n: m for n, (_, m) in pair.old.listed_keyed.items()} if keyed else dict(pair.old.listed_elements)
    if restore.has_snapshot:
        if before is not None:
            for name, meta in metas.items():
                yield from _other_function(pair, meta, before.named(name), after.named(name))
        return
    for name, meta in metas.items():
        if meta.kind != "timers":
            found = list(_check(restore, pair, meta, before, after, keyed=keyed))
            is_settled = any(kind in ("not", "loses") for one in found for kind in kinds_of(one))
            traced = None if is_settled else resolve_traced(restore, pair, meta, keyed=keyed)
            if traced is not None:  # instead of what is unknown; what is known stays
                found = [*(f for f in found if not is_open(f)), traced]
            yield from found
    if before is not None:
        of_macros = [
            n
            for n, m in metas.items()
            if any(isinstance(p, _OF_MACROS) for s in m.serializers.values() for p in all_parts(s))
        ]
        yield from _check_macros(pair, of_macros, before, after, rule="K4" if keyed else "E4")


def check_fields(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K15: the fields of a function hold each other's states."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return
    before, after = (fields_of_states(s.own_calls()) for s in (classes.old.source, classes.new.source))
    moved = {at: (name, after[at]) for at, name in before.items() if after.get(at, name) != name}
    for (owner, field), (was, now) in moved.items():
        # Without the other name in the old code, the state was renamed.
        if {was, now} <= {*pair.old.listed_keyed} and now in {n for at, n in before.items() if at[0] == owner}:
            text = f"The field {field} of {owner} holds the state {now} in the new job, and held {was}: it goes on with the values of another field."
            yield may_change("K15", text, "Give each field the state that it had.", pair.old)


def check_times_to_live(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K7: Flink compares the time stamps of values with the time to live of the new job."""
    classes = restore.job.classes
    states = [n for n, (_, m) in pair.old.listed_keyed.items() if has_ttl(m)]
    if not states or classes is None or classes.old.source is None or classes.new.source is None:
        return
    before, after = (ttl_calls(s.flink_calls()) for s in (classes.old.source, classes.new.source))
    changed = difference(before, after) if before and after else ""
    if changed:
        is_longer = _is_longer(before, after)
        how = (
            "that expired in the old job may be visible again"
            if is_longer
            else "may expire earlier, or be visible again"
        )
        text = f"The code that sets times to live changed ({changed}). Values of {', '.join(states)} {how}."
        emit = note if is_longer else may_change
        yield emit("K7", text, "Compare the ages of the values with the new time to live.", pair.old)


def _is_longer(before: list[FlinkCall], after: list[FlinkCall]) -> bool:
    """Return True if only numbers of durations differ, and each became larger."""
    if [_without_numbers(c) for c in before] != [_without_numbers(c) for c in after]:
        return False
    numbers = (
        (a, b)
        for old, new in zip(before, after, strict=True)
        for a, b in zip(old.constants, new.constants, strict=True)
    )
    return all(int(a) <= int(b) for a, b in numbers)


def _without_numbers(call: FlinkCall) -> tuple[object, ...]:
    others = tuple(a for a in call.arguments if a not in call.constants)
    return call.owner, call.name, others, len(call.constants)


def _check_macros(pair: Pair, names: list[str], before: _Declared, after: _Declared, rule: str) -> Iterator[Result]:
    """Yield the states with types that only a macro of Scala knows, if it created other ones: class files have no elements of options."""
    changed = difference(*(macro_calls(s.source.flink_calls()) for s in (before, after))) if names else ""
    if changed:
        text = f"The code that creates types of Scala changed ({changed}). Whether that of {', '.join(names)} is among them is unknown."
        yield is_unknown(rule, text, _ASK, pair.old)


def _check(
    restore: Restore, pair: Pair, meta: StateMetaInfo, before: _Declared | None, after: _Declared, *, keyed: bool
) -> Iterator[Result]:
    old = pair.old
    of_old = None if before is None else before.named(meta.name)
    of_new = after.named(meta.name)
    if of_old is None and not of_new:
        return
    if before is not None and not of_old:
        yield from _check_computed(restore, pair, meta, before, after, keyed=keyed)
        return
    if not of_new:
        yield from _gone(pair, meta, after)
        return
    if of_old is not None and before is not None and _may_be_another(of_old, of_new, before, after):
        text = f"The code declares several states {meta.name}, which differ, and not the same ones, or not by the same calls, in both jobs. Which is that of this operator is unknown."
        yield is_unknown("K4" if keyed else "E4", text, _ASK, old)
        return
    fitting = [s for s in of_new if _fits(s, meta, keyed=keyed)]
    if not fitting:
        yield _otherwise(pair, meta, of_new[0], is_known=of_old is not None, keyed=keyed)
        return
    types = [{s.types for s in found if _fits(s, meta, keyed=keyed)} for found in (of_old or (), fitting)]
    if types[0] and types[0] != types[1]:
        shown = [" or ".join(sorted(", ".join(t) for t in side)) for side in types]
        text = f"The code of the old job declares {meta.name} with {shown[0]}, that of the new job with {shown[1]}."
        yield from _other_types(restore, pair, meta, fitting, text, keyed=keyed)
    elif before is not None and any(s.is_computed for s in fitting) and not before.has_types_of(after):
        yield from _computed_types(restore, pair, meta, keyed=keyed)
    if of_old is not None:
        yield from _other_function(pair, meta, of_old, fitting)
    with_ttl = has_ttl(meta)
    if keyed and all(s.has_ttl != with_ttl for s in fitting):
        switched = switch_ttl(may_switch=restore.job.ttl_may_switch, on=not with_ttl)
        if of_old is not None and any(s.has_ttl == with_ttl for s in of_old):
            yield StateFound(rule="K6", operator=old, scope="keyed", verdict=verdict_of(meta.name, switched))
        else:
            yield is_unknown("K6", f"{switched.reason} So the code of the new job declares it.", _ASK, old)
    elif keyed and before is not None and before.ttl_helpers(of_old or []) != after.ttl_helpers(of_new):
        text = f"Methods of the job that set a time to live changed, or the arguments that they get. Whether {meta.name} has one in the new job is unknown."
        yield is_unknown("K6", text, _ASK, old)


def _other_function(
    pair: Pair, meta: StateMetaInfo, of_old: list[DeclaredState], of_new: list[DeclaredState]
) -> Iterator[Result]:
    """Yield that a reducing or aggregating state has another function, by its name: the code inside functions is not compared."""
    if meta.kind not in ("reducing", "aggregating"):
        return
    was, now = ({s.types[0].partition(" ")[0] for s in side if len(s.types) > 1} for side in (of_old, of_new))
    if len(was) == len(now) == 1 and was != now and not any(t.startswith((LAMBDA, COMPUTED)) for t in was | now):
        text = f"The state {meta.name} is aggregated by {now.pop()} in the new job, and by {was.pop()} in the old one: its values are those of the old function."
        yield may_change("K15", text, "Compare the results, or give the state another name.", pair.old)


def _may_be_another(
    of_old: list[DeclaredState], of_new: list[DeclaredState], before: _Declared, after: _Declared
) -> bool:
    """Return True if several states of one name differ, and both jobs do not declare the same ones, or not in the same operators."""
    several = any(len({s.form for s in side}) > 1 for side in (of_old, of_new))
    is_same = {(s.place, s.form) for s in of_old} == {(s.place, s.form) for s in of_new}
    return several and not (is_same and before.has_streams_of(after))


def _check_computed(
    restore: Restore, pair: Pair, meta: StateMetaInfo, before: _Declared, after: _Declared, *, keyed: bool
) -> Iterator[Result]:
    """Yield what is unknown of a state whose name the code of the old job computes. States of Flink's own operators have none."""
    if not before.computed:
        return
    assert restore.job.classes is not None
    if of_new := after.named(meta.name):
        found = [
            _resolution(meta, s, restore.job.classes.new, keyed=keyed) if _fits(s, meta, keyed=keyed) else None
            for s in of_new
        ]
        if any(one is None or one.level != Level.AS_IS for one in found):
            text = (
                f"The code of the old job computes what the state {meta.name} is, and that of the new job declares it."
            )
            yield is_unknown("K4" if keyed else "E4", text, _ASK, pair.old)
        return
    is_text = strings_in_jars(restore.old_jars, {meta.name})
    fitting = [s for s in before.states if s.name is None and _fits(s, meta, keyed=keyed)]
    if not is_text and not (keyed and fitting and _is_of_function(meta)):
        return
    is_same = before.computed == after.computed and before.has_types_of(after) and before.has_streams_of(after)
    has_texts = (
        strings_in_jars(restore.new_jars, {meta.name}) if is_text else before.has_names_of(after, fitting, meta.name)
    )
    if not (is_same and has_texts):
        yield from _computed_types(restore, pair, meta, keyed=keyed)


def _computed_types(restore: Restore, pair: Pair, meta: StateMetaInfo, *, keyed: bool) -> Iterator[Result]:
    of_classes = restore.hidden(pair)[1].get(("keyed" if keyed else "operator", meta.name))
    if of_classes is not None and of_classes.level == Level.INCOMPATIBLE:
        return  # Whatever the type is, Flink refuses the class of the values.
    text = (
        f"The code of both jobs computes what the state {meta.name} is, and names, types or arguments for that changed."
    )
    yield is_unknown("K4" if keyed else "E4", text, _ASK, pair.old)


def _other_types(
    restore: Restore, pair: Pair, meta: StateMetaInfo, fitting: list[DeclaredState], text: str, *, keyed: bool
) -> Iterator[Result]:
    """Yield what Flink does with a state for which the code of the new job gives other types."""
    assert restore.job.classes is not None
    rule = "K4" if keyed else "E4"
    found = {_resolution(meta, s, restore.job.classes.new, keyed=keyed) for s in fitting}
    resolution = found.pop() if len(found) == 1 else None
    if resolution is None or resolution.level not in (Level.AS_IS, Level.INCOMPATIBLE):
        yield is_unknown(rule, text, _ASK, pair.old)
    elif resolution.level == Level.INCOMPATIBLE and _is_of_trigger(meta):
        text = f"{text} Flink refuses when a trigger of a window asks for the state."
        remedy = migration_remedy("Write a copy of the snapshot with the new type.")
        warning = CheckWarning(kind="later", message=text, remedy=remedy)
        later = Resolution.because(Level.AS_IS, text, remedy, warning)
        yield StateFound(rule=rule, operator=pair.old, scope=_scope(keyed=keyed), verdict=verdict_of(meta.name, later))
    elif resolution.level == Level.INCOMPATIBLE:
        yield StateFound(
            rule=rule, operator=pair.old, scope=_scope(keyed=keyed), verdict=verdict_of(meta.name, resolution)
        )
    else:
        for warning in resolution.warnings:
            yield may_change(rule, f"{meta.name}: {warning.message}", warning.remedy, pair.old)
        yield from _other_names(restore, pair, meta, fitting, rule)


def _other_names(
    restore: Restore, pair: Pair, meta: StateMetaInfo, fitting: list[DeclaredState], rule: str
) -> Iterator[Result]:
    """Yield that the fields of rows have other names: their values are stored by position."""
    classes = restore.job.classes
    assert classes is not None
    before = [] if classes.old.source is None else _Declared(classes.old.source).named(meta.name)
    was, now = ({tuple(map(row_names, s.types)) for s in side} for side in (before, fitting))
    if was != now and any(name for side in was | now for names in side for name in names):
        text = f"The rows of {meta.name} have other names in the new job. Flink stores their values by position: a field that is read by its name may have the value of another one."
        yield may_change(rule, text, "Keep the order of the names, and add no name between them.", pair.old)


def _resolution(meta: StateMetaInfo, declared: DeclaredState, types: TypeContext, *, keyed: bool) -> Resolution | None:
    """Return the resolution of a state into one with the types that code declares, ``None`` if they are not known."""
    if meta.kind in ("reducing", "aggregating", "folding"):
        return resolve_types((meta.value,), declared.types[-1:], types)
    before = (meta.parts or (meta.value,)) if keyed else (*_broadcast_key(meta), meta.value)
    return resolve_types(before, declared.types, types)


def _broadcast_key(meta: StateMetaInfo) -> tuple[Serializer, ...]:
    key = meta.serializers.get("KEY_SERIALIZER")
    return () if key is None else (key,)


def _is_of_trigger(meta: StateMetaInfo) -> bool:
    """Return True for a state of windows, which a trigger asks for with the first element or timer."""
    return meta.namespace is not None and meta.namespace.type_name != "VoidNamespace"


def _is_of_function(meta: StateMetaInfo) -> bool:
    """Return True unless the state is one of Flink's own operators, whose names are no texts of a job."""
    own = {*GROUPED, *JOIN_BUFFERS, NFA, EVENTS, EVENT_QUEUE, *NODES}
    return meta.name not in own and not _is_of_trigger(meta)


def _gone(pair: Pair, meta: StateMetaInfo, after: _Declared) -> Iterator[Result]:
    text = f"The code of the old job declares the state {meta.name}, and that of the new job does not"
    if after.computed:
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
    return StateFound(
        rule=rule,
        operator=pair.old,
        scope=_scope(keyed=keyed),
        verdict=verdict_of(meta.name, another_kind(meta.kind, kind)),
    )


def _fits(declared: DeclaredState, meta: StateMetaInfo, *, keyed: bool) -> bool:
    if keyed:
        return declared.mode in ("", "keyed") and declared.kind == meta.kind
    if not declared.mode:
        return (declared.kind == "map") == (meta.kind == "broadcast") and declared.kind in ("list", "map")
    return declared.mode == meta.kind


def _mode(declared: DeclaredState) -> str:
    """Return the mode of operator state; empty if the code does not show it."""
    return declared.mode if declared.mode != "keyed" else ""


def check_late_states(restore: Restore, pair: Pair) -> Iterator[Result]:
    """K16: the savepoint of the new job does not have a state whose name is a text of its jar: the job may register it later.

    Flink compares its serializer at the first access (``RocksDBKeyedStateBackend.tryRegisterKvStateInformation``), not at the restore.
    """
    new = pair.new
    if new is None or not restore.has_snapshot or not restore.new_jars:
        return
    missing = {n for n, (_, m) in pair.old.listed_keyed.items() if m.kind != "timers" and n not in new.listed_keyed}
    named = sorted(strings_in_jars(restore.new_jars, missing)) if missing else []
    if named:
        text = f"The savepoint of the new job does not have {', '.join(named)}, and its jar has the name as a text: if the job registers the state later, its values are used, and Flink compares their types only then."
        yield note("K16", text, "Use the state in the run that writes the savepoint of the new job.", pair.old)


def check_returning_states(restore: Restore, pair: Pair) -> Iterator[Result]:
    """E7: a state of the snapshot that the old jar does not name, and the new one does, has the values of an older version of the job."""
    if not restore.old_jars or not restore.new_jars:
        return
    names = {n for n, (_, m) in pair.old.listed_keyed.items() if m.kind != "timers"} | set(pair.old.listed_elements)
    fresh = strings_in_jars(restore.new_jars, names) if names else set()
    back = sorted(fresh - strings_in_jars(restore.old_jars, fresh)) if fresh else []
    if back:
        text = f"The jar of the old job does not name {', '.join(back)}, which the snapshot has and the new job names: unless the old code computes the name, the values are those of an older version of the job, and come back."
        remedy = Remedy(
            "If they are not wanted, drop them.", ("drop", A, NEW, "--uid", str(pair.old.label), "--state", back[0])
        )
        yield note("E7", text, remedy, pair.old)
