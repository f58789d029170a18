"""Versions of connectors' state: which readers check the version of what they read, by the sources of each release."""

from __future__ import annotations

from typing import Final

#: Sources whose readers take the bytes of any version of a split.
_ANY_SPLIT: Final = frozenset({"kafka-source"})
#: Sinks whose committers take the bytes of any version of a committable.
_ANY_COMMITTABLE: Final = frozenset({"kafka-sink", "pulsar-sink"})
#: Sinks whose writers take the bytes of any version, by the last version that such writers write: newer ones refuse what is above theirs.
_ANY_WRITER: Final = {"kafka-sink": 1}


def ignores_split_version(connector: str) -> bool:
    """Return True if the readers of a source do not check the version of splits."""
    return connector in _ANY_SPLIT


def ignores_committable_version(connector: str) -> bool:
    """Return True if the committers of a sink do not check the version of committables."""
    return connector in _ANY_COMMITTABLE


def ignores_writer_version(connector: str, version: int) -> bool:
    """Return True if the writers of a sink that write this version do not check that of what they read."""
    return version <= _ANY_WRITER.get(connector, -1)
