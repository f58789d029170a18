"""Databases are written with the settings of the job that wrote the base, and each release opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import statetool
from statetool.entries.database import StoredDatabase
from statetool.formats.rocksdb.table_settings import TableSettings, settings_of
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink import judge
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case, with_max_parallelism
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full

#: Compression of each level as Flink's option names it, and the property of the files of the lowest.
_SETTINGS: Final = [
    ("NO_COMPRESSION", "NoCompression", 4096),
    ("NO_COMPRESSION;LZ4_COMPRESSION", "LZ4", 16 << 10),
    ("ZSTD_COMPRESSION", "ZSTD", 64 << 10),
    ("ZLIB_COMPRESSION", "Zlib", 4096),
    ("LZ4HC_COMPRESSION", "LZ4HC", 4096),
    ("BZLIB2_COMPRESSION", "BZip2", 4096),
]


def settings_in(snapshot: Path) -> set[TableSettings]:
    """The settings of all databases that have entries."""
    operators = statetool.load(str(snapshot))._inventory.operators.values()
    databases = [s for o in operators for s in o.keyed.managed]
    assert databases
    assert all(isinstance(s, StoredDatabase) for s in databases)
    return {
        settings_of(s.files, "m")
        for s in databases
        if isinstance(s, StoredDatabase) and any(name.endswith(".sst") for name, _ in s.files.files)
    }


@pytest.mark.case("rocksdb-canonical")
@pytest.mark.parametrize(("by_level", "compression", "block_bytes"), _SETTINGS)
def test_databases_keep_the_settings_of_the_job(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, by_level: str, compression: str, block_bytes: int
) -> None:
    case = own_case(corpus, flink, "rocksdb-canonical")
    # Another job gives its own id to an operator without a uid.
    expected = {name: o for name, o in expected_of(case).items() if not o.get("no_uid")}
    config = {
        "state.backend.rocksdb.compression.per.level": by_level,
        "state.backend.rocksdb.block.blocksize": f"{block_bytes} b",
    }
    canonical = metadata_of(case).parent
    answer = judge.restore(
        flink, canonical, judge.requests_for(canonical, expected), backend="rocksdb", config=config,
        savepoint=tmp_path / "native", format="NATIVE",
    )  # fmt: skip
    wanted = TableSettings(merge_operator="m", compression=compression, block_bytes=block_bytes)
    assert settings_in(Path(answer["savepoint"])) == {wanted}
    native = statetool.load(answer["savepoint"], declarations=CLASSES)
    statetool.rescale(native, str(tmp_path / "same"), 300, parallelism=3, format="same")
    assert settings_in(tmp_path / "same") == {wanted}
    rescaled = with_max_parallelism(expected, lambda _: 300)
    # A job of other settings opens them.
    requests = judge.requests_for(tmp_path / "same", rescaled)
    answer = judge.restore(flink, tmp_path / "same", requests, backend="rocksdb", parallelism=3)
    assert judge.differences(answer, rescaled) == []
