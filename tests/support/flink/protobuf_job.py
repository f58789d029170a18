"""Savepoints of a job whose serializers write Protobuf messages after their length (``protobufs/harness``).

``python -m tests.support.flink.protobuf_job`` packs a savepoint per release with the values that the job saw.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from statetool.types.declared import ClassDeclaration
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.tree_job import RELEASES, pack_savepoints
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "protobufs.tar.xz"
STRUCTS: Final = "harness.ProtobufJob$StructSnapshot"
FRAMED: Final = "harness.ProtobufJob$FramedSnapshot"
_JOB: Final = HERE / "support" / "flink" / "protobufs"


def protobuf_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (_JOB,), jars=maven_jars("protobufs"))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "ProtobufJob"}, **request)


def _descriptor(name: str) -> bytes:
    """Return the descriptor of a message that Protobuf ships and that imports no files."""
    file_set: Any = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet()
    import_module(f"google.protobuf.{name.lower()}_pb2").DESCRIPTOR.CopyToProto(file_set.file.add())
    return bytes(file_set.SerializeToString())


def message(name: str, serializer: str, length_prefix: str, *, in_jar: bool = False) -> ClassDeclaration:
    """Return the declaration of a message that Protobuf ships, with its descriptor unless that is in the jar."""
    return ClassDeclaration(
        name=f"com.google.protobuf.{name}",
        kind="protobuf",
        descriptor=b"" if in_jar else _descriptor(name),
        message="" if in_jar else f"google.protobuf.{name}",
        serializer=serializer,
        length_prefix=length_prefix,
    )


def declared(*, in_jar: bool = False) -> tuple[ClassDeclaration, ...]:
    """Return the declarations of the job's messages."""
    messages = (("Struct", STRUCTS, "varint"), ("Timestamp", FRAMED, "int"), ("Duration", FRAMED, "int"))
    return tuple(message(*m, in_jar=in_jar) for m in messages)


if __name__ == "__main__":
    pack_savepoints(PACKED, RELEASES, protobuf_machine, run_job)
