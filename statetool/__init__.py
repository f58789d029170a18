"""Open Apache Flink savepoints and checkpoints as Spark DataFrames, with no Flink."""

from __future__ import annotations

from statetool.api import Operator, Savepoint, load
from statetool.errors import StatetoolError
from statetool.operations import rescale
from statetool.ops.chain import chain
from statetool.ops.orphans import orphans
from statetool.ops.snapshots import list_snapshots
from statetool.ops.verify import verify

__all__ = [
    "Operator",
    "Savepoint",
    "StatetoolError",
    "__version__",
    "chain",
    "list_snapshots",
    "load",
    "orphans",
    "register",
    "rescale",
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
