"""The ``_metadata`` file, versions 2 to 7, both directions."""

from statetool.formats.metadata.model import MasterState, OperatorState, SnapshotMetadata, SubtaskState, replace_streams
from statetool.formats.metadata.reader import parse_metadata
from statetool.formats.metadata.writer import write_metadata

__all__ = [
    "MasterState",
    "OperatorState",
    "SnapshotMetadata",
    "SubtaskState",
    "parse_metadata",
    "replace_streams",
    "write_metadata",
]
