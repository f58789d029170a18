"""Compatibility of Protobuf messages, as far as no value tells it: defaults of fields that are not set.

Kryo's serializer for Protobuf stores the bytes of a message, and the new class parses them. Neither a message nor its bytes have the defaults
of fields that nobody set: they are those of the class.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from statetool.compatibility.verdicts import CheckWarning, Level, Resolution
from statetool.errors import StatetoolError
from statetool.serializers.kryo.codecs.protobuf import message_class
from statetool.types.declared import ClassDeclaration, TypeContext


def resolve_defaults(name: str, old: TypeContext, new: TypeContext) -> Iterator[Resolution]:
    """Yield a resolution for each message that values of a class may have, if the new job has other defaults for its fields."""
    for before in old.within(name):
        after = new.find(before.name)
        if before.kind != "protobuf" or after is None or after.kind != "protobuf" or before == after:
            continue
        if changed := _changed_defaults(before, after):
            text = f"Fields of {before.name} that are not set have other defaults in the new job: {', '.join(changed)}."
            yield Resolution.because(Level.AS_IS, text, None, CheckWarning(kind="may_change", message=text))


def _changed_defaults(before: ClassDeclaration, after: ClassDeclaration) -> list[str]:
    """Return the changed defaults of a message and the messages inside, none if a descriptor is damaged: no value can be read then."""
    with suppress(StatetoolError):
        old, new = (message_class(d.descriptor, d.message)[1].DESCRIPTOR for d in (before, after))
        return list(dict.fromkeys(_of_fields(old, new, set())))
    return []


def _of_fields(old: Any, new: Any, seen: set[tuple[str, str]]) -> Iterator[str]:
    if (old.full_name, new.full_name) in seen:
        return
    seen.add((old.full_name, new.full_name))
    for field in old.fields:
        other = new.fields_by_number.get(field.number)
        if other is None:
            continue
        if field.message_type is not None and other.message_type is not None:
            yield from _of_fields(field.message_type, other.message_type, seen)
        elif not _is_repeated(field) and not _is_repeated(other):
            defaults = _default(field, other), _default(other, field)
            if any(defaults) and defaults[0] != defaults[1]:
                yield f"{field.full_name}: {defaults[0]!r} becomes {defaults[1]!r}"


def _is_repeated(field: Any) -> bool:
    return isinstance(field.default_value, list)


def _default(field: Any, other: Any) -> Any:
    """Return the default of a field: of an enum its name, unless the other field has a number."""
    if field.enum_type is None or other.enum_type is None:
        return field.default_value
    return field.enum_type.values_by_number[field.default_value].name
