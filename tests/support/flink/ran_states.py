"""Savepoints with states of classes about which only running them tells: Flink's serializers write snapshots and values (``ran/``)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from statetool.errors import UnknownSerializerError
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from tests.support.snapshots import canonical
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool

_FOLDER: Final = Path(__file__).parent / "ran"
Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RanState:
    """A state of one class: written by its own serializer (``own``), by Kryo, as a POJO, or as the key of its operator.

    ``verdict`` and ``warnings`` are what a run says, ``ruled`` is the verdict without one.
    """

    kind: Literal["own", "kryo", "pojo", "key"]
    name: str
    verdict: str
    warnings: tuple[str, ...] = ()
    ruled: str = "unknown"

    @property
    def class_name(self) -> str:
        return self.name if "." in self.name else f"ran.Ran${self.name}"


def classes(version: str, side: Side) -> Path:
    """Return the classes of the old or of the new job."""
    return compiled(version, _FOLDER / "writer", _FOLDER / side)


def write(version: str, side: Side, states: Sequence[RanState], folder: Path) -> str:
    """Write a savepoint with an operator per state; that of the new job has no values."""
    names = [f"{s.kind}:{s.class_name}" for s in states]
    path = os.pathsep.join(map(str, [classes(version, side), *flink_jars(version)]))
    command = [java_tool("java"), *SHORT_LIVED, "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", path]
    done = subprocess.run([*command, "WriteStates", *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(tuple(names))]
    assert [line[0] for line in lines] == names
    folder.mkdir(parents=True)
    operators = {}
    for state, (_, *words) in zip(states, lines, strict=True):
        key, value = (_serializer(_bytes(word)) for word in words[:2])
        entries = [
            ("s", int(group), canonical.composite_key(_bytes(k)), _bytes(v))
            for group, k, v in zip(words[2::3], words[3::3], words[4::3], strict=True)
        ]
        operators[state.name] = canonical.Subtask(
            key=key, states=[canonical.keyed("s", "value", value)], entries=entries
        )
    canonical.savepoint_of(folder, operators)
    return str(folder)


def _bytes(word: str) -> bytes:
    return bytes.fromhex(word.removeprefix("x"))


def _serializer(snapshot: bytes) -> Serializer:
    try:
        return canonical.serializer(snapshot)
    except UnknownSerializerError as error:
        return OpaqueSerializer(snapshot, error.message)
