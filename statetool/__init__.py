"""Open Apache Flink savepoints and checkpoints as Spark DataFrames, with no Flink."""

from __future__ import annotations

from statetool.api import Savepoint, load, verify
from statetool.bootstrap import (
    bootstrap_broadcast_state,
    bootstrap_keyed_state,
    bootstrap_list_state,
    bootstrap_state,
    bootstrap_union_state,
)
from statetool.errors import StatetoolError
from statetool.operations import change_uids, convert, drop, rescale
from statetool.operator import Operator
from statetool.ops.chain import chain
from statetool.ops.copies import copy
from statetool.ops.orphans import orphans
from statetool.ops.snapshots import list_snapshots
from statetool.plan.declarations import declare, declare_from, declare_protobuf, declare_thrift
from statetool.types.declared import ClassDeclaration
from statetool.write import flink_types as flink
from statetool.write.declare import aggregating, list_of, map_of, reducing, value
from statetool.writer import SavepointWriter

__all__ = [
    "ClassDeclaration",
    "Operator",
    "Savepoint",
    "SavepointWriter",
    "StatetoolError",
    "__version__",
    "aggregating",
    "bootstrap_broadcast_state",
    "bootstrap_keyed_state",
    "bootstrap_list_state",
    "bootstrap_state",
    "bootstrap_union_state",
    "chain",
    "change_uids",
    "convert",
    "copy",
    "declare",
    "declare_from",
    "declare_protobuf",
    "declare_thrift",
    "drop",
    "flink",
    "list_of",
    "list_snapshots",
    "load",
    "map_of",
    "orphans",
    "reducing",
    "register",
    "rescale",
    "value",
    "verify",
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
