"""Open Apache Flink savepoints and checkpoints as Spark DataFrames or Arrow tables, and write them back.

Names are imported when they are first used (PEP 562), so that ``import statetool`` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from statetool.advice.advise import advise
    from statetool.advice.lint import lint
    from statetool.api.bootstrap import (
        bootstrap_broadcast_state,
        bootstrap_keyed_state,
        bootstrap_list_state,
        bootstrap_state,
        bootstrap_union_state,
    )
    from statetool.api.catalog import Catalog, Database, catalog
    from statetool.api.changes import fold_into, folded
    from statetool.api.connector_tables import kafka_ends
    from statetool.api.connectors import convert_consumer, convert_source, edit_source, forget_transactions
    from statetool.api.inspect import growth
    from statetool.api.migrate import migrate, plan_migration, read_plan, write_plan
    from statetool.api.operator import Operator
    from statetool.api.rewrite import change_uids, convert, copy, drop, rescale
    from statetool.api.savepoint import Savepoint, check, load, register, verify
    from statetool.api.writer import SavepointWriter
    from statetool.declaring import flink_types as flink
    from statetool.declaring.classes import declare, declare_from, declare_protobuf, declare_thrift
    from statetool.declaring.states import aggregating, list_of, map_of, reducing, value
    from statetool.directories.chain import chain
    from statetool.directories.orphans import orphans
    from statetool.directories.snapshots import list_snapshots
    from statetool.errors import StatetoolError
    from statetool.serializers.java_values import read_java
    from statetool.snapshot.uid_search import uids_in
    from statetool.types.declared import ClassDeclaration

__all__ = [
    "Catalog",
    "ClassDeclaration",
    "Database",
    "Operator",
    "Savepoint",
    "SavepointWriter",
    "StatetoolError",
    "__version__",
    "advise",
    "aggregating",
    "bootstrap_broadcast_state",
    "bootstrap_keyed_state",
    "bootstrap_list_state",
    "bootstrap_state",
    "bootstrap_union_state",
    "catalog",
    "chain",
    "change_uids",
    "check",
    "convert",
    "convert_consumer",
    "convert_source",
    "copy",
    "declare",
    "declare_from",
    "declare_protobuf",
    "declare_thrift",
    "drop",
    "edit_source",
    "flink",
    "fold_into",
    "folded",
    "forget_transactions",
    "growth",
    "kafka_ends",
    "lint",
    "list_of",
    "list_snapshots",
    "load",
    "map_of",
    "migrate",
    "orphans",
    "plan_migration",
    "read_java",
    "read_plan",
    "reducing",
    "register",
    "rescale",
    "uids_in",
    "value",
    "verify",
    "write_plan",
]
__version__ = "0.1.0"

#: The module of each public name.
_MODULES: Final = {
    "Catalog": "statetool.api.catalog",
    "ClassDeclaration": "statetool.types.declared",
    "Database": "statetool.api.catalog",
    "Operator": "statetool.api.operator",
    "Savepoint": "statetool.api.savepoint",
    "SavepointWriter": "statetool.api.writer",
    "StatetoolError": "statetool.errors",
    "advise": "statetool.advice.advise",
    "aggregating": "statetool.declaring.states",
    "bootstrap_broadcast_state": "statetool.api.bootstrap",
    "bootstrap_keyed_state": "statetool.api.bootstrap",
    "bootstrap_list_state": "statetool.api.bootstrap",
    "bootstrap_state": "statetool.api.bootstrap",
    "bootstrap_union_state": "statetool.api.bootstrap",
    "catalog": "statetool.api.catalog",
    "chain": "statetool.directories.chain",
    "change_uids": "statetool.api.rewrite",
    "check": "statetool.api.savepoint",
    "convert": "statetool.api.rewrite",
    "convert_consumer": "statetool.api.connectors",
    "convert_source": "statetool.api.connectors",
    "copy": "statetool.api.rewrite",
    "declare": "statetool.declaring.classes",
    "declare_from": "statetool.declaring.classes",
    "declare_protobuf": "statetool.declaring.classes",
    "declare_thrift": "statetool.declaring.classes",
    "drop": "statetool.api.rewrite",
    "edit_source": "statetool.api.connectors",
    "flink": "statetool.declaring.flink_types",
    "fold_into": "statetool.api.changes",
    "folded": "statetool.api.changes",
    "forget_transactions": "statetool.api.connectors",
    "growth": "statetool.api.inspect",
    "kafka_ends": "statetool.api.connector_tables",
    "lint": "statetool.advice.lint",
    "list_of": "statetool.declaring.states",
    "list_snapshots": "statetool.directories.snapshots",
    "load": "statetool.api.savepoint",
    "map_of": "statetool.declaring.states",
    "migrate": "statetool.api.migrate",
    "orphans": "statetool.directories.orphans",
    "plan_migration": "statetool.api.migrate",
    "read_java": "statetool.serializers.java_values",
    "read_plan": "statetool.api.migrate",
    "reducing": "statetool.declaring.states",
    "register": "statetool.api.savepoint",
    "rescale": "statetool.api.rewrite",
    "uids_in": "statetool.snapshot.uid_search",
    "value": "statetool.declaring.states",
    "verify": "statetool.api.savepoint",
    "write_plan": "statetool.api.migrate",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_MODULES[name])
    value = module if name == "flink" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
