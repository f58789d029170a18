"""Search for POJO subclasses that no header describes. On heap, a job can meet them after writing the header, so only values name them."""

from __future__ import annotations

from typing import Final

from statetool.compatibility.verdicts import Level, Resolution
from statetool.errors import NO_FINDING, StatetoolError, UndescribedClassError
from statetool.serializers.base import all_parts
from statetool.serializers.pojo import PojoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope

_REMEDY: Final = "restore it by classes that are as they were, and take the savepoint again: it describes them then"
_VERIFY: Final = "statetool verify --deep lists what cannot be read"


def hidden_subclasses(operator: OperatorInventory) -> dict[tuple[Scope, str], Resolution]:
    """Return, by scope and state, the resolution of values of subclasses that the header does not describe.

    Reads all values of states with POJOs, in bounded memory. Databases are left out: RocksDB writes the header of a native
    snapshot after all values. User declarations do not count as descriptions: Flink reads these values with the classes of the new job.
    """
    if any(stored.database for stored in operator.keyed.managed):
        return {}
    operator = operator.as_described()
    undescribed = {}
    for table, (scope, name) in operator.state_tables.items():
        meta = operator.listed_keyed[name][1] if scope == "keyed" else operator.listed_elements[name]
        if any(isinstance(part, PojoSerializer) for s in meta.serializers.values() for part in all_parts(s)):
            error = _read_error(operator, table)
            if isinstance(error, UndescribedClassError):
                text = f"{error.message}: if that class changed, Flink refuses its values"
                undescribed[scope, name] = Resolution(Level.UNKNOWN, text, _REMEDY)
            elif error is not None:
                text = f"its values cannot all be read, so that their classes are not known: {error.message}"
                undescribed[scope, name] = Resolution(Level.UNKNOWN, text, error.hint or _VERIFY)
    return undescribed


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
