"""Doris (``org.apache.doris.flink.sink``).

Committable, version 1 (``DorisCommittableSerializer``): utf host and port, utf database, i8 id of a pre-committed transaction. Of the write
mode ``COPY`` (``CopyCommittableSerializer``): utf host and port, i4 length and the ``COPY INTO`` statement to run. Writer, version 2
(``DorisWriterStateSerializer``): utf prefix of labels, utf database, utf table, i4 subtask. Version 1 has the prefix only, as Kafka's, and
is not read. No start time is stored.

Follows releases 24.0 to 26.1.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SinkConnector
from statetool.connectors.model import PendingCommit
from statetool.io.cursor import Cursor

_HOST_PORT: Final = re.compile(r"[^\s/]+:\d{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DorisWriter:
    """State of a writer: the start of the labels of its loads."""

    label_prefix: str
    database: str
    table: str
    subtask_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DorisCommittable:
    """A pre-committed transaction."""

    host_port: str
    database: str
    transaction_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DorisCopy:
    """A statement that loads uploaded files."""

    host_port: str
    copy_sql: str


class DorisSink(SinkConnector):
    """Doris' sink in two phases."""

    name: ClassVar[str] = "doris-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({2})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_writer(self, version: int, c: Cursor) -> DorisWriter:
        return DorisWriter(label_prefix=c.utf(), database=c.utf(), table=c.utf(), subtask_id=_read_subtask(c))

    def read_committable(self, version: int, c: Cursor) -> DorisCommittable:
        return DorisCommittable(host_port=_read_host(c), database=c.utf(), transaction_id=_read_transaction(c))

    def pending(self, committable: DorisCommittable) -> PendingCommit:
        return PendingCommit(
            name=f"{committable.database}/{committable.transaction_id}",
            status="",
            subtask=-1,
            transactional_id=str(committable.transaction_id),
            fields=committable,
        )

    def tools(self, pending: PendingCommit) -> Sequence[str]:
        """Return command lines that commit or abort a transaction in Doris' stream load API."""
        committable = pending.fields
        if not isinstance(committable, DorisCommittable):
            return ()
        url = shlex.quote(f"http://{committable.host_port}/api/{committable.database}/_stream_load_2pc")
        request = f"curl -X PUT --location-trusted -u USER:PASSWORD -H txn_id:{committable.transaction_id}"
        return tuple(f"{request} -H txn_operation:{operation} {url}" for operation in ("commit", "abort"))


class DorisCopySink(SinkConnector):
    """Doris' sink in the write mode ``COPY``."""

    name: ClassVar[str] = "doris-copy-sink"
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_committable(self, version: int, c: Cursor) -> DorisCopy:
        host, start = _read_host(c), c.pos
        try:
            sql = c.bytes4("a statement").decode("utf-8")
        except UnicodeDecodeError:
            raise c.fail("the statement is not valid UTF-8", pos=start) from None
        if not sql.upper().startswith("COPY INTO"):
            raise c.fail("expected a COPY INTO statement", pos=start)
        return DorisCopy(host_port=host, copy_sql=sql)

    def pending(self, committable: DorisCopy) -> PendingCommit:
        return PendingCommit(name=committable.copy_sql, status="", subtask=-1, expires=False, fields=committable)


def _read_host(c: Cursor) -> str:
    start = c.pos
    host = c.utf()
    if not _HOST_PORT.fullmatch(host):
        raise c.fail(f"{host!r} is not a host and port", pos=start)
    return host


def _read_transaction(c: Cursor) -> int:
    start = c.pos
    transaction_id = c.i8()
    if transaction_id < 0:
        raise c.fail(f"id {transaction_id} of a transaction is negative", pos=start)
    return transaction_id


def _read_subtask(c: Cursor) -> int:
    start = c.pos
    subtask = c.i4()
    if subtask < 0:
        raise c.fail(f"subtask {subtask} is negative", pos=start)
    return subtask
