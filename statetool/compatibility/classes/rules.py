"""Rules about classes of a new job that follow from their class files: records, fields that are stored no more, case classes, enumerations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.verdicts import CheckWarning, Level, Resolution, migration_remedy
from statetool.errors import several
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.enums import ScalaEnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import CaseClassSerializer, type_of_field
from statetool.types.declared import TypeContext

_JAR_A: Final = "Pass the jar of the old job with --jar-a."
_REMEDY: Final = migration_remedy("Write a copy of the snapshot in which the values have the classes of the new job.")


def resolve_class(part: Serializer, old: TypeContext, new: TypeContext, *, is_key: bool) -> Iterator[Resolution]:
    """Yield the resolutions of the class that a serializer writes."""
    if isinstance(part, PojoSerializer):
        yield from _record(part, new)
        yield from _no_more_stored(part, new)
    elif isinstance(part, CaseClassSerializer):
        yield from _case_class(part, old, new)
        if is_key:
            yield from _own_hash_code(part, old, new)
    elif isinstance(part, ScalaEnumSerializer):
        yield from _enumeration(part, old, new)


def _case_class(part: CaseClassSerializer, old: TypeContext, new: TypeContext) -> Iterator[Resolution]:
    """Follows ``ScalaCaseClassSerializer``, whose fields have no names: Flink compares their number and their serializers."""
    name = part.outer
    after = None if new.source is None else new.source.case_class(name)
    if after is None:
        return
    if len(after) != len(part.nested):
        text = f"The case class {name} has {several(len(after), 'field')} in the new job, and {len(part.nested)} in the snapshot."
        yield Resolution.because(Level.INCOMPATIBLE, text, _REMEDY)
        return
    for (field, descriptor), kept in zip(after, part.nested, strict=True):
        if type_of_field(kept, descriptor) is not None:
            text = f"The field {field} of the case class {name} is no {kept.type_name} in the new job."
            yield Resolution.because(Level.INCOMPATIBLE, text, _REMEDY)
    before = None if old.source is None else old.source.case_class(name)
    names = [n for n, _ in before or ()]
    if moved := [n for i, (n, _) in enumerate(after) if n in names and names.index(n) != i]:
        text = (
            f"Fields of the case class {name} changed their places ({', '.join(moved)}): Flink reads them by position."
        )
        warning = CheckWarning(kind="may_change", message=text)
        yield Resolution.because(Level.AS_IS, text, "Keep the order of the fields.", warning)


def _own_hash_code(part: CaseClassSerializer, old: TypeContext, new: TypeContext) -> Iterator[Resolution]:
    """K9: a case class whose hash code is not that of its fields any more, or another own one."""
    name = part.outer
    if new.source is None or not new.source.has(name):
        return
    after = new.source.own_hash_code(name)
    known = old.source is not None and old.source.has(name)
    if known and old.source is not None and old.source.own_hash_code(name) == after:
        return
    if known or after:
        text = f"Whether the new job finds the keys is unknown: the case class {name} has {'a hashCode() of its own' if after else 'no hashCode() of its own any more'}."
        warning = CheckWarning(kind="may_change", message=text, in_reason=True)
        yield Resolution.by_run(text, warning)


def _enumeration(part: ScalaEnumSerializer, old: TypeContext, new: TypeContext) -> Iterator[Resolution]:
    """Follows ``ScalaEnumSerializerSnapshot``, which refuses another name for an id.

    The fields of the object are in the order of the ids, unless the job numbers or names the values itself: then they do not explain the
    snapshot with the old jar either.
    """
    stored = tuple(n for _, n in sorted(zip(part.ids, part.names, strict=True)))
    after = () if new.source is None else new.source.enumeration_values(part.enum_class)
    before = () if old.source is None else old.source.enumeration_values(part.enum_class)
    if not after or after[: len(stored)] == stored or (before and before != stored):
        return
    text = f"The values of {part.enum_class} have other ids in the new job ({', '.join(after)}) than in the snapshot ({', '.join(stored)})"
    if before:
        yield Resolution.because(Level.INCOMPATIBLE, f"{text}: Flink refuses it.", _REMEDY)
    else:
        yield Resolution.because(Level.UNKNOWN, f"{text}, unless the job gives them their ids.", _JAR_A)


def _no_more_stored(part: PojoSerializer, new: TypeContext) -> Iterator[Resolution]:
    """Follows ``PojoSerializerSnapshot``, which finds fields of the class by name and expects a serializer of the new job for each of them."""
    declared = new.find(part.pojo_class)
    information = new.type_information(part.pojo_class)
    if declared is None or new.source is None or information is None or information.kind != "pojo":
        return
    stored = {name for name, _ in information.fields}
    kept = [n for n, _ in part.fields if n not in stored and new.source.has_field(part.pojo_class, n)]
    if kept:
        text = f"The class {part.pojo_class} still has {', '.join(kept)}, and Flink does not store it any more (transient or static): it refuses to restore."
        remedy = migration_remedy(
            "Or write a copy of the snapshot without it.", f"Remove {', '.join(kept)} from the class, or rename it."
        )
        yield Resolution.because(Level.INCOMPATIBLE, text, remedy)


def _record(part: PojoSerializer, new: TypeContext) -> Iterator[Resolution]:
    """Follows ``JavaRecordBuilderFactory``: it maps the positions of components only if their names differ, without those that are gone.

    If the record has its components in alphabetical order, the position among the old fields is taken for that among the new components.
    """
    declared = new.find(part.pojo_class)
    if declared is None or not declared.record:
        return
    before = [name for name, _ in part.fields]
    after = [name for name, _ in declared.fields]
    if [name for name in before if name in after] != after:
        return
    if too_far := [name for i, name in enumerate(before) if name in after and i >= len(after)]:
        gone = ", ".join(name for name in before if name not in after)
        text = (
            f"The record {part.pojo_class} lost {gone}: Flink puts the values of {', '.join(too_far)} in places that its"
            " constructor does not have, and fails."
        )
        yield Resolution.because(Level.INCOMPATIBLE, text, _REMEDY)
