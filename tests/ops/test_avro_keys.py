"""Avro records as keys: hash codes that Avro gave, found from the key groups of a job, and keys moved by them."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.io.cursor import Cursor
from statetool.ops.formulas import Convention, HashFormula, formula_hash, parse_convention
from statetool.ops.prove import Sample, find_formula
from statetool.serializers.snapshot import read_snapshot
from tests.corpora import unpack
from tests.serializers.golden import generated

NEWEST = Convention(kind="avro", start=1, multiplier=10)
RECORD = "org.apache.avro.generic.GenericRecord"


@pytest.mark.parametrize("name", ["avro-primitives", "avro-logical", "avro-names", "avro-evolved-before"])
def test_hash_codes_are_those_of_avro_1_12(name: str) -> None:
    (case,) = generated()[name]
    s = read_snapshot(Cursor(case.snapshot or b""))
    hash_code = formula_hash(HashFormula(((RECORD, NEWEST),)), s)
    c = Cursor(case.data or b"")
    assert case.hashes is not None
    assert case.key_groups is not None
    for expected, group in zip(case.hashes, case.key_groups, strict=True):
        found = hash_code(s.decode(c))
        assert found == expected
        assert key_group_for(found, 128) == group


def test_maps_and_recursion_have_no_hash() -> None:
    for name in ("avro-nested", "avro-tree"):
        (case,) = generated()[name]
        s = read_snapshot(Cursor(case.snapshot or b""))
        hash_code = formula_hash(HashFormula(((RECORD, Convention(kind="avro", start=0, multiplier=0)),)), s)
        with pytest.raises(UnsupportedError, match="Avro"):
            hash_code(s.decode(Cursor(case.data or b"")))


def test_the_release_of_avro_is_found() -> None:
    (case,) = generated()["avro-primitives"]
    s = read_snapshot(Cursor(case.snapshot or b""))
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
        (found,) = (c for _, c in proof.formula.classes)
        assert found.start == start


def test_other_conventions_are_refused() -> None:
    (case,) = generated()["avro-primitives"]
    s = read_snapshot(Cursor(case.snapshot or b""))
    with pytest.raises(OptionError, match="avro"):
        formula_hash(HashFormula.declared({RECORD: "Objects.hash()"}), s)
    for text in ("avro()", "avro[1, 10](a)", "avro[1, 10, plain]()"):
        with pytest.raises(OptionError):
            parse_convention(text)


@pytest.mark.parametrize("version", ["1.17.2", "2.3.0"])
def test_keys_of_a_job_are_rescaled(tmp_path: Path, version: str) -> None:
    archive = Path(__file__).parents[1] / "serializers" / "avro" / "savepoints.tar.xz"
    source = unpack(archive, tmp_path / "all") / version / "rocksdb-canonical"
    statetool.rescale(str(source), str(tmp_path / "new"), 100)
    before, after = (
        statetool.load(str(p)).with_uids(["by-record"])["by-record"].to_arrow().to_pylist()
        for p in (source, tmp_path / "new")
    )
    assert sorted(map(str, before)) == sorted(map(str, after))
    assert statetool.verify(str(tmp_path / "new")).ok
