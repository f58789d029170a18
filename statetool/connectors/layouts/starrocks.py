"""StarRocks (``com.starrocks.connector.flink.table.sink``). All of its state is JSON by fastjson, whose map keys are numbers without quotes.

* ``v2.StarRocksSink`` (Sink V2). Committable, version 1: ``labelSnapshot``, a load: its ``id``, ``timestamp`` (epoch ms) of the preparation
  and ``transactions`` (database, table, label, finish). Writer, version 1: ``labelSnapshots``, the generators of labels.
* ``StarRocksDynamicSinkFunctionV2``. List state ``starrocks-sink-transaction``: byte arrays, each versioned. Version 1: ``version`` of the
  connector, ``data``, a map of checkpoints to loads, and ``labelSnapshots``. A restored function commits the loads when the next
  checkpoint completes.

A prepared transaction ends after StarRocks' ``prepared_transaction_default_timeout_second``, by default one day. The oldest sink function
(list state ``buffered-rows``) keeps rows as Java objects and no transactions.

Follows releases 1.2.5 to 1.2.12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SinkConnector, StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import PendingCommit, SinkState
from statetool.connectors.wire import whole_versioned
from statetool.errors import FormatError
from statetool.io.cursor import Cursor

_STATE: Final = "starrocks-sink-transaction"
_VERSION: Final = 1
#: A text, or a key without quotes.
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([{,])(-?\d+):')


@dataclass(frozen=True, slots=True, kw_only=True)
class StarRocksLoad:
    """Prepared transactions of one checkpoint and subtask."""

    id: str
    timestamp: int
    transactions: tuple[Mapping[str, Any], ...]


class StarRocksSink(SinkConnector):
    """StarRocks' Sink V2 sink."""

    name: ClassVar[str] = "starrocks-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({1})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_writer(self, version: int, c: Cursor) -> Mapping[str, Any]:
        return {"label_generators": _labels(_read_json(c), c)}

    def read_committable(self, version: int, c: Cursor) -> StarRocksLoad:
        return _load(_read_json(c).get("labelSnapshot"), c)

    def pending(self, committable: StarRocksLoad) -> PendingCommit:
        return _pending(committable)


class StarRocksSinkFunction(StateSink):
    """StarRocks' sink before Sink V2."""

    name: ClassVar[str] = "starrocks-sink-function"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _STATE in operator.states

    def read(self, operator: OperatorBytes) -> SinkState:
        pending: list[PendingCommit] = []
        writers: list[tuple[int, Any]] = []
        unread: list[tuple[int, int, bytes]] = []
        versions: set[int] = set()
        for subtask, value in operator.values(_STATE):
            version, raw = whole_versioned(value, "an element")
            versions.add(version)
            if version != _VERSION:
                unread.append((subtask, version, raw))
                continue
            fields, loads = read_transactions(raw)
            writers.append((subtask, fields))
            pending += (
                _pending(load, status="pre_committed", subtask=subtask, checkpoint_id=checkpoint, version=version)
                for checkpoint, load in loads
            )
        return SinkState(
            role="sink",
            pending=tuple(pending),
            writers=tuple(writers),
            versions=frozenset(versions),
            unread=tuple(unread),
        )


def read_transactions(raw: bytes) -> tuple[Mapping[str, Any], Sequence[tuple[int, StarRocksLoad]]]:
    """Return the fields of an element of the function's state, and its loads with their checkpoint ids.

    Raises
    ------
    FormatError
        The bytes are not such an element.
    """
    c = Cursor(raw)
    state = _read_json(c)
    data = state.get("data")
    if not isinstance(data, dict) or not all(isinstance(loads, list) for loads in data.values()):
        raise c.fail("expected a map of checkpoints to loads", pos=0)
    checkpoints = {_checkpoint(key, c): loads for key, loads in data.items()}
    loads = [(checkpoint, _load(load, c)) for checkpoint, of_it in checkpoints.items() for load in of_it]
    labels = _labels(state, c) if state.get("labelSnapshots") is not None else []
    return {"connector_version": state.get("version"), "label_generators": labels}, loads


def _pending(
    load: StarRocksLoad,
    *,
    status: str = "",
    subtask: int = -1,
    checkpoint_id: int | None = None,
    version: int | None = None,
) -> PendingCommit:
    labels = ", ".join(t["label"] for t in load.transactions)
    return PendingCommit(
        name=labels or f"(nothing) {load.id}",
        status=status,
        subtask=subtask,
        checkpoint_id=checkpoint_id,
        transactional_id=labels or None,
        start_ms=load.timestamp,
        version=version,
        expires=bool(load.transactions),
        fields=load,
    )


def _read_json(c: Cursor) -> Mapping[str, Any]:
    start = c.pos
    raw = c.take(c.left)
    try:
        value = json.loads(_TOKENS.sub(_quote_key, raw.decode("utf-8")))
    except (ValueError, RecursionError):
        raise c.fail("expected JSON of StarRocks' sink", pos=start) from None
    if not isinstance(value, dict):
        raise c.fail("expected an object of StarRocks' sink", pos=start)
    return value


def _quote_key(token: re.Match[str]) -> str:
    return token[0] if token[1] is None else f'{token[1]}"{token[2]}":'


def _checkpoint(key: str, c: Cursor) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", key):
        raise c.fail(f"{key!r} is not the id of a checkpoint", pos=0)
    return int(key)


def _load(value: Any, c: Cursor) -> StarRocksLoad:
    if not isinstance(value, dict):
        raise _not_a_load(c)
    load_id, timestamp, transactions = (value.get(name) for name in ("id", "timestamp", "transactions"))
    if not isinstance(load_id, str) or type(timestamp) is not int or not isinstance(transactions, list):
        raise _not_a_load(c)
    if not all(isinstance(t, dict) and isinstance(t.get("label"), str) for t in transactions):
        raise _not_a_load(c)
    return StarRocksLoad(id=load_id, timestamp=timestamp, transactions=tuple(transactions))


def _not_a_load(c: Cursor) -> FormatError:
    return c.fail("expected a load with id, timestamp and transactions", pos=0)


def _labels(state: Mapping[str, Any], c: Cursor) -> list[Any]:
    labels = state.get("labelSnapshots")
    if not isinstance(labels, list) or not all(isinstance(x, dict) and "labelPrefix" in x for x in labels):
        raise c.fail("expected generators of labels", pos=0)
    return labels
