"""Open Apache Flink savepoints and checkpoints as Spark DataFrames, with no Flink."""

from __future__ import annotations

from statetool.advice.advise import advise
from statetool.advice.lint import lint
from statetool.answers import growth
from statetool.api import Savepoint, check, load, verify
from statetool.bootstrap import (
    bootstrap_broadcast_state,
    bootstrap_keyed_state,
    bootstrap_list_state,
    bootstrap_state,
    bootstrap_union_state,
)
from statetool.catalog import Catalog, Database, catalog
from statetool.connected import kafka_ends
from statetool.connections import convert_consumer, convert_source, edit_source, forget_transactions
from statetool.declaring import flink_types as flink
from statetool.declaring.classes import declare, declare_from, declare_protobuf, declare_thrift
from statetool.declaring.states import aggregating, list_of, map_of, reducing, value
from statetool.directories.chain import chain
from statetool.directories.orphans import orphans
from statetool.directories.snapshots import list_snapshots
from statetool.errors import StatetoolError
from statetool.folding import fold_into, folded
from statetool.migrating import migrate, plan_migration, read_plan, write_plan
from statetool.operations import change_uids, convert, copy, drop, rescale
from statetool.operator import Operator
from statetool.serializers.java_values import read_java
from statetool.types.declared import ClassDeclaration
from statetool.uids import uids_in
from statetool.writer import SavepointWriter

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


def register(spark: object) -> None:
    """Make the data sources ``flink-state`` and ``flink-state-metadata`` known to a Spark session (PySpark 4).

    Raises
    ------
    MissingDependencyError
        PySpark is older than 4, which has no Python data sources.
    """
    from statetool.spark.session import register as register_sources

    register_sources(spark)
