"""Bootstrapping of one operator's state from tables: declarations, and recipes that turn rows into entries."""

from statetool.saving.bootstrap.model import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    Table,
    checked_services,
)
from statetool.saving.bootstrap.recipe import ElementRecipe, KeyedRecipe
from statetool.saving.bootstrap.records import table_entries

__all__ = [
    "SERVICE_COLUMNS",
    "ElementBootstrap",
    "ElementRecipe",
    "KeyedBootstrap",
    "KeyedRecipe",
    "Table",
    "checked_services",
    "table_entries",
]
