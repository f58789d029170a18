"""Sinks based on ``TwoPhaseCommitSinkFunction``, including ``FlinkKafkaProducer``.

List state ``state``, one element per subtask, by ``TwoPhaseCommitSinkFunction.StateSerializer`` (:mod:`statetool.serializers.streaming`):
the open transaction, the pre-committed transactions, the user's context. Each transaction has its handle, by a serializer of the user, and
its start time. An open transaction is aborted on restore, the others are committed. ``FlinkKafkaProducer``: the handle is transactional id,
producer id, epoch; the context its transactional ids; union list state ``next-transactional-id-hint-v2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.kafka_sink import kafka_tools
from statetool.connectors.model import PendingCommit, SinkState, as_json
from statetool.serializers.streaming import TransactionsSerializer
from statetool.types import StructType

_STATE: Final = "state"
_HINTS: Final = ("next-transactional-id-hint-v2", "next-transactional-id-hint")


class TwoPhaseCommitSink(StateSink):
    """A sink based on ``TwoPhaseCommitSinkFunction``."""

    name: ClassVar[str] = "two-phase-commit-sink"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _has_transactions(operator) and not _is_kafka(operator)

    def read(self, operator: OperatorBytes) -> SinkState:
        pending: list[PendingCommit] = []
        writers: list[tuple[int, Any]] = []
        for subtask, (opened, to_commit, context) in operator.values(_STATE):
            if opened is not None:
                pending.append(self.transaction(subtask, "open", *opened))
            pending += (self.transaction(subtask, "pre_committed", *t) for t in to_commit)
            if context is not None:
                writers.append((subtask, {"context": context}))
        return SinkState(role="sink", pending=tuple(pending), writers=tuple(writers))

    def without(self, operator: OperatorBytes, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
        elements: dict[int, tuple[bytes, ...]] = {}
        stored = zip(operator.elements(_STATE), operator.values(_STATE), strict=True)
        for element, (subtask, (opened, to_commit, context)) in stored:
            remaining = [t for t in to_commit if self.transaction(subtask, "pre_committed", *t).name not in names]
            changed = len(remaining) != len(to_commit)
            data = operator.encoded(_STATE, (opened, remaining, context)) if changed else element.data
            elements[subtask] = (*elements.get(subtask, ()), data)
        return {_STATE: elements}

    def transaction(self, subtask: int, status: str, handle: Any, start_ms: int) -> PendingCommit:
        """Return a transaction by its handle, which only the user's sink can interpret."""
        name = handle if isinstance(handle, str) else as_json(handle)
        return PendingCommit(name=name, status=status, subtask=subtask, start_ms=start_ms, fields={"handle": handle})


class KafkaProducer(TwoPhaseCommitSink):
    """The Kafka producer before Sink V2."""

    name: ClassVar[str] = "flink-kafka-producer"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _has_transactions(operator) and _is_kafka(operator)

    def read(self, operator: OperatorBytes) -> SinkState:
        state = super().read(operator)
        hints = [
            (subtask, {"next_transactional_id_hint": dict(zip(_names(operator, hint), value, strict=True))})
            for hint in _HINTS
            if hint in operator.states
            for subtask, value in operator.values(hint)
        ]
        return replace(state, writers=(*state.writers, *hints))

    def transaction(self, subtask: int, status: str, handle: Any, start_ms: int) -> PendingCommit:
        transactional_id, producer_id, epoch = handle
        return PendingCommit(
            # A producer without a transactional id writes at least once and has nothing to commit.
            name=transactional_id or "(not transactional)",
            status=status,
            subtask=subtask,
            start_ms=start_ms,
            transactional_id=transactional_id,
            producer_id=producer_id,
            epoch=epoch,
            fields={"transactional_id": transactional_id, "producer_id": producer_id, "epoch": epoch},
        )

    def tools(self, pending: PendingCommit) -> Sequence[str]:
        return kafka_tools(pending)


def _has_transactions(operator: OperatorBytes) -> bool:
    return _STATE in operator.states and isinstance(operator.states[_STATE].value, TransactionsSerializer)


def _is_kafka(operator: OperatorBytes) -> bool:
    handle = operator.states[_STATE].value.children()[0][1]
    return "KafkaProducer" in handle.snapshot_class


def _names(operator: OperatorBytes, hint: str) -> list[str]:
    logical = operator.states[hint].value.logical
    return [f.name for f in logical.fields] if isinstance(logical, StructType) else [hint]
