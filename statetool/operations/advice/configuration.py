"""A Flink configuration: ``flink-conf.yaml`` (one ``key: value`` per line) or ``config.yaml`` (YAML, nested or flat; Flink 1.19 and later).

``options.tsv`` lists the options: keys, kinds of values, former names, and the releases (of 1.20 and 2.3) that know them, taken from
the ``ConfigOption`` objects of these releases. Values follow ``TimeUtils``, ``MemorySize`` and ``ConfigurationUtils``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeVar

from statetool.errors import FormatError, OptionError, SnapshotNotFoundError
from statetool.io import files

if TYPE_CHECKING:
    from yaml import Node

N = TypeVar("N", int, float)
#: Bounds of a configuration: a real one has hundreds of settings, in a few levels.
_MOST_BYTES: Final = 1 << 18
_MOST_NODES: Final = 20_000
_MOST_LEVELS: Final = 64
_TIME: Final = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("d", "day", "days"), 8.64e7),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-6),
}
_SIZE: Final = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_NUMBER: Final = re.compile(r"([0-9]+)\s*([^0-9]*)")
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkOption:
    """An option of Flink. ``former`` are its former names, ``releases`` those that know its current name."""

    key: str
    kind: str
    former: tuple[str, ...]
    releases: tuple[str, ...]


@cache
def flink_options() -> Mapping[str, FlinkOption]:
    """Return the options for state, checkpoints, recovery and high availability by their current names."""
    text = (resources.files(__package__) / "options.tsv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    return {
        r["key"]: FlinkOption(
            key=r["key"], kind=r["kind"], former=tuple(r["former"].split()), releases=tuple(r["releases"].split())
        )
        for r in rows
    }


@dataclass(frozen=True, slots=True)
class Configuration:
    """Keys and values as written; options are looked up by their current names."""

    path: str
    values: Mapping[str, str]

    def written(self, key: str) -> tuple[str, str] | None:
        """Return the name under which an option is set, and its value; the current name takes precedence over former ones, as in Flink."""
        option = flink_options().get(key)
        for name in (key, *(option.former if option is not None else ())):
            if name in self.values:
                return name, self.values[name]
        return None

    def name(self, key: str) -> str:
        """Return the name under which an option is set, or else the current name."""
        setting = self.written(key)
        return key if setting is None else setting[0]

    def text(self, key: str) -> str | None:
        """Return the value of an option as written, ``None`` if it is not set."""
        setting = self.written(key)
        return None if setting is None else setting[1]

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean; any other value counts as not set (:func:`wrong_values` reports it)."""
        text = (self.text(key) or "").lower()
        return text == "true" if text in ("true", "false") else default

    def millis(self, key: str) -> float | None:
        """Return a duration in milliseconds; any other value counts as not set."""
        return _or_none(parse_duration, self.text(key))

    def number(self, key: str) -> int | None:
        """Return a whole number; any other value counts as not set."""
        return _or_none(int, self.text(key))

    def size(self, key: str) -> int | None:
        """Return a number of bytes; any other value counts as not set."""
        return _or_none(parse_size, self.text(key))


def _or_none(parse: Callable[[str], N], text: str | None) -> N | None:
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None


def parse_duration(text: str) -> float:
    """Return the milliseconds of ``10 min``, ``500ms``, ``3000`` or ``PT10M``.

    Raises
    ------
    OptionError
        The text has none of these forms.
    """
    plain = text.strip()
    iso = _ISO.fullmatch(plain)
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (float(g or 0) for g in iso.groups())
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    return _scale(text, _TIME, "a duration", "write 10 min, 30 s, 500 ms or PT10M")


def parse_size(text: str) -> int:
    """Return the bytes of ``20 kb``, ``1mb`` or ``4096``.

    Raises
    ------
    OptionError
        The text has none of these forms.
    """
    return int(_scale(text, _SIZE, "a size", "write 20 kb, 1 mb or 4096"))


def _scale(text: str, units: Mapping[str, float], what: str, hint: str) -> float:
    match = _NUMBER.fullmatch(text.strip())
    unit = None if match is None else units.get(match.group(2).strip().lower())
    if match is None or unit is None:
        raise OptionError(f"{text!r} is not {what}", hint=hint)
    return int(match.group(1)) * unit


def wrong_values(configuration: Configuration) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and kind of options whose value is not valid for their kind."""
    parsers = {"duration": parse_duration, "size": parse_size, "int": int, "float": float, "bool": _parse_flag}
    for option in flink_options().values():
        for name in (option.key, *option.former):
            text = configuration.values.get(name)
            parse: Any = parsers.get(option.kind)
            if text is None or parse is None:
                continue
            try:
                parse(text)
            except ValueError:
                yield name, text, option.kind


def _parse_flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def read_configuration(path: str) -> Configuration:
    """Read a configuration file of Flink, local or by URI.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    FormatError
        The content does not match the format implied by the file name; the message gives the line.
    """
    if not files.exists(path) or files.is_dir(path):
        raise SnapshotNotFoundError(f"{path} does not exist", hint="pass a flink-conf.yaml or config.yaml")
    raw = files.read_whole(path)
    if len(raw) > _MOST_BYTES:
        raise FormatError(
            f"a configuration of {len(raw):,} bytes, more than {_MOST_BYTES:,}",
            hint="pass a flink-conf.yaml or config.yaml",
        ).at(file=path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text: {error}").at(file=path) from error
    if path.rpartition("/")[2] == "flink-conf.yaml":
        return Configuration(path, dict(_flat_lines(text, path)))
    return Configuration(path, dict(_yaml_values(text, path)))


def _flat_lines(text: str, path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        # Flink cuts at the first #, and then at the first colon followed by a space.
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        key, colon, value = plain.partition(": ")
        if not colon or not key.strip() or not value.strip():
            raise FormatError(
                f"line {number} is not KEY: VALUE, and Flink ignores it: {line.strip()!r}",
                hint="flink-conf.yaml has one flat key per line, with a space after the colon; only config.yaml has nested YAML",
            ).at(file=path)
        yield key.strip(), value.strip()


def _yaml_values(text: str, path: str) -> Iterator[tuple[str, str]]:
    import yaml

    class Loader(yaml.BaseLoader):  # values stay text as written, and are then parsed by the option's kind
        def fetch_flow_collection_start(self, kind: Any) -> None:
            if self.flow_level > _MOST_LEVELS:
                raise RecursionError
            super().fetch_flow_collection_start(kind)

    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return
        if _expanded_size(node, {}) > _MOST_NODES:
            raise FormatError(f"aliases expand this YAML to more than {_MOST_NODES:,} values").at(file=path)
        tree = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise FormatError(f"not valid YAML: {' '.join(str(error).split())}").at(file=path) from error
    except RecursionError as error:
        raise FormatError(f"this YAML is nested more than {_MOST_LEVELS} levels deep").at(file=path) from error
    finally:
        loader.dispose()
    if tree in (None, ""):
        return
    if not isinstance(tree, dict):
        raise FormatError("a configuration is a mapping of keys to values").at(file=path)
    yield from _flatten(tree, "")


def _expanded_size(node: Node, sizes: dict[int, int], level: int = 0) -> int:
    """Return the number of nodes below a node, with aliases expanded.

    Raises
    ------
    RecursionError
        Nodes are nested too deeply, or contain themselves.
    """
    if level > _MOST_LEVELS:
        raise RecursionError
    if id(node) not in sizes:
        parts = node.value if isinstance(node.value, list) else ()
        inner = [n for part in parts for n in (part if isinstance(part, tuple) else (part,))]
        sizes[id(node)] = 1 + sum(_expanded_size(n, sizes, level + 1) for n in inner)
    return sizes[id(node)]


def _flatten(tree: Mapping[Any, Any], above: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.")
        elif isinstance(value, list):
            yield name, ";".join(map(str, value))
        else:
            yield name, str(value)
