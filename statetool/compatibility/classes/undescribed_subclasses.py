"""Search for classes of values that no header describes: subclasses of POJOs, and classes in objects and collections that Kryo wrote.

On heap, a job can meet subclasses after writing the header, so only values name them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from statetool.compatibility.rules.kryo import HOLDERS, resolve_holder
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import A, Level, Remedy, Resolution
from statetool.errors import NO_FINDING, StatetoolError, UndescribedClassError, UnknownSerializerError, sentence
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.codecs.messages import SERIALIZERS
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope

_REMEDY: Final = "Restore the snapshot with unchanged classes and take another savepoint, which describes the class. Then check again."
_VERIFY: Final = Remedy("List the values that cannot be read.", ("verify", A, "--deep"))


def hidden_subclasses(operator: OperatorInventory, successor: OperatorInventory) -> dict[tuple[Scope, str], Resolution]:
    """Return, by scope and state, the resolution of values of classes that the header does not describe.

    Reads all values of states with POJOs, or with Kryo types that hold any object, in bounded memory. Databases are not read: RocksDB
    writes the header of a native snapshot after all values, and whether Kryo's values have user classes stays unknown. User declarations
    do not count as descriptions: Flink reads these values with the classes of the new job.

    Parameters
    ----------
    successor
        The operator in the snapshot of the new job.
    """
    in_database = any(stored.database for stored in operator.keyed.managed)
    operator = operator.as_described()
    undescribed = {}
    for table, (scope, name) in operator.state_tables.items():
        parts = _parts(operator, scope, name)
        before, after = _pojos(parts), _pojos(_parts(successor, scope, name))
        holder = next((p for p in parts if isinstance(p, KryoSerializer) and p.type_class in HOLDERS), None)
        if in_database:
            if holder is not None:
                undescribed[scope, name] = resolve_holder(holder.type_class)
            continue
        error = _read_error(operator, table) if before or holder is not None else None
        if isinstance(error, UndescribedClassError):
            undescribed[scope, name] = _undescribed(error, before, after)
        elif holder is not None and (isinstance(error, UnknownSerializerError) or _stay_bytes(holder)):
            undescribed[scope, name] = resolve_holder(holder.type_class)
        elif error is not None:
            text = f"Not all values can be read, so their classes are unknown: {sentence(error.message)}"
            undescribed[scope, name] = Resolution.because(Level.UNKNOWN, text, sentence(error.hint) or _VERIFY)
    return undescribed


def _parts(operator: OperatorInventory, scope: Scope, name: str) -> list[Serializer]:
    """Return the serializers of a state, and the parts of each."""
    keyed, elements = operator.listed_keyed, operator.listed_elements
    meta = (keyed[name][1] if name in keyed else None) if scope == "keyed" else elements.get(name)
    return [part for s in (meta.serializers.values() if meta else ()) for part in all_parts(s)]


def _pojos(parts: Iterable[Serializer]) -> dict[str, PojoSerializer]:
    """Return the POJO serializers by class."""
    return {part.pojo_class: part for part in parts if isinstance(part, PojoSerializer)}


def _stay_bytes(holder: KryoSerializer) -> bool:
    """Return True if objects of user classes are decoded as bytes: all, or those for which the job registers a serializer of messages."""
    return bool(holder.missing_declaration_hint) or any(value in SERIALIZERS for _, value in holder.registrations)


def _undescribed(
    error: UndescribedClassError, before: Mapping[str, PojoSerializer], after: Mapping[str, PojoSerializer]
) -> Resolution:
    """Return the resolution of values that Flink reads with the class that the new job has (``PojoSerializer.getSubclassSerializer``)."""
    changed = [n for n in sorted(error.bases) if n in before and n in after and _fields_differ(before[n], after[n])]
    if not changed:
        text = f"{sentence(error.message)} If that class changed, Flink refuses its values."
        return Resolution.because(Level.UNKNOWN, text, _REMEDY)
    text = (
        f"{sentence(error.message)} Flink reads such values with the class of the new job, which has the changed fields of"
        f" {', '.join(changed)}: it fails, or reads other values."
    )
    return Resolution.because(Level.INCOMPATIBLE, text, _REMEDY)


def _fields_differ(before: PojoSerializer, after: PojoSerializer) -> bool:
    old, new = dict(before.fields), dict(after.fields)
    return old.keys() != new.keys() or any(resolve(s, new[n]).level > Level.RECONFIGURED for n, s in old.items())


def _read_error(operator: OperatorInventory, table: str) -> StatetoolError | None:
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    try:
        for _ in scan_table(operator, ScanRequest.of(table)).batches():
            pass
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return error
    return None
