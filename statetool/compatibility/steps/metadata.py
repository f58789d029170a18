"""Read ``_metadata``: its version, its handles, and the versions of the headers that they lead to.

Follows ``Checkpoints.loadCheckpointMetadata``, ``MetadataSerializers``, ``MetadataV2V3SerializerBase`` and
``OperatorBackendSerializationProxy``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.releases import FIRST_TO_5, kryo_of, shown_releases
from statetool.compatibility.restore import Restore
from statetool.compatibility.states import of_error
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Found,
    Result,
    Step,
    guarded,
    is_always_relevant,
    is_unknown,
    note,
    refuses,
)
from statetool.compatibility.verdicts import NEW, A, Level, Remedy
from statetool.errors import UNREAD, UnsupportedError, several
from statetool.formats.metadata.handles import ChangelogHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.saving.versions import READS, UNRELEASED, WIDEST, convert_metadata, parse_release
from statetool.snapshot.operator import OperatorInventory


def _metadata(restore: Restore) -> Iterator[Result]:
    """M1, M2: the release reads this version of the metadata, and all kinds of handles in it."""
    releases = restore.releases
    if not releases:
        yield Assumption(rule="M1", text="the Flink release of the new job reads this snapshot", option="--flink")
        return
    old = restore.old.metadata
    if any(r in UNRELEASED for r in releases):
        text = f"Flink {shown_releases(releases)} reads what its development branch read on 2026-11-30: the release did not exist, and no restore was tested"
        yield Assumption(rule="M1", text=text, option="a newer statetool")
    reading = [r for r in releases if READS[r][0] >= old.version]
    if not reading:
        readers = [r for r, (version, _) in READS.items() if version >= old.version]
        text = f"Flink {shown_releases(releases)} does not read metadata of version {old.version}."
        yield refuses("M1", text, f"Restore it with Flink {readers[0]} or later.")
        return
    failing = [e for r in reading if (e := _refused_handle(restore, r)) is not None]
    if len(failing) == len(reading):
        yield Found(rule="M2", resolution=of_error(Level.INCOMPATIBLE, failing[-1]))
        return
    if len(reading) < len(releases):
        text = f"Whether Flink reads metadata of version {old.version} is unknown: B has version {WIDEST}, which does not show the release of the new job, and Flink before {reading[0]} does not."
        yield is_unknown("M1", text, Remedy("Name the release of the new job with --flink.", is_final=True))
    elif kryo_of(releases) is None:
        major = "1.x" if restore.old.types.kryo == 2 else "2.x"
        text = f"the new job is of Flink {major}, as the snapshot is (B does not show the release)"
        yield Assumption(rule="M1", text=text, option="--flink")
    if failing:
        text = f"the new job is of a release that reads the state handles of the snapshot (B may be of Flink {shown_releases(releases)})"
        yield Assumption(rule="M2", text=text, option="--flink")


def _refused_handle(restore: Restore, release: str) -> UnsupportedError | None:
    try:
        convert_metadata(restore.old.metadata, parse_release(release), properties=savepoint_properties())
    except UnsupportedError as error:
        return error
    return None


def _operator_proxy(restore: Restore) -> Iterator[Result]:
    """M5: Flink up to 1.17 reads operator state up to version 5 of its proxy; 1.18 and later write version 6."""
    releases = restore.releases
    older = [r for r in releases if r in FIRST_TO_5]
    if not older:
        return
    newer = [(p.old, n) for p in restore.pairs if (n := _newest_proxy(p.old)) > 5]
    if len(older) == len(releases):
        for operator, version in newer:
            text = f"Flink {shown_releases(releases)} cannot read operator state of version {version}, which Flink 1.18 and later write."
            command = ("upgrade", A, NEW, "--flink", releases[-1])
            yield refuses("M5", text, Remedy("Write a copy for that release.", command), operator)
    elif newer:
        text = f"the new job is of Flink 1.18 or later, which read the operator state of the snapshot (B may be of Flink {shown_releases(releases)})"
        yield Assumption(rule="M5", text=text, option="--flink")


def _newest_proxy(operator: OperatorInventory) -> int:
    try:
        return max((header.version for _, header in operator.elements.headers()), default=0)
    except UNREAD:
        return 0  # The step of operator state reports it.


def _change_logs(restore: Restore) -> Iterator[Result]:
    """M12: a cluster that restores change logs needs their storage (``StateChangelogStorageLoader``)."""
    operators = [
        o
        for o in restore.old.operators.values()
        if any(isinstance(s.managed_keyed, ChangelogHandle) for s in o.state.subtasks)
    ]
    if operators:
        text = f"The state of {several(len(operators), 'operator')} is stored in change logs: the new cluster needs flink-dstl-dfs and the change log module."
        yield note("M12", text, Remedy("Convert the snapshot, if the new cluster lacks them.", ("convert", A, NEW)))


STEP: Final = Step(
    name="metadata",
    title="Metadata",
    follows="Checkpoints, MetadataSerializers, OperatorBackendSerializationProxy",
    irrelevant=is_always_relevant,
    checks=(_metadata, guarded(_operator_proxy), _change_logs),
)
