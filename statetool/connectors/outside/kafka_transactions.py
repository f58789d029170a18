"""Uncommitted transactions of a sink compared with a running Kafka, which is asked for the state of each. Nothing is changed in it.

Kafka keeps the latest transaction of a transactional id: its state, producer id and epoch. A restore commits by the producer id and the epoch
of the snapshot (``KafkaCommitter``). Kafka refuses it after an abort, and ignores it after a commit. When Kafka ends a transaction, its epoch
stays the same or, from ``transaction.version`` 2 on and after a timeout, becomes one higher. A higher epoch belongs to a later producer with the
same transactional id.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from typing import Any, Final

from statetool.connectors.layouts.kafka_sink import EXPLICIT, KafkaSink, KafkaWriter
from statetool.connectors.layouts.two_phase import KafkaProducer
from statetool.connectors.model import PendingCommit
from statetool.connectors.outside.kafka_client import TIMEOUT_MS, ask_kafka, client_settings, kafka_package
from statetool.connectors.outside.table_commits import Outcome, TableCommitRow
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import OptionError
from statetool.snapshot.operator import OperatorInventory

_COMMITTED: Final = frozenset({"PrepareCommit", "CompleteCommit"})
_ABORTED: Final = frozenset({"PrepareAbort", "CompleteAbort", "PrepareEpochFence", "Dead"})
#: Waiting time between requests to a broker that is still starting.
_PAUSE_S: Final = 0.2
#: The version of transactions since which each has its own epoch.
_EPOCH_PER_TRANSACTION: Final = 2


def kafka_commit_rows(
    operators: Iterable[OperatorInventory],
    bootstrap_servers: str,
    settings: Mapping[str, Any] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> list[TableCommitRow]:
    """Compare the uncommitted transactions of Kafka's sinks with a running Kafka.

    Parameters
    ----------
    operators
        All operators of the snapshot.
    bootstrap_servers
        Brokers in the form of Kafka's tools: ``host:port``, separated by commas.
    settings
        More settings of ``kafka-python``'s admin client, such as ``security_protocol``.

    Raises
    ------
    OptionError
        The snapshot has no committer of Kafka, or ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer in time, or refused.
    MissingDependencyError
        ``kafka-python`` is not installed.
    """
    sinks = sinks_and_unknown(operators)
    committers = [s for s in sinks if isinstance(s.connector, KafkaSink | KafkaProducer) and s.state.role != "writer"]
    if not committers:
        raise OptionError("the snapshot has no committer of Kafka", hint="statetool sinks list shows the sinks")
    # An open transaction is aborted by a restore, which reads its records again.
    pending = [(s, p) for s in committers for p in (*s.state.pending, *unread_pending(s)) if p.status != "open"]
    ids = sorted({p.transactional_id for _, p in pending if p.transactional_id})
    version, described = _describe(ids, bootstrap_servers, settings, timeout_ms) if ids else (0, {})
    writers = [w for s in sinks for _, w in s.state.writers if isinstance(w, KafkaWriter)]
    return [
        _row(sink, p, described, is_reused=version < _EPOCH_PER_TRANSACTION and _reuses_ids(sink, p, writers))
        for sink, p in pending
    ]


def _describe(
    ids: Sequence[str], bootstrap_servers: str, settings: Mapping[str, Any] | None, timeout_ms: int
) -> tuple[int, dict[str, Any]]:
    """Return the version of transactions, and what Kafka knows of each transactional id; nothing of ids that it does not know."""
    admin, errors = kafka_package("kafka.admin"), kafka_package("kafka.errors")
    config = client_settings(bootstrap_servers, settings, timeout_ms)

    def ask() -> tuple[int, dict[str, Any]]:
        described: dict[str, Any] = {}
        end = time.monotonic() + timeout_ms / 1000
        with closing(admin.KafkaAdminClient(**config)) as client:
            version = _transaction_version(client, errors)
            for name in ids:
                while True:
                    try:
                        described |= client.describe_transactions([name])
                    except errors.TransactionalIdNotFoundError:
                        pass
                    except errors.RetriableError:
                        if time.monotonic() > end:
                            raise
                        time.sleep(_PAUSE_S)
                        continue
                    break
        return version, described

    return ask_kafka(bootstrap_servers, "transactions", timeout_ms, ask)


def _transaction_version(client: Any, errors: Any) -> int:
    try:
        found = client.describe_features().get("transaction.version", {}).get("finalized")
    except (errors.UnsupportedVersionError, errors.IncompatibleBrokerVersion):
        return 0
    return 0 if found is None else int(found[1])


def _reuses_ids(sink: Sink, pending: PendingCommit, writers: Sequence[KafkaWriter]) -> bool:
    """Return True if a later transaction may have the same transactional id, producer id and epoch.

    The connector's strategy ``POOLING`` gives the id of a committed transaction to another one. Its writers own their ids explicitly.
    """
    if isinstance(sink.connector, KafkaProducer) or pending.transactional_id is None:
        return False
    owners = [w for w in writers if pending.transactional_id.startswith(w.transactional_id_prefix)]
    return not owners or any(w.transaction_ownership == EXPLICIT for w in owners)


def _row(sink: Sink, pending: PendingCommit, described: Mapping[str, Any], *, is_reused: bool) -> TableCommitRow:
    if pending.transactional_id is None:
        outcome, message = _untold(pending)
    else:
        outcome, message = _outcome(pending, described.get(pending.transactional_id), is_reused=is_reused)
    return TableCommitRow(
        operator=sink.label,
        connector=sink.name,
        name=pending.name,
        checkpoint_id=pending.checkpoint_id,
        highest_committed=None,
        outcome=outcome,
        is_problem=outcome in ("will_drop", "unknown"),
        message=message,
    )


def _untold(pending: PendingCommit) -> tuple[Outcome, str]:
    if pending.undecoded is not None:
        return "unknown", "no connector reads it"
    return "is_committed", "it is not transactional: its records were visible when they were sent"


def _outcome(pending: PendingCommit, found: Any, *, is_reused: bool) -> tuple[Outcome, str]:
    if found is None:
        return "unknown", "Kafka does not know its transactional id: it has expired, or this is another Kafka"
    state = str(found.state.value)
    if found.producer_id != pending.producer_id:
        return "unknown", f"its transactional id has a new producer {found.producer_id}: this one has ended before"
    assert pending.epoch is not None
    later = found.producer_epoch - pending.epoch
    ended = later in (0, 1)
    if is_reused and later == 0:
        return "unknown", f"its transactional id may have been used again (POOLING), and is in state {state}"
    if later == 0 and state == "Ongoing":
        return "will_commit", _expiry(found)
    if ended and state in _COMMITTED:
        return "is_committed", ""
    if ended and state in _ABORTED:
        return "will_drop", "Kafka has aborted it: its records are lost"
    return "unknown", f"its transactional id was used again (epoch {found.producer_epoch}, state {state})"


def _expiry(found: Any) -> str:
    end_ms = found.transaction_start_time_ms + found.transaction_timeout_ms
    try:
        end = f"{datetime.fromtimestamp(end_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        end = f"{end_ms} ms since 1970"
    return f"Kafka aborts it if it is not committed until {end}"
