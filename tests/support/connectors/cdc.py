"""Hand-made splits of Flink CDC, in the layout of each release."""

from __future__ import annotations

import json

from tests.support.connectors.layouts import NULL_STREAM, framed, packed

ENDS = NULL_STREAM.hex()


NAMES = {"mysql-cdc-source": "binlog", "incremental-cdc-source": "stream"}


def offset(**keys: str) -> bytes:
    return packed(True, framed(json.dumps(keys).encode()))


def table(connector: str, since: int, version: int) -> bytes:
    flag = (True,) if connector == "incremental-cdc-source" and version >= since else ()
    return packed(*flag, "shop.orders")


def schemas(connector: str, version: int) -> bytes:
    return packed((4, 1), table(connector, 4, version), framed(b"{}"))


def chunk(connector: str, version: int, name: str, done: bool) -> bytes:
    high = offset(lsn="7") if done else packed(False)
    keys = packed(name, "ROW<`id` BIGINT>", ENDS, ENDS)
    return packed((4, 1), table(connector, 4, version), keys, high, schemas(connector, version))


def log(connector: str, version: int, *, suspended: bool = True) -> bytes:
    base = connector == "incremental-cdc-source"
    finished = packed("shop.orders", "c:0", ENDS, ENDS, *((ENDS,) if base else ()), offset(lsn="7"))
    finished += packed(False) if base and version >= 4 else b""
    tail = packed((4, 1)) if version >= 3 else b""
    tail += packed(False) if suspended and version >= (5 if base else 4) else b""
    tail += packed(True) if base and version >= 6 else b""
    head = packed((4, 2), f"{NAMES[connector]}-split", "", offset(lsn="5"), packed(False))
    return head + packed((4, 1), finished) + schemas(connector, version) + tail
