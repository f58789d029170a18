"""How often measuring opens each file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

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
