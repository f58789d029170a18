"""Source of a table in Spark's session catalog.

Spark (4.3) passes to a Python data source no options of a table created by ``CREATE TABLE``, but it does pass the table's schema unchanged.
So the options are stored in the metadata of the first column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import OptionError
from statetool.java.classes.jar_classes import JarClasses
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.metadata import metadata_schema
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table
from statetool.types.declared import to_json

if TYPE_CHECKING:
    import pyarrow as pa

#: The key of a :class:`TableSource` in the metadata of its table's first column.
METADATA_KEY: Final = "statetool"
#: Metadata tables that each database has.
_METADATA: Final = ("operators", "states", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Source of a table; ``of_metadata`` is True for a metadata table, ``options`` are those of the data source."""

    of_metadata: bool
    options: Mapping[str, str]
    schema: pa.Schema

    def as_text(self) -> str:
        """Return the text that :func:`parse_source` reads."""
        return json.dumps({"metadata": self.of_metadata, "options": dict(self.options)})


def state_source(inventory: Inventory, operator: OperatorInventory, table: str) -> TableSource:
    """Plan a table of an operator; raise an error if it cannot be planned."""
    request = ScanRequest.of(table)
    options = {
        **_snapshot_options(inventory),
        "operatorId": operator.state.operator_id,
        **request.to_options(),
    }
    return TableSource(of_metadata=False, options=options, schema=scan_table(operator, request).schema)


def metadata_sources(inventory: Inventory) -> dict[str, TableSource]:
    """Return the metadata tables of a snapshot by name."""
    options = _snapshot_options(inventory)
    return {
        table: TableSource(of_metadata=True, options={**options, "table": table}, schema=metadata_schema(table))
        for table in _METADATA
    }


def _snapshot_options(inventory: Inventory) -> dict[str, str]:
    types = inventory.types
    if inventory.key_types:
        raise OptionError("tables of SQL cannot carry key_types=", hint="use the tables of the catalog in Python")
    options = {"path": inventory.metadata_file, "kryo": str(types.kryo)}
    if inventory.given_uids:
        options["uids"] = json.dumps(list(inventory.given_uids))
    if inventory.rebase:
        options["rebase"] = json.dumps(dict(inventory.rebase))
    if inventory.columns_from_plan:
        options["columnsFromPlan"] = inventory.columns_from_plan
    if types.classes:
        options["declarations"] = json.dumps([to_json(c) for c in types.classes])
    if isinstance(types.source, JarClasses):
        options["jars"] = json.dumps(list(types.source.paths))
    if types.python:
        options["python"] = json.dumps({state: str(declared) for state, declared in types.python})
        options["unsafePickle"] = str(types.unsafe_pickle)
    return options


def parse_source(schema: Any) -> tuple[bool, dict[str, str]]:
    """Return whether a table of the catalog is a metadata table, and its options.

    Raises
    ------
    OptionError
        The table was not created by a catalog.
    """
    text = schema.fields[0].metadata.get(METADATA_KEY) if schema.fields else None
    if text is None:
        raise OptionError(
            "flink-state-table reads only tables that a catalog made",
            hint="make them with statetool.catalog(spark, root).register()",
        )
    source = json.loads(text)
    return source["metadata"], source["options"]
