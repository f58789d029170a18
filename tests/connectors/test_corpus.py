"""Every split, enumerator, committable and transaction of the corpus equals that of the job's readers and writers."""

from __future__ import annotations

from pathlib import Path

import statetool
from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import SourceBytes, SourceState
from statetool.connectors.sinks import COMMITTER_STATE, sink_of, without_committables
from statetool.connectors.sources import source_of
from tests.support.checks.corpus_check import check_case, find_cases


def test_every_case_is_as_expected(connector_cases: Path) -> None:
    checks = {case.folder.name: check_case(case, [("arrow", None)]) for case in find_cases(connector_cases, None)}
    assert len(checks) == 52
    assert not [line for passed, line in checks.values() if not passed]


def test_flinks_own_snapshots_are_as_expected(connector_migration: Path) -> None:
    checks = [check_case(case, [("arrow", None)]) for case in find_cases(connector_migration, None)]
    assert len(checks) == 52
    assert not [line for passed, line in checks if not passed]


def test_what_is_written_again_has_the_same_bytes(connector_cases: Path) -> None:
    """Encoders are the inverse of decoders, for each split and each enumerator of every writable connector."""
    written = set()
    for path in sorted(connector_cases.glob("*/snapshot")):
        for operator in statetool.load(str(path)).operators.values():
            source = source_of(operator.inventory)
            if (
                source is None
                or not isinstance(source.connector, SplitConnector)
                or source.name.endswith("-cdc-source")
            ):
                continue
            assert source.given is not None
            bare = tuple(
                type(h)(subtask=h.subtask, version=h.version, data=b"", split=h.split) for h in source.state.held
            )
            state = SourceState(held=bare, enumerator=source.state.enumerator)
            again = source.connector.write(source.given, state)
            assert again == SourceBytes(
                held=tuple(
                    type(h)(subtask=h.subtask, version=h.version, data=h.data, split=h.split) for h in source.state.held
                ),
                enumerator_version=source.given.enumerator_version,
                enumerator=source.given.enumerator,
            )
            written.add((source.name, source.given.enumerator_version))
    assert written == {
        ("kafka-source", 0), ("kafka-source", 1), ("kafka-source", 2), ("kafka-source", 3), ("file-source", 1),
        ("hybrid-source", 0), ("kinesis-source", 1), ("number-sequence-source", 1),
    }  # fmt: skip


def test_committables_that_nobody_forgets_keep_their_bytes(connector_cases: Path) -> None:
    collectors = 0
    for path in sorted(connector_cases.glob("*-sink*/snapshot")):
        for operator in statetool.load(str(path)).operators.values():
            sink = sink_of(operator.inventory)
            if sink is None or sink.connector is None or sink.state.role != "committer":
                continue
            collectors += 1
            elements = without_committables(sink, frozenset({"none"}))[COMMITTER_STATE]
            rewritten = [data for subtask in sorted(elements) for data in elements[subtask]]
            assert rewritten == [e.data for e in sink.data.elements(COMMITTER_STATE)]
    assert collectors == 10
