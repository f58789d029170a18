"""Options for showing values: one frozen object, checked before any file is opened."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from typing_extensions import TypedDict, Unpack

from statetool.errors import OptionError, suggest

TtlMode = Literal["show", "raw", "hide_expired"]
NanosMode = Literal["companion", "always", "error", "truncate"]
DecimalsMode = Literal["decimal", "plain", "string"]
PresenceMode = Literal["companion", "omit"]
OnError = Literal["error", "keep_raw"]
#: Names for the fields of a row, or their names and types as text: ``ROW<id BIGINT, name STRING>``.
FieldNames = tuple[str, ...] | str
Columns = tuple[tuple[str, FieldNames], ...]
GivenColumns: TypeAlias = Mapping[str, Sequence[str] | str] | Columns
#: Text form of an option's value (:mod:`statetool.tables.option_text`).
TextKind = Literal["name", "word", "number", "flag", "names", "keys", "columns"]
_Name = TypeVar("_Name")
#: The largest number of Java's ``long``.
LARGEST_LONG: Final = (1 << 63) - 1
_ROW_TYPE: Final = re.compile(r"\s*ROW\s*[<(]", re.IGNORECASE)


def as_text(kind: TextKind, help: str, words: Any = None) -> dict[str, Any]:
    """Describe a field that is an option, for the data source and the commands, which pass options as text.

    Parameters
    ----------
    words
        For the kind ``word``: the ``Literal`` of its values.
    """
    return {"kind": kind, "help": help, "words": get_args(words)}


class ShowingOptions(TypedDict, total=False):
    """Fields of :class:`ReadOptions` that control how values are shown, as keyword arguments."""

    ttl: TtlMode
    ttl_ms: int | None
    now_ms: int | None
    nanos: NanosMode
    decimals: DecimalsMode
    presence: PresenceMode


class ReadingOptions(ShowingOptions, total=False):
    """Fields of :class:`ReadOptions` as keyword arguments."""

    on_error: OnError
    columns: GivenColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for showing values. :class:`statetool.tables.request.ScanOptions` describes them.

    Raises
    ------
    OptionError
        An invalid value, or a conflicting combination of options.
    """

    ttl: TtlMode = field(
        default="show",
        metadata=as_text(
            "word", "Values with a time to live: show the value, add its last access, or hide expired values.", TtlMode
        ),
    )
    ttl_ms: int | None = field(
        default=None, metadata=as_text("number", "Time to live in milliseconds, required by hide_expired.")
    )
    now_ms: int | None = field(
        default=None, metadata=as_text("number", "Current time of hide_expired in epoch milliseconds. Defaults to now.")
    )
    nanos: NanosMode = field(
        default="companion",
        metadata=as_text("word", "Digits below the microsecond: keep in <name>_nanos, refuse, or truncate.", NanosMode),
    )
    decimals: DecimalsMode = field(
        default="decimal",
        metadata=as_text(
            "word",
            "BigDecimal and BigInteger as decimals with a column <name>_scale, without it, or as text.",
            DecimalsMode,
        ),
    )
    presence: PresenceMode = field(
        default="companion",
        metadata=as_text(
            "word", "Column <name>_present, which distinguishes null values from absent states.", PresenceMode
        ),
    )
    on_error: OnError = field(
        default="error",
        metadata=as_text(
            "word", "Values that cannot be decoded: fail, or return null with the bytes in _undecoded.", OnError
        ),
    )
    columns: Columns = field(
        default=(),
        metadata=as_text("columns", 'Names of row fields: {"key": ["user"], "state": "ROW<id BIGINT>"}.'),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", parse_columns(self.columns))
        for f in fields(self):
            words = f.metadata["words"]
            if words and getattr(self, f.name) not in words:
                raise OptionError(f"{f.name}={getattr(self, f.name)!r} is not one of {', '.join(words)}")
        if self.ttl != "hide_expired":
            for name in ("ttl_ms", "now_ms"):
                if getattr(self, name) is not None:
                    raise OptionError(f"{name} is given, which only ttl='hide_expired' uses, and ttl={self.ttl!r}")
            return
        if self.ttl_ms is None:
            raise OptionError(
                "ttl='hide_expired' needs the time to live",
                hint="pass ttl_ms=...: Flink keeps only the last access of each value in a snapshot",
            )
        object.__setattr__(self, "ttl_ms", whole_number("ttl_ms", self.ttl_ms, least=1))
        # Set once, so that every evaluation of a read gives the same rows.
        now = int(time.time() * 1000) if self.now_ms is None else whole_number("now_ms", self.now_ms)
        object.__setattr__(self, "now_ms", now)

    @classmethod
    def of(cls, **given: Unpack[ReadingOptions]) -> ReadOptions:
        """Make options from keyword arguments.

        Raises
        ------
        OptionError
            An unknown option (the error names similar ones), or one that the class itself rejects.
        """
        refuse_unknown(given, [f.name for f in fields(cls)])
        plain: Any = given
        return cls(**plain)


def refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise an error for unknown options.

    Raises
    ------
    OptionError
        Names similar options.
    """
    for name in given:
        if name not in known:
            raise OptionError(f"no option {name!r}", hint=suggest(name, known))


def name_list(option: str, names: Iterable[_Name]) -> tuple[_Name, ...]:
    """Return the value of an option that is a list of names.

    Raises
    ------
    OptionError
        The value is a single string.
    """
    if isinstance(names, str):
        raise OptionError(f"{option}= takes a list of names, not one string", hint=f"pass {option}=[{names!r}]")
    return tuple(names)


def whole_number(name: str, value: Any, *, least: int | None = None, most: int = LARGEST_LONG) -> int:
    """Return the value of an integer option.

    Raises
    ------
    OptionError
        Not an integer, below ``least``, above ``most``, or beyond 64 bits.
    """
    try:
        number = None if isinstance(value, bool) else int(value.__index__())
    except AttributeError:
        number = None
    if number is None or (least is not None and number < least):
        raise OptionError(f"{name}={value!r} is not a whole number{'' if least is None else f' of at least {least}'}")
    if not -LARGEST_LONG - 1 <= number <= most:
        limit = "does not fit into 64 bits" if most == LARGEST_LONG else f"is larger than {most}"
        raise OptionError(f"{name}={value!r} {limit}")
    return number


def parse_columns(given: GivenColumns) -> Columns:
    """Return names of fields as pairs of path and names.

    Raises
    ------
    OptionError
        Neither a mapping nor an iterable of pairs, or a duplicate path.
    """
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        raise OptionError(f"columns={given!r} is not a mapping of paths to lists of names, or to ROW<...>")
    columns: dict[str, FieldNames] = {}
    for path, names in pairs:
        if path in columns:
            raise OptionError(f"columns= gives names for {path!r} twice")
        if isinstance(names, str) and _ROW_TYPE.match(names):
            columns[path] = names
            continue
        listed = isinstance(names, Sequence) and not isinstance(names, str)
        if not isinstance(path, str) or not listed or not all(isinstance(n, str) and n for n in names):
            raise OptionError(f"columns= gives {path!r} {names!r}, which is not a list of names, and no ROW<...>")
        columns[path] = tuple(names)
    return tuple(columns.items())
