"""Frames around bytes written by connectors.

*Versioned*: i4 version, i4 length, bytes (``SimpleVersionedSerialization``). *List*: i4 version of the elements, i4 count, then each as
i4 length, bytes (``SimpleVersionedSerialization.writeVersionAndSerializeList``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from statetool.errors import FormatError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output

T = TypeVar("T")


def read_versioned(c: Cursor, what: str) -> tuple[int, Cursor]:
    """Read version, length and bytes. Return the version and a cursor over the bytes."""
    version = c.i4()
    return version, read_framed(c, what)


def read_framed(c: Cursor, what: str) -> Cursor:
    """Read a length and return a cursor over that many bytes."""
    return c.slice(c.i4(), what)


def whole_versioned(data: bytes, what: str) -> tuple[int, bytes]:
    """Return version and bytes of a frame; raise an error for bytes after it."""
    c = Cursor(data)
    version, inner = read_versioned(c, what)
    c.expect_end(what)
    return version, inner.take(inner.left)


def write_versioned(version: int, data: bytes) -> bytes:
    """Return bytes in their frame."""
    out = Output()
    out.i4(version)
    out.bytes4(data)
    return bytes(out)


def read_all(data: bytes, read: Callable[[Cursor], T], what: str) -> T:
    """Read a value that takes up all bytes.

    Raises
    ------
    FormatError
        Bytes are missing or left over.
    """
    c = Cursor(data)
    value = read(c)
    c.expect_end(what)
    return value


def read_version(data: bytes, version: int, read: Callable[[int, Cursor], T], what: str) -> T:
    """Read a value of a version that takes up all bytes. Raises the errors of :func:`read_all`."""
    return read_all(data, lambda c: read(version, c), what)


def read_inner(c: Cursor, read: Callable[[Cursor], T], what: str) -> T:
    """Read a length and a value that takes up that many bytes."""
    inner = read_framed(c, what)
    value = read(inner)
    inner.expect_end(what)
    return value


def read_list(c: Cursor, read: Callable[[int, Cursor], T], what: str) -> list[T]:
    """Read a list. ``read`` receives the version of the elements."""
    version = c.i4()
    return [read_inner(c, lambda inner: read(version, inner), what) for _ in range(c.count(what, at_least=4))]


def write_list(out: Output, version: int, items: Iterable[bytes]) -> None:
    """Append a list."""
    elements = list(items)
    out.i4(version)
    out.i4(len(elements))
    for item in elements:
        out.bytes4(item)


def known_version(version: int, versions: Iterable[int], what: str) -> int:
    """Return the version if its layout is known.

    Raises
    ------
    UnsupportedError
        The layout is not known. Values of this version stay bytes.
    """
    if version not in versions:
        raise UnsupportedError(f"{what} of version {version} is not known, only {', '.join(map(str, versions))}")
    return version


def decode_text(c: Cursor, raw: bytes) -> str:
    """Return the text of bytes that were just read.

    Raises
    ------
    FormatError
        They are not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8: {error.reason}").at(offset=c.offset - len(raw)) from None
