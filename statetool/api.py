"""What users hold: an open savepoint, and how one is opened and verified.

With a Spark session, tables are Spark DataFrames; without one, ``to_arrow`` and the ``..._batches`` methods give the same rows
in this process, with no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from statetool.operator import Operator, needed_session
from statetool.plan.declarations import Declarations, PythonTypes, declared_classes, python_types, read_declarations
from statetool.plan.inventory import Inventory
from statetool.plan.rows import metadata_rows
from statetool.serializers.base import Serializer
from statetool.types.declared import TypeContext
from statetool.write.flink_types import parse_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.ops.verify import Verification


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
) -> Savepoint:
    """Open a savepoint or checkpoint.

    Parameters
    ----------
    path
        Its directory, or its metadata file: a local path or any URI that fsspec can open.
    spark
        Session for the DataFrame methods; everything else works without. On PySpark 4 the data sources ``flink-state``
        and ``flink-state-metadata`` become known to it.
    uids
        Names for operators of snapshots before Flink 2.0, which store only hashes of them.
    rebase
        ``{old prefix: new prefix}`` for files that absolute paths no longer reach.
    key_types
        ``{operator: type}``: a SQL type (``"DOUBLE"``), a type of :mod:`statetool.flink`, or an operator whose keys are of the
        same type, of this job's savepoints or of another's. Only needed for a change log on top of nothing, which does not say the
        type of its keys, where it is not one of the common ones or where the bytes fit more than one.
    declarations
        What the snapshot does not say of its classes: :class:`ClassDeclaration` objects, or Avro schema files
        (or folders of them, ``*.avsc``). Those made by :func:`declare` come first.
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), where the version of the metadata does not tell.
    python
        Of a PyFlink job, what its states hold, by the names that the job gave them (:mod:`statetool.pyflink`, or text):
        ``{"count": Types.LONG(), "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"}``; a type alone is that
        of a value state, and of what reducing and aggregating states keep. ``operator.count`` is the state of one operator.
        Undeclared states are byte arrays, several values in each.
    unsafe_pickle
        Load the pickles of ``PICKLED_BYTE_ARRAY`` states, shown as JSON. This runs what they say: only for snapshots that you trust.

    Raises
    ------
    SnapshotNotFoundError
        There is no snapshot.
    FormatError
        Its metadata is damaged.
    """
    keys = {
        name: other._operator.key_serializer() if isinstance(other, Operator) else parse_type(other)
        for name, other in (key_types or {}).items()
    }
    types = TypeContext(
        kryo=kryo,
        classes=(*declared_classes(), *read_declarations(declarations)),
        python=python_types(python or {}),
        unsafe_pickle=unsafe_pickle,
    )
    inventory = Inventory(path, rebase=tuple((rebase or {}).items()), uids=tuple(uids), key_types=keys, types=types)
    savepoint = Savepoint(inventory, spark)
    if spark is not None:
        from statetool.spark.session import has_data_sources, register

        if has_data_sources():
            register(spark)
    return savepoint


def verify(
    src: str | Savepoint,
    *,
    deep: bool = False,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    threads: int | None = None,
    most: int = 1000,
) -> Verification:
    """Check that a snapshot is whole.

    Every handle resolves, lengths match, key groups are there exactly once, offsets are sound, every entry can be walked and
    every key lies in the key group of its hash code (where that lies in user code: of the formula that a sample of the keys proves, and
    then what does not fit is a warning). Memory does not grow with the size of the state.

    Parameters
    ----------
    src
        The snapshot's path, or an open one.
    deep
        Decode every value to its last byte too, and compare checksums.
    spark
        Check the contents in tasks of a cluster; otherwise in ``threads`` of this process (one a core by default).
    uids, rebase
        As in :func:`load`.
    most
        Stop after about so many problems.

    Raises
    ------
    SnapshotNotFoundError
        There is no snapshot.
    FormatError
        Its metadata is damaged.
    """
    from statetool.ops.verify import verify_inventory

    savepoint = load(src, rebase=rebase) if isinstance(src, str) else src
    savepoint = savepoint.with_uids(uids) if uids else savepoint
    return verify_inventory(savepoint.inventory, deep=deep, spark=spark, threads=threads, most=most)


class Savepoint:
    """An open snapshot. ``sp["uid"]`` is an operator; iteration gives their names."""

    def __init__(self, inventory: Inventory, spark: SparkSession | None = None) -> None:
        self._inventory = inventory
        self._spark = spark

    @property
    def inventory(self) -> Inventory:
        """What the snapshot holds, read from its metadata."""
        return self._inventory

    @property
    def spark(self) -> SparkSession | None:
        """The session that was given to :func:`load`."""
        return self._spark

    @property
    def path(self) -> str:
        """The path as it was given."""
        return self._inventory.path

    @property
    def checkpoint_id(self) -> int:
        """Id of the checkpoint; 0 for savepoints that the State Processor API wrote."""
        return self._inventory.metadata.checkpoint_id

    @property
    def metadata_version(self) -> int:
        """Version of the ``_metadata`` format, 2 to 6."""
        return self._inventory.metadata.version

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Operators by uid, or by hex id where no uid is known."""
        found = {name: Operator(self._inventory, o, self._spark) for name, o in self._inventory.operators.items()}
        return MappingProxyType(found)

    def __getitem__(self, name: str) -> Operator:
        return Operator(self._inventory, self._inventory.operator(name), self._spark)

    def __iter__(self) -> Iterator[str]:
        return iter(self._inventory.operators)

    def __contains__(self, name: object) -> bool:
        return name in self._inventory.operators

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r}, {len(self._inventory.operators)} operators)"

    def with_uids(self, uids: Iterable[str]) -> Savepoint:
        """Return the savepoint with names for operators known by id only; each uid is hashed as Flink does.

        Raises
        ------
        UnknownNameError
            No operator has such a uid.
        """
        return Savepoint(self._inventory.with_uids(uids), self._spark)

    def metadata_rows(self, table: str) -> list[Any]:
        """Return the rows of ``operators``, ``states``, ``files``, ``key_groups`` or ``in_flight`` as records.

        Raises
        ------
        UnknownNameError
            There is no such table.
        """
        return metadata_rows(table, self._inventory.operators.values())

    def to_arrow(self, table: str) -> pa.Table:
        """Return a metadata table (``operators``, ``states``, ``files``, ``key_groups``, ``in_flight``) as Arrow, with no JVM."""
        from statetool.arrow.metadata import metadata_table

        return metadata_table(table, self.metadata_rows(table))

    def _metadata_table(self, table: str) -> DataFrame | pa.Table:
        if self._spark is None:
            return self.to_arrow(table)
        from statetool.spark.frames import metadata_frame

        return metadata_frame(self._spark, self.to_arrow(table))

    def files(self) -> DataFrame | pa.Table:
        """Return every piece of state and where it lies: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("files")

    def states(self) -> DataFrame | pa.Table:
        """Return every state with its types: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("states")

    def key_groups(self) -> DataFrame | pa.Table:
        """Return every key group with its size on disk: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("key_groups")

    def register(self, prefix: str) -> list[str]:
        """Make temporary views ``<prefix>_<uid>_keyed_state``, ``..._timers`` and ``..._<state>`` for ``spark.sql``.

        Returns
        -------
        list of str
            Names of the views, in the order of operators and tables; characters that SQL names cannot have are underscores in
            them, and ``_2``, ``_3`` follow where a name is taken.
        """
        from statetool.spark.frames import register_views

        tables = [(o.name, t, o) for o in self.operators.values() for t in o.tables]
        return register_views(needed_session(self._spark), prefix, tables)
