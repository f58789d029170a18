"""Avro records as keys: hash codes computed by Avro, inferred from the key groups of a job, and used to move keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.io.cursor import Cursor
from statetool.java.hashing.formulas import HashFormula, formula_hash
from statetool.java.hashing.prove import Sample, find_formula
from statetool.serializers.avro.hash import avro_hash
from statetool.serializers.avro.serializer import parse_schema
from statetool.serializers.table import snapshot_reader
from statetool.types.conventions import Convention, parse_convention
from tests.support.corpora.archives import unpack
from tests.support.corpora.golden import generated

NEWEST = Convention(kind="avro", start=1, multiplier=10)
RECORD = "org.apache.avro.generic.GenericRecord"


@pytest.mark.parametrize("name", ["avro-primitives", "avro-logical", "avro-names", "avro-evolved-before"])
def test_hash_codes_are_those_of_avro_1_12(name: str) -> None:
    (case,) = generated()[name]
    s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
    hash_code = formula_hash(HashFormula(((RECORD, NEWEST),)), s)
    c = Cursor(case.data or b"")
    assert case.hashes is not None
    assert case.key_groups is not None
    for expected, group in zip(case.hashes, case.key_groups, strict=True):
        code = hash_code(s.decode(c))
        assert code == expected
        assert key_group_for(code, 128) == group


#: The schema of ``serializers/avro/java/statetool/avro/Hashes.java``.
MANY = {
    "type": "record", "name": "Many", "namespace": "statetool.cases", "fields": [
        {"name": "inner", "type": {"type": "record", "name": "In", "fields": [
            {"name": "a", "type": "string"}, {"name": "b", "type": "double"}]}},
        {"name": "text", "type": "string"}, {"name": "skipped", "type": "int", "order": "ignore"},
        {"name": "flag", "type": "boolean"}, {"name": "list", "type": {"type": "array", "items": "string"}},
        {"name": "raw", "type": "bytes"}, {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "maybe", "type": ["null", "float"]}, {"name": "either", "type": ["int", "string", "In"]},
        {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}},
        {"name": "number", "type": "long"}, {"name": "last", "type": "string"},
    ],
}  # fmt: skip


def _many(n: int) -> tuple[Any, ...]:
    """Return the values that ``Hashes`` makes."""
    inner = (f"in é {n}", n / 8)
    either = tuple(v if n % 3 == i else None for i, v in enumerate((n, f"t{n}", inner)))
    words = [f"x{n}", ""] if n % 3 else []
    maybe = n / 2 if n % 4 else None
    raw, fixed = bytes((n, 255, 3)), bytes((251, n))
    return (
        inner, f"a rather long text {n}", n, n % 2 == 0, words, raw, fixed, maybe, either, "XY"[n % 2], 1 << n, f"end {n}",
    )  # fmt: skip


@pytest.mark.parametrize(("version", "start", "most"), [("1.12.1", 1, 10), ("1.8.2", 0, 0)])
def test_hash_codes_of_two_releases_of_avro(version: str, start: int, most: int) -> None:
    expected = json.loads((Path(__file__).parents[2] / "serializers" / "avro" / "hashes.json").read_text())[version]
    kind = parse_schema(MANY)
    assert [avro_hash(kind, _many(n), text_start=start, most=most) for n in range(len(expected))] == expected


def test_maps_and_recursion_have_no_hash() -> None:
    for name in ("avro-nested", "avro-tree"):
        (case,) = generated()[name]
        s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
        hash_code = formula_hash(HashFormula(((RECORD, Convention(kind="avro", start=0, multiplier=0)),)), s)
        with pytest.raises(UnsupportedError, match="Avro"):
            hash_code(s.decode(Cursor(case.data or b"")))


def test_the_release_of_avro_is_found() -> None:
    (case,) = generated()["avro-primitives"]
    s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
    c = Cursor(case.data or b"")
    values = [s.decode(c) for _ in case.hashes or ()]
    for start, most in ((1, 10), (0, 0), (0, 10), (1, 0)):
        convention = Convention(kind="avro", start=start, multiplier=most)
        assert parse_convention(str(convention)) == convention
        hash_code = formula_hash(HashFormula(((RECORD, convention),)), s)
        groups = [key_group_for(hash_code(v), 32768) for v in values]
        proof = find_formula(s, HashFormula(()), Sample(values, groups, 32768), "hint")
        assert proof.formula is not None
        # Eight fields: whether the hash ends at the tenth makes no difference.
        (fitting,) = (c for _, c in proof.formula.classes)
        assert fitting.start == start


def test_other_conventions_are_refused() -> None:
    (case,) = generated()["avro-primitives"]
    s = snapshot_reader().snapshot(Cursor(case.snapshot or b""))
    with pytest.raises(OptionError, match="avro"):
        formula_hash(HashFormula.declared({RECORD: "Objects.hash()"}), s)
    for text in ("avro()", "avro[1, 10](a)", "avro[1, 10, plain]()"):
        with pytest.raises(OptionError):
            parse_convention(text)


@pytest.mark.parametrize("version", ["1.17.2", "2.3.0"])
def test_keys_of_a_job_are_rescaled(tmp_path: Path, version: str) -> None:
    archive = Path(__file__).parents[2] / "serializers" / "avro" / "savepoints.tar.xz"
    source = unpack(archive, tmp_path / "all") / version / "rocksdb-canonical"
    statetool.rescale(str(source), str(tmp_path / "new"), 100)
    before, after = (
        statetool.load(str(p)).with_uids(["by-record"])["by-record"].to_arrow().to_pylist()
        for p in (source, tmp_path / "new")
    )
    assert sorted(map(str, before)) == sorted(map(str, after))
    assert statetool.verify(str(tmp_path / "new")).ok
