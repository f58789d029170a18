"""Classes that serializer snapshots name: those that Flink loads when it reads a header, and those of values.

Follows ``readSnapshot`` and ``readOuterSnapshot`` of the snapshot classes: ``InstantiationUtil.resolveClassByName`` throws if a class is absent.
Registered classes of Kryo and of POJOs may be absent: Flink keeps their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.arrays import GenericArraySerializer
from statetool.serializers.typeutils.data_output import DataOutputSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer
from statetool.serializers.typeutils.user import UserTypeSerializer

#: Their snapshot classes are in Flink's libraries, of which some may be in ``lib`` and others in the job's jar.
_FLINK: Final = "org.apache.flink."


def loaded_classes(part: Serializer) -> Iterator[str]:
    """Yield the classes that Flink loads to read the snapshot of a serializer, without those of its parts."""
    yield from filter(None, _classes_of_values(part))
    if not part.snapshot_class.startswith(_FLINK):
        yield part.snapshot_class


def named_classes(part: Serializer) -> dict[str, None]:
    """Return the classes of a serializer's values that its snapshot names. Its parts name others."""
    names = [*_classes_of_values(part)]
    match part:
        case PojoSerializer():
            names += [n for n, _ in (*part.registered, *part.others) if n not in part.undescribed]
        case AvroSerializer():
            names.append(part.runtime_class)
        case KryoSerializer():
            names += [n for pair in part.registrations for n in pair]
    return dict.fromkeys(name for name in names if name)


def _classes_of_values(part: Serializer) -> Iterator[str | None]:
    match part:
        case OpaqueSerializer():
            yield part.snapshot_name
        case PojoSerializer():
            yield part.pojo_class
        case EnumSerializer():
            yield part.enum_class
        case TupleSerializer():
            yield part.outer if isinstance(part.outer, str) else part.outer[0]
        case GenericArraySerializer():
            yield part.outer
        case KryoSerializer() | UserTypeSerializer() | DataOutputSerializer():
            yield part.type_class
        case AvroSerializer() if part.snapshot_version > 1:
            yield part.runtime_class
