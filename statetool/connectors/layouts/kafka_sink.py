"""Kafka's sink (``org.apache.flink.connector.kafka.sink``).

Writer state: version 1: utf prefix of transactional ids; 2: also i4 subtask owned, i4 number of subtasks, i4 ownership (0 implicit by
subtask, 1 explicit by writer state), i4 count, each utf transactional id, i8 checkpoint (pre-committed). Committable, version 1: i2
epoch, i8 producer id, utf transactional id. No start time is stored.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SinkConnector
from statetool.connectors.model import PendingCommit
from statetool.io.cursor import Cursor

#: Ownership of transactional ids that a writer gives to several transactions in turn.
EXPLICIT: Final = "EXPLICIT_BY_WRITER_STATE"
_OWNERSHIP: Final = ("IMPLICIT_BY_SUBTASK_ID", EXPLICIT)
_TOOL: Final = "kafka-transactions.sh --bootstrap-server BROKERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTransaction:
    """A pre-committed transaction of a checkpoint."""

    transactional_id: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaWriter:
    """State of a writer. All fields but the prefix are stored since version 2."""

    transactional_id_prefix: str
    owned_subtask_id: int | None = None
    total_number_of_owned_subtasks: int | None = None
    transaction_ownership: str | None = None
    precommitted: tuple[CheckpointTransaction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCommittable:
    """A pre-committed transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


class KafkaSink(SinkConnector):
    """Kafka's sink."""

    name: ClassVar[str] = "kafka-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({1, 2})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_writer(self, version: int, c: Cursor) -> KafkaWriter:
        prefix = c.utf()
        if version == 1:
            return KafkaWriter(transactional_id_prefix=prefix)
        owned, total, ownership = c.i4(), c.i4(), c.i4()
        if not 0 <= ownership < len(_OWNERSHIP):
            raise c.fail(f"ownership {ownership} of transactional ids is neither 0 nor 1", pos=c.pos - 4)
        return KafkaWriter(
            transactional_id_prefix=prefix,
            owned_subtask_id=owned,
            total_number_of_owned_subtasks=total,
            transaction_ownership=_OWNERSHIP[ownership],
            precommitted=tuple(
                CheckpointTransaction(transactional_id=c.utf(), checkpoint_id=c.i8())
                for _ in range(c.count("transactions", at_least=10))
            ),
        )

    def read_committable(self, version: int, c: Cursor) -> KafkaCommittable:
        epoch, producer_id = c.i2(), c.i8()
        return KafkaCommittable(transactional_id=c.utf(), producer_id=producer_id, epoch=epoch)

    def pending(self, committable: KafkaCommittable) -> PendingCommit:
        return PendingCommit(
            name=committable.transactional_id,
            status="",
            subtask=-1,
            transactional_id=committable.transactional_id,
            producer_id=committable.producer_id,
            epoch=committable.epoch,
            fields=committable,
        )

    def tools(self, pending: PendingCommit) -> Sequence[str]:
        return kafka_tools(pending)


def kafka_tools(pending: PendingCommit) -> Sequence[str]:
    """Return command lines of Kafka's transaction tool: list transactions, describe this one, and end it. None of them commits.

    Values that state does not store are placeholders in capitals. ``describe`` prints topics and partitions, ``describe-producers`` the
    epoch of the coordinator. ``abort`` ends a transaction in one partition. ``forceTerminateTransaction`` (Kafka 4.1 and later) ends it in
    all of them; its option is spelled differently from the others.

    Follows ``org.apache.kafka.tools.TransactionsCommand``, which ``kafka-transactions.sh`` runs.
    """
    if pending.transactional_id is None:
        return ()
    name = _quote(pending.transactional_id)
    producer = f"--producer-id {pending.producer_id} --producer-epoch {pending.epoch}"
    return (
        f"{_TOOL} list",
        f"{_TOOL} describe --transactional-id {name}",
        f"{_TOOL} describe-producers --topic TOPIC --partition PARTITION",
        f"{_TOOL} abort --topic TOPIC --partition PARTITION {producer} --coordinator-epoch EPOCH",
        f"{_TOOL} forceTerminateTransaction --transactionalId {name}",
    )


def _quote(name: str) -> str:
    """Return a word for a shell in printable characters, with escapes of bash and zsh for all other characters."""
    if name.isprintable():
        return shlex.quote(name)
    escapes = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in name)
    return f"$'{''.join(escapes)}'"
