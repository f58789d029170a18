"""Open Apache Flink savepoints and checkpoints as Spark DataFrames or Arrow tables, and write them back.

Names are imported when they are first used (PEP 562), so that ``import statetool`` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from statetool import pyflink
    from statetool.api.catalog import Catalog, Database, catalog
    from statetool.api.changes import fold_into, folded, read_folded
    from statetool.api.cleanup import delete_checkpoint, delete_orphans, restore_deleted
    from statetool.api.inspect import check, growth, metrics, verify
    from statetool.api.load import load, register
    from statetool.api.operator import Operator
    from statetool.api.query import query
    from statetool.api.savepoint import Savepoint
    from statetool.api.write.bootstrap import (
        bootstrap_broadcast_state,
        bootstrap_keyed_state,
        bootstrap_list_state,
        bootstrap_state,
        bootstrap_union_state,
    )
    from statetool.api.write.connectors import (
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
    from statetool.api.write.erase import erase, keep, sample
    from statetool.api.write.merge import graft, merge, move_state, split
    from statetool.api.write.migrate import catch_up, migrate, plan_migration, read_plan, write_plan
    from statetool.api.write.rewrite import change_uids, convert, copy, drop, rename_states, rescale
    from statetool.api.write.upgrade import upgrade
    from statetool.api.write.values import purge, set_values
    from statetool.api.write.writer import SavepointWriter
    from statetool.errors import StatetoolError
    from statetool.java.declaring import flink_types as flink
    from statetool.java.declaring.classes import declare, declare_from, declare_protobuf, declare_thrift
    from statetool.java.declaring.states import aggregating, list_of, map_of, reducing, value
    from statetool.operations.advice.advise import advise
    from statetool.operations.advice.lint import lint
    from statetool.operations.cluster.clusters import set_credentials
    from statetool.operations.directories.chain import chain
    from statetool.operations.directories.orphans import orphans
    from statetool.operations.directories.snapshots import list_snapshots
    from statetool.serializers.typeutils.java_values import read_java
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
    "statetool.operations.advice.advise": ("advise",),
    "statetool.operations.advice.lint": ("lint",),
    "statetool.api.write.bootstrap": (
        "bootstrap_broadcast_state",
        "bootstrap_keyed_state",
        "bootstrap_list_state",
        "bootstrap_state",
        "bootstrap_union_state",
    ),
    "statetool.api.catalog": ("Catalog", "Database", "catalog"),
    "statetool.api.changes": ("fold_into", "folded", "read_folded"),
    "statetool.api.cleanup": ("delete_checkpoint", "delete_orphans", "restore_deleted"),
    "statetool.api.write.connectors": (
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
    "statetool.api.write.erase": ("erase", "keep", "sample"),
    "statetool.api.inspect": ("check", "growth", "metrics", "verify"),
    "statetool.api.load": ("load", "register"),
    "statetool.api.write.migrate": ("catch_up", "migrate", "plan_migration", "read_plan", "write_plan"),
    "statetool.api.write.merge": ("graft", "merge", "move_state", "split"),
    "statetool.api.operator": ("Operator",),
    "statetool.api.query": ("query",),
    "statetool.api.write.rewrite": ("change_uids", "convert", "copy", "drop", "rename_states", "rescale"),
    "statetool.api.savepoint": ("Savepoint",),
    "statetool.api.write.upgrade": ("upgrade",),
    "statetool.api.write.values": ("purge", "set_values"),
    "statetool.api.write.writer": ("SavepointWriter",),
    "statetool.operations.cluster.clusters": ("set_credentials",),
    "statetool.java.declaring.classes": ("declare", "declare_from", "declare_protobuf", "declare_thrift"),
    "statetool.java.declaring.states": ("aggregating", "list_of", "map_of", "reducing", "value"),
    "statetool.operations.directories.chain": ("chain",),
    "statetool.operations.directories.orphans": ("orphans",),
    "statetool.operations.directories.snapshots": ("list_snapshots",),
    "statetool.errors": ("StatetoolError",),
    "statetool.serializers.typeutils.java_values": ("read_java",),
    "statetool.snapshot.uid_search": ("uids_in",),
    "statetool.types.declared": ("ClassDeclaration",),
}
#: Public names that are modules themselves.
_SUBMODULES: Final = {"flink": "statetool.java.declaring.flink_types", "pyflink": "statetool.pyflink"}
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
