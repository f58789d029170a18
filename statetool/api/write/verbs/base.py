"""Shared parameters of verbs.

Each verb, a function and a command that write a changed copy of a snapshot, is a class in this package. ``python -m tools.verbs`` writes the
signatures and docstrings of the functions from them, and :mod:`statetool.cli.verb` makes the options of the commands.
A field without ``doc`` is an option of the command only, one without ``help`` or ``argument`` a parameter of the function only.
The options that all verbs have are in :class:`statetool.api.write.options.WriteOptions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final

from typing_extensions import Self

from statetool.api.write.options import described
from statetool.saving.forms import DEFAULT_FORMAT

if TYPE_CHECKING:
    from statetool.api.savepoint import Savepoint

SRC: Final = described(
    "The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.",
    positional=True,
    argument="SRC",
)
DST: Final = described(
    "A new directory for the savepoint: a local path or any URI that fsspec can write to.",
    positional=True,
    argument="DST",
)
HASHES: Final = described(
    '``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:'
    " :mod:`statetool.types.conventions`).",
    "Hash code of a key class: 'Objects.hash(a, b)'.",
    flag="--hash CLASS=FORMULA",
    example="for example --hash 'com.acme.Key=record(a, b)'",
)
FORMAT: Final = described(
    '``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator has,'
    " of databases, of the heap backend, or canonical.",
    "Format of the savepoint. A native one is for one --backend. With the same format, operators keep theirs.",
)
BACKEND: Final = described(
    "The backend that restores a native savepoint. A job of RocksDB must keep its timers in it, as is the default.",
    "State backend that restores a native savepoint.",
)
#: Hint for ``UID=VALUE``, in which the first equals sign ends the uid.
EQUALS_IN_UID: Final = "pass the operator id of an operator whose uid contains an equals sign (run: statetool ls PATH)"
MATCH: Final = described(
    'Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator'
    " (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.",
    "Pair operators whose ids differ: auto, or FILE of statetool match.",
    flag="--match auto|FILE",
)
ON_PLAN: Final = described("Called with the plan before anything is written.")


def parameter(doc: str = "", help: str = "", *, default: Any = MISSING, **more: Any) -> Any:
    """Return the field of a keyword argument; parameters as for :func:`described`."""
    return field(default=default, metadata=described(doc, help, **more))


def positional(doc: str, help: str = "", **more: Any) -> Any:
    """Return the field of a positional argument."""
    return parameter(doc, help, positional=True, **more)


def release_parameter(doc: str, of: str) -> Any:
    """Return the field of the release that reads the new snapshot, by default that of the snapshot ``of``."""
    help = f"Flink release of the new job, such as 2.3.  [default: that of {of}]"
    return parameter(doc, help, default=None, flag="--flink RELEASE")


def format_parameter() -> Any:
    """Return the field of the format of the new snapshot."""
    return field(default=DEFAULT_FORMAT, metadata=FORMAT)


def operator_parameter(doc: str, help: str, *, flag: str = "--uid", **more: Any) -> Any:
    """Return the field of an operator, or of several."""
    return parameter(doc, help, flag=flag, names="operator", **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Parameters of a verb. Its class has the name of the function."""

    #: Options of :class:`WriteOptions` that the function does not have.
    without: ClassVar[frozenset[str]] = frozenset()
    #: The commands of the verb, by default one with the name of the function.
    commands: ClassVar[tuple[str, ...]] = ()
    #: The record of each row that the commands print as JSON, ``module:class``. Empty if they print something else.
    answer: ClassVar[str] = ""
    #: Own descriptions of options of :class:`WriteOptions`.
    described: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def function(cls) -> str:
        """Return the name of the function."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def command_names(cls) -> tuple[str, ...]:
        """Return the names of the commands."""
        return cls.commands or (cls.function().replace("_", "-"),)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the parameters among the arguments of the function, ``locals()`` at its first line."""
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyVerb(Verb):
    """Parameters of a verb that writes a changed copy of one snapshot."""

    src: str | Savepoint = field(metadata=SRC)
    dst: str = field(metadata=DST)
