"""Choose the headers of an operator's subtasks that are needed to read all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Header = TypeVar("Header")


def needed_headers(
    raws: Sequence[bytes], parse: Callable[[bytes], Header], learn: Callable[[Header, Header], bool]
) -> list[bytes]:
    """Return the headers that together describe all subclasses of POJOs; none where all of them describe the same.

    Parameters
    ----------
    raws
        The different headers of an operator's streams.
    parse
        Parses one of them anew.
    learn
        Adds what its second argument describes to the first; tells whether it added anything.
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
