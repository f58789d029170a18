"""Arrow tables of metadata that notebooks show as HTML. Arrow's own text of a table shows columns one below the other."""

from __future__ import annotations

import sys
from typing import Any, Final

import pyarrow as pa

from statetool.errors import several
from statetool.html.fragment import fragment
from statetool.html.markup import element
from statetool.html.records import row_table

#: Metadata of the schema by which these tables, and selections of them, are known. Notebooks show other tables as before.
_MARK: Final = b"statetool.table"


def show_in_notebooks(table: pa.Table) -> pa.Table:
    """Return a table that notebooks show as HTML; outside of notebooks, the table itself."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return table
    printers = shell.display_formatter.formatters["text/html"]
    if pa.Table not in printers.type_printers:
        printers.for_type(pa.Table, _table_html)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _MARK: b""})


def _table_html(table: pa.Table) -> str | None:
    if _MARK not in (table.schema.metadata or {}):
        return None
    if not table.num_rows:
        return fragment(element("p", several(0, "row"), class_="soft"))
    rows = (row.values() for row in table.to_pylist())
    return fragment(row_table(table.column_names, map(list, rows), table.num_rows))
