"""Read ``_metadata``: its version, its handles, and the versions of the headers that they lead to.

Follows ``Checkpoints.loadCheckpointMetadata``, ``MetadataSerializers``, ``MetadataV2V3SerializerBase`` and
``OperatorBackendSerializationProxy``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.states import of_error
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Found, Result, Step, is_always_relevant, note, per_pair, refuses
from statetool.compatibility.verdicts import NEW, A, Level, Remedy
from statetool.errors import UnsupportedError, several
from statetool.formats.metadata.handles import ChangelogHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.saving.versions import RELEASES, convert_metadata

#: The last release that reads operator state of proxy version 5 only.
_LAST_OF_5: Final = (1, 17)


def _metadata(restore: Restore) -> Iterator[Result]:
    """M1, M2: the release reads this version of the metadata, and all kinds of handles in it."""
    target = restore.job.target
    if target is None or target.release is None:
        yield Assumption(rule="M1", text="the Flink release of the new job reads this snapshot", option="--flink")
        return
    old = restore.old.metadata
    if old.version > target.metadata_version:
        readers = [r for r, (version, _) in RELEASES.items() if version >= old.version]
        text = f"Flink {target.release} does not read metadata of version {old.version}."
        yield refuses("M1", text, f"Restore it with Flink {readers[0]} or later.")
        return
    try:
        convert_metadata(old, target, properties=savepoint_properties())
    except UnsupportedError as error:
        yield Found(rule="M2", resolution=of_error(Level.INCOMPATIBLE, error))


def _operator_proxy(restore: Restore, pair: Pair) -> Iterator[Result]:
    """M5: Flink up to 1.17 reads operator state up to version 5 of its proxy; 1.18 and later write version 6."""
    release = restore.release
    if release is None or release > _LAST_OF_5:
        return
    for _, header in pair.old.elements.headers():
        if header.version > 5:
            text = f"Flink {release[0]}.{release[1]} does not read operator state of version {header.version}, which Flink 1.18 and later write."
            remedy = Remedy(
                "Write a copy for that release.", ("upgrade", A, NEW, "--flink", f"{release[0]}.{release[1]}")
            )
            yield refuses("M5", text, remedy, pair.old)
            return


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
    checks=(_metadata, per_pair(_operator_proxy), _change_logs),
)
