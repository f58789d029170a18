"""How often measuring opens each file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import statetool
from statetool.io.files import InputFile

#: How often most files are opened, and the most. Planning reads the header of each stream, and the first key groups if the handle does not
#: tell their layout. A database's header is read by the plan and twice by the task, its other files once.
OPENED = {"v2_3_0-hashmap-canonical": (2, 2), "v2_3_0-hashmap-native": (3, 3), "v2_3_0-rocksdb-native": (1, 3)}


@pytest.mark.parametrize("case", OPENED)
def test_files_are_opened_as_often_as_needed(corpus: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()

    class Counted(InputFile):
        def __init__(self, uri: str) -> None:
            opened[uri] += 1
            super().__init__(uri)

    savepoint = statetool.load(str(corpus / case / "snapshot"))
    keyed = {row.path for row in savepoint.metadata_rows("files") if row.slot == "managed keyed" and not row.inline}
    monkeypatch.setattr("statetool.formats.stream.InputFile", Counted)
    savepoint.stats()
    assert len(keyed & opened.keys()) > 1
    ((usual, _),) = Counter(opened[file] for file in keyed & opened.keys()).most_common(1)
    assert (usual, max(opened[file] for file in keyed)) == OPENED[case]


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_headers_of_any_size_are_read(inline_bytes: int, tmp_path: Path) -> None:
    """Tasks carry small headers; a large one may be followed by state in the same inline stream."""
    names = [f"state-{i:03}" for i in range(100)]
    for states in (names[:2], names):
        table = pa.table({"key": [1, 2], **{name: [3, 4] for name in states}})
        writer = statetool.SavepointWriter.new().with_operator("o", statetool.bootstrap_keyed_state(table))
        new = writer.write(str(tmp_path / f"{len(states)}"), inline_bytes=inline_bytes)
        (operator,) = new.operators.values()
        (source,) = cast(Any, operator._operator.keyed.sources())
        assert (source.header_of is source.stream) == (states is names)
        assert operator.to_arrow().sort_by("key").to_pylist() == table.to_pylist()
