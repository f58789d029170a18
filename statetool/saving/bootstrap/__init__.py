"""How tables become the state of one operator: what they hold, and the recipes by which their rows become entries."""

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
