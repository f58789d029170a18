"""Open Apache Flink savepoints and checkpoints as Spark DataFrames or Arrow tables, and write them back.

Names are imported when they are first used (PEP 562), so that ``import statetool`` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from statetool import pyflink
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
    from statetool.api.changes import fold_into, folded, read_folded
    from statetool.api.cleanup import delete_checkpoint, delete_orphans, restore_deleted
    from statetool.api.connectors import (
        convert_consumer,
        convert_source,
        drop_transactions,
        edit_source,
        forget_transactions,
        kafka_end_offsets,
        kafka_ends,
        to_kafka_consumer,
        to_kafka_source,
    )
    from statetool.api.erase import erase, keep, sample
    from statetool.api.inspect import check, growth, metrics, verify
    from statetool.api.load import load, register
    from statetool.api.merge import graft, merge, move_state, split
    from statetool.api.migrate import catch_up, migrate, plan_migration, read_plan, write_plan
    from statetool.api.operator import Operator
    from statetool.api.query import query
    from statetool.api.rewrite import change_uids, convert, copy, drop, rename_states, rescale
    from statetool.api.savepoint import Savepoint
    from statetool.api.upgrade import upgrade
    from statetool.api.values import purge, set_values
    from statetool.api.writer import SavepointWriter
    from statetool.cluster.clusters import set_credentials
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
    "catch_up",
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
    "delete_checkpoint",
    "delete_orphans",
    "drop",
    "drop_transactions",
    "edit_source",
    "erase",
    "flink",
    "fold_into",
    "folded",
    "forget_transactions",
    "graft",
    "growth",
    "kafka_end_offsets",
    "kafka_ends",
    "keep",
    "lint",
    "list_of",
    "list_snapshots",
    "load",
    "map_of",
    "merge",
    "metrics",
    "migrate",
    "move_state",
    "orphans",
    "plan_migration",
    "purge",
    "pyflink",
    "query",
    "read_folded",
    "read_java",
    "read_plan",
    "reducing",
    "register",
    "rename_states",
    "rescale",
    "restore_deleted",
    "sample",
    "set_credentials",
    "set_values",
    "split",
    "to_kafka_consumer",
    "to_kafka_source",
    "uids_in",
    "upgrade",
    "value",
    "verify",
    "write_plan",
]
__version__ = "0.1.0"

#: The public names of each module.
_NAMES: Final = {
    "statetool.advice.advise": ("advise",),
    "statetool.advice.lint": ("lint",),
    "statetool.api.bootstrap": (
        "bootstrap_broadcast_state",
        "bootstrap_keyed_state",
        "bootstrap_list_state",
        "bootstrap_state",
        "bootstrap_union_state",
    ),
    "statetool.api.catalog": ("Catalog", "Database", "catalog"),
    "statetool.api.changes": ("fold_into", "folded", "read_folded"),
    "statetool.api.cleanup": ("delete_checkpoint", "delete_orphans", "restore_deleted"),
    "statetool.api.connectors": (
        "convert_consumer",
        "convert_source",
        "drop_transactions",
        "edit_source",
        "forget_transactions",
        "kafka_end_offsets",
        "kafka_ends",
        "to_kafka_consumer",
        "to_kafka_source",
    ),
    "statetool.api.erase": ("erase", "keep", "sample"),
    "statetool.api.inspect": ("check", "growth", "metrics", "verify"),
    "statetool.api.load": ("load", "register"),
    "statetool.api.migrate": ("catch_up", "migrate", "plan_migration", "read_plan", "write_plan"),
    "statetool.api.merge": ("graft", "merge", "move_state", "split"),
    "statetool.api.operator": ("Operator",),
    "statetool.api.query": ("query",),
    "statetool.api.rewrite": ("change_uids", "convert", "copy", "drop", "rename_states", "rescale"),
    "statetool.api.savepoint": ("Savepoint",),
    "statetool.api.upgrade": ("upgrade",),
    "statetool.api.values": ("purge", "set_values"),
    "statetool.api.writer": ("SavepointWriter",),
    "statetool.cluster.clusters": ("set_credentials",),
    "statetool.declaring.classes": ("declare", "declare_from", "declare_protobuf", "declare_thrift"),
    "statetool.declaring.states": ("aggregating", "list_of", "map_of", "reducing", "value"),
    "statetool.directories.chain": ("chain",),
    "statetool.directories.orphans": ("orphans",),
    "statetool.directories.snapshots": ("list_snapshots",),
    "statetool.errors": ("StatetoolError",),
    "statetool.serializers.java_values": ("read_java",),
    "statetool.snapshot.uid_search": ("uids_in",),
    "statetool.types.declared": ("ClassDeclaration",),
}
#: Public names that are modules themselves.
_SUBMODULES: Final = {"flink": "statetool.declaring.flink_types", "pyflink": "statetool.pyflink"}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        found: Any = import_module(_SUBMODULES[name])
    elif name in _MODULES:
        found = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
