"""Edit the state of sources and sinks: source offsets and splits, and uncommitted transactions of sinks.

The source snapshot is never changed, an existing target raises ``TargetExistsError``, and ``_metadata`` is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statetool.api.operator import Operator
from statetool.api.savepoint import Savepoint
from statetool.api.write.options import WriteOptions
from statetool.connectors.edits import conversion, edits
from statetool.connectors.edits.conversion import ConvertedConsumer
from statetool.connectors.rows import TransactionRow, transaction_rows
from statetool.connectors.sinks import require_sink, without_committables
from statetool.connectors.sources import READER_STATE, require_source
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.saving.bootstrap import ElementBootstrap
from statetool.saving.composition import OperatorChange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def edit_source(
    src: str | Savepoint,
    dst: str,
    uid: str,
    *,
    positions: Mapping[str, int | str] | None = None,
    to: str | None = None,
    remove: Iterable[str] = (),
    add: Mapping[str, int | str] | None = None,
    upgrade_enumerator: bool = False,
    connector: str | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> edits.EditedSource:
    """Write a copy of a snapshot in which a source resumes from other offsets, or reads other splits.

    Readers and enumerator stay consistent, and serializer versions do not change. Everything you do not name keeps its bytes.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    uid
        The source, by uid or operator id.
    positions
        Next offset by split (``{"orders:3": 1234}``) or split id. ``earliest``, ``latest``, ... become the connector's markers.
    to
        Next offset of all splits.
    remove
        Splits to remove from readers and enumerator. If the job discovers one again, it starts like a new split.
    add
        New splits with their next offsets. Each is assigned to the reader with the fewest splits.
    upgrade_enumerator
        Write a newer version of enumerator state if the stored version has no positions of unassigned splits (Kafka's 1 and 2 become 3).
    connector
        Name of the connector, if the bytes do not identify it.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    EditedSource
        The changed splits, and the new state of readers and enumerator.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError, UnsupportedError
        The split or position does not exist, the operator is not a source, or statetool does not know or cannot write its connector.
    """
    options = WriteOptions.of(locals())
    inventory = options.open(src, dst)
    uid = inventory.existing_name(uid)
    given, added = _texts(positions), _texts(add)
    edit = edits.SourceEdit(
        positions=given, everywhere=to, removed=frozenset(remove), added=added, upgrade=upgrade_enumerator
    )
    plan = edits.edit_source(require_source(inventory.operator(uid), connector), edit)
    change = OperatorChange(elements=plan.elements, coordinator=plan.coordinator)
    options.write(inventory, dst, changes={uid: change})
    return plan


def to_kafka_source(
    src: str | Savepoint,
    dst: str,
    uid: str,
    *,
    enumerator_version: int = 1,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> ConvertedConsumer:
    """Write a copy of a snapshot that has ``KafkaSource`` state instead of ``FlinkKafkaConsumer`` state, under the same uid.

    The source resumes where the consumer stopped: the consumer stores the offset of the last record read, the source the next offset.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    uid
        The consumer, by uid or operator id. The source of the new job has the same uid.
    enumerator_version
        Version of the enumerator state to write: 1, which every release of the connector reads, 2 or 3.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    OptionError, UnsupportedError
        The operator is not such a consumer, or it has not determined the offset of a partition yet.
    """
    options = WriteOptions.of(locals())
    inventory = options.open(src, dst)
    uid = inventory.existing_name(uid)
    plan = conversion.convert_consumer(require_source(inventory.operator(uid), None), enumerator_version)
    rows = [(subtask, value) for subtask, values in sorted(plan.readers.items()) for value in values]
    readers = ElementBootstrap(
        name=READER_STATE, kind="list", data=_by_subtask(rows), value_type="BINARY", subtask="subtask"
    )
    change = OperatorChange(bootstraps=(readers,), dropped_states=plan.states, coordinator=plan.coordinator)
    options.write(inventory, dst, changes={uid: change})
    return plan


def _by_subtask(elements: Sequence[tuple[int, bytes]]) -> pa.Table:
    """Return elements as a table with the subtask of each."""
    import pyarrow as pa

    subtasks, values = [n for n, _ in elements], [v for _, v in elements]
    return pa.table({"subtask": pa.array(subtasks, pa.int32()), "value": pa.array(values, pa.binary())})


def _texts(positions: Mapping[str, int | str] | None) -> dict[str, str]:
    return {name: str(position) for name, position in (positions or {}).items()}


def drop_transactions(
    src: str | Savepoint,
    dst: str,
    uid: str,
    names: Iterable[str],
    *,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[TransactionRow]:
    """Write a copy of a snapshot in which a sink does not commit some of its transactions or files. Their records are **lost**.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    uid
        The operator that holds them (see :meth:`statetool.Operator.transactions`), by uid or operator id.
    names
        The names of the transactions, which confirms the loss of each.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).

    Returns
    -------
    list of TransactionRow
        The lost transactions.

    Raises
    ------
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnknownNameError, OptionError, UnsupportedError
        The name does not exist, the transaction is open (and thus never committed), the operator is not a sink, or statetool does
        not know its connector.
    """
    options = WriteOptions.of(locals())
    inventory = options.open(src, dst)
    uid = inventory.existing_name(uid)
    sink = require_sink(inventory.operator(uid))
    dropped = frozenset(names)
    rows = list(transaction_rows(sink))
    known = {r.name for r in rows if r.status != "open" and r.undecoded is None}
    for name in sorted(dropped):
        if name not in known:
            hint = "it is open: a restore aborts it" if any(r.name == name for r in rows) else suggest(name, known)
            raise UnknownNameError(f"no transaction {name!r} that a restore would commit", hint=hint).at(operator=uid)
    if not dropped:
        raise OptionError("no transactions to drop", hint="pass their names: op.transactions() lists them")
    elements = without_committables(sink, dropped)
    options.write(inventory, dst, changes={uid: OperatorChange(elements=elements)})
    return [r for r in rows if r.name in dropped and r.status != "open"]


def kafka_end_offsets(operator: Operator, bootstrap_servers: str, **settings: Any) -> dict[str, int]:
    """Return the end offsets in a running Kafka of the partitions that a source holds, for :meth:`statetool.Operator.lag`.

    Parameters
    ----------
    operator
        A Kafka source.
    bootstrap_servers
        Brokers as ``host:port``, separated by commas.
    settings
        Further consumer settings of ``kafka-python`` (the extra ``kafka``), such as ``security_protocol="SSL"``.

    Returns
    -------
    dict of str to int
        Offsets by ``topic:partition``. Partitions that do not exist in Kafka are omitted.

    Raises
    ------
    OptionError
        The operator is not a Kafka source, or ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer, or refused the connection.
    MissingDependencyError
        ``kafka-python`` is not installed.
    """
    from statetool.connectors.outside.kafka_ends import kafka_ends as end_offsets

    return end_offsets(require_source(operator.inventory), bootstrap_servers, settings)
