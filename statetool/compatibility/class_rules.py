"""Rules about classes of a new job that follow from their class files: records that lost components, and classes that became abstract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.verdicts import Level, Resolution, migration_remedy
from statetool.serializers.base import Serializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.pojo import PojoSerializer
from statetool.types.declared import ClassSource, TypeContext

_REMEDY: Final = migration_remedy("Write a copy of the snapshot in which the values have the classes of the new job.")


def resolve_class(part: Serializer, old: TypeContext, new: TypeContext) -> Iterator[Resolution]:
    """Yield the resolutions of the class that a serializer writes."""
    if isinstance(part, PojoSerializer):
        yield from _abstract(part.pojo_class, old.source, new.source)
        yield from _record(part, new)
    elif isinstance(part, KryoSerializer):
        yield from _abstract(part.type_class, old.source, new.source)


def _abstract(name: str, old: ClassSource | None, new: ClassSource | None) -> Iterator[Resolution]:
    if old is not None and new is not None and new.is_abstract(name) and old.has(name) and not old.is_abstract(name):
        text = f"The class {name} became abstract: Flink cannot read values of exactly this class, only those of subclasses."
        yield Resolution.by_run(text)


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
