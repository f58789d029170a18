"""A read request: an immutable object, validated before any file is opened, that is sent to other processes as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Final, TypeVar

from typing_extensions import Unpack

from statetool.entries.sizes import MEMORY_BYTES, TARGET_BYTES
from statetool.errors import OptionError
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.tables.keys.text import Key, exact_key
from statetool.tables.option_text import Option, by_known_names, parse_flag
from statetool.types.options import ReadingOptions, ReadOptions, as_text, refuse_unknown, whole_number

F = TypeVar("F", bound=Callable[..., Any])


class KeyedOptions(ReadingOptions, total=False):
    """Keyword arguments for reads of keyed tables; see :class:`ScanOptions`."""

    key_group: bool
    split_bytes: int | None
    memory_bytes: int


class StateOptions(KeyedOptions, total=False):
    """Keyword arguments for reads of one state."""

    subtask: bool


class ScanOptions(StateOptions, total=False):
    """Keyword arguments for reads of any table.

    ``python -m tools.verbs`` copies these descriptions into the docstrings of functions that read.

    Attributes
    ----------
    states
        States to read. Others are skipped undecoded.
    keys
        Keys to read, as plain values: numbers, strings, bytes, ``Decimal`` and tuples of them, dates as days since 1970-01-01,
        timestamps as numbers in the unit of their type. Only their key groups are read.
    key_group
        ``True`` adds the int column ``key_group``.
    subtask
        For operator state, ``True`` adds the int column ``subtask``, and shows every subtask's copy of union and broadcast state.
    ttl, ttl_ms, now_ms
        Form of values with a TTL: ``show`` (default) returns only the value, ``raw`` a struct of ``last_access`` (timestamp) and
        ``value``. ``hide_expired`` omits values that had expired at ``now_ms`` (epoch milliseconds, by default the current time),
        ``ttl_ms`` milliseconds after their last access.
    nanos
        Digits below the microsecond: ``companion`` (default) keeps them in an int column ``<name>_nanos`` (0..999) if the type can
        have them, ``always`` for all SQL timestamps above precision 3. ``error`` raises an error, and ``truncate`` drops them.
    decimals
        Form of Java's BigDecimal and BigInteger. ``decimal`` (default): decimal(38,18) and decimal(38,0), with the scale of each
        BigDecimal in a column ``<name>_scale``; a value that does not fit is an error. ``plain``: the same without that column.
        ``string``: their exact text.
    presence
        ``companion`` (default) adds a bool column ``<name>_present`` to ``keyed_state`` for states whose values can be null
        themselves (Scala's ``None``). It is true for keys that have the state. ``omit`` does not add it.
    on_error
        ``error`` (default), or ``keep_raw``: a value that cannot be decoded is null, and its bytes are in the map ``_undecoded``.
    columns
        Field names of rows, ``{"key": ["user"]}``, or field names and types of rows for which the snapshot has none,
        ``{"state": "ROW<id BIGINT, name STRING>"}``, by ``key``, state, or path (``state.value``).
    split_bytes
        Target split size in bytes on disk. Defaults to 64 MiB, or less if some cores would otherwise be idle.
    memory_bytes
        Key groups above this size (32 MiB by default) are merged as a stream, or spilled to local disk.
    """

    states: Sequence[str] | None
    keys: Sequence[Key] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanRequest:
    """A request for a table of one operator. :class:`ScanOptions` describes its options.

    Two requests are equal if their texts are equal: ``nan`` equals ``nan``, and the keys ``1``, ``1.0`` and ``True`` differ.

    Attributes
    ----------
    table
        ``keyed_state``, ``timers``, or the name of a state (its long form).
    options
        Options for showing values.

    Raises
    ------
    OptionError
        The value of an option is not valid, or options conflict.
    """

    table: str = field(
        default=KEYED_STATE, metadata=as_text("name", "Table to read: keyed_state, timers, or the name of a state.")
    )
    states: tuple[str, ...] | None = field(
        default=None,
        metadata=as_text("names", "States to read from keyed_state or timers, comma-separated or as JSON."),
    )
    keys: tuple[Key, ...] | None = field(
        default=None, metadata=as_text("keys", 'Keys to read, as JSON: [1, "a", {"tuple": ["b", 2]}].')
    )
    key_group: bool = field(default=False, metadata=as_text("flag", "Add the column key_group (keyed tables)."))
    subtask: bool = field(
        default=False,
        metadata=as_text("flag", "Add the column subtask (operator state) and show every subtask's copy."),
    )
    split_bytes: int | None = field(default=None, metadata=as_text("number", "Target split size in bytes on disk."))
    memory_bytes: int = field(
        default=MEMORY_BYTES,
        metadata=as_text("number", "Size in bytes above which a key group is streamed or spilled to disk."),
    )
    options: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        if not isinstance(self.table, str):
            raise OptionError(f"table={self.table!r} is not the name of a table")
        for name in ("key_group", "subtask"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name}={getattr(self, name)!r} is neither True nor False")
        object.__setattr__(self, "memory_bytes", whole_number("memory_bytes", self.memory_bytes, least=1))
        if self.split_bytes is not None:
            object.__setattr__(self, "split_bytes", whole_number("split_bytes", self.split_bytes, least=1))
        if self.states is not None:
            object.__setattr__(self, "states", _names(self.states))
        if self.keys is not None:
            object.__setattr__(self, "keys", _keys(self.keys))
        self._refuse_conflicts()

    def _refuse_conflicts(self) -> None:
        of_all_states = self.table in (KEYED_STATE, TIMERS)
        if self.states is not None and not of_all_states:
            raise OptionError("states= applies only to keyed_state and timers")
        if self.subtask and of_all_states:
            raise OptionError("only operator state has a subtask column")
        if self.subtask and (self.key_group or self.keys is not None):
            raise OptionError("subtask= applies only to operator state, keys= and key_group= only to keyed state")

    @classmethod
    def of(cls, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> ScanRequest:
        """Return the request for keyword arguments.

        Raises
        ------
        OptionError
            An option does not exist (the error suggests similar names), or the class refuses the options.
        """
        refuse_unknown(options, [name for name in OPTIONS if name != "table"])
        return cls._of_values({"table": table, **options})

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ScanRequest:
        """Return the request for text options, whose names may have any case and omit underscores.

        ``stateVarName`` and ``readRegisteredTimers``, options of Spark's state data source, also select the table.

        Raises
        ------
        OptionError
            An option does not exist (the error suggests similar names), a text is not valid for its option, or the class refuses the
            options.
        """
        texts = by_known_names(options, REQUEST_OPTIONS)
        tables = [texts.pop(name) for name in ("table", "stateVarName") if name in texts]
        if "readRegisteredTimers" in texts:
            tables += [TIMERS] * parse_flag("readRegisteredTimers", texts.pop("readRegisteredTimers"))
        if len(set(tables)) > 1:
            raise OptionError(f"the options ask for different tables: {', '.join(tables)}", hint="pass one of them")
        values = {name: OPTIONS[name].parse(text) for name, text in texts.items()}
        return cls._of_values({**values, **({"table": tables[0]} if tables else {})})

    def to_options(self) -> dict[str, str]:
        """Return the table and all options with non-default values, as text for :meth:`from_options`."""
        values = {name: getattr(self.options if name in SHOWING else self, name) for name in OPTIONS}
        return {n: OPTIONS[n].to_text(v) for n, v in values.items() if n == "table" or v != OPTIONS[n].default}

    @property
    def target_bytes(self) -> int:
        """Target split size in bytes on disk."""
        return TARGET_BYTES if self.split_bytes is None else self.split_bytes

    def with_keys(self, keys: Sequence[Key]) -> ScanRequest:
        """Return the request restricted to these keys."""
        return replace(self, keys=tuple(keys))

    @classmethod
    def _of_values(cls, values: Mapping[str, Any]) -> ScanRequest:
        read_options = {name: value for name, value in values.items() if name in SHOWING}
        request_options = {name: value for name, value in values.items() if name not in SHOWING}
        return cls(**request_options, options=ReadOptions(**read_options))

    def __eq__(self, other: object) -> bool:
        return self.to_options() == other.to_options() if isinstance(other, ScanRequest) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.to_options().items()))


def _names(states: Any) -> tuple[str, ...]:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise OptionError("states= takes a list of names, not one string")
    names = tuple(states)
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"states={states!r} is not a list of names")
    return names


def _keys(keys: Any) -> tuple[Key, ...]:
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise OptionError(f"keys= takes a list of keys, not one: keys=[{keys!r}]")
    return tuple(exact_key(key) for key in keys)


def _options(*records: Any) -> dict[str, Option]:
    options = [f for record in records for f in fields(record) if f.metadata]
    return {f.name: Option(name=f.name, default=f.default, **f.metadata) for f in options}


#: Names of the options for showing values.
SHOWING: Final = tuple(f.name for f in fields(ReadOptions))
#: All options of a read, by name.
OPTIONS: Final = _options(ScanRequest, ReadOptions)
_DEFAULTS: Final = MappingProxyType({name: option.default for name, option in OPTIONS.items()})
#: The options of :meth:`ScanRequest.from_options`.
REQUEST_OPTIONS: Final = (*OPTIONS, "stateVarName", "readRegisteredTimers")


def list_options(options: Any, defaults: Mapping[str, Any] = _DEFAULTS) -> Callable[[F], F]:
    """Return a decorator that lists keyword arguments of a ``TypedDict`` in the signature that ``help()`` shows, with their defaults.

    Parameters
    ----------
    defaults
        Those that are not ``None``. Defaults to those of reads.
    """

    def add(function: F) -> F:
        plain = signature(function)
        *others, _ = plain.parameters.values()
        named = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind.__forward_arg__)
            for name, kind in options.__annotations__.items()
        ]
        function.__signature__ = plain.replace(parameters=[*others, *named])  # type: ignore[attr-defined]
        return function

    return add
