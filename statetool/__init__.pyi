# Written by: python -m tools.generated
from typing import Final

from statetool import pyflink
from statetool.api.catalog import Catalog, Database, catalog
from statetool.api.changes import fold_into, read_folded
from statetool.api.cleanup import delete_checkpoint, delete_orphans, restore_deleted
from statetool.api.inspect import check, growth, metrics, verify
from statetool.api.load import load, register
from statetool.api.matching import match
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
from statetool.api.write.connectors import drop_transactions, edit_source, kafka_end_offsets, to_kafka_source
from statetool.api.write.erase import erase, keep, sample
from statetool.api.write.merge import graft, merge, move_state, split
from statetool.api.write.migrate import catch_up, migrate, plan_migration, read_plan, write_plan
from statetool.api.write.rewrite import change_uids, convert, copy, drop, rename_states, rescale
from statetool.api.write.table import write
from statetool.api.write.upgrade import upgrade
from statetool.api.write.values import purge, set_elements, set_values
from statetool.api.write.writer import SavepointWriter
from statetool.errors import StatetoolError
from statetool.io.glibc import keep_freed_memory
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
    "graft",
    "growth",
    "kafka_end_offsets",
    "keep",
    "keep_freed_memory",
    "lint",
    "list_of",
    "list_snapshots",
    "load",
    "map_of",
    "match",
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
    "set_elements",
    "set_values",
    "split",
    "to_kafka_source",
    "uids_in",
    "upgrade",
    "value",
    "verify",
    "write",
    "write_plan",
]
__version__: Final[str]
_NAMES: Final[dict[str, tuple[str, ...]]]
_SUBMODULES: Final[dict[str, str]]
