"""Operators of real jobs that differ only in parallelism, chaining or release: all are matched, none is wrong, and equal ones are asked for.

``python -m tests.support.flink.unnamed_jobs`` runs the jobs and knows the true pairs.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from statetool.operations.cluster.job_graph import graph_facts, parse_vertices
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.matching import Match, match_operators
from statetool.snapshot.operator_facts import OperatorFacts, snapshot_facts
from tests.support.corpora.archives import unpack
from tests.support.flink.unnamed_jobs import ARCHIVE, TWINS, Run, pairs


class Table:
    """The stored runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts = cache(self._facts)

    def _facts(self, run: Run) -> list[OperatorFacts]:
        return snapshot_facts(Inventory(str(self.root / run.folder)))

    def graph(self, run: Run) -> list[OperatorFacts]:
        """Return what the REST API says of the job."""
        tree = json.loads((self.root / run.folder / "facts.json").read_text())["graph"]
        return graph_facts(parse_vertices(tree))

    def ids(self, run: Run) -> dict[str, str]:
        """Return the operator ids by what the operators are in the program."""
        tags: dict[str, str] = json.loads((self.root / run.folder / "facts.json").read_text())["tags"]
        return tags

    def rows(self, old: Run, new: Run) -> list[tuple[Match, str]]:
        """Return the matches of operators that have state, each with the true id in the other job."""
        before, after = self.ids(old), self.ids(new)
        # Releases call an operator without state by other names: TableToDataSteam.
        true = {operator_id: after[tag] for tag, operator_id in before.items() if tag in after}
        found = match_operators(self.facts(old), self.facts(new), {}).rows
        return [(m, true[m.old_id]) for m in found if m.has_state and m.old_id]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(unpack(ARCHIVE, tmp_path_factory.mktemp("unnamed")))


def test_all_operators_are_matched(table: Table) -> None:
    done = [(old, new) for old, new in pairs() if old.job not in TWINS]
    assert len(done) >= 100
    verdicts: Counter[str] = Counter()
    for old, new in done:
        for match, true_id in table.rows(old, new):
            assert match.new_id == true_id, (old.folder, new.folder, match)
            verdicts[match.verdict] += 1
    assert verdicts.keys() == {"same", "matched"}
    assert verdicts["matched"] > 100, verdicts


def test_equal_operators_are_asked_for_and_never_guessed(table: Table) -> None:
    verdicts: Counter[str] = Counter()
    for old, new in pairs():
        if old.job in TWINS:
            for match, true_id in table.rows(old, new):
                verdicts[match.verdict] += 1
                assert match.verdict == "ambiguous" or match.new_id == true_id, (old.folder, new.folder, match)
                if match.verdict == "ambiguous":
                    ids = {o.label: o.label.operator_id for o in table.facts(new)}
                    assert true_id in {ids[c] for c in match.candidates}  # type: ignore[index]
    assert verdicts["ambiguous"] > 20, verdicts
    assert verdicts.keys() <= {"same", "matched", "ambiguous"}


def test_a_job_graph_tells_ids_that_did_not_change_and_names_that_the_program_gave(table: Table) -> None:
    """It tells nothing of states: other operators are asked for, or need a snapshot of the new job."""
    verdicts: Counter[str] = Counter()
    for old, new in pairs():
        before, after = table.ids(old), table.ids(new)
        true = {operator_id: after.get(tag) for tag, operator_id in before.items()}
        found = match_operators(table.facts(old), table.graph(new), {})
        for match in (m for m in found.rows if m.has_state and m.old_id):
            verdicts[match.verdict] += 1
            assert match.verdict in ("ambiguous", "only in A") or match.new_id == true[match.old_id], (
                old.folder, new.folder, match,
            )  # fmt: skip
            assert all(match.candidates) == (match.verdict != "only in A" or match.candidates == ())
    assert verdicts["same"] > 200, verdicts
    assert verdicts["matched"] > 0, verdicts
