"""Which databases Flink's library of each release opens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import statetool
from statetool.entries.database import StoredDatabase
from statetool.formats.rocksdb.library import fetch
from tests.support.checks.restore_steps import snapshot_of
from tests.support.corpora.archives import HERE
from tools.flink_jars import compiled, flink_jars, java_tool

pytestmark = pytest.mark.full


def databases_of(snapshot: str, folder: Path) -> list[Path]:
    """Place the files of each database in a folder of its own."""
    folders: list[Path] = []
    for operator in statetool.load(snapshot).operators.values():
        for stored in operator.inventory.keyed.managed:
            assert isinstance(stored, StoredDatabase)
            folders.append(folder / str(len(folders)))
            folders[-1].mkdir(parents=True)
            fetch(stored.files, folders[-1])
    return folders


@pytest.mark.parametrize("release", ["1.20.5", "2.3.0"])
def test_the_library_opens_databases(release: str, corpus: Path, tmp_path: Path) -> None:
    """K12, K13."""
    made = {
        by: databases_of(snapshot_of(corpus / f"v{by.replace('.', '_')}-rocksdb-native"), tmp_path / by)
        for by in ("1.20.5", "2.3.0")
    }
    path = [compiled(release, HERE / "support" / "flink" / "databases"), *flink_jars(release)]
    command = [java_tool("java"), "-cp", os.pathsep.join(map(str, path)), "harness.OpenDatabase", str(tmp_path)]
    command += [str(folder) for folders in made.values() for folder in folders]
    in_other_order, *outcomes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert in_other_order.startswith("refused leveldb.BytewiseComparator: does not match existing comparator")
    count = len(made["1.20.5"])
    assert [o.partition(" ")[0] for o in outcomes[:count]] == ["entries"] * count
    later = {"entries" if o.startswith("entries ") else o.partition(" from ")[0] for o in outcomes[count:]}
    assert later == ({"refused unknown checksum type 4"} if release.startswith("1.") else {"entries"})
