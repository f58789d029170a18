"""JSON texts that users write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from statetool.errors import OptionError


def parse_json(name: str, text: str, parse_float: Callable[[str], Any] = float) -> Any:
    """Return the value of a JSON text. ``name`` is that of the text in messages.

    Raises
    ------
    OptionError
        The text is not JSON, or an object has duplicate members.
    """
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _members(name, pairs), parse_float=parse_float)
    except (ValueError, RecursionError) as e:
        if isinstance(e, OptionError):
            raise
        raise OptionError(f"{name} is not JSON: {e}") from e


def _members(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise OptionError(f"{name} has a member twice")
    return members
