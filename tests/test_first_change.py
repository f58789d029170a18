"""The commands of the page *Your first change* do what the page says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.first_change import make_clone, walk


@pytest.mark.full
def test_a_newcomer_gets_from_a_message_to_a_commit(tmp_path: Path) -> None:
    clone = make_clone(tmp_path)
    shown = {code.strip().splitlines()[-1]: printed for code, printed in walk(clone, slow=False) if code.strip()}
    assert "is a directory of snapshots (2 found)" in shown["statetool info statetool/demo"]
    changed = subprocess.run(
        ["git", "show", "--stat=200", "--format=%s"], cwd=clone, capture_output=True, text=True, check=True
    ).stdout
    assert changed.startswith("Errors: directory of snapshots says what --latest does\n")
    assert "tests/cli/expected/error-directory.txt | 2 +-" in changed
    assert "docs/changelog.md" in changed
    assert "3 files changed" in changed
