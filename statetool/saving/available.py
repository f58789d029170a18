"""Releases that have each serializer snapshot class. A class that the target release lacks is refused before anything is written.

Taken from the class lists of the release jars 1.13.6, 1.15.4, 1.17.2, 1.20.5 and 2.3.0, and for variants and bitmaps
also 2.0.2, 2.1.3 and 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from statetool.errors import UnsupportedError
from statetool.formats.keyed.header import CURRENT_VERSION
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.saving.versions import READS, Target
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer

_ORDER: Final = tuple(READS)
#: First release that has a class, by simple class name (by full name if the class moved to another package).
_SINCE: Final = {
    "SetSerializerSnapshot": "2.0",
    "VariantSerializer$VariantSerializerSnapshot": "2.1",
    "BitmapSerializer$BitmapSerializerSnapshot": "2.3",
    "TtlAwareSerializerSnapshot": "2.0",
    "SortedLongSerializer$SortedLongSerializerSnapshot": "2.0",
    "MetaSqnInfoSerializer$MetaSqnInfoSerializerSnapshot": "2.0",
    "RowSqnInfoSerializer$RowSqnInfoSerializerSnapshot": "2.0",
    "NodeSerializer$NodeSerializerSnapshot": "2.0",
    "RowDataKeySerializerSnapshot": "2.0",
    "org.apache.flink.runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot": "2.0",
    "org.apache.flink.table.runtime.operators.window.GlobalWindow$Serializer$GlobalWindowSerializerSnapshot": "2.0",
    "org.apache.flink.streaming.api.functions.sink.legacy.TwoPhaseCommitSinkFunction$StateSerializerSnapshot": "2.0",
}
#: The last release that has a class.
_UNTIL: Final = {
    "EitherSerializerSnapshot": "1.20",
    "GenericArraySerializerConfigSnapshot": "1.20",
    "SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot": "1.20",
    "org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot": "1.20",
}
_SCALA: Final = "org.apache.flink.api.scala."
_LEGACY_UNTIL: Final = "1.16"


def check_available(
    key: Serializer | None, metas: Iterable[StateMetaInfo], target: Target, *, kryo: bool = True
) -> None:
    """Refuse serializers that the target release does not have.

    Parameters
    ----------
    kryo
        Whether to refuse values that another release of Kryo wrote.

    Raises
    ------
    UnsupportedError
        Names the state, the class and the releases that have it.
    """
    if target.release is None:
        return
    if key is not None:
        _check(key, target.release, kryo=kryo)
    for meta in metas:
        try:
            if meta.backend_type == KEY_VALUE_V2 and _before(target.release, "2.0"):
                raise UnsupportedError(
                    "Flink 1.x cannot read state of the API of Flink 2.0", hint="choose 2.0 or later"
                )
            for serializer in meta.serializers.values():
                _check(serializer, target.release, kryo=kryo)
        except UnsupportedError as error:
            raise error.at(state=meta.name) from None


def check_proxy(version: int, target: Target) -> None:
    """Refuse keyed headers before version 6 (Flink 1.7) if the target release is Flink 1.17 or later.

    Raises
    ------
    UnsupportedError
    """
    if target.release is not None and version < CURRENT_VERSION and _before(_LEGACY_UNTIL, target.release):
        raise UnsupportedError(
            f"Flink {target.release} cannot read keyed state of proxy version {version}",
            hint=f"restore it with Flink {_LEGACY_UNTIL} and take a savepoint there, or choose a release up to that",
        )


def _check(serializer: Serializer, release: str, *, kryo: bool) -> None:
    for part in all_parts(serializer):
        name = part.snapshot_class
        short = name.rpartition(".")[2]
        since = _SINCE.get(short) or _SINCE.get(name)
        if since is not None and _before(release, since):
            raise UnsupportedError(
                f"Flink {release} does not have {short}", hint=f"choose {since} or later, or another type"
            )
        until = _UNTIL.get(short) or _UNTIL.get(name)
        if name.startswith(_SCALA):
            until = "1.20"
        if part.legacy_bytes is not None or _is_old(part.proxy_bytes):
            until = _LEGACY_UNTIL
        if kryo and isinstance(part, KryoSerializer):
            _check_kryo(part, release)
        if until is not None and _before(until, release):
            raise UnsupportedError(
                f"Flink {release} cannot read {short}",
                hint=f"restore it with Flink {until} and take a savepoint there, or choose a release up to {until}",
            )


def _check_kryo(serializer: KryoSerializer, release: str) -> None:
    """Refuse values written by the other version of Kryo: the snapshots are the same, but the bytes differ, except for Thrift structs."""
    declared = serializer.context.find(serializer.type_class)
    if declared is not None and declared.kind == "thrift":
        return
    wrote = serializer.context.kryo
    needs = 2 if _before(release, "2.0") else 5
    if wrote is not None and wrote != needs:
        one, other = ("1.x", "2.x") if wrote == 2 else ("2.x", "1.x")
        raise UnsupportedError(
            f"Flink {other} cannot read values of {serializer.type_name} that the Kryo of Flink {one} wrote",
            hint=f"choose a release of {one}, or bootstrap the state with another type",
        )


def _is_old(proxied: bytes | None) -> bool:
    """Return True if a snapshot is wrapped in the proxy of Flink 1.6 and older."""
    return proxied is not None and proxied[:4] == b"\0\0\0\1"


def _before(a: str, b: str) -> bool:
    return _ORDER.index(a) < _ORDER.index(b)
