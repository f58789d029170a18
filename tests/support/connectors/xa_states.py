"""State of JDBC's exactly-once sink: XA transactions in the bytes of its serializers, and savepoints with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa

import statetool
from statetool.connectors.layouts.jdbc import JdbcTransaction, Xid
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE
from statetool.connectors.wire import write_versioned
from tests.support.connectors.layouts import framed, packed

XA_JOB: Final = bytes(range(16))
SUBTASKS: Final = 2
#: Uids of writer and committer.
UIDS: Final = ("out", "Sink Committer: out")
#: Subtask of a transaction, and the checkpoint after which it began.
Begun: TypeAlias = tuple[int, int]


def xid(subtask: int, checkpoint: int) -> bytes:
    """Return a transaction in the format of ``XidSerializer``: its parts are complete buffers, with their allocated length."""
    branch = packed((4, SUBTASKS), (8, checkpoint)) + bytes(1)
    return packed((4, 202), (1, 34), XA_JOB, (4, subtask), bytes(14), (1, 13), branch)


def transaction(subtask: int, checkpoint: int, attempts: int = 0) -> bytes:
    """Return a transaction in the format of ``TransactionId`` for the state of a writer."""
    return packed((1, 68), XA_JOB, (4, subtask), (4, SUBTASKS), (8, checkpoint), (4, attempts)) + bytes(32)


def xid_in_database(subtask: int, checkpoint: int, job: bytes = XA_JOB) -> Xid:
    """Return a transaction as the database has it."""
    return JdbcTransaction(
        job_id=job.hex(), subtask=subtask, number_of_subtasks=SUBTASKS, checkpoint_id=checkpoint, attempts=0
    ).xid


def write_jdbc_sink(
    path: Path, *, hanging: Iterable[Begun], prepared: Iterable[Begun], committables: Iterable[Begun]
) -> statetool.Savepoint:
    """Write a savepoint of checkpoint 8: open and prepared transactions of the writer, and those of the committer."""
    began = b"".join(packed((4, len(group)), *(transaction(*t) for t in group)) for group in ([*hanging], [*prepared]))
    requests = [framed(packed(write_versioned(1, xid(*t)), (4, 0), (4, 0))) for t in committables]
    writer = packed((4, 1), packed((4, 0), (4, len(requests)), *requests), (4, 1), (4, 0))
    checkpoint = packed((8, 8), (4, 2), (4, 2), (4, 1), framed(writer))
    committer = packed(bytes.fromhex("b91f252c"), (4, 1), (4, 1), framed(checkpoint))
    new = statetool.SavepointWriter.new()
    states = ((WRITER_STATE, began + bytes(9)), (COMMITTER_STATE, committer))
    for uid, (name, data) in zip(UIDS, states, strict=True):
        rows = pa.table({"value": [write_versioned(2, data)]})
        new = new.with_operator(uid, statetool.bootstrap_list_state(name, rows, type="BINARY"), parallelism=1)
    return new.write(str(path)).with_uids(UIDS)
