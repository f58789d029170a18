"""The corpus's canonical savepoints, every row; all of them through Arrow, some through Spark as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import FormatError, UnknownSerializerError
from statetool.types.declared import class_of_fields
from tests.support.checks.corpus_check import Case, check_case, find_cases
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.quick import quick

CANONICAL = [
    f"v{version}-{backend}-canonical"
    for version in ("1_13_6", "1_15_4", "1_17_2", "1_20_5", "2_3_0")
    for backend in ("hashmap", "rocksdb")
]
COMPRESSED = ["v2_3_0-hashmap-canonical-compressed", "v2_3_0-rocksdb-canonical-compressed"]
ROCKSDB = [
    "v1_13_6-rocksdb-incremental",
    "v1_15_4-rocksdb-incremental",
    "v1_17_2-rocksdb-incremental",
    "v1_20_5-rocksdb-incremental",
    "v1_20_5-rocksdb-native",
    "v2_3_0-rocksdb-native",
    "v2_3_0-rocksdb-native-inline",
    "v2_3_0-rocksdb-incremental",
    "v2_3_0-rocksdb-incremental-inline",
    "v2_3_0-rocksdb-full",
    "v2_3_0-rocksdb-heap-timers",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-forst",
    "v2_3_0-unaligned-inline",
    "v2_3_0-forst-native",
]
CHANGELOG = ["v2_3_0-changelog-hashmap", "v2_3_0-changelog-materialized", "v2_3_0-changelog-rocksdb"]
HEAP = [
    "v1_20_5-hashmap-checkpoint",
    "v2_3_0-hashmap-checkpoint",
    "v2_3_0-hashmap-checkpoint-compressed",
    "v2_3_0-hashmap-checkpoint-inline",
    "v2_3_0-hashmap-native",
    "v2_3_0-file-merging-hashmap",
    "v2_3_0-finished",
    "v2_3_0-unaligned",
]
OTHERS = ["v2_3_0-rocksdb-heap-timers-canonical"]


@pytest.mark.parametrize(
    "name", quick(CANONICAL + COMPRESSED + OTHERS, "v1_13_6-hashmap-canonical", "v2_3_0-rocksdb-canonical")
)
def test_every_row_through_arrow(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["v1_13_6-rocksdb-canonical", "v2_3_0-hashmap-canonical", COMPRESSED[1], "v2_3_0-rocksdb-heap-timers"]
)
def test_every_row_through_spark(corpus: Path, name: str, spark: Any) -> None:
    passed, line = check_case(Case(corpus / name), [("spark", spark)])
    assert passed, line


def test_no_canonical_case_is_left_out(corpus: Path) -> None:
    found = {c.folder.name for c in find_cases(corpus, {"canonical"})}
    assert found == set(CANONICAL + COMPRESSED + OTHERS)


def test_an_undeclared_class_of_kryo_is_named_where_its_end_is_not_known(corpus: Path) -> None:
    savepoint = statetool.load(str(Case(corpus / "v2_3_0-hashmap-checkpoint").metadata))
    with pytest.raises(UnknownSerializerError, match=r'statetool.declare\("corpus.PublicTypes\$Money"'):
        savepoint["composites-by-int"].to_arrow("money")


def test_an_undeclared_class_of_kryo_keeps_its_bytes_in_frames(corpus: Path) -> None:
    case = Case(corpus / "v2_3_0-rocksdb-canonical")
    rows = statetool.load(str(case.metadata))["composites-by-int"].to_arrow("money")
    declared = statetool.load(str(case.metadata), declarations=CLASSES)["composites-by-int"].to_arrow("money")
    assert rows.schema.field("value").type == pa.binary()
    assert declared.num_rows == rows.num_rows > 0
    first = declared["value"][0].as_py()
    assert first["currency"][:-1].encode() in rows["value"][0].as_py()


@pytest.mark.parametrize("name", ["v2_3_0-rocksdb-canonical", "v2_3_0-hashmap-checkpoint"])
@pytest.mark.parametrize("fields", [{"cents": "long"}, {"cents": "long", "currency": "String", "more": "int"}])
def test_bytes_that_do_not_fit_name_the_declaration(corpus: Path, name: str, fields: dict[str, str]) -> None:
    wrong = class_of_fields("corpus.PublicTypes$Money", fields)
    savepoint = statetool.load(str(Case(corpus / name).metadata), declarations=[wrong])
    with pytest.raises(FormatError, match=r"declared.*cents: long.* declaration is wrong"):
        savepoint["composites-by-int"].to_arrow("money")
    said = [p.problem for p in statetool.verify(savepoint, deep=True).problems if p.severity == "error"]
    assert any("corpus.PublicTypes$Money" in m for m in said), said


@pytest.mark.parametrize("name", quick(CHANGELOG + HEAP, "v2_3_0-changelog-rocksdb", "v2_3_0-file-merging-hashmap"))
def test_heap_snapshots_and_changelogs(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


@pytest.mark.parametrize("name", quick(ROCKSDB, "v1_13_6-rocksdb-incremental", "v2_3_0-rocksdb-native"))
def test_rocksdb_snapshots(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


def test_no_case_is_left_out(corpus: Path) -> None:
    found = {c.folder.name for c in find_cases(corpus, None)}
    assert found == set(CANONICAL + COMPRESSED + ROCKSDB + CHANGELOG + HEAP + OTHERS)


def test_a_wrong_value_is_noticed(corpus: Path) -> None:
    case = Case(corpus / "v2_3_0-rocksdb-canonical")
    rows = case.expected["operators"]["timers"]["keyed_state"]["states"]["registered"]["rows"]
    rows[0]["value"] += 1
    passed, line = check_case(case, [("arrow", None)])
    assert not passed
    assert "registered" in line


@pytest.mark.parametrize("name", ["v2_3_0-hashmap-checkpoint", "v2_3_0-hashmap-checkpoint-compressed"])
def test_heap_key_groups_larger_than_memory(corpus: Path, name: str) -> None:
    case = Case(corpus / name)
    savepoint = statetool.load(str(case.metadata))
    for uid, tables in {"collections-by-string": ["keyed_state", "history"], "timers": ["timers"]}.items():
        for table in tables:
            whole, pieces = (
                sorted(map(repr, savepoint[uid].to_arrow(table, **options).to_pylist()))
                for options in ({"decimals": "string"}, {"decimals": "string", "memory_bytes": 300})
            )
            assert whole
            assert pieces == whole
