"""Bootstrapping of one operator's state from tables: declarations, and recipes that turn rows into entries."""

from statetool.saving.bootstrap.model import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    TableSchema,
    check_services,
)
from statetool.saving.bootstrap.recipe import ElementEncoder, RowEncoder
from statetool.saving.bootstrap.records import table_entries

__all__ = [
    "SERVICE_COLUMNS",
    "ElementBootstrap",
    "ElementEncoder",
    "KeyedBootstrap",
    "RowEncoder",
    "TableSchema",
    "check_services",
    "table_entries",
]
