"""Savepoints whose committer state holds commit identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

import statetool
from statetool import flink
from statetool.api.write.bootstrap import OperatorState
from statetool.connectors.sinks import COMMITTER_STATE
from statetool.connectors.wire import write_versioned
from tests.support.connectors.layouts import framed, packed

JOB: Final = "0123456789abcdef" * 2


def iceberg(*checkpoints: int) -> list[OperatorState]:
    """Return the state of the committer of ``FlinkSink`` for checkpoints without data."""
    rows = pa.table({"value": pa.array([[(n, b"") for n in checkpoints]], pa.map_(pa.int64(), pa.binary()))})
    kind = flink.map_of("BIGINT", "BINARY")
    return [
        statetool.bootstrap_list_state("iceberg-files-committer-state", rows, type=kind),
        statetool.bootstrap_list_state("iceberg-flink-job-id", pa.table({"value": [JOB]}), type="STRING"),
    ]


def paimon(*identifiers: int) -> list[OperatorState]:
    """Return the state of Paimon's committer; only the identifier of its committables is read."""
    elements = [write_versioned(5, packed((8, n), True, (4, 0), b"and more")) for n in identifiers]
    return [
        statetool.bootstrap_union_state("commit_user_state", pa.table({"value": ["user-1"]}), type="STRING"),
        statetool.bootstrap_list_state(
            COMMITTER_STATE, pa.table({"value": pa.array(elements, pa.binary())}), type="BINARY"
        ),
    ]


def new(checkpoint_id: int, *states: OperatorState) -> statetool.SavepointWriter:
    return statetool.SavepointWriter.new(checkpoint_id=checkpoint_id).with_operator("table", *states, parallelism=1)


def committer(*committables: bytes) -> bytes:
    """Return the state of a committer with committables of checkpoint 7."""
    return write_versioned(2, _collector(*committables))


def global_committer(*committables: bytes, restored: tuple[int, list[bytes]] | None = None) -> bytes:
    """Return the state of a global committer with committables of checkpoint 7, and global committables (version, bytes of each)."""
    old = b""
    if restored is not None:
        version, items = restored
        old = packed((4, version), (4, len(items)), *map(framed, items))
    head = packed(bytes.fromhex("b91f252b"), restored is not None)
    return write_versioned(2, head + old + write_versioned(2, _collector(*committables)))


def _collector(*committables: bytes) -> bytes:
    requests = [packed(write_versioned(1, data), (4, 0), (4, 0)) for data in committables]
    writer = packed((4, 1), packed((4, 0), (4, len(requests)), *map(framed, requests)), (4, 1), (4, 0))
    checkpoint = packed((8, 7), (4, 2), (4, 2), (4, 1), framed(writer))
    return packed(bytes.fromhex("b91f252c"), (4, 1), (4, 1), framed(checkpoint))


def write_sink(folder: Path, state: str, *elements: bytes) -> Path:
    """Write a savepoint of one operator with a list state that has these elements."""
    values = pa.table({"value": pa.array(elements, pa.binary())})
    rows = statetool.bootstrap_list_state(state, values, type="BINARY")
    statetool.SavepointWriter.new().with_operator("sink", rows, parallelism=1).write(str(folder))
    return folder
