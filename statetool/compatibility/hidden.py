"""Subclasses of POJOs that no header describes: a job on heap meets them after it wrote the header, so that only their values tell."""

from __future__ import annotations

from typing import Final

from statetool.compatibility.verdicts import Level, Resolution
from statetool.errors import StatetoolError, UndescribedClassError
from statetool.serializers.base import Serializer
from statetool.serializers.pojo import PojoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope

_REMEDY: Final = "restore it by classes that are as they were, and take the savepoint again: it describes them then"


def hidden_subclasses(operator: OperatorInventory) -> dict[tuple[Scope, str], Resolution]:
    """Read the values of states with POJOs, in bounded memory; return what values mean that the header does not describe, by scope and state.

    Databases are left out: the header of a native snapshot of RocksDB is written when all values have been.
    """
    if any(stored.database for stored in operator.keyed.managed):
        return {}
    found = {}
    for table, (scope, name) in operator.state_tables.items():
        meta = operator.listed_keyed[name][1] if scope == "keyed" else operator.listed_elements[name]
        if any(map(_has_pojo, meta.serializers.values())):
            error = _undescribed(operator, table)
            if error is not None:
                text = f"{error.message}: if that class changed, Flink refuses its values"
                found[scope, name] = Resolution(Level.UNKNOWN, text, _REMEDY)
    return found


def _has_pojo(serializer: Serializer) -> bool:
    return isinstance(serializer, PojoSerializer) or any(_has_pojo(s) for _, s in serializer.children())


def _undescribed(operator: OperatorInventory, table: str) -> UndescribedClassError | None:
    # Arrow takes long to load, and most checks need none.
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    try:
        for _ in scan_table(operator, ScanRequest.of(table)).batches():
            pass
    except UndescribedClassError as error:
        return error
    except StatetoolError:
        return None  # what is damaged or has to be declared is for verify
    return None
