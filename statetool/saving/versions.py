"""Versions of the metadata and of handles that each Flink release reads.

Follows the tables of readers in ``MetadataSerializers`` and ``MetadataV2V3SerializerBase`` of each release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from statetool.errors import OptionError, UnsupportedError, warn
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import (
    AnyChannelHandle,
    ChangelogHandle,
    ChangesHandle,
    EmptySegmentHandle,
    Handle,
    IncrementalHandle,
    InMemoryChangesHandle,
    KeyGroupsHandle,
    MergedChannelHandle,
    SegmentHandle,
    SegmentOperatorHandle,
    streams_of,
)
from statetool.formats.metadata.model import NEWEST_RELEASED

#: (metadata version, highest handle tag) by release.
RELEASES: Final = {
    "1.13": (3, 7),
    "1.14": (3, 10),
    "1.15": (3, 12),
    "1.16": (4, 14),
    "1.17": (4, 14),
    "1.18": (4, 14),
    "1.19": (4, 14),
    "1.20": (4, 17),
    "2.0": (5, 17),
    "2.1": (6, 17),
    "2.2": (6, 17),
    "2.3": (6, 17),
}
#: The same for releases that do not exist yet, as their development branch was on 2026-11-30. A release moves to the table above when real
#: Flink has restored what is written for it.
UNRELEASED: Final = {"2.4": (7, 17)}
#: What each release reads, by its name.
READS: Final = RELEASES | UNRELEASED
#: The version that all of these releases read.
WIDEST: Final = 3


@dataclass(frozen=True, slots=True)
class Target:
    """Format versions that the reader of a snapshot supports; ``release`` is ``None`` for any release."""

    release: str | None
    metadata_version: int
    highest_tag: int


def parse_release(flink_version: str | None, *, default: int = WIDEST) -> Target:
    """Return the format versions that a release reads.

    Parameters
    ----------
    flink_version
        For example ``2.3`` or ``1.20.1``; ``None`` selects metadata version ``default``.

    Raises
    ------
    OptionError
        The release is unknown, or none is named and none that exists reads the default.
    """
    if flink_version is None:
        if default > NEWEST_RELEASED:
            raise OptionError(
                f"the snapshot has metadata of version {default}, which only Flink {' and '.join(_readers_above(NEWEST_RELEASED))} will read",
                hint=f"write a copy for a release that you choose, and change that: statetool convert SRC COPY --flink {list(RELEASES)[-1]}",
            )
        return Target(None, default, 17)
    short = ".".join(str(flink_version).split(".")[:2])
    if short not in READS:
        raise OptionError(
            f"Flink {flink_version!r} is not a release that statetool knows",
            hint=f"choose one of {', '.join(RELEASES)}, or omit it",
        )
    version, tag = READS[short]
    # For a release that does not exist yet, metadata has a version that it shares with those that do: its own may still change.
    return Target(short, min(version, NEWEST_RELEASED), tag)


def warn_if_unreleased(flink_version: str | None, *, stacklevel: int = 2) -> None:
    """Warn if a snapshot is written for a release that does not exist yet."""
    if flink_version is not None and parse_release(flink_version).release in UNRELEASED:
        warn(
            f"Flink {flink_version} did not exist when this statetool was released: no restore of what it writes was tested",
            stacklevel=stacklevel + 1,
        )


def warn_if_newer(metadata: SnapshotMetadata, *, stacklevel: int = 2) -> None:
    """Warn if no release that exists writes metadata of this version."""
    if metadata.version > NEWEST_RELEASED:
        readers = " or ".join(_readers_above(NEWEST_RELEASED))
        warn(
            f"the snapshot has metadata of version {metadata.version}, as development versions of Flink {readers} write it. It is read by the "
            "format of 2026-11-30, which may have changed: compare what you read with the job",
            stacklevel=stacklevel + 1,
        )


def _readers_above(version: int) -> list[str]:
    return [release for release, (newest, _) in READS.items() if newest > version]


def convert_metadata(metadata: SnapshotMetadata, target: Target, *, properties: bytes) -> SnapshotMetadata:
    """Return metadata converted to the version of a target.

    Parameters
    ----------
    properties
        Checkpoint properties to use if the version has them and the metadata does not.

    Raises
    ------
    UnsupportedError
        The snapshot contains data that the release cannot read.
    """
    for operator in metadata.operators:
        _check(operator, target)
    version = target.metadata_version
    operators = tuple(_convert_channels(o, version) for o in metadata.operators)
    new_properties = (metadata.properties or properties) if version >= 4 else b""
    return replace(metadata, version=version, operators=operators, properties=new_properties)


def _check(operator: OperatorState, target: Target) -> None:
    label = operator.uid or operator.operator_id
    finished = operator.fully_finished or any(s.finished for s in operator.subtasks)
    if finished and (target.metadata_version < 3 or target.release == "1.13"):
        raise UnsupportedError("Flink 1.13 cannot read finished operators", hint="choose 1.14 or later").at(
            operator=label
        )
    for subtask in operator.subtasks:
        for tag in _tags(subtask):
            if tag > target.highest_tag:
                raise UnsupportedError(
                    f"Flink {target.release} cannot read state handles of tag {tag}",
                    hint="choose a later release, or convert the snapshot to a canonical savepoint first",
                ).at(operator=label)


def _tags(subtask: SubtaskState) -> Iterator[int]:
    handles: tuple[Handle, ...] = (
        subtask.managed_operator,
        subtask.raw_operator,
        subtask.managed_keyed,
        subtask.raw_keyed,
        *subtask.input_channels,
        *subtask.output_channels,
    )
    for handle in handles:
        yield from _handle_tags(handle)


def _handle_tags(handle: Handle) -> Iterator[int]:
    match handle:
        case KeyGroupsHandle() | IncrementalHandle() | ChangesHandle():
            yield handle.tag
        case ChangelogHandle():
            yield handle.tag
            for h in (*handle.materialized, *handle.changes):
                yield from _handle_tags(h)
        case InMemoryChangesHandle():
            yield 9
        case SegmentOperatorHandle():
            yield 17
        case EmptySegmentHandle():
            yield 16
    if any(isinstance(s, SegmentHandle) for s in streams_of(handle)):
        yield 15


def _convert_channels(operator: OperatorState, version: int) -> OperatorState:
    return replace(
        operator,
        subtasks=tuple(
            replace(
                s,
                input_channels=tuple(_channel(h, version, 1, operator) for h in s.input_channels),
                output_channels=tuple(_channel(h, version, 2, operator) for h in s.output_channels),
            )
            for s in operator.subtasks
        ),
    )


def _channel(handle: AnyChannelHandle, version: int, kind: int, operator: OperatorState) -> AnyChannelHandle:
    if isinstance(handle, MergedChannelHandle):
        if version < 6:
            raise UnsupportedError(
                "only Flink 2.1 and later read in-flight data of several channels in one handle",
                hint="choose 2.1 or later, or stop the job with a savepoint, which has no such data",
            ).at(operator=operator.uid or operator.operator_id)
        return handle
    return replace(handle, type_byte=kind if version >= 6 else None)
