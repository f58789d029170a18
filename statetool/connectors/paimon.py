"""Paimon's sink (``org.apache.paimon.flink.sink``), implemented from its source code without bytes of a real job.

Writers and committer store the union list state ``commit_user_state`` (a string: the commit user), the committer also
``streaming_committer_raw_states``: byte arrays, each a versioned ``ManifestCommittable``. In versions 2 to 6 that begins with the i8
identifier of the commit, which is the checkpoint id (``Long.MAX_VALUE`` at the end of the input). The remaining fields change with each
release and stay bytes. For each user, a table accepts only commits with identifiers higher than those it has: the others count as done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import PendingCommit, SinkState
from statetool.connectors.wire import whole_versioned
from statetool.io.cursor import Cursor

_USER: Final = "commit_user_state"
_COMMITTABLES: Final = "streaming_committer_raw_states"
_VERSIONS: Final = (2, 3, 4, 5, 6)
_END_OF_INPUT: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonCommittable:
    """A commit to a table: its identifier, and its size in bytes."""

    identifier: int
    size_bytes: int


class PaimonSink(StateSink):
    """Paimon's sink: writers and committer."""

    name: ClassVar[str] = "paimon-sink"
    commits_by_checkpoint_id: ClassVar[bool] = True

    def recognises(self, operator: OperatorBytes) -> bool:
        return _USER in operator.states

    def read(self, operator: OperatorBytes) -> SinkState:
        committer = _COMMITTABLES in operator.states
        pending, unread, versions = [], [], set()
        for subtask, value in operator.values(_COMMITTABLES) if committer else ():
            version, raw = whole_versioned(value, "a committable")
            versions.add(version)
            if version in _VERSIONS:
                pending.append(_pending(subtask, version, raw))
            else:
                unread.append((subtask, version, raw))
        return SinkState(
            role="committer" if committer else "writer",
            pending=tuple(pending),
            writers=tuple((subtask, {"commit_user": user}) for subtask, user in operator.values(_USER)),
            versions=frozenset(versions),
            unread=tuple(unread),
        )


def _pending(subtask: int, version: int, raw: bytes) -> PendingCommit:
    identifier = Cursor(raw).i8()
    return PendingCommit(
        name=str(identifier),
        status="pre_committed",
        subtask=subtask,
        checkpoint_id=None if identifier == _END_OF_INPUT else identifier,
        version=version,
        expires=False,
        fields=PaimonCommittable(identifier=identifier, size_bytes=len(raw)),
    )
