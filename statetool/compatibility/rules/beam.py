"""Rules of Beam's serializer: its snapshots accept every coder of the new pipeline, which then reads the old bytes."""

from __future__ import annotations

from typing import Any, Final

from statetool.compatibility.verdicts import Level, Resolution
from statetool.io.java_streams.reader import JavaArray, JavaObject
from statetool.serializers.libraries.beam.serializer import BeamSerializer

_TRY: Final = "Restore a copy of the pipeline from this snapshot, and compare its values."
_SCHEMA: Final = "org.apache.beam.sdk.schemas.Schema"
#: Fields of a schema that say nothing about its rows; the first is random.
_IDENTITY: Final = frozenset({"uuid", "hashCode"})


def resolve_coders(old: BeamSerializer, new: BeamSerializer) -> Resolution:
    """Check whether coders of the same type are the same inside: the class of a Java object, an Avro schema, fields of the job's coder."""
    if _same(old.tree, new.tree):
        return Resolution(Level.AS_IS)
    reason = (
        f"Beam reads the old bytes with every new coder, and {old.type_name} has other settings in the new pipeline."
    )
    return Resolution.because(Level.UNKNOWN, reason, _TRY)


def _same(old: Any, new: Any) -> bool:
    """Compare two objects with all that they refer to, in cycles too."""
    compared: set[tuple[int, int]] = set()
    pairs = [(old, new)]
    while pairs:
        a, b = pairs.pop()
        if (id(a), id(b)) in compared:
            continue
        compared.add((id(a), id(b)))
        match a, b:
            case JavaObject(), JavaObject():
                left_out = _IDENTITY if a.cls.name == _SCHEMA else frozenset()
                if a.cls != b.cls or a.fields.keys() != b.fields.keys() or len(a.annotations) != len(b.annotations):
                    return False
                pairs += [(value, b.fields[name]) for name, value in a.fields.items() if name not in left_out]
                pairs += zip(a.annotations, b.annotations, strict=True)
            case JavaArray(items=list()), JavaArray(items=list()):
                if a.cls != b.cls or len(a.items) != len(b.items):
                    return False
                pairs += zip(a.items, b.items, strict=True)
            case _ if a != b:
                return False
    return True
