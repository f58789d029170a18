"""Serializers of a job that starts with the classes of its jar, in the place of those that a snapshot describes."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer, UnderivedSerializer
from statetool.serializers.core.snapshot import SnapshotReader
from statetool.serializers.typeutils.java_types import class_snapshot, is_written, type_snapshot
from statetool.types.declared import TypeContext, renewed_class
from statetool.types.type_information import TypeInformation

_TYPE_ARGUMENTS: Final = "only the code of the job gives the type arguments of its class"
_NOT_EXTRACTED: Final = "the code of the job gives it, as the former serializer was not that of the class"


def renewed_serializer(reader: SnapshotReader, name: str, former: Serializer | None) -> Serializer | None:
    """Return the serializer of a job that starts with a class, ``None`` if neither its jar nor the user says what the class is.

    Parameters
    ----------
    former
        The serializer that the snapshot describes, with the new job's serializers of its fields.
    """
    plain = replace(reader, types=replace(reader.types, renewed=False))
    found = reader.types.type_information(name)
    if found is None:
        declared = renewed_class(reader.types, name)
        return None if declared is None else plain.snapshot(Cursor(class_snapshot(declared, plain.types)))
    if not is_written(found):
        if reader.types.former_information(name) == found and _is_same(reader.types, name):
            return None
        return UnderivedSerializer(found.reason or f"the schema of {name} cannot be told from its class file")
    kept, disputed = _fields_of_code(plain, name, found, former)
    serializer = plain.snapshot(Cursor(type_snapshot(found, former, kept)))
    explain_fields(serializer, found, kept, disputed)
    return serializer


def _fields_of_code(
    reader: SnapshotReader, name: str, found: TypeInformation, former: Serializer | None
) -> tuple[dict[str, bytes], set[str]]:
    """Return the fields whose serializer the job's code gives.

    Returns
    -------
    tuple
        Snapshots of those about which nothing differs between both jobs, and names of the others whose former serializer was not that of
        the former class.
    """
    types = reader.types
    before = types.former_information(name)
    if (
        before is None
        or former is None
        or types.former_kryo != types.kryo
        or (before.kind, found.kind) != ("pojo", "pojo")
    ):
        return {}, set()
    same = _is_same(types, name)
    parts = dict(zip((n for n, _ in before.fields), before.parts, strict=True))
    described = dict(former.children())
    kept, disputed = {}, set()
    for (field, _), part in zip(found.fields, found.parts, strict=True):
        old, old_part = described.get(field), parts.get(field)
        if old is None or old_part is None:
            continue
        # The field has the serializer of its former class, which the new class may have renewed.
        settled = [p for p in (old_part, part) if p.is_settled]
        if old_part.is_settled and any(_type_name(reader, p) == old.type_name for p in settled):
            continue
        if part != old_part or (part.reason and not same):
            disputed.add(field)
            continue
        out = Output()
        with suppress(UnknownSerializerError):
            old.write_snapshot(out)
            kept[field] = bytes(out)
    return kept, disputed


def _type_name(reader: SnapshotReader, found: TypeInformation) -> str:
    return reader.snapshot(Cursor(type_snapshot(found, None, {}))).type_name


def _is_same(types: TypeContext, name: str) -> bool:
    """Return True if both jobs have the same class and releases of Flink with the same rules."""
    if types.source is None or types.former is None or types.former_kryo != types.kryo:
        return False
    return types.former.is_same(name, types.source)


def explain_fields(
    serializer: Serializer,
    found: TypeInformation,
    kept: Collection[str] = (),
    disputed: Collection[str] = (),
) -> None:
    """Give fields of POJOs whose serializer is unknown the reason for it.

    Parameters
    ----------
    kept
        Fields of the POJO itself that have the serializer of the snapshot.
    disputed
        Fields of the POJO itself whose former serializer was not that of their class.
    """
    if found.kind != "pojo":
        for (_, child), part in zip(serializer.children(), found.parts, strict=False):
            explain_fields(child, part)
        return
    if found.is_settled and not disputed:
        return
    parts = dict(zip((n for n, _ in found.fields), found.parts, strict=True))
    underived = {}
    for field, child in serializer.children():
        if field not in parts or field in kept:
            continue
        part = parts[field]
        if field in disputed:
            underived[field] = UnderivedSerializer(part.reason or _NOT_EXTRACTED)
        elif isinstance(child, OpaqueSerializer) and not is_written(part):
            underived[field] = UnderivedSerializer(part.reason or _TYPE_ARGUMENTS)
        else:
            explain_fields(child, part)
    serializer.replace_fields(underived)
