"""The classes of all verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from statetool.api.write.verbs import connectors, erase, merge, migrate, rewrite, values
from statetool.api.write.verbs.base import Verb

#: The class of each verb by the name of its function.
VERBS: Final[Mapping[str, type[Verb]]] = {
    kind.function(): kind
    for module in (connectors, erase, merge, migrate, rewrite, values)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Verb) and kind.__module__ == module.__name__
    if kind is not migrate.MigrationChoices
}
