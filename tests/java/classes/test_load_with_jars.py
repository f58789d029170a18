"""Snapshots decoded with a jar of their classes and no declaration: the same values as with declarations by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import SnapshotNotFoundError, UnknownSerializerError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.declarations import declare_classes
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.declaring.classes import read_declarations
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import serializer_snapshot
from statetool.types.declared import ClassDeclaration, TypeContext, class_of_fields, to_json
from statetool.types.java import parse_java_type
from tests.support.checks.corpus_check import Case
from tests.support.compile import files_of, make_jar
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.quick import quick

_PUBLIC = tuple(c for c in CLASSES if c.name.startswith("corpus."))
_CASES = [
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-hashmap-checkpoint",
    "v1_13_6-hashmap-canonical",
    "v2_3_0-rocksdb-native",
    "v1_20_5-hashmap-checkpoint",
]


def tables(savepoint: statetool.Savepoint) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of the operator with user classes."""
    (operator,) = (o for o in savepoint.operators.values() if "money" in o.tables)
    for table in operator.tables:
        try:
            yield table, operator.to_arrow(table, decimals="string")
        except UnknownSerializerError as error:  # classes of Flink's tests, whose sources are not here
            assert "corpus." not in str(error)


@pytest.mark.parametrize("name", quick(_CASES, _CASES[0], _CASES[1]))
def test_the_jar_gives_the_values_of_declarations(corpus: Path, public_jar: Path, name: str) -> None:
    metadata = str(Case(corpus / name).metadata)
    # The jar also knows the type arguments of described POJOs, so they are declared by hand too.
    order = class_of_fields(
        "corpus.PublicTypes$Order",
        {"flags": "Set<String>", "quantities": "Map<String, Integer>", "tags": "List<String>"},
    )
    declared = list(tables(statetool.load(metadata, declarations=[*_PUBLIC, order])))
    found = list(tables(statetool.load(metadata, jars=[public_jar])))
    assert [table for table, _ in found] == [table for table, _ in declared]
    for (table, rows), (_, wanted) in zip(found, declared, strict=True):
        assert rows.schema == wanted.schema, table
        assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, wanted.to_pylist())), table
    plain = statetool.load(metadata)
    money = next(o for o in plain.operators.values() if "money" in o.tables)
    if "rocksdb" in name:
        assert money.to_arrow("money").schema.field("value").type == pa.binary()


@pytest.mark.full
def test_the_jar_gives_the_values_of_declarations_through_spark(corpus: Path, public_jar: Path, spark: Any) -> None:
    metadata = str(Case(corpus / _CASES[0]).metadata)
    for limit in (0, None):
        declared = statetool.load(metadata, spark=spark, declarations=_PUBLIC, driver_read_limit=limit)[
            "composites-by-int"
        ]
        found = statetool.load(metadata, spark=spark, jars=[public_jar], driver_read_limit=limit)["composites-by-int"]
        for table in ("money", "pet", "keyed_state"):
            if table in declared.tables:
                rows, wanted = found.table(table).toPandas(), declared.table(table).toPandas()
                assert sorted(map(repr, rows.to_dict("records"))) == sorted(map(repr, wanted.to_dict("records")))


def test_declarations_take_precedence_over_the_jar(corpus: Path, public_jar: Path) -> None:
    wrong = class_of_fields("corpus.PublicTypes$Money", {"amount": "long", "currency": "String"})
    savepoint = statetool.load(str(Case(corpus / _CASES[0]).metadata), jars=[public_jar], declarations=[wrong])
    names = [f.name for f in savepoint["composites-by-int"].to_arrow("money").schema.field("value").type]
    assert sorted(names) == ["amount", "currency"]


def test_tasks_need_the_jar_only_for_classes_that_the_driver_has_not_read(shop: Path, tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "job.jar", files_of(shop))
    context = TypeContext(kryo=5, source=JarClasses([jar]).open())
    wanted = context.find("acme.Shop$Item"), context.subclasses("acme.Shop$Pet")
    sent = pickle.dumps(context)
    jar.unlink()
    received = pickle.loads(sent)
    assert received == context
    assert (received.find("acme.Shop$Item"), received.subclasses("acme.Shop$Pet")) == wanted
    with pytest.raises(UnsupportedError, match=r"acme\.Shop\$Box is in a jar that does not exist on this machine"):
        received.find("acme.Shop$Box")


def test_the_reason_for_a_class_without_declaration_is_in_the_error(shop: Path) -> None:
    context = TypeContext(kryo=5, source=JarClasses([shop]))
    snapshot = serializer_snapshot(parse_java_type("acme.Shop$Item"), context, generic=True)
    reader = snapshot_reader(context).snapshot(Cursor(snapshot))
    named = b"\x01\x00acme.Shop$Custo" + bytes([ord("m") | 0x80]) + b"\x01\x02"
    with pytest.raises(UnknownSerializerError, match=r"acme\.Shop\$Custom cannot be .*@DefaultSerializer"):
        reader.decode(Cursor(named))


def test_a_missing_jar_is_reported_when_the_snapshot_is_opened(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"none\.jar"):
        statetool.load(str(Case(corpus / _CASES[0]).metadata), jars=[tmp_path / "none.jar"])


def test_the_output_of_declare_is_what_the_option_declare_reads(shop: Path, tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "job.jar", files_of(shop))
    done = CliRunner().invoke(cli, ["declare", "--jar", str(jar), "acme.Shop$*"])
    assert done.exit_code == 0, done.output
    (tmp_path / "classes.json").write_text(done.stdout)
    assert read_declarations(tmp_path / "classes.json") == declare_classes(ClassPath([jar]), ["acme.Shop$*"]).declared
    assert "acme.Shop$Custom is not declared: @DefaultSerializer" in done.stderr
    none = CliRunner().invoke(cli, ["declare", "--jar", str(jar), "other.*"])
    assert json.loads(none.stdout) == []
    assert "nothing found" in none.stderr


def test_declare_without_a_jar_says_what_to_add() -> None:
    done = CliRunner().invoke(cli, ["declare"])
    assert isinstance(done.exception, SystemExit)
    assert "--jar FILE" in done.stderr


def test_a_single_declaration_is_read_from_a_file_too(tmp_path: Path) -> None:
    money: ClassDeclaration = _PUBLIC[0]
    (tmp_path / "money.json").write_text(json.dumps(to_json(money)))
    assert read_declarations(tmp_path / "money.json") == (money,)
