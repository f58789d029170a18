"""Opening of savepoints and checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from statetool.api.execution import Execution
from statetool.api.job_classes import classes_of
from statetool.api.operator import Operator
from statetool.api.operator_tables import Access
from statetool.api.savepoint import Savepoint
from statetool.formats.metadata.model import NEWEST_RELEASED
from statetool.java.declaring.classes import (
    Declarations,
    PythonTypes,
    declared_classes,
    python_types,
    read_declarations,
)
from statetool.operations.cluster.paths import open_path, operator_names
from statetool.snapshot.inventory import Inventory
from statetool.types.declared import TypeContext
from statetool.types.options import name_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.api.write.writer import SavepointWriter
    from statetool.operations.cluster.job_graph import OperatorNames
    from statetool.serializers.core.base import Serializer


def load(
    path: str,
    spark: SparkSession | None = None,
    *,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    key_types: Mapping[str, Operator | Serializer | str] | None = None,
    declarations: Declarations = (),
    kryo: Literal[2, 5] | None = None,
    python: PythonTypes | None = None,
    unsafe_pickle: bool = False,
    columns_from_plan: str | None = None,
    jars: Iterable[str | os.PathLike[str]] = (),
    driver_read_limit: int | None = None,
) -> Savepoint:
    """Open a savepoint or checkpoint.

    Parameters
    ----------
    path
        Directory or metadata file of the snapshot: a local path or any URI that fsspec can open. Or the URL of a job, such as
        ``flink://jobmanager:8081/orders``, for its newest completed checkpoint.
    spark
        Session for the DataFrame methods. Everything else works without one. On PySpark 4 this also registers the data sources.
    uids
        Uids of operators, for snapshots before Flink 2.0, which store only hashes of uids.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    key_types
        ``{operator: type}``: a SQL type (``"DOUBLE"``), a type of :mod:`statetool.flink`, or any operator with keys of the same type.
        Only needed for a changelog without a materialized base, if its bytes fit several key types, or no common one.
    declarations
        Declarations of classes that the snapshot does not describe: :class:`ClassDeclaration` objects, JSON files, Avro schema files
        (``*.avsc``) or folders of them. They take precedence over those of :func:`declare`, and all over ``jars``.
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), if the metadata version does not determine it.
    python
        Types of the states of a PyFlink job, by their names in the job (:mod:`statetool.pyflink`, or text): ``{"count": Types.LONG(),
        "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"}``. A plain type declares a value, reducing or
        aggregating state. ``operator.count`` is the state of one operator. Undeclared states are byte arrays, each with several values.
    unsafe_pickle
        Load the pickles of ``PICKLED_BYTE_ARRAY`` states and show them as JSON. This executes code in the pickles: use it only for
        snapshots that you trust.
    columns_from_plan
        The SQL job's compiled plan (``COMPILE PLAN``), a local path or URI. All tables get its names for the fields of rows. ``columns=``
        of a read takes precedence. Reading an operator that the plan does not fit raises an error.
    jars
        The jars of the job that wrote the snapshot, folders of classes, or class files, local or by any URI that fsspec can open. Classes
        that the snapshot does not describe are read from their class files when a value needs them, and so are the ``hashCode()`` methods
        of keys. Strings of the classes name operators whose uid the snapshot does not store. No code runs.
    driver_read_limit
        DataFrame methods read tables of up to this many bytes on disk at once, on the driver, so that queries need no Python worker
        (PySpark 4). Defaults to ``spark.statetool.localBytes``, or 8 MiB.

    Raises
    ------
    SnapshotNotFoundError, FormatError
        The snapshot or a jar does not exist, or the metadata or a jar is damaged.
    ConnectionFailedError
        The JobManager does not answer, or refuses the request.

    Warns
    -----
    UserWarning
        A development version of Flink wrote the snapshot, whose formats may still change.
    """
    keys = {
        name: other.inventory.keyed.needed_key() if isinstance(other, Operator) else _parse_type(other)
        for name, other in (key_types or {}).items()
    }
    classes = (*declared_classes(), *read_declarations(declarations))
    types = TypeContext(
        kryo=kryo,
        classes=classes,
        python=python_types(python or {}),
        unsafe_pickle=unsafe_pickle,
        source=classes_of(name_list("jars", jars)),
    )
    names, moved = name_list("uids", uids), tuple((rebase or {}).items())
    inventory = open_path(
        path,
        moved,
        partial(Inventory, rebase=moved, uids=names, key_types=keys, types=types, columns_from_plan=columns_from_plan),
    )
    if inventory.metadata.version > NEWEST_RELEASED:
        from statetool.saving.versions import warn_if_newer  # most snapshots need no table of releases

        warn_if_newer(inventory.metadata, stacklevel=2)
    inventory = inventory.with_uids_in(name_list("jars", jars))
    access = Access(execution=Execution(spark), driver_read_limit=driver_read_limit, edit=_edit)
    access.execution.prepare_session(sources=True)
    return name_operators(Savepoint(inventory, access), partial(operator_names, path))


def name_operators(savepoint: Savepoint, read_names: Callable[[Mapping[str, int]], OperatorNames | None]) -> Savepoint:
    """Return a snapshot of a job with the names of the job's vertices, if its metadata stores no names (before Flink 2.0).

    Parameters
    ----------
    read_names
        Returns the names for the parallelism of each operator by its id. ``None`` if there are none.
    """
    if savepoint.inventory.stores_names:
        return savepoint
    found = read_names({o.operator_id: o.parallelism for o in savepoint.inventory.metadata.operators})
    return savepoint if found is None else savepoint.with_names(found.names, found.possible)


def _parse_type(given: Serializer | str) -> Serializer:
    from statetool.java.declaring.flink_types import parse_type  # opening a snapshot needs no serializers

    return parse_type(given)


def _edit(inventory: Inventory, access: Access) -> SavepointWriter:
    from statetool.api.write.writer import edit_snapshot  # not loaded for snapshots that are only read

    return edit_snapshot(inventory, access)


def inventory_of(src: str | Savepoint, uids: Iterable[str] = (), rebase: Mapping[str, str] | None = None) -> Inventory:
    """Return the inventory of a snapshot, given as a path or as an open snapshot."""
    if isinstance(src, Savepoint):
        return src.inventory.with_uids(uids) if uids else src.inventory
    return load(src, uids=uids, rebase=rebase).inventory


def register(spark: object) -> None:
    """Register the data sources ``flink-state`` and ``flink-state-metadata`` with a Spark session (PySpark 4).

    Raises
    ------
    MissingDependencyError
        PySpark is older than 4 and has no Python data sources.
    """
    from statetool.spark.session import register as register_sources

    register_sources(spark)
