"""Rules of flink-scala-api's serializers, releases up to 2.2.4.

The snapshots of collections, maps, mapped types and case objects accept every change inside them, without migration: the new serializers
then read the old bytes. Case classes are composite snapshots: another class or number of fields is refused.
"""

from __future__ import annotations

from typing import Final

from statetool.compatibility.verdicts import Level, Resolution
from statetool.serializers.core.base import Serializer
from statetool.serializers.libraries.flinkx.case_class import FlinkxCaseClassSerializer
from statetool.serializers.libraries.flinkx.collections import (
    FlinkxCollectionSerializer,
    FlinkxMapSerializer,
    MappedSerializer,
)
from statetool.serializers.libraries.flinkx.parts import ArityChoice

#: Serializers whose snapshots accept every change inside them.
ACCEPTING: Final = (FlinkxCollectionSerializer, FlinkxMapSerializer, MappedSerializer)
_TAKE: Final = "Take a savepoint with flink-scala-api 2.0 or later in a copy of the job, and compare its values."


def resolve_arity(old: Serializer, new: Serializer) -> Resolution | None:
    """Return the resolution if only the values tell whether case classes store their arity, ``None`` otherwise."""
    if not isinstance(old, ArityChoice) and not isinstance(new, ArityChoice):
        return None
    if isinstance(old, ArityChoice) and isinstance(new, ArityChoice) and old.type_name == new.type_name:
        reason = f"The job may store {old.type_name} with or without the arity of its case classes (DISABLE_CASE_CLASS_ARITY_USAGE)."
    else:
        reason = (
            f"{old.type_name} is stored with or without the arity of its case classes; since 1.2.8, it is read with it."
        )
    return Resolution.because(Level.UNKNOWN, reason, _TAKE)


def same_case_class(old: FlinkxCaseClassSerializer, new: FlinkxCaseClassSerializer) -> bool:
    """Return True unless Flink refuses the new class or its number of fields."""
    return bool(old.outer[0] == new.outer[0]) and len(old.nested) == len(new.nested)


def accept_parts(parts: Resolution) -> Resolution:
    """Return the resolution of a serializer that accepts every change of its parts."""
    if parts.level in (Level.AS_IS, Level.UNKNOWN):
        return parts
    reason = "flink-scala-api accepts a change inside this type, and the new serializer reads the old bytes without migration."
    return Resolution.because(Level.UNKNOWN, f"{reason} {parts.reason}".strip(), _TAKE)
