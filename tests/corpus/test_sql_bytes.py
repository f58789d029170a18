"""Savepoints of SQL jobs, byte by byte: every key and value is written back unchanged, every key is in its key group.

In addition to the corpus, two of Flink 2.3.0 (``sql-more.tar.xz``, with the job that wrote them): ``null-keys`` groups by nulls of
``DECIMAL(38, 10)``, ``TIMESTAMP(9)`` and others, ``aggregates`` has accumulators and distinct views of many types with TTL.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.io.cursor import Cursor
from tests.support.checks.sql_bytes import check_bytes, stored_keys_and_values
from tests.support.corpora.archives import HERE, unpack
from tests.support.corpora.sql_cases import SQL
from tests.support.given_keys import given_key
from tests.support.quick import quick

MORE = ("null-keys", "aggregates")


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "sql-more.tar.xz", tmp_path_factory.mktemp("more")) / "sql-more"


@pytest.mark.parametrize("name", quick(SQL, "sql_over", "sql_window_tumble"))
def test_the_corpus(sql_corpus: Path, name: str) -> None:
    assert check_bytes(sql_corpus / name / "snapshot") > 0


@pytest.mark.parametrize("name", MORE)
def test_more_types(more: Path, name: str) -> None:
    assert check_bytes(more / name) > 500


def test_a_key_with_nulls_is_found(more: Path) -> None:
    (op,) = [o for o in statetool.load(str(more / "null-keys")).operators.values() if "accState" in o.states]
    checked = 0
    for header, _, _, key, _ in stored_keys_and_values(op):
        value = header.key.decode(Cursor(key))
        if checked < 3 and None in (value[0], value[1]):
            checked += 1
            assert op.to_arrow(nanos="truncate", keys=[given_key(value, header.key.logical)]).num_rows == 1
    assert checked == 3
