"""Versions written by older releases of Flink CDC, composed from their writers' sources."""

from __future__ import annotations

import pytest

from statetool.connectors import registry
from statetool.connectors.model import Enumerator, HeldSplit, SourceBytes
from tests.support.connectors.cdc import ENDS, NAMES, chunk, log, offset, schemas, table
from tests.support.connectors.layouts import framed, packed, recognised

#: Connector, version of splits, version of the enumerator, as written by one release.
RELEASES = [
    ("mysql-cdc-source", 2, 2),
    ("mysql-cdc-source", 3, 3),
    ("mysql-cdc-source", 4, 3),
    ("mysql-cdc-source", 4, 5),
    ("incremental-cdc-source", 3, 4),
    ("incremental-cdc-source", 4, 5),
    ("incremental-cdc-source", 5, 6),
    ("incremental-cdc-source", 5, 7),
    ("incremental-cdc-source", 5, 8),
    ("incremental-cdc-source", 6, 8),
]


def enumerator(connector: str, version: int, split_version: int) -> bytes:
    base = connector == "incremental-cdc-source"
    tables = packed((4, 1), table(connector, 5, version))
    number = version >= 6 if base else version > 3 or split_version == 4
    waiting = packed((4, 1), framed(chunk(connector, split_version, "c:2", False)))
    assigned = packed((4, 1), "c:1", framed(chunk(connector, split_version, "c:1", True)))
    out = packed((4, split_version), (4, 3), tables, waiting, assigned, (4, 1), "c:1", offset(lsn="6"))
    out += packed((4, 1)) if number else packed(True)
    out += packed(tables, True) if version >= 3 else b""
    out += schemas(connector, split_version) if version >= 4 else b""
    out += packed((4, 1), "c:1", (8, 12)) if base and version >= 7 else b""
    out += packed(True, "shop.orders", ENDS, (4, 9)) if version >= (8 if base else 5) else b""
    return out + packed(True)


@pytest.mark.parametrize(("connector", "version", "enumerator_version"), RELEASES)
def test_what_older_releases_wrote(connector: str, version: int, enumerator_version: int) -> None:
    splits = [chunk(connector, version, "c:3", False), log(connector, version)]
    state = enumerator(connector, enumerator_version, version)
    source, read = recognised(version, splits, (enumerator_version, state))
    assert source.name == connector
    assert [h.split.split_id for h in read.held] == ["c:3", f"{NAMES[connector]}-split"]
    assert source.place(read.held[1].split).position == '{"lsn": "5"}'
    assert isinstance(read.enumerator, Enumerator)
    statuses = {k.split.split_id: k.status for k in read.enumerator.splits}
    assert statuses == {"c:2": "unassigned", "c:1": "finished"}
    assert read.enumerator.facts["assigner_status"] == "INITIAL_ASSIGNING_FINISHED"
    assert read.enumerator.facts[f"{NAMES[connector]}_split_assigned"] is True
    assert read.backlog is False


def test_the_first_release_with_splits_of_version_4_does_not_say_suspended() -> None:
    held = (HeldSplit(subtask=0, version=4, data=log("mysql-cdc-source", 4, suspended=False)),)
    ((connector, state),) = registry.recognise(SourceBytes(held=held))
    assert connector.name == "mysql-cdc-source"
    assert state.held[0].split.suspended is None
