"""How values are shown: one frozen object, checked before any file is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from statetool.errors import OptionError

TtlMode = Literal["show", "raw", "hide_expired"]
NanosMode = Literal["error", "companion", "truncate"]
DecimalsMode = Literal["decimal", "string"]
OnError = Literal["error", "keep_raw"]
#: Names for the fields of a row, or their names and types as text: ``ROW<id BIGINT, name STRING>``.
FieldNames = tuple[str, ...] | str
Columns = tuple[tuple[str, FieldNames], ...]
_ROW_TYPE: Final = re.compile(r"\s*ROW\s*[<(]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of a read.

    Attributes
    ----------
    ttl
        ``show``: the user's value alone; ``raw``: struct of ``last_access`` (timestamp) and ``value``;
        ``hide_expired``: as ``show``, without what had expired ``ttl_ms`` after its last access at ``now_ms``.
    ttl_ms
        Time to live in milliseconds, needed by ``hide_expired``: Flink does not store it in snapshots.
    now_ms
        Epoch milliseconds that ``hide_expired`` compares with.
    nanos
        What happens to digits below the microsecond of a timestamp: ``error``; ``companion``: they are kept in an
        int column ``<name>_nanos`` (0..999) beside it (inside lists and maps the timestamp becomes a struct of
        ``timestamp`` and ``nanos``); ``truncate``: they are dropped because the user said so.
    decimals
        ``decimal``: BigDecimal as decimal(38,18), BigInteger as decimal(38,0), an error where a value does not fit;
        ``string``: both as text, exactly.
    columns
        Names for the fields of rows, of which snapshots hold only the types (SQL, ``Row``): a mapping from ``key``, the
        name of a state, or a path in it (``state.key``, ``state.value``, ``state.namespace``) to a list of names. Rows of
        ``BinaryRowDataSerializer``, whose snapshot has no types, are bytes until they are declared by a text:
        ``ROW<id BIGINT, name STRING>``. Of rows that have types, the types in such a text must be the same.
    on_error
        ``error``, or ``keep_raw``: a value that cannot be decoded becomes null and its bytes go to ``_undecoded``.
    """

    ttl: TtlMode = "show"
    ttl_ms: int | None = None
    now_ms: int | None = None
    nanos: NanosMode = "error"
    decimals: DecimalsMode = "decimal"
    on_error: OnError = "error"
    columns: Columns = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", parse_columns(self.columns))
        for name, words in (("ttl", TtlMode), ("nanos", NanosMode), ("decimals", DecimalsMode), ("on_error", OnError)):
            if getattr(self, name) not in get_args(words):
                raise OptionError(f"{name}={getattr(self, name)!r} is not one of {', '.join(get_args(words))}")
        if self.ttl == "hide_expired" and self.ttl_ms is None:
            raise OptionError(
                "ttl='hide_expired' needs the time to live",
                hint="pass ttl_ms=...: Flink keeps only the last access of each value in a snapshot",
            )


def parse_columns(given: Mapping[str, Sequence[str] | str] | Columns) -> Columns:
    """Return names of fields in one form, whichever way they were given.

    Raises
    ------
    OptionError
        Neither a mapping nor what came of one.
    """
    pairs = given.items() if isinstance(given, Mapping) else given
    found: list[tuple[str, FieldNames]] = []
    for path, names in pairs:
        if isinstance(names, str) and _ROW_TYPE.match(names):
            found.append((path, names))
            continue
        if isinstance(names, str) or not all(isinstance(n, str) and n for n in names):
            raise OptionError(f"columns= gives {path!r} {names!r}, which is not a list of names, and no ROW<...>")
        found.append((path, tuple(names)))
    return tuple(found)
