"""JSON files that users pass from one command to another."""

from __future__ import annotations

import json
from typing import Any

from statetool.errors import FormatError, TargetExistsError
from statetool.io.files import InputFile


def write_json(path: str, value: Any) -> None:
    """Write JSON into a new local file.

    Raises
    ------
    TargetExistsError
        The file already exists.
    """
    try:
        with open(path, "x", encoding="utf-8") as f:
            f.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    except FileExistsError as e:
        raise TargetExistsError(f"{path} already exists", hint="pass the name of a new file") from e


def read_json(path: str) -> Any:
    """Read JSON from a local path or any URI that fsspec can open.

    Raises
    ------
    FormatError
        The file is not valid JSON.
    SnapshotNotFoundError
        The file does not exist.
    """
    with InputFile(path) as f:
        raw = bytes(f.read_at(0, f.size))
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path} is not valid JSON: {e}") from e
