"""Commands with JSON output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from statetool.cli.main import cli


def run(*args: str | Path, code: int = 0) -> Any:
    """Run a command, require its exit code and return its JSON output."""
    done = CliRunner().invoke(cli, [*map(str, args), "--json"])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)
