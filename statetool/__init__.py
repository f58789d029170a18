"""Open Apache Flink savepoints and checkpoints as Spark DataFrames or Arrow tables, and write them back.

Names are imported when they are first used (PEP 562), so that ``import statetool`` costs almost nothing. Type checkers read them in
``__init__.pyi``, which ``python -m tools.generated`` writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__version__ = "0.1.0"

#: The public names of each module.
_NAMES: Final = {
    "statetool.api.catalog": (
        "Catalog",
        "Database",
        "catalog",
    ),
    "statetool.api.changes": (
        "fold_into",
        "read_folded",
    ),
    "statetool.api.cleanup": (
        "delete_checkpoint",
        "delete_orphans",
        "restore_deleted",
    ),
    "statetool.api.inspect": (
        "check",
        "growth",
        "metrics",
        "verify",
    ),
    "statetool.api.load": (
        "load",
        "register",
    ),
    "statetool.api.matching": ("match",),
    "statetool.api.operator": ("Operator",),
    "statetool.api.query": ("query",),
    "statetool.api.savepoint": ("Savepoint",),
    "statetool.api.write.bootstrap": (
        "bootstrap_broadcast_state",
        "bootstrap_keyed_state",
        "bootstrap_list_state",
        "bootstrap_state",
        "bootstrap_union_state",
    ),
    "statetool.api.write.connectors": (
        "drop_transactions",
        "edit_source",
        "kafka_end_offsets",
        "to_kafka_source",
    ),
    "statetool.api.write.erase": (
        "erase",
        "keep",
        "sample",
    ),
    "statetool.api.write.merge": (
        "graft",
        "merge",
        "move_state",
        "split",
    ),
    "statetool.api.write.migrate": (
        "catch_up",
        "migrate",
        "plan_migration",
        "read_plan",
        "write_plan",
    ),
    "statetool.api.write.rewrite": (
        "change_uids",
        "convert",
        "copy",
        "drop",
        "rename_states",
        "rescale",
    ),
    "statetool.api.write.table": ("write",),
    "statetool.api.write.upgrade": ("upgrade",),
    "statetool.api.write.values": (
        "purge",
        "set_elements",
        "set_values",
    ),
    "statetool.api.write.writer": ("SavepointWriter",),
    "statetool.errors": ("StatetoolError",),
    "statetool.io.glibc": ("keep_freed_memory",),
    "statetool.java.declaring.classes": (
        "declare",
        "declare_from",
        "declare_protobuf",
        "declare_thrift",
    ),
    "statetool.java.declaring.states": (
        "aggregating",
        "list_of",
        "map_of",
        "reducing",
        "value",
    ),
    "statetool.operations.advice.advise": ("advise",),
    "statetool.operations.advice.lint": ("lint",),
    "statetool.operations.cluster.clusters": ("set_credentials",),
    "statetool.operations.directories.chain": ("chain",),
    "statetool.operations.directories.orphans": ("orphans",),
    "statetool.operations.directories.snapshots": ("list_snapshots",),
    "statetool.serializers.typeutils.java_values": ("read_java",),
    "statetool.snapshot.uid_search": ("uids_in",),
    "statetool.types.declared": ("ClassDeclaration",),
}
#: Public names that are modules themselves.
_SUBMODULES: Final = {"flink": "statetool.java.declaring.flink_types", "pyflink": "statetool.pyflink"}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_SUBMODULES, "__version__"])


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
