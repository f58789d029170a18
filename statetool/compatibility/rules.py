"""Serializer compatibility: the rules by which Flink's snapshot classes decide whether a new serializer reads the values of an old one.

Follows ``resolveSchemaCompatibility`` of the snapshot classes. POJOs and Avro evolve by name, a composite is as compatible as the worst of
its parts, and every other serializer must stay the same. The old serializer is read from the savepoint, the new one from a savepoint of
the new job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from statetool.comparison.meaning import snapshot_bytes
from statetool.compatibility.avro_rules import by_position, canonical, equal, unreadable
from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, combine
from statetool.errors import UnknownSerializerError
from statetool.io.output import Output
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.base import Serializer, all_parts
from statetool.serializers.composite import CompositeSerializer
from statetool.serializers.enums import EnumSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.opaque import OpaqueSerializer
from statetool.serializers.pojo import PojoSerializer
from statetool.serializers.row import RowSerializer
from statetool.serializers.rowdata import BinaryDataSerializer
from statetool.serializers.runtime import TtlSerializer, unwrap

_GENERIC_RECORD: Final = "org.apache.avro.generic.GenericRecord"
_AS_IS: Final = Resolution(Level.AS_IS)
_EMPTY: Final = "read the old state and write it anew with the new type, or give the state a new name and start empty"


def resolve(old: Serializer, new: Serializer, *, ttl_may_switch: bool | None = None) -> Resolution:
    """Check whether a new serializer reads the values of an old one.

    Parameters
    ----------
    ttl_may_switch
        Whether the release migrates values when time to live is switched on or off (2.x does); ``None`` if unknown.
    """
    old, new = unwrap(old), unwrap(new)
    if isinstance(old, TtlSerializer) != isinstance(new, TtlSerializer):
        return _ttl_switched(old, new, may=ttl_may_switch)
    if isinstance(old, OpaqueSerializer) or isinstance(new, OpaqueSerializer):
        return _opaque(old, new)
    if type(old) is not type(new):
        return _another_type(old, new)
    match old, new:
        case PojoSerializer(), PojoSerializer():
            return _pojos(old, new)
        case EnumSerializer(), EnumSerializer():
            return _enums(old, new)
        case AvroSerializer(), AvroSerializer():
            return _avro(old, new)
        case KryoSerializer(), KryoSerializer():
            return _kryo(old, new)
        case BinaryDataSerializer(), BinaryDataSerializer():
            return _binary(old, new)
        case RowSerializer(), RowSerializer() if len(old.nested) == len(new.nested):
            kind = _AS_IS if old.row_kind == new.row_kind else Resolution(Level.AFTER_MIGRATION, "rows get a kind")
            return combine([_parts(old, new), kind])
        case CompositeSerializer(), CompositeSerializer():
            return _composites(old, new)
    return _same_class(old, new)


def _another_type(old: Serializer, new: Serializer) -> Resolution:
    return Resolution(Level.INCOMPATIBLE, f"{old.type_name} became {new.type_name}", _EMPTY)


def _opaque(old: Serializer, new: Serializer) -> Resolution:
    try:
        same = "the same snapshot" if snapshot_bytes(old) == snapshot_bytes(new) else "another snapshot"
    except UnknownSerializerError:
        same = "no snapshot"
    return Resolution(
        Level.UNKNOWN,
        f"{old.type_name}: only its own class knows, which wrote {same}",
        "try it with a copy of the job",
    )


def _ttl_switched(old: Serializer, new: Serializer, *, may: bool | None) -> Resolution:
    on = isinstance(new, TtlSerializer)
    words = f"time to live was switched {'on' if on else 'off'}"
    if may is None:
        return Resolution(Level.UNKNOWN, words, "say for which release of Flink: flink='2.3'")
    if not may:
        remedy = "Flink 1.x refuses this: keep the setting, or give the state a new name"
        return Resolution(Level.INCOMPATIBLE, words, remedy)
    values = [s.children()[1][1] if isinstance(s, TtlSerializer) else s for s in (old, new)]
    return combine([Resolution(Level.AFTER_MIGRATION, words), resolve(*values)])


def _pojos(old: PojoSerializer, new: PojoSerializer) -> Resolution:
    if old.pojo_class != new.pojo_class:
        return Resolution(Level.INCOMPATIBLE, f"the class {old.pojo_class} became {new.pojo_class}", _EMPTY)
    before, after = dict(old.fields), dict(new.fields)
    resolutions = [resolve(before[n], after[n]).inside(n) for n in before if n in after]
    removed, added = [n for n in before if n not in after], [n for n in after if n not in before]
    if removed:
        loss = CheckWarning(kind="loses", text=f"the values of {', '.join(removed)} are dropped")
        remedy = "a renamed field is a dropped and a new one: keep the name" if added else ""
        resolutions.append(Resolution(Level.AFTER_MIGRATION, f"without {', '.join(removed)}", remedy, (loss,)))
    if added:
        resolutions.append(Resolution(Level.AFTER_MIGRATION, f"new: {', '.join(added)}"))
    own = combine([*resolutions, *_registered_resolutions(old, new)])
    migrated = own.level >= Level.AFTER_MIGRATION
    return combine([own, *_unregistered_resolutions(old, new, migrated=migrated)])


def _registered_resolutions(old: PojoSerializer, new: PojoSerializer) -> Iterator[Resolution]:
    yield from _subclasses(old.registered, new)
    if [n for n, _ in old.registered] != [n for n, _ in new.registered]:
        yield Resolution(Level.RECONFIGURED, "subclasses are registered otherwise")


def _unregistered_resolutions(old: PojoSerializer, new: PojoSerializer, *, migrated: bool) -> Iterator[Resolution]:
    """Yield the resolutions of subclasses that are not registered.

    A subclass that only the user declared is not part of the snapshot: its values are found by
    :func:`~statetool.compatibility.undescribed_subclasses.hidden_subclasses`.
    """
    registered = {n for n, _ in new.registered}
    described = {n: s for n, s in new.others if n not in new.undescribed}
    for name, before in old.others:
        after = described.get(name)
        if name in old.undescribed:
            continue
        if (
            migrated
            or name in registered
            or not isinstance(before, PojoSerializer)
            or not isinstance(after, PojoSerializer)
        ):
            yield from _subclasses([(name, before)], new)
        else:
            yield _unmigrated_resolution(name, before, after)


def _unmigrated_resolution(name: str, old: PojoSerializer, new: PojoSerializer) -> Resolution:
    """Return the resolution of an unregistered subclass whose values are not migrated.

    Flink does not check it, and continues with its old serializer (``constructReconfiguredPojoSerializer``).
    """
    whole = resolve(old, new)
    before, after = dict(old.fields), dict(new.fields)
    added = [n for n in after if n not in before]
    if not added or whole.level > Level.AFTER_MIGRATION:
        return whole.inside(name)
    text = f"{', '.join(added)}: never written, because Flink keeps the old serializer of a subclass that is not registered"
    remedy = "let statetool migrate the values, or change the class of the state too: Flink then migrates them"
    same = all(n in after and resolve(s, after[n]).level < Level.AFTER_MIGRATION for n, s in before.items())
    warnings = (*whole.warnings, CheckWarning(kind="loses", text=text))
    return Resolution(Level.RECONFIGURED if same else whole.level, whole.reason, remedy, warnings).inside(name)


def _subclasses(parts: Iterable[tuple[str, Serializer]], new: PojoSerializer) -> Iterator[Resolution]:
    described = {n: s for n, s in (*new.others, *new.registered) if n not in new.undescribed}
    for name, serializer in parts:
        if name in described:
            yield resolve(serializer, described[name]).inside(name)
        else:
            yield Resolution(
                Level.UNKNOWN,
                f"the snapshot of the new job does not describe the subclass {name}",
                "take it from a job that has seen a value of that class, or registers it",
            )


def _enums(old: EnumSerializer, new: EnumSerializer) -> Resolution:
    if old.enum_class != new.enum_class:
        return Resolution(Level.INCOMPATIBLE, f"the enum {old.enum_class} became {new.enum_class}", _EMPTY)
    if missing := [n for n in old.names if n not in new.names]:
        return Resolution(
            Level.INCOMPATIBLE, f"{old.enum_class} lost {', '.join(missing)}", "keep the constants that were there"
        )
    if (old.names, old.ids) == (new.names[: len(old.names)], new.ids[: len(old.names)]):
        return _AS_IS if len(old.names) == len(new.names) else Resolution(Level.RECONFIGURED)
    if type(old) is not EnumSerializer:
        return Resolution(Level.INCOMPATIBLE, f"the constants of {old.enum_class} have other numbers", _EMPTY)
    return Resolution(Level.RECONFIGURED)


def _avro(old: AvroSerializer, new: AvroSerializer) -> Resolution:
    before, after = (canonical(json.loads(s.schema_json)) for s in (old, new))
    problem = unreadable(before, after)
    if problem:
        return Resolution(Level.INCOMPATIBLE, f"the new Avro schema does not read the old one: {problem}", _EMPTY)
    if old.runtime_class != new.runtime_class:
        words = f"Avro's {old.runtime_class} became {new.runtime_class}"
        return Resolution(Level.UNKNOWN, words, "on heap, values are of the old class: try it with a copy of the job")
    if equal(before, after):
        return _AS_IS
    if new.runtime_class == _GENERIC_RECORD:
        return _generic_records(before, after)
    return combine([Resolution(Level.AFTER_MIGRATION, "another Avro schema", "", tuple(_avro_losses(before, after)))])


def _generic_records(before: object, after: object) -> Resolution:
    """Return the resolution of generic records, which keep the schema they were read with even if Flink migrates them.

    The new serializer writes their fields by position: on heap, in the next checkpoint.
    """
    effects: dict[str, list[str]] = {}
    for effect, words in by_position(before, after):
        effects.setdefault(effect, []).append(words)
    text = "a GenericRecord keeps its old schema, and the new serializer takes its fields by position"
    remedy = "let statetool migrate the values, or use a generated class, which Avro resolves by name"
    if fails := effects.get("fails"):
        return Resolution(Level.INCOMPATIBLE, f"{text}: {fails[0]}", remedy)
    warnings = [CheckWarning(kind="may_change", text=f"{text}: {words}") for words in effects.get("moves", ())]
    old_names = "on heap, a GenericRecord has the names of its old schema until a savepoint is taken and restored"
    warnings += [CheckWarning(kind="may_change", text=f"{old_names}: {words}") for words in effects.get("renames", ())]
    if gone := effects.get("drops"):
        warnings.append(CheckWarning(kind="loses", text=f"the values of {', '.join(gone)} are dropped"))
    if depends := effects.get("depends"):
        words = f"{text}: {depends[0]}, which Avro 1.12 does and older ones may not"
        return Resolution(Level.UNKNOWN, words, remedy, (*warnings, CheckWarning(kind="may_change", text=words)))
    return Resolution(Level.AFTER_MIGRATION, "another Avro schema", remedy if warnings else "", tuple(warnings))


def _avro_losses(before: object, after: object) -> Iterator[CheckWarning]:
    """Yield a warning if the new schema lacks fields of the outermost record."""
    if isinstance(before, dict) and isinstance(after, dict) and "fields" in before and "fields" in after:
        names = {n for f in after["fields"] for n in (f["name"], *f.get("aliases", ()))}
        if gone := [f["name"] for f in before["fields"] if f["name"] not in names]:
            yield CheckWarning(kind="loses", text=f"the values of {', '.join(gone)} are dropped")


def _kryo(old: KryoSerializer, new: KryoSerializer) -> Resolution:
    if old.type_class != new.type_class:
        return Resolution(Level.INCOMPATIBLE, f"the class {old.type_class} became {new.type_class}", _EMPTY)
    if old.context.kryo != new.context.kryo:
        return Resolution(
            Level.INCOMPATIBLE,
            f"values of {old.type_class} that another Kryo wrote: Flink 1.x has Kryo 2, Flink 2.x has Kryo 5",
            "before the upgrade give the type a serializer that both have: a POJO, Avro",
        )
    gone = {e.name for m in old.maps for e in m} - {e.name for m in new.maps for e in m}
    if gone:
        return Resolution(
            Level.INCOMPATIBLE,
            f"Kryo's registrations of {', '.join(sorted(gone))} are gone",
            "register the classes as before",
        )
    level = Level.AS_IS if old.maps == new.maps else Level.RECONFIGURED
    if old.type_class.startswith(("java.", "scala.")):
        return Resolution(level)
    text = f"Kryo does not say which fields {old.type_class} had: it must not have changed"
    remedy = "if the class is as it was, it restores; if not, write the state anew as a type that evolves: a POJO, Avro"
    return Resolution(Level.UNKNOWN, text, remedy, (CheckWarning(kind="may_change", text=text),))


def _binary(old: BinaryDataSerializer, new: BinaryDataSerializer) -> Resolution:
    if old.payload == new.payload:
        return _unchanged_resolution(old)
    if old.sql and new.sql and tuple(map(str, old.sql)) != tuple(map(str, new.sql)):
        return Resolution(
            Level.INCOMPATIBLE,
            f"{old.type_name} became {new.type_name}: rows of SQL go by position and type",
            "keep the columns that the state holds; a changed plan needs a migrated or an empty state",
        )
    return Resolution(Level.UNKNOWN, f"{old.type_name} with another snapshot")


def _composites(old: CompositeSerializer, new: CompositeSerializer) -> Resolution:
    if old.outer != new.outer or len(old.nested) != len(new.nested):
        return _another_type(old, new) if old.type_name != new.type_name else Resolution(Level.UNKNOWN, old.type_name)
    return _parts(old, new)


def _parts(old: Serializer, new: Serializer) -> Resolution:
    steps = zip(old.children(), new.children(), strict=True)
    return combine(resolve(a, b).inside(step) for (step, a), (_, b) in steps)


def _same_class(old: Serializer, new: Serializer) -> Resolution:
    """Check whether serializers without specific rules are the same type with the same settings."""
    if old.children() or new.children():
        if snapshot_bytes(old) == snapshot_bytes(new):
            return _unchanged_resolution(old)
        if old.type_name != new.type_name:
            return _another_type(old, new)
        return Resolution(Level.UNKNOWN, f"{old.type_name} with another snapshot", "try it with a copy of the job")
    if old.type_name != new.type_name:
        return _another_type(old, new)
    return (
        _AS_IS if _payload(old) == _payload(new) else Resolution(Level.UNKNOWN, f"{old.type_name} with other settings")
    )


def _unchanged_resolution(serializer: Serializer) -> Resolution:
    """Return the resolution of a serializer that is the same on both sides: data that Kryo or user code reads inside it is unknown."""
    return combine(
        _kryo(part, part) if isinstance(part, KryoSerializer) else _opaque(part, part)
        for part in list(all_parts(serializer))[1:]
        if isinstance(part, KryoSerializer | OpaqueSerializer)
    )


def _payload(serializer: Serializer) -> bytes:
    out = Output()
    serializer.write_payload(out)
    return bytes(out)
