"""Coordinators: the state of enumerators and other coordinators on the JobManager.

Follows ``CheckpointCoordinator.restoreStateToCoordinators``, which asks only the coordinators of the new job, and ``SourceCoordinator``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.keyed_state import SAME_STATES
from statetool.compatibility.steps.step import Result, Step, is_unknown, loses, per_pair, refuses
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.connectors.sources import READER_STATE, source_of
from statetool.errors import several
from statetool.snapshot.metadata_tables import coordinator_bytes

#: List states in which sources before FLIP-27 store positions.
_POSITIONS: Final = ("topic-partition-offset-states", "Kinesis-Stream-Shard-State", "file-monitoring-state")


def _irrelevant(restore: Restore) -> str:
    inventories = [restore.old, *([] if restore.new is None else [restore.new])]
    if any(coordinator_bytes(o) for inventory in inventories for o in inventory.operators.values()):
        return ""
    if restore.old.metadata.master_states:
        return ""
    return "no operator has a coordinator"


def _gone(restore: Restore, pair: Pair) -> Iterator[Result]:
    """O7, O8: state of a coordinator without one in the new job is ignored, and a coordinator without state starts fresh."""
    if pair.new is None:
        return
    before, after = coordinator_bytes(pair.old), coordinator_bytes(pair.new)
    if before and not after:
        text = f"The new job has no coordinator for this operator: its {several(before, 'byte')} of state, such as splits that are not read yet, are ignored without a message."
        yield loses(
            "O7", text, "Keep a source with an enumerator under this uid, or give the new source another uid.", pair.old
        )
    elif after and not before and pair.old.listed_elements and READER_STATE not in pair.old.listed_elements:
        positions = [n for n in pair.old.listed_elements if n in _POSITIONS or "offset" in n.lower()]
        text = "The new job has a source with an enumerator here, and the snapshot has none: the source begins at its start option"
        shown = f", and does not use the positions in {', '.join(positions)}." if positions else "."
        yield loses(
            "O8",
            text + shown,
            Remedy("Convert the positions.", ("sources", "convert", A, NEW, "--uid", str(pair.old.label))),
            pair.old,
        )


def _formats(restore: Restore, pair: Pair) -> Iterator[Result]:
    """C4, C18: formats of coordinators. That of sources has a version, other coordinators have formats of their own."""
    old, new = pair.old, pair.new
    if not coordinator_bytes(old) or (new is not None and restore.has_snapshot and not coordinator_bytes(new)):
        return
    source = source_of(old)
    before = None if source is None else source.coordinator_version
    if READER_STATE not in old.listed_elements or before is None:
        text = f"the coordinator of {old.label.display} in the new job reads the {several(coordinator_bytes(old), 'byte')} of its state"
        yield Assumption(rule="C18", text=text, option="a restore of a copy of the job")
        return
    new_source = None if new is None else source_of(new)
    after = None if new_source is None else new_source.coordinator_version
    if after is not None and before > after:
        text = f"The state of the source coordinator has format {before}, and the new job writes {after}: an older release of Flink refuses it."
        yield refuses(
            "C4", text, Remedy("Use the release of Flink that wrote the snapshot, or a newer one.", is_final=True), old
        )


def _hooks(restore: Restore) -> Iterator[Result]:
    """O10: state of a hook on the JobManager (``MasterHooks``) that the new job does not have is ignored, or refused beside other hooks."""
    states = {m.name for m in restore.old.metadata.master_states}
    shown = set() if restore.new is None else {m.name for m in restore.new.metadata.master_states}
    if gone := states - shown:
        text = f"The snapshot has the state of {', '.join(sorted(gone))}, hooks on the JobManager as Pravega has. Whether the new job has them is unknown."
        yield is_unknown("O10", text, "Restore a copy of the job from this snapshot to find out.")


def _unknown(restore: Restore) -> Iterator[Result]:
    """Without a snapshot of the new job, its coordinators are not known."""
    if not restore.has_snapshot:
        yield SAME_STATES


STEP: Final = Step(
    name="coordinators",
    title="Coordinators",
    follows="CheckpointCoordinator, SourceCoordinator",
    irrelevant=_irrelevant,
    checks=(per_pair(_gone), per_pair(_formats), _hooks, _unknown),
)
