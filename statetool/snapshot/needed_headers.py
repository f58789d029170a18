"""Selection of the subtask headers that are needed to read all subtasks of an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Header = TypeVar("Header")


def needed_headers(
    raws: Sequence[bytes], parse: Callable[[bytes], Header], learn: Callable[[Header, Header], bool]
) -> list[bytes]:
    """Return the headers that together describe all subclasses of POJOs, or no headers if all describe the same subclasses.

    Parameters
    ----------
    raws
        The distinct headers of an operator's streams.
    parse
        Parses a header from scratch.
    learn
        Adds the subclasses described by its second argument to the first, and returns whether it added any.
    """
    if len(raws) < 2:
        return []
    known = parse(raws[0])
    needed, differ = list(raws[:1]), False
    for raw in raws[1:]:
        differ |= learn(parse(raw), known)
        if learn(known, parse(raw)):
            needed.append(raw)
    return needed if differ or len(needed) > 1 else []
