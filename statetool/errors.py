"""Errors and warnings of statetool.

Every error derives from :class:`StatetoolError` and, if callers would expect one, from a builtin exception.
An error has a location (:class:`Where`), a message with the expected and the actual data, and a hint for the next step.
Each layer adds the part of the location that it knows with :meth:`StatetoolError.at`.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self


def printable(text: str) -> str:
    """Return text in one line, with characters escaped that could control a terminal.

    Names, keys and paths come from snapshots, which are not trusted. Control characters, line ends, bidirectional text controls and lone
    surrogates become escapes.

    Examples
    --------
    >>> print(printable("Zürich\\x1b[31m\\n"))
    Zürich\\x1b[31m\\n
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def warn(message: str, *, stacklevel: int = 1) -> None:
    """Warn the user in printable text. ``stacklevel`` counts from the caller."""
    warnings.warn(printable(message), stacklevel=stacklevel + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The known parts of a location in a snapshot.

    ``offset`` counts bytes from the start of ``file``. In a compressed region it counts uncompressed bytes from the start of that region,
    which ``region`` identifies.
    """

    file: str | None = None
    offset: int | None = None
    region: str | None = None
    operator: str | None = None
    state: str | None = None
    key_group: int | None = None
    type_path: str | None = None

    def __str__(self) -> str:
        words = {"key_group": "key group", "type_path": "type"}
        parts = ((f.name, getattr(self, f.name)) for f in fields(self))
        # Operators have a label with a form for people (statetool.types.operators).
        return ", ".join(f"{words.get(n, n)} {getattr(v, 'display', v)}" for n, v in parts if v is not None)


class StatetoolError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        The expected and the actual data.
    hint
        Advice for the user.
    where
        The location, as far as the raising layer knows it.
    """

    def __init__(self, message: str, *, hint: str = "", where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where or Where()

    def at(self, **place: Any) -> Self:
        """Add the parts of the location that the calling layer knows. Parts that are already known stay."""
        new = {k: v for k, v in place.items() if v is not None and getattr(self.where, k) is None}
        self.where = replace(self.where, **new)
        return self

    def inside(self, step: str) -> Self:
        """Prepend one step to the type path (``Map.value``, ``field name``)."""
        path = self.where.type_path
        self.where = replace(self.where, type_path=step if path is None else f"{step}.{path}")
        return self

    def __str__(self) -> str:
        place = str(self.where)
        text = f"{self.message} [{place}]" if place else self.message
        return printable(f"{text}. {self.hint}" if self.hint else text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.where)


def _rebuild(cls: type[StatetoolError], message: str, hint: str, where: Where) -> StatetoolError:
    return cls(message, hint=hint, where=where)


class FormatError(StatetoolError, ValueError):
    """Bytes that differ from Flink's format."""


class DecodeError(FormatError):
    """A key or value whose bytes do not fit its serializer."""


class EncodeError(StatetoolError, ValueError):
    """A value that its serializer cannot write."""


class UnknownSerializerError(StatetoolError, LookupError):
    """A serializer snapshot class that statetool does not know, or a value of an unknown class, ``java_class``."""

    java_class: str = ""


class UndescribedClassError(FormatError, UnknownSerializerError):
    """A value of a class that its serializer snapshot does not describe. Only user code can read it.

    ``bases`` are the described classes that it extends.
    """

    bases: frozenset[str] = frozenset()


class UnsupportedError(StatetoolError, NotImplementedError):
    """A Flink feature that statetool does not support (yet)."""


class UnknownNameError(StatetoolError, KeyError):
    """An operator, state or table that the snapshot does not have."""

    __str__ = StatetoolError.__str__


class MissingKeyError(UnknownNameError):
    """A key that no operator has, or a condition that no key fulfills."""


class SnapshotNotFoundError(StatetoolError, FileNotFoundError):
    """A missing snapshot, or a missing file of a snapshot."""

    __str__ = StatetoolError.__str__


class CheckpointDeletedError(SnapshotNotFoundError):
    """A snapshot that was deleted before or while it was read. Flink deletes checkpoints that it no longer retains."""


class StorageError(StatetoolError, OSError):
    """Storage that denied access, failed or did not answer."""

    __str__ = StatetoolError.__str__


#: Errors that do not concern the bytes of a snapshot and are therefore never a finding about it.
NO_FINDING = (CheckpointDeletedError, StorageError)


class TargetExistsError(StatetoolError, FileExistsError):
    """A write to a target that already exists."""

    __str__ = StatetoolError.__str__


class WriteFailedError(StatetoolError, OSError):
    """A file that could not be written, for example because the disk is full or a permission is missing."""

    __str__ = StatetoolError.__str__


class DirectoryInUseError(StatetoolError):
    """A job may be writing to a directory that is to be cleaned up."""


class ConnectionFailedError(StatetoolError, ConnectionError):
    """An external system that did not answer, or refused the connection."""

    __str__ = StatetoolError.__str__


class OptionError(StatetoolError, ValueError):
    """An option, or a combination of options, that is not valid."""


class MissingDependencyError(StatetoolError, ImportError):
    """Java, PySpark or another optional package is missing."""


#: Errors for state that statetool cannot read, without evidence of damage.
UNREAD: Final = (UnknownSerializerError, UnsupportedError)


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.5) -> list[str]:
    """Return up to three names that resemble a given one. ``cutoff`` 0 accepts any name, 1 only equal names."""
    return difflib.get_close_matches(name, list(names), n=3, cutoff=cutoff)


def suggest(name: str, names: Iterable[str]) -> str:
    """Return a hint with similar names, or with the first existing ones."""
    known = [n or "''" for n in names]  # Flink allows a state without a name
    near = nearest(name, known)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there is {', '.join(known[:10])}{', ...' if len(known) > 10 else ''}" if known else "there is none"


def sentence(text: str) -> str:
    """Return text as a sentence: with an upper-case letter at the start, unless the first word is a name, and a period at the end.

    Examples
    --------
    >>> sentence("key group 3 does not exist"), sentence("state.backend is not set"), sentence("")
    ('Key group 3 does not exist.', 'state.backend is not set.', '')
    """
    first = text.partition(" ")[0].rstrip(",:;")
    is_word = first.isalpha() and first.islower() and first != "statetool"
    start = text[:1].upper() + text[1:] if is_word else text
    return start if not start or start.endswith((".", "?", "!")) else f"{start}."


def share(fine: int, total: int, noun: str, verb: str, verbs: str) -> str:
    """Return a share of a number of things, with a noun and a verb in the right number.

    Parameters
    ----------
    verb, verbs
        The verb in the singular and in the plural.

    Examples
    --------
    >>> share(14, 16, "state", "is", "are"), share(0, 1, "state", "is", "are"), share(1, 2, "state", "is", "are")
    ('14 of 16 states are', '0 of 1 state is', '1 of 2 states is')
    """
    return f"{fine:,} of {several(total, noun)} {verb if fine == 1 or total == 1 else verbs}"


def article(kind: str) -> str:
    """Return a kind of state with its article.

    Examples
    --------
    >>> article("list"), article("aggregating")
    ('a list', 'an aggregating')
    """
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind}"


def several(number: int, noun: str, plural: str = "") -> str:
    """Return a number with a noun, in the plural if needed.

    Parameters
    ----------
    plural
        The plural, if it is not formed with an ``s``.

    Examples
    --------
    >>> several(1, "error"), several(2000, "error"), several(0, "entry", "entries")
    ('1 error', '2,000 errors', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
