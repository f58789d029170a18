"""Snapshots of future Flink releases: each known snapshot class with the next version, in the middle of a header."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from statetool.errors import FormatError, UnknownSerializerError, UnsupportedError
from statetool.formats.keyed.header import read_keyed_header, write_keyed_header
from statetool.formats.operator_state import read_operator_header
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.packages import full_name
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC
from statetool.serializers.table import SNAPSHOT_CLASSES, snapshot_reader
from statetool.types.declared import NOTHING_DECLARED
from tests.support.snapshots import build
from tests.support.snapshots.headers import header_with

#: Possible data after the version: none, a new field, the current parts followed by a new field.
PAYLOADS: Final = (b"", b"\0\0\0\1\0\5hello", build.nested(build.LONG, build.STRING) + b"\0\0\0\1\0\5hello")


def head(name: str, *numbers: int) -> bytes:
    out = Output()
    out.utf(name)
    for number in numbers:
        out.i4(number)
    return bytes(out)


def newer() -> Iterator[tuple[str, int, bytes, int]]:
    """Yield the name in the message, the newer version, a snapshot with that version and its payload, and the version of its proxy."""
    for name, known in SNAPSHOT_CLASSES.items():
        version = max(known.versions) + 1
        yield name, version, head(name, version), 2
        if known.legacy is not None:
            version = max(known.legacy_versions) + 1
            yield name, version, head(name, version), 1
        if known.outer_versions:
            version = max(known.outer_versions) + 1
            yield f"{name} outer", version, head(name, max(known.versions), COMPOSITE_MAGIC, version), 2


CASES: Final = list(newer())


@pytest.mark.parametrize(
    ("told", "version", "snapshot", "proxy"),
    CASES,
    ids=[f"{told.rpartition('.')[2]} {version}" for told, version, _, _ in CASES],
)
def test_a_newer_version_is_refused_by_name_and_never_misread(
    told: str, version: int, snapshot: bytes, proxy: int
) -> None:
    reason = f"{told} version {version} is not known"
    for payload in PAYLOADS:
        whole = proxy.to_bytes(4, "big") + snapshot + payload
        with pytest.raises(UnknownSerializerError) as caught:
            snapshot_reader().proxied(Cursor(whole, base=1000))
        assert caught.value.message.startswith(reason)
        assert caught.value.where.offset == 1000 + 4 + len(snapshot) - 4
        inside = b"\0\0\0\2" + build.map_of(build.STRING, snapshot + payload)
        for unknown in (whole, inside) if proxy == 2 else (whole,):
            check_header(unknown, reason)


def check_header(unknown: bytes, reason: str) -> None:
    """If the header's end is known, everything else is read; otherwise nothing."""
    for as_key in (True, False):
        raw = header_with(unknown, as_key=as_key)
        header = read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=len(raw))
        opaque = header.key if as_key else header.states[0].value
        assert reason in opaque.type_name
        assert opaque.needs_frame
        assert [s.name for s in header.states] == ["first", "second"]
        assert header.states[1].value.type_name == "Long"
        assert write_keyed_header(header) == raw
        with pytest.raises(UnknownSerializerError) as caught:
            read_keyed_header(Cursor(raw), NOTHING_DECLARED, end=None)
        assert caught.value.message.startswith(reason)


def test_a_version_that_never_was_is_damage() -> None:
    for name, known in SNAPSHOT_CLASSES.items():
        if min(known.versions) == 0:
            continue
        with pytest.raises(FormatError, match=r"version 0, expected \d"):
            snapshot_reader().snapshot(Cursor(head(name, 0) + bytes(100)))


def test_a_newer_format_of_rows_is_told_with_those_that_are_known() -> None:
    name = full_name("RowDataSerializer$RowDataSerializerSnapshot")
    with pytest.raises(UnknownSerializerError, match=r"RowDataSerializerSnapshot version 5 is not known, only 3, 4"):
        snapshot_reader().snapshot(Cursor(head(name, 5) + bytes(4) + build.nested()))


@pytest.mark.parametrize(
    ("read", "what"), [(read_keyed_header, "keyed state"), (read_operator_header, "operator state")]
)
def test_newer_headers_are_refused_by_name(read: Callable[..., object], what: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{what} proxy version 7 is not known, only"):
        read(Cursor(b"\0\0\0\7" + bytes(100)), NOTHING_DECLARED)


def test_newer_frames_of_snapshots_are_refused_by_name() -> None:
    with pytest.raises(UnknownSerializerError, match="serializer snapshot proxy version 3 is not known, only 1, 2"):
        snapshot_reader().proxied(Cursor(b"\0\0\0\3" + build.LONG))
    nested = build.nested(build.LONG)
    newer = build.list_of(build.LONG).replace(nested[:8], nested[:4] + b"\0\0\0\2")
    with pytest.raises(UnknownSerializerError, match="nested serializers version 2 is not known, only 1"):
        snapshot_reader().snapshot(Cursor(newer))
