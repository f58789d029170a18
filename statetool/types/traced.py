"""Operators as the code of a job builds them, found by executing it without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statetool.types.flink_calls import DeclaredState


@dataclass(frozen=True, slots=True)
class StreamType:
    """The type of the records of a stream: a text of code (``Types.INT``), a type argument of a function of the job, or that of a parameter.

    Attributes
    ----------
    text
        Empty if the function or the origin tells.
    function, interface, index
        Name of the function's class, the interface of Flink that it implements, and which type argument of that it is.
    origin
        The parameter of a method that is the stream. Its type is not known, and is the same wherever it has no other one.
    """

    text: str
    function: str = ""
    interface: str = ""
    index: int = 0
    origin: str = ""


@dataclass(frozen=True, slots=True)
class TracedOperator:
    """An operator with a constant uid.

    Attributes
    ----------
    method
        The last method of Flink's streams that creates it: ``flatMap``, ``reduce``.
    states
        States that its functions declared when they were executed. There may be others.
    types
        Types of the accumulators of an aggregation, or of the records of the inputs of another operator, ``None`` for those that are not known.
    max_parallelism
        The max parallelism that the code sets for it, ``None`` if it sets none or computes it.
    key
        The type of its keys, ``None`` if it has none or it is not known.
    is_whole
        Whether all ways that the code can take were followed, so that it has no other states, types, keys or max parallelism.
    """

    method: str
    states: tuple[DeclaredState, ...]
    types: tuple[StreamType | None, ...]
    max_parallelism: int | None = None
    key: StreamType | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class TracedJob:
    """The operators of a job.

    Attributes
    ----------
    operators
        By uid, those that all code which was executed builds in the same way.
    uids
        All uids that it gives.
    is_whole
        Whether all ways that the code can take were followed, so that there are no other uids.
    """

    operators: Mapping[str, TracedOperator]
    uids: frozenset[str]
    is_whole: bool
