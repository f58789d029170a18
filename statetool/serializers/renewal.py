"""Serializers of a job that starts with the classes of its jar, in the place of those that a snapshot describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.java_types import class_snapshot, is_written, type_snapshot
from statetool.serializers.opaque import OpaqueSerializer, UnderivedSerializer
from statetool.serializers.snapshot import SnapshotReader
from statetool.types.declared import TypeContext, renewed_class
from statetool.types.type_information import TypeInformation

_TYPE_ARGUMENTS: Final = "only the code of the job gives the type arguments of its class"


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
        if found.kind == "unknown" and reader.types.former_information(name) == found and _is_same(reader.types, name):
            return None
        return UnderivedSerializer(found.reason or f"the schema of {name} cannot be told from its class file")
    kept = _kept_fields(reader.types, name, found, former)
    serializer = plain.snapshot(Cursor(type_snapshot(found, former, kept)))
    explain_fields(serializer, found, kept)
    return serializer


def _kept_fields(types: TypeContext, name: str, found: TypeInformation, former: Serializer | None) -> dict[str, bytes]:
    """Return the snapshots of fields whose serializer only the job's code determines, if nothing about them differs between both jobs."""
    before = types.former_information(name)
    if before is None or former is None or types.former_kryo != types.kryo or before.kind != found.kind:
        return {}
    same = _is_same(types, name)
    parts = dict(zip((n for n, _ in before.fields), before.parts, strict=True))
    described = dict(former.children())
    kept = {}
    for (field, _), part in zip(found.fields, found.parts, strict=True):
        if part.is_settled or part != parts.get(field) or (part.reason and not same) or field not in described:
            continue
        out = Output()
        try:
            described[field].write_snapshot(out)
        except UnknownSerializerError:
            continue
        kept[field] = bytes(out)
    return kept


def _is_same(types: TypeContext, name: str) -> bool:
    """Return True if both jobs have the same class and releases of Flink with the same rules."""
    if types.source is None or types.former is None or types.former_kryo != types.kryo:
        return False
    return types.former.is_same(name, types.source)


def explain_fields(serializer: Serializer, found: TypeInformation, kept: Mapping[str, bytes] | None = None) -> None:
    """Give fields of POJOs whose serializer is unknown the reason for it."""
    # That module needs this one.
    from statetool.serializers.pojo import PojoSerializer

    if found.kind != "pojo":
        for (_, child), part in zip(serializer.children(), found.parts, strict=False):
            explain_fields(child, part)
        return
    if not isinstance(serializer, PojoSerializer) or found.is_settled:
        return
    parts = dict(zip((n for n, _ in found.fields), found.parts, strict=True))
    fields = []
    for field, child in serializer.fields:
        part = parts[field]
        if isinstance(child, OpaqueSerializer) and not is_written(part) and field not in (kept or {}):
            child = UnderivedSerializer(part.reason or _TYPE_ARGUMENTS)
        elif field not in (kept or {}):
            explain_fields(child, part)
        fields.append((field, child))
    serializer.fields = tuple(fields)
    serializer.settle_columns()
