"""Rules about classes of a new job that follow from their class files: records that lost components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.verdicts import Level, Resolution, migration_remedy
from statetool.serializers.base import Serializer
from statetool.serializers.pojo import PojoSerializer
from statetool.types.declared import TypeContext

_REMEDY: Final = migration_remedy("Write a copy of the snapshot in which the values have the classes of the new job.")


def resolve_class(part: Serializer, new: TypeContext) -> Iterator[Resolution]:
    """Yield the resolutions of the class that a serializer writes."""
    if isinstance(part, PojoSerializer):
        yield from _record(part, new)
        yield from _no_more_stored(part, new)


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
        yield Resolution.because(Level.INCOMPATIBLE, text, f"Remove {', '.join(kept)} from the class, or rename it.")


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
