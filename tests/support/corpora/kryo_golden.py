"""Values that Flink's Kryo wrote (``tests/serializers/kryo``), and serializers that read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import serializer_snapshot
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import parse_java_type
from tests.support.corpora.archives import HERE
from tests.support.corpora.kryo_values import CLASSES


@dataclass(frozen=True)
class Golden:
    """Output of one release."""

    gen: Literal[2, 5]
    snapshot: bytes
    values: dict[str, tuple[bytes, str]]


@lru_cache
def golden(version: str) -> Golden:
    lines = (HERE / "serializers" / "kryo" / f"values-{version}.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    values = {name: (bytes.fromhex(raw), text) for name, raw, text in rows[1:]}
    return Golden(5 if version.startswith("2.") else 2, bytes.fromhex(rows[0][1]), values)


def bound(gen: Literal[2, 5], snapshot: bytes, classes: tuple[ClassDeclaration, ...] = CLASSES) -> Serializer:
    return snapshot_reader(TypeContext(kryo=gen, classes=classes)).snapshot(Cursor(snapshot))


def of_type(gen: Literal[2, 5], kind: str, classes: tuple[ClassDeclaration, ...] = CLASSES) -> Serializer:
    """Return the serializer of a generic type."""
    context = TypeContext(kryo=gen, classes=classes)
    return bound(gen, serializer_snapshot(parse_java_type(kind), context, generic=True), classes)


def encoded(s: Serializer, value: Any) -> bytes:
    out = Output()
    s.encode(out, value)
    return bytes(out)
