"""JDBC (``org.apache.flink.connector.jdbc.core.datastream``, since 3.2). Bytes of the serializers of release 3.3 confirm all versions.

Split, version 0 (``JdbcSourceSplitSerializer``): utf id, utf SQL with parameters, i4 length and a Java stream of the parameters
(``Serializable[]`` or null), i4 length and a Java stream of ``CheckpointedOffset`` (or null). Enumerator, version 0
(``JdbcSourceEnumStateSerializer``): completed, pending and remaining splits (i4 count, splits one after another; the
enumerator writes only the last list), i4 length and a Java stream of the splitter's state.

Committable, version 1 (``JdbcCommitableSerializer``): an XA transaction (``TransactionId``, format 202: 201 is that of
``JdbcXaSinkFunction``, which is not a Sink V2 sink): i4 format, u1 length and global id (16 bytes job id, i4 subtask), u1 length and branch
(i4 number of subtasks, i8 checkpoint). Writer, version 2 (``JdbcWriterStateSerializer``): i4 count and transactions to roll back on
restore, i4 count and prepared transactions to commit, each u1 length: 16 bytes job id, i4 subtask, i4 number of subtasks, i8 checkpoint, i4
attempts. Zeros follow each transaction up to the end of its write buffer.

Follows releases up to 4.1, which write the same versions. Java streams are parsed as data and never executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SinkConnector, SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, PendingCommit, SplitPosition, Status
from statetool.errors import UnsupportedError
from statetool.io.cursor import Cursor
from statetool.serializers.typeutils.java_values import read_java

_OFFSET: Final = "org.apache.flink.connector.jdbc.core.datastream.source.split.CheckpointedOffset"
#: ``TransactionId.FORMAT_ID``.
_FLINK_XID: Final = 202
_MOST_XID_BYTES: Final = 64
_JOB_ID_BYTES: Final = 16
_SUBTASKS_BYTES: Final = 4
_BRANCH_BYTES: Final = 12
_LEAST_TRANSACTION_BYTES: Final = 36
#: Zeros after the fields of a transaction's parts: its parts are whole buffers of ``DataOutputSerializer``.
_AFTER_GLOBAL_ID: Final = bytes(14)
_AFTER_BRANCH: Final = bytes(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcSplit:
    """A query with its parameters. ``offset`` is the number of its rows read, ``None`` before the first."""

    split_id: str
    sql: str
    parameters: Any
    offset: int | None = None
    records_after_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """An XA transaction of the database."""

    format_id: int
    global_transaction_id: bytes
    branch_qualifier: bytes

    def __str__(self) -> str:
        """Return the transaction in the form of the connector's logs."""
        return f"{self.format_id}:{self.global_transaction_id.hex()}:{self.branch_qualifier.hex()}"

    @property
    def job_id(self) -> str | None:
        """The job that began it, ``None`` if it is not a transaction of this sink."""
        is_flink = self.format_id == _FLINK_XID and len(self.global_transaction_id) >= _JOB_ID_BYTES
        return self.global_transaction_id[:_JOB_ID_BYTES].hex() if is_flink else None

    @property
    def writer(self) -> tuple[bytes, bytes]:
        """The bytes that tell which subtask of which job began a transaction of this sink."""
        return self.global_transaction_id, self.branch_qualifier[:_SUBTASKS_BYTES]

    @property
    def checkpoint_id(self) -> int:
        """The checkpoint after which a transaction of this sink began."""
        return int.from_bytes(self.branch_qualifier[_SUBTASKS_BYTES:_BRANCH_BYTES], "big", signed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcTransaction:
    """A transaction in writer state. ``checkpoint_id`` is the checkpoint after which it began, ``attempts`` counts failed commits."""

    job_id: str
    subtask: int
    number_of_subtasks: int
    checkpoint_id: int
    attempts: int

    @property
    def xid(self) -> Xid:
        """The transaction of the database, with the same bytes as the sink passes to the driver."""
        subtask, subtasks = (n.to_bytes(4, "big", signed=True) for n in (self.subtask, self.number_of_subtasks))
        checkpoint = self.checkpoint_id.to_bytes(8, "big", signed=True)
        return Xid(
            format_id=_FLINK_XID,
            global_transaction_id=bytes.fromhex(self.job_id) + subtask + _AFTER_GLOBAL_ID,
            branch_qualifier=subtasks + checkpoint + _AFTER_BRANCH,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcWriter:
    """Writer state: transactions to roll back on restore, and transactions to commit."""

    hanging: tuple[JdbcTransaction, ...]
    prepared: tuple[JdbcTransaction, ...]


class JdbcSource(SplitConnector):
    """JDBC's source."""

    name: ClassVar[str] = "jdbc-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: JdbcSplit) -> SplitPosition:
        position = None if split.offset is None else str(split.offset)
        return SplitPosition(source=split.sql, position=position, marker="earliest" if position is None else None)

    def read_split(self, version: int, c: Cursor) -> JdbcSplit:
        split_id, sql = c.utf(), c.utf()
        if not split_id or not sql:
            raise c.fail(f"split {split_id!r} of the query {sql!r}")
        parameters = read_java(c.bytes4("parameters"))
        start = c.pos
        offset = read_java(c.bytes4("an offset"))
        if offset is None:
            return JdbcSplit(split_id=split_id, sql=sql, parameters=parameters)
        if not isinstance(offset, dict) or offset.get("$class") != _OFFSET:
            raise c.fail("expected a CheckpointedOffset", pos=start)
        fields = offset["fields"]
        return JdbcSplit(
            split_id=split_id,
            sql=sql,
            parameters=parameters,
            offset=fields.get("offset"),
            records_after_offset=fields.get("recordsAfterOffset"),
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        splits: list[KnownSplit] = []
        statuses: tuple[Status, ...] = ("finished", "assigned", "unassigned")
        for status in statuses:
            for _ in range(c.count("splits", at_least=12)):
                splits.append(KnownSplit(split=self.read_split(0, c), status=status))
        return Enumerator(splits=tuple(splits), facts={"splitter_state": read_java(c.bytes4("the splitter's state"))})


class JdbcSink(SinkConnector):
    """JDBC's sink with XA transactions."""

    name: ClassVar[str] = "jdbc-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({2})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_writer(self, version: int, c: Cursor) -> JdbcWriter:
        writer = JdbcWriter(hanging=_read_transactions(c), prepared=_read_transactions(c))
        _expect_zeros(c)
        return writer

    def read_committable(self, version: int, c: Cursor) -> Xid:
        start = c.pos
        xid = Xid(format_id=c.i4(), global_transaction_id=c.take(c.u1()), branch_qualifier=c.take(c.u1()))
        longest = max(len(xid.global_transaction_id), len(xid.branch_qualifier))
        if xid.format_id != _FLINK_XID or longest > _MOST_XID_BYTES:
            raise c.fail("no XA transaction of Flink's", pos=start)
        _expect_zeros(c)
        return xid

    def pending(self, committable: Xid) -> PendingCommit:
        return PendingCommit(
            name=str(committable), status="", subtask=-1, transactional_id=str(committable), fields=committable
        )

    def check_forgettable(self) -> None:
        # A restored committer has no transactions (``JdbcCommitter``): the writer commits those in its state.
        raise UnsupportedError(
            "transactions of jdbc-sink cannot be dropped from its committer: its writer also stores and commits them",
            hint="roll them back in the database: a restored writer skips unknown transactions",
        )


def _read_transactions(c: Cursor) -> tuple[JdbcTransaction, ...]:
    count = c.count("transactions", at_least=_LEAST_TRANSACTION_BYTES + 1)
    return tuple(_read_transaction(c.slice(c.u1(), "a transaction")) for _ in range(count))


def _read_transaction(c: Cursor) -> JdbcTransaction:
    transaction = JdbcTransaction(
        job_id=c.take(_JOB_ID_BYTES).hex(),
        subtask=c.i4(),
        number_of_subtasks=c.i4(),
        checkpoint_id=c.i8(),
        attempts=c.i4(),
    )
    _expect_zeros(c)
    return transaction


def _expect_zeros(c: Cursor) -> None:
    """Raise an error unless the rest of a buffer is zeros."""
    start = c.pos
    if any(c.take(c.left)):
        raise c.fail("expected zeros to the end of the buffer", pos=start)
