"""Formulas of ``hashCode()`` inferred from keys of typical user classes; the hash codes come from Java (``HashKeys.java``)."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from statetool.errors import OptionError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.hashing.formulas import HashFormula, formula_hash, hash_serializer
from statetool.java.hashing.keys import KeyHasher
from statetool.java.hashing.prove import KeyProof, Sample, find_formula
from statetool.java.hashing.vector_hash import hash_pojos
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.conventions import Convention, parse_convention
from tests.support.snapshots import build

FLOAT, DOUBLE, BOOLEAN, SHORT = (build.simple(n) for n in ("Float", "Double", "Boolean", "Short"))
DATE, DECIMAL = build.simple("LocalDate"), build.simple("BigDec")
BYTES = build.simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array.")
ROWS: dict[str, list[list[Any]]] = json.loads((Path(__file__).parent / "hash_keys.json").read_text())
NOTHING = HashFormula(())


def enum(cls: str, *names: str) -> bytes:
    out = Output()
    out.utf("org.apache.flink.api.common.typeutils.base.EnumSerializer$EnumSerializerSnapshot")
    out.i4(3)
    out.utf(cls)
    out.i4(len(names))
    for name in names:
        out.utf(name)
    return bytes(out)


def case_class(cls: str, *fields: bytes) -> bytes:
    outer = Output()
    outer.utf(cls)
    name = "org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot"
    return build.composite(name, 2, bytes(outer), *fields)


COLOR = enum("app.Color", "RED", "GREEN", "BLUE")
INT, LONG, STRING = build.INT, build.LONG, build.STRING
PAIR = {"a": STRING, "b": INT}
FIELDS: dict[str, dict[str, Any]] = {
    "ObjectsHash": {"account": LONG, "active": BOOLEAN, "zone": STRING},
    "Pair": PAIR,
    "Wide": {"day": DATE, "id": LONG, "name": STRING, "on": BOOLEAN, "ratio": DOUBLE, "small": SHORT},
    "Outer": {"inner": build.pojo("app.Pair", PAIR), "tag": STRING},
    "Subset": {"id": STRING, "note": STRING, "version": LONG},
    "Ide": {"id": LONG, "name": STRING, "on": BOOLEAN, "part": FLOAT, "ratio": DOUBLE, "raw": BYTES},
    "Prime": {"a": INT, "b": INT, "c": STRING},
    "Bloch": {"area": SHORT, "line": INT, "prefix": INT},
    "Lombok": {"big": LONG, "flag": BOOLEAN, "n": INT, "text": STRING},
    "Commons": {"id": LONG, "name": STRING, "on": BOOLEAN},
    "Data": {"amount": DECIMAL, "shard": INT, "user": STRING},
    "Xor": {"left": STRING, "right": STRING},
    "Coloured": {"color": COLOR, "id": STRING},
    "Uncoloured": {"color": COLOR, "id": STRING},
    "Identity": {"color": COLOR, "id": STRING},
    "Odd": {"id": STRING, "n": INT},
}
FOUND = {
    "ObjectsHash": "app.ObjectsHash: Objects.hash(zone, account, active)",
    "Pair": "app.Pair: record(b, a)",
    "Wide": "app.Wide: record(name, id, on, ratio, small, day)",
    "Outer": "app.Outer: record(tag, inner); app.Pair: record(b, a)",
    "Subset": "app.Subset: record(id)",
    "Ide": "app.Ide: polynomial[0, 31, plain](name, id, on, ratio, part, raw)",
    "Prime": "app.Prime: Objects.hash(a, b, c)",
    "Bloch": "app.Bloch: polynomial[17, 37](line, prefix, area)",
    "Lombok": "app.Lombok: lombok(n, flag, big, text)",
    "Commons": "app.Commons: commons(id, on, name)",
    "Data": "app.Data: record(user, shard, amount)",
    "Xor": "app.Xor: xor(left, right)",
    "Coloured": "app.Color: name(); app.Coloured: Objects.hash(id, color)",
    "Uncoloured": "app.Uncoloured: Objects.hash(id)",
}


def key_of(name: str) -> Serializer:
    return snapshot_reader().snapshot(Cursor(build.pojo(f"app.{name}", FIELDS[name])))


def keys_of(name: str) -> list[tuple[tuple[Any, ...], int]]:
    """Return plain keys and their hash codes."""
    keys = []
    for *row, code in ROWS[name]:
        values = dict(zip(FIELDS[name], row, strict=True))
        for field, kind in FIELDS[name].items():
            value = values[field]
            if kind is FLOAT:
                values[field] = struct.unpack(">f", struct.pack(">f", value))[0]
            elif kind is BYTES:
                values[field] = bytes.fromhex(value)
            elif kind is DECIMAL and value is not None:
                values[field] = Decimal(value)
            elif kind is DATE:
                values[field] = int(value)
            elif isinstance(value, list):
                values[field] = tuple(value)
        keys.append((tuple(values.values()), code))
    return keys


def prove(
    key: Serializer, keys: list[tuple[Any, int]], max_parallelism: int = 128, formula: HashFormula = NOTHING
) -> KeyProof:
    groups = [key_group_for(code, max_parallelism) for _, code in keys]
    return find_formula(key, formula, Sample([value for value, _ in keys], groups, max_parallelism), "declare it")


@pytest.mark.parametrize("name", FOUND)
def test_the_formula_of_a_class_is_found_and_gives_javas_hash_codes(name: str) -> None:
    key, keys = key_of(name), keys_of(name)
    proof = prove(key, keys)
    assert proof.formula is not None
    assert str(proof.formula) == FOUND[name]
    assert proof.chance < 1e-15
    hash_code = formula_hash(proof.formula, key)
    assert [hash_code(value) for value, _ in keys] == [code for _, code in keys]


@pytest.mark.parametrize("name", FOUND)
def test_many_keys_hash_as_each_alone(name: str) -> None:
    key, keys = key_of(name), keys_of(name)
    proof = prove(key, keys)
    out, edges = Output(), [0]
    for value, _ in keys:
        key.encode(out, value)
        edges.append(len(out))
    data, places = np.frombuffer(bytes(out), dtype=np.uint8), np.array(edges, dtype=np.int64)
    hasher = KeyHasher(key, proof.formula)
    assert hasher.hashes(data, places[:-1], places[1:]).tolist() == [code for _, code in keys]
    assert hasher.ends(data, places[:-1], np.full(len(keys), len(out))).tolist() == edges[1:]


@pytest.mark.parametrize("name", ["ObjectsHash", "Pair", "Bloch", "Lombok", "Commons", "Prime", "Subset"])
def test_simple_fields_are_hashed_from_their_bytes(name: str) -> None:
    key, keys = key_of(name), keys_of(name)
    formula = prove(key, keys).formula
    assert formula is not None
    out, edges = Output(), [0]
    for value, _ in keys:
        key.encode(out, value)
        edges.append(len(out))
    places = np.array(edges, dtype=np.int64)
    codes = hash_pojos(
        hash_serializer(key, formula), np.frombuffer(bytes(out), dtype=np.uint8), places[:-1], places[1:]
    )
    assert codes is not None
    assert codes.tolist() == [code for _, code in keys]


@pytest.mark.parametrize("name", ["Identity", "Odd"])
def test_what_follows_no_convention_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"none of \d+ formulas puts the 40 keys of POJO app"):
        prove(key_of(name), keys_of(name))


def test_few_keys_prove_nothing() -> None:
    key, keys = key_of("Pair"), keys_of("Pair")
    with pytest.raises(UnsupportedError, match="declare it"):
        prove(key, keys[:3])
    with pytest.raises(UnsupportedError, match="declare it"):
        prove(key, keys, max_parallelism=1)
    # The same few hash codes repeated are not more proof.
    with pytest.raises(UnsupportedError, match="declare it"):
        prove(key, [(value, code) for value, code in keys[:3] for _ in range(20)])
    assert prove(key, keys, max_parallelism=7).keys_tested == 40


def test_one_key_that_does_not_agree_is_enough_to_refuse() -> None:
    key, keys = key_of("Pair"), keys_of("Pair")
    value, code = keys[-1]
    with pytest.raises(UnsupportedError, match="none of"):
        prove(key, [*keys[:-1], (value, code + 1)])


def test_classes_inside_tuples_are_found_too() -> None:
    key = snapshot_reader().snapshot(Cursor(build.tuple_of(LONG, build.pojo("app.Pair", PAIR))))
    keys = []
    for i, (pair, code) in enumerate(keys_of("Pair")):
        h = (31 * i + code) & 0xFFFFFFFF
        keys.append(((i, pair), h - (1 << 32) if h >= 1 << 31 else h))
    proof = prove(key, keys)
    assert str(proof.formula) == "app.Pair: record(b, a)"


@pytest.mark.parametrize("kind", ["scala", "scala2.13"])
def test_case_classes_of_both_scalas(kind: Any) -> None:
    key = snapshot_reader().snapshot(Cursor(case_class("app.Keys$Pair", STRING, INT)))
    formula = HashFormula((("app.Keys$Pair", Convention(kind=kind, fields=("_1", "_2"))),))
    hash_code = formula_hash(formula, key)
    keys = [((f"k{i}", i), hash_code((f"k{i}", i))) for i in range(30)]
    assert prove(key, keys).formula == formula
    assert (hash_code(("a", 1)) == key.hash_code(("a", 1))) == (kind == "scala")


def test_scala_2_13_mixes_the_name_of_the_class_in_first() -> None:
    # MurmurHash3.productHash: mix(seed, "P".hashCode), then finalised with the arity; of no fields here.
    formula = HashFormula((("app.Outer$P", Convention(kind="scala2.13")),))
    key = snapshot_reader().snapshot(Cursor(case_class("app.Outer$P", INT)))
    h, k = 0xCAFEBABE, ord("P") * 0xCC9E2D51 & 0xFFFFFFFF
    h ^= (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
    h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    assert formula_hash(formula, key)((5,)) & 0xFFFFFFFF == h


def test_a_declaration_is_tested_before_it_is_used() -> None:
    key, keys = key_of("Odd"), keys_of("Odd")
    wrong = HashFormula.declared({"app.Odd": "Objects.hash(id, n)"})
    with pytest.raises(OptionError, match="declared hash code"):
        prove(key, keys, formula=wrong)
    key, keys = key_of("Pair"), keys_of("Pair")
    right = HashFormula.declared({"app.Pair": "record(b, a)"})
    assert prove(key, keys[:2], formula=right).formula == right
    with pytest.raises(OptionError, match="has no field 'c'"):
        prove(key, keys, formula=HashFormula.declared({"app.Pair": "record(b, c)"}))


@pytest.mark.parametrize(
    "text",
    [
        "Objects.hash(a, b)", "record(b)", "lombok(a)", "commons(x, y, z)", "polynomial[17, 31](a)", "polynomial[0, 31, plain](a, b)",
        "xor(a, b)", "sum(a, b)", "scala(_1)", "scala2.13(_1, _2)", "name()", "ordinal()",
    ],
)  # fmt: skip
def test_conventions_read_as_they_are_written(text: str) -> None:
    assert str(parse_convention(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a, b", "hash(a)", "Objects.hash[1, 2](a)", "polynomial(a)", "polynomial[1, 31, odd](a)"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="is not a hash formula"):
        parse_convention(text)
