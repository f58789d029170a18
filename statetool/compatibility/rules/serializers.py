"""Serializer compatibility: the rules by which Flink's snapshot classes decide whether a new serializer reads the values of an old one.

Follows ``resolveSchemaCompatibility`` of the snapshot classes. POJOs and Avro evolve by name, a composite is as compatible as the worst of
its parts, and every other serializer must stay the same. The old serializer is read from the savepoint, the new one from a savepoint of
the new job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from statetool.compatibility.rules.avro import by_position, canonical, equal, other_values, unreadable
from statetool.compatibility.rules.beam import resolve_coders
from statetool.compatibility.rules.flinkx import ACCEPTING, accept_parts, resolve_arity, same_case_class
from statetool.compatibility.rules.kryo import resolve_kryo
from statetool.compatibility.verdicts import (
    NEW,
    A,
    B,
    CheckWarning,
    Level,
    Remedy,
    Resolution,
    combine,
    migration_remedy,
)
from statetool.errors import UnknownSerializerError, several
from statetool.io.output import Output
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.core.opaque import OpaqueSerializer, UnderivedSerializer
from statetool.serializers.equal_types import snapshot_bytes
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.libraries.beam.serializer import BeamSerializer
from statetool.serializers.libraries.flinkx.case_class import FlinkxCaseClassSerializer
from statetool.serializers.libraries.nussknacker import TypedMapSerializer
from statetool.serializers.messages import DeclaredMessageSerializer
from statetool.serializers.own_composites import OwnCompositeSerializer, open_own_composites
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.sql.rowdata import BinaryDataSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.row import RowSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer

_ANOTHER_SCHEMA: Final = "The Avro schema changed."
_GENERIC_RECORD: Final = "org.apache.avro.generic.GenericRecord"
_AS_IS: Final = Resolution(Level.AS_IS)
MIGRATE: Final = migration_remedy(
    "Write a copy of the snapshot in which the values have the new type, if they can be converted."
)
_TUPLES: Final = "org.apache.flink.api.java.tuple.Tuple"
_TAKE: Final = "Pass the jar of the old job too (--jar-a), or take a savepoint of the new job and check against it."
_TRY: Final = "Restore a copy of the job from this snapshot to find out."


def resolve(old: Serializer, new: Serializer, *, ttl_may_switch: bool | None = None) -> Resolution:
    """Check whether a new serializer reads the values of an old one.

    Parameters
    ----------
    ttl_may_switch
        Whether the release migrates values when time to live is switched on or off (RocksDB from 2.1 on, the heap backend from 2.2 on); ``None`` if unknown.
    """
    old, new = unwrap(old), unwrap(new)
    if isinstance(old, TtlSerializer) != isinstance(new, TtlSerializer):
        switched = switch_ttl(may_switch=ttl_may_switch, on=isinstance(new, TtlSerializer))
        if switched.level != Level.AFTER_MIGRATION:
            return switched
        return combine(
            [switched, resolve(*(s.children()[1][1] if isinstance(s, TtlSerializer) else s for s in (old, new)))]
        )
    if isinstance(new, UnderivedSerializer):
        text = f"Which serializer the new job has for {old.type_name} is unknown: {new.reason}."
        return Resolution.by_run(text, remedy=Remedy(f"{_TAKE} If the class tells its serializer, --run does too."))
    if isinstance(old, OpaqueSerializer | DeclaredMessageSerializer) or isinstance(new, OpaqueSerializer):
        return _opaque(old, new)
    if (arity := resolve_arity(old, new)) is not None:
        return arity
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
            kind = (
                _AS_IS
                if old.row_kind == new.row_kind
                else Resolution.because(Level.AFTER_MIGRATION, "Rows get a row kind.")
            )
            return combine([_parts(old, new), kind])
        case BeamSerializer(), BeamSerializer() if old.snapshot_class == new.snapshot_class:
            return resolve_coders(old, new) if old.type_name == new.type_name else _another_type(old, new)
        case FlinkxCaseClassSerializer(), FlinkxCaseClassSerializer() if same_case_class(old, new):
            return _parts(old, new)
        case FlinkxCaseClassSerializer(), FlinkxCaseClassSerializer():
            return _another_type(old, new)
        case TypedMapSerializer(), TypedMapSerializer():
            return _typed_maps(old, new)
        case CompositeSerializer(), CompositeSerializer():
            whole = _composites(old, new)
            return accept_parts(whole) if isinstance(old, ACCEPTING) else whole
    return _same_class(old, new)


def _another_type(old: Serializer, new: Serializer) -> Resolution:
    return Resolution.because(Level.INCOMPATIBLE, f"The type {old.type_name} became {new.type_name}.", MIGRATE)


def _opaque(old: Serializer, new: Serializer) -> Resolution:
    try:
        same = "is the same" if snapshot_bytes(old) == snapshot_bytes(new) else "differs"
    except UnknownSerializerError:
        same = "is missing"
    if isinstance(old, OpaqueSerializer) and isinstance(new, OpaqueSerializer):
        known = _by_code(old, new, same) or _by_parts(old, new)
        if known is not None:
            return known
    reason = (
        f"Only the serializer class itself determines how to read {old.type_name}; its snapshot in the new job {same}."
    )
    return Resolution.by_run(reason)


def _by_code(old: OpaqueSerializer, new: OpaqueSerializer, same: str) -> Resolution | None:
    """Return the resolution of serializers of the job that the jars of both jobs have, ``None`` if they do not tell."""
    name = old.snapshot_name
    before, after = (None if s.types is None else s.types.source for s in (old, new))
    if not name or before is None or after is None:
        return None
    return _AS_IS if same == "is the same" and before.has_same_code(name, after) else None


def _by_parts(old: OpaqueSerializer, new: OpaqueSerializer) -> Resolution | None:
    """Return the resolution of serializers with composites of the job, ``None`` if their parts do not tell.

    Follows ``CompositeTypeSerializerSnapshot.resolveSchemaCompatibility``, which is final: Flink refuses what it refuses for a part. If it
    migrates one, the code of the job decides whether it reads the old values.
    """
    before, after = map(open_own_composites, (old, new))
    if before is None or after is None:
        return None
    if not isinstance(before, OwnCompositeSerializer) or not isinstance(after, OwnCompositeSerializer):
        opened = isinstance(before, OpaqueSerializer) or isinstance(after, OpaqueSerializer)
        return None if opened else resolve(before, after)
    if before.snapshot_name != after.snapshot_name:
        return None
    if len(before.nested) != len(after.nested):
        text = f"{before.snapshot_name} has {several(len(after.nested), 'part')} in the new job, and {len(before.nested)} in the snapshot."
        return Resolution.because(Level.INCOMPATIBLE, text, MIGRATE)
    pairs = zip(before.nested, after.nested, strict=True)
    parts = combine(resolve(a, b).inside(f"part {n + 1}") for n, (a, b) in enumerate(pairs))
    return parts if parts.level == Level.INCOMPATIBLE else None


def switch_ttl(*, may_switch: bool | None, on: bool) -> Resolution:
    """Return the resolution of a state whose time to live was switched on or off."""
    reason = f"Time to live (TTL) was switched {'on' if on else 'off'}."
    if may_switch is None:
        release = Remedy(
            "Name the Flink release and the backend of the new job: RocksDB migrates it from Flink 2.1 on, the heap backend from 2.2 on. ForSt was not tried.",
            ("check", A, B, "--flink", "2.3", "--backend", "rocksdb"),
        )
        return Resolution.because(Level.UNKNOWN, reason, release)
    if not may_switch:
        remedy = migration_remedy("Or write a copy of the snapshot with it.", "Keep the TTL setting of the state.")
        return Resolution.because(
            Level.INCOMPATIBLE, f"{reason} Flink 1.x and 2.0, and the heap backend of 2.1, do not migrate it.", remedy
        )
    return Resolution.because(Level.AFTER_MIGRATION, reason)


def _typed_maps(old: TypedMapSerializer, new: TypedMapSerializer) -> Resolution:
    """Follows ``TypedObjectBasedSerializerSnapshot``: fields may be added and removed, but not become those of another map class."""
    if old.snapshot_class != new.snapshot_class:
        return _another_type(old, new)
    return combine(_named_fields("map", dict(old.fields), dict(new.fields)))


def _named_fields(what: str, before: Mapping[str, Serializer], after: Mapping[str, Serializer]) -> list[Resolution]:
    """Return the resolutions of fields that are found by name: added and removed ones need a migration."""
    resolutions = [resolve(before[n], after[n]).inside(n) for n in before if n in after]
    removed, added = [n for n in before if n not in after], [n for n in after if n not in before]
    if removed:
        remedy = _rename_remedy(added) if added else None
        loss = CheckWarning(kind="loses", message=_drop_text(removed), remedy=remedy)
        resolutions.append(
            Resolution.because(Level.AFTER_MIGRATION, f"The {what} lost {_fields(removed)}.", remedy, loss)
        )
    if added:
        resolutions.append(Resolution.because(Level.AFTER_MIGRATION, f"The {what} got {_fields(added)}."))
    return resolutions


def _pojos(old: PojoSerializer, new: PojoSerializer) -> Resolution:
    if old.pojo_class != new.pojo_class:
        return Resolution.because(Level.INCOMPATIBLE, f"The class {old.pojo_class} became {new.pojo_class}.", MIGRATE)
    resolutions = _named_fields("class", dict(old.fields), dict(new.fields))
    own = combine([*resolutions, *_registered_resolutions(old, new)])
    migrated = own.level >= Level.AFTER_MIGRATION
    return combine([own, *_unregistered_resolutions(old, new, migrated=migrated)])


def _fields(names: Sequence[str]) -> str:
    return f"the field{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _drop_text(names: Sequence[str]) -> str:
    return f"The values of {_fields(names)} are dropped."


def _rename_remedy(added: Sequence[str]) -> Remedy:
    """Return the remedy for a class that lost fields and got others: Flink takes a renamed field for a dropped and a new one."""
    text = f"If a field was renamed to {' or '.join(added)}, keep its old name, or let statetool rename it (--rename)."
    return Remedy(text, ("migrate", A, NEW, "--to", B, "--dry-run"))


def _registered_resolutions(old: PojoSerializer, new: PojoSerializer) -> Iterator[Resolution]:
    yield from _subclasses(old.registered, new)
    if [n for n, _ in old.registered] != [n for n, _ in new.registered]:
        yield Resolution.because(Level.RECONFIGURED, "Other subclasses are registered, or in another order.")


def _unregistered_resolutions(old: PojoSerializer, new: PojoSerializer, *, migrated: bool) -> Iterator[Resolution]:
    """Yield the resolutions of subclasses that are not registered.

    A subclass that only the user declared is not part of the snapshot: its values are found by
    :func:`~statetool.compatibility.classes.undescribed_subclasses.hidden_subclasses`.
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

    Flink asks registered subclasses only (``getCompatibilityOfPreExistingRegisteredSubclasses``), and continues with the old serializer of
    the others (``constructReconfiguredPojoSerializer``). It skips fields that are gone, and never writes new ones.
    """
    whole = resolve(old, new)
    if whole.level != Level.AFTER_MIGRATION:
        return whole.inside(name)
    kept = "Flink keeps the old serializer of a subclass that is not registered"
    remedy = migration_remedy("Write a copy of the snapshot in which the values have the new fields.")
    warnings = whole.warnings
    if added := list(_added_fields(old, new)):
        one = len(added) == 1
        text = (
            f"The new {'field' if one else 'fields'} {', '.join(added)} {'is' if one else 'are'} never written: {kept}."
        )
        warnings = (*warnings, CheckWarning(kind="loses", message=text, remedy=remedy))
    if not _only_fields_differ(old, new):
        reason = f"{kept}, and statetool does not know whether it still reads and writes these values."
        return combine([replace(whole, warnings=warnings), Resolution.by_run(reason)]).inside(name)
    level = Level.RECONFIGURED
    causes = tuple(replace(c, level=min(c.level, level), remedy=remedy) for c in whole.causes)
    return Resolution(level, causes, warnings).inside(name)


def _added_fields(old: PojoSerializer, new: PojoSerializer, path: tuple[str, ...] = ()) -> Iterator[str]:
    fields = dict(old.fields)
    for name, after in new.fields:
        before = fields.get(name)
        if before is None:
            yield ".".join((*path, name))
        elif isinstance(before, PojoSerializer) and isinstance(after, PojoSerializer):
            yield from _added_fields(before, after, (*path, name))


def _only_fields_differ(old: PojoSerializer, new: PojoSerializer) -> bool:
    """Return True if the classes differ only in fields that were added or removed, also in nested classes."""
    fields = dict(new.fields)
    for name, before in old.fields:
        after = fields.get(name)
        if after is None:
            continue
        if isinstance(before, PojoSerializer) and isinstance(after, PojoSerializer):
            same = _only_fields_differ(before, after)
        else:
            same = resolve(before, after).level < Level.AFTER_MIGRATION
        if not same:
            return False
    return True


def _subclasses(parts: Iterable[tuple[str, Serializer]], new: PojoSerializer) -> Iterator[Resolution]:
    described = {n: s for n, s in (*new.others, *new.registered) if n not in new.undescribed}
    for name, serializer in parts:
        if name in described:
            yield resolve(serializer, described[name]).inside(name)
        else:
            text = "Take the snapshot of the new job from a job that has written a value of this class or registers it, and check again."
            yield Resolution.by_run(
                f"The snapshot of the new job does not describe the subclass {name}.", remedy=Remedy(text)
            )


def _enums(old: EnumSerializer, new: EnumSerializer) -> Resolution:
    if old.enum_class != new.enum_class:
        return Resolution.because(Level.INCOMPATIBLE, f"The enum {old.enum_class} became {new.enum_class}.", MIGRATE)
    if missing := [n for n in old.names if n not in new.names]:
        constants = f"constant{'' if len(missing) == 1 else 's'} {', '.join(missing)}"
        reason = f"The enum {old.enum_class} lost the {constants}."
        remedy = migration_remedy("Or write a copy of the snapshot without them.", f"Keep the {constants} in the enum.")
        return Resolution.because(Level.INCOMPATIBLE, reason, remedy)
    if (old.names, old.ids) == (new.names[: len(old.names)], new.ids[: len(old.names)]):
        return _AS_IS if len(old.names) == len(new.names) else Resolution(Level.RECONFIGURED)
    if type(old) is not EnumSerializer:
        return Resolution.because(Level.INCOMPATIBLE, f"The constants of {old.enum_class} have other numbers.", MIGRATE)
    return Resolution(Level.RECONFIGURED)


def _avro(old: AvroSerializer, new: AvroSerializer) -> Resolution:
    before, after = (canonical(json.loads(s.schema_json)) for s in (old, new))
    problem = unreadable(before, after)
    if problem:
        return Resolution.because(
            Level.INCOMPATIBLE, f"The new Avro schema does not read the old one: {problem}.", MIGRATE
        )
    same = equal(before, after)
    if old.runtime_class != new.runtime_class:
        reason = (
            f"The Avro class {old.runtime_class} became {new.runtime_class}. On heap, restored values keep the old class until"
            " the next restore, and code that expects the new one may fail."
        )
        warning = CheckWarning(kind="may_change", message=reason, in_reason=not same)
        return Resolution.because(Level.AS_IS if same else Level.UNKNOWN, reason, _TRY, warning)
    if same:
        return _AS_IS
    if new.runtime_class == _GENERIC_RECORD:
        return _generic_records(before, after)
    warnings = [*_avro_losses(before, after)]
    if others := other_values(before, after):
        text = f"The new Avro schema gives other values: {', '.join(others)}."
        warnings.append(CheckWarning(kind="may_change", message=text))
    if _named_by_schema(old, before) and not _named_by_schema(new, after):
        text = f"Avro looks for the class of a record by the name of its schema, and the schema of {new.runtime_class} has another name: the first value that is read fails (ClassCastException)."
        warnings.append(CheckWarning(kind="later", message=text))
    return Resolution.because(Level.AFTER_MIGRATION, _ANOTHER_SCHEMA, None, *warnings)


def _named_by_schema(serializer: AvroSerializer, schema: Any) -> bool:
    """Return True if the schema has the name of the class (``SpecificData.getClassName``): a nested class has a namespace that ends with ``$``."""
    name = schema.get("name") if isinstance(schema, dict) else None
    return isinstance(name, str) and name.replace("$.", "$") == serializer.runtime_class


def _generic_records(before: object, after: object) -> Resolution:
    """Return the resolution of generic records, which keep the schema they were read with even if Flink migrates them.

    The new serializer writes their fields by position: on heap, in the next checkpoint.
    """
    effects: dict[str, list[str]] = {}
    for effect, words in by_position(before, after):
        effects.setdefault(effect, []).append(words)
    text = "A GenericRecord keeps its old schema, and the new serializer takes its fields by position"
    remedy = migration_remedy(
        "Write a copy of the snapshot with the new schema, or use a generated class, which Avro resolves by name."
    )

    def may_change(message: str, *, in_reason: bool = False) -> CheckWarning:
        return CheckWarning(kind="may_change", message=message, remedy=remedy, in_reason=in_reason)

    if fails := effects.get("fails"):
        return Resolution.because(Level.INCOMPATIBLE, f"{text}: {fails[0]}.", remedy)
    warnings = [may_change(f"{text}: {words}.") for words in effects.get("moves", ())]
    old_names = "On heap, a GenericRecord has the names of its old schema until a savepoint is taken and restored"
    warnings += [may_change(f"{old_names}: {words}.") for words in effects.get("renames", ())]
    if gone := effects.get("drops"):
        warnings.append(CheckWarning(kind="loses", message=_drop_text(gone)))
    if depends := effects.get("depends"):
        reason = f"{text}: {depends[0]}. Avro 1.11.4 and later convert such values, older releases may not."
        return Resolution.by_run(reason, *warnings, may_change(reason, in_reason=True))
    return Resolution.because(Level.AFTER_MIGRATION, _ANOTHER_SCHEMA, remedy if warnings else None, *warnings)


def _avro_losses(before: object, after: object) -> Iterator[CheckWarning]:
    """Yield a warning if the new schema lacks fields of the outermost record."""
    if isinstance(before, dict) and isinstance(after, dict) and "fields" in before and "fields" in after:
        names = {n for f in after["fields"] for n in (f["name"], *f.get("aliases", ()))}
        if gone := [f["name"] for f in before["fields"] if f["name"] not in names]:
            yield CheckWarning(kind="loses", message=_drop_text(gone))


def _kryo(old: KryoSerializer, new: KryoSerializer) -> Resolution:
    if old.type_class != new.type_class:
        return Resolution.because(Level.INCOMPATIBLE, f"The class {old.type_class} became {new.type_class}.", MIGRATE)
    return resolve_kryo(old, new)


def _binary(old: BinaryDataSerializer, new: BinaryDataSerializer) -> Resolution:
    if old.payload == new.payload:
        return _unchanged_resolution(old, new)
    if old.sql and new.sql and tuple(map(str, old.sql)) != tuple(map(str, new.sql)):
        return Resolution.because(
            Level.INCOMPATIBLE,
            f"The SQL row {old.type_name} became {new.type_name}. Flink matches columns by position and type.",
            replace(MIGRATE, otherwise="Keep the columns of the old row."),
        )
    return _another_snapshot(old)


def _another_snapshot(old: Serializer) -> Resolution:
    reason = f"The snapshot of the serializer of {old.type_name} changed, and statetool does not know its rules."
    return Resolution.by_run(reason)


def _composites(old: CompositeSerializer, new: CompositeSerializer) -> Resolution:
    if type(old) is type(new) is TupleSerializer and len(old.nested) == len(new.nested):
        return _tuples(old, new)
    if old.outer != new.outer or len(old.nested) != len(new.nested):
        return _another_type(old, new) if old.type_name != new.type_name else _another_snapshot(old)
    return _parts(old, new)


def _tuples(old: TupleSerializer, new: TupleSerializer) -> Resolution:
    """Follows ``TupleSerializerSnapshot``, which does not compare the classes: one may be a subclass of the other."""
    if old.outer == new.outer or new.outer.startswith(_TUPLES):
        return _parts(old, new)
    text = f"The class {old.outer} became {new.outer}. The heap backend goes on with objects of the old class, and code that takes them for the new one fails."
    warning = CheckWarning(kind="may_change", message=text, remedy=MIGRATE)
    return combine([_parts(old, new), Resolution.because(Level.AS_IS, text, MIGRATE, warning)])


def _parts(old: Serializer, new: Serializer) -> Resolution:
    steps = zip(old.children(), new.children(), strict=True)
    return combine(resolve(a, b).inside(step) for (step, a), (_, b) in steps)


def _same_class(old: Serializer, new: Serializer) -> Resolution:
    """Check whether serializers without specific rules are the same type with the same settings."""
    if old.children() or new.children():
        if snapshot_bytes(old) == snapshot_bytes(new):
            return _unchanged_resolution(old, new)
        if old.type_name != new.type_name:
            return _another_type(old, new)
        return _another_snapshot(old)
    if old.type_name != new.type_name:
        return _another_type(old, new)
    return _AS_IS if _payload(old) == _payload(new) else _another_snapshot(old)


def _unchanged_resolution(old: Serializer, new: Serializer) -> Resolution:
    """Return the resolution of equal snapshots: data that Kryo or user code reads inside them is unknown."""
    return combine(
        _kryo(part, after)
        if isinstance(part, KryoSerializer) and isinstance(after, KryoSerializer)
        else _opaque(part, after)
        for part, after in list(zip(all_parts(old), all_parts(new), strict=False))[1:]
        if isinstance(part, KryoSerializer | OpaqueSerializer | DeclaredMessageSerializer)
    )


def _payload(serializer: Serializer) -> bytes:
    out = Output()
    serializer.write_payload(out)
    return bytes(out)
