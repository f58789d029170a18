"""Operators of two jobs are matched by real snapshots, and by compiled plans; nothing is guessed."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from statetool.errors import OptionError, UnknownNameError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.matching import Match, Matching, match_operators
from statetool.snapshot.operator_facts import OperatorFacts, planned_facts, snapshot_facts
from statetool.sql_plans.compiled_plan import CompiledPlan
from statetool.types.operators import OperatorLabel
from tests.support.connectors.lake_cases import PACKED as LAKES
from tests.support.corpora.archives import unpack
from tests.support.corpora.sql_plans import aggregate, aggregation_plan
from tests.support.flink import job_pairs
from tests.support.flink.corpus_cases import case_folder, metadata_of

#: Jobs in two versions that only differ in ids of the operator "sums".
OTHER_IDS = (
    "GeneratedInserted",
    "GeneratedChain",
    "GeneratedParallelism",
    "GeneratedToUid",
    "UidToHash",
    "UidToOtherHash",
    "UidRenamed",
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("pairs"))


def facts(path: Path) -> list[OperatorFacts]:
    return snapshot_facts(Inventory(str(path)))


def relabeled(operators: Iterable[OperatorFacts], *, named: bool = True) -> list[OperatorFacts]:
    """Return operators with generated ids, as another job graph has them."""
    return [
        replace(o, label=OperatorLabel(other_id(o.label.operator_id), "", o.label.name if named else ""))
        for o in operators
    ]


def other_id(operator_id: str) -> str:
    return hashlib.md5(operator_id.encode()).hexdigest()


def with_state(matches: Iterable[Match]) -> list[Match]:
    return [m for m in matches if m.has_state]


@pytest.mark.parametrize("releases", [("1.20", "1.20"), ("1.20", "2.3"), ("2.3", "2.3")], ids="-".join)
@pytest.mark.parametrize("pair", OTHER_IDS)
def test_an_operator_with_another_id_is_matched(pairs: Path, pair: str, releases: tuple[str, str]) -> None:
    """Parallelism, chaining, an inserted operator, a uid, the hash of a uid: one operator has another id, and its source has the same."""
    old, new = (facts(pairs / side / pair / release) for side, release in zip(("old", "new"), releases, strict=True))
    (sums, source) = with_state(match_operators(old, new, {}).rows)
    assert (sums.verdict, source.verdict) == ("matched", "same")
    assert sums.old_id != sums.new_id
    assert sums.evidence[0] == "state sum with the same types"
    assert any(text.startswith("name") for text in sums.evidence) == (releases == ("2.3", "2.3"))
    assert Matching((sums, source)).changes.keys() == {sums.old_id}


def test_names_tell_operators_that_have_the_ids_of_each_other(pairs: Path) -> None:
    """Flink would restore each as the other."""
    old, new = (facts(pairs / side / "GeneratedSwapped" / "2.3") for side in ("old", "new"))
    found = [
        (m.verdict, m.old_name, m.new_name)
        for m in with_state(match_operators(old, new, {}).rows)
        if m.old_name in "ab"
    ]
    assert sorted(found) == [("matched", "a", "a"), ("matched", "b", "b")]


def test_random_ids_in_uids_and_names_of_a_library_do_not_count(tmp_path: Path) -> None:
    """The dynamic sink of Iceberg has a random id in a name, and before apache/iceberg#15687 in the uid."""
    old = facts(unpack(LAKES, tmp_path) / "iceberg-1.11.0-all" / "snapshot")
    random = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    (first,) = (o for o in old if random.search(o.label.name))
    runs = []
    for number in (1, 2):
        name = random.sub(str(uuid.UUID(int=number)), first.label.name)
        uid = f"a-dynamic-{uuid.UUID(int=number)}-pre-commit-topology"
        label = OperatorLabel(operator_id_for_uid(uid), uid, name)
        runs.append([replace(o, label=label, has_state=True) if o is first else o for o in old])
    rows = match_operators(runs[0], runs[1], {}).rows
    (found,) = (m for m in rows if m.old_id != m.new_id)
    assert (found.verdict, found.old_name, found.new_name) == (
        "matched",
        *(r[old.index(first)].label.name for r in runs),
    )
    assert {m.verdict for m in rows} == {"same", "matched"}


def test_two_equal_operators_are_ambiguous(pairs: Path) -> None:
    old = facts(pairs / "old" / "GeneratedSame" / "2.3")
    new = relabeled(old)
    asked = [m for m in match_operators(old, new, {}).rows if m.verdict == "ambiguous"]
    first, second = (m.old_id for m in asked)
    assert all(set(m.candidates) == {other_id(first), other_id(second)} for m in asked)
    options = {f"--match {first}={other_id(i)}" for i in (first, second)}
    assert set(asked[0].question.rpartition(": add ")[2].split(" or ")) == options
    with pytest.raises(OptionError, match="not each operator has one partner"):
        _ = Matching(tuple(asked)).changes

    # A given pair decides for the other one too.
    matches = {m.old_id: m for m in match_operators(old, new, {first: other_id(first)}).rows}
    assert (matches[first].verdict, matches[second].verdict) == ("given", "matched")
    assert matches[second].new_id == other_id(second)
    assert Matching(tuple(matches.values())).changes == {i: other_id(i) for i in matches}


def test_two_operators_that_fit_one_are_ambiguous(pairs: Path) -> None:
    old = facts(pairs / "old" / "GeneratedSame" / "2.3")
    (first, *_), kept = (o for o in old if o.states and o.has_state and o.key is not None), relabeled(old)
    new = [o for o in kept if o.label.operator_id != other_id(first.label.operator_id)]
    verdicts = Counter(m.verdict for m in with_state(match_operators(old, new, {}).rows))
    assert verdicts == {"ambiguous": 2, "matched": 1}  # the source is matched


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", ["hashmap-canonical", "rocksdb-canonical"])
def test_no_operator_is_taken_for_another(corpus: Path, kind: str, named: bool) -> None:
    """A job of many operators, in releases that store names and that do not: each pair of releases with other ids."""
    releases = {r: facts(metadata_of(corpus / case_folder(r, kind))) for r in ("1.13.6", "1.17.2", "1.20.5", "2.3.0")}
    results: Counter[str] = Counter()
    for before, after in permutations(releases, 2):
        old, new = releases[before], releases[after]
        common = {o.label.operator_id for o in old} & {o.label.operator_id for o in new}
        for match in with_state(match_operators(old, relabeled(new, named=named), {}).rows):
            if match.verdict == "matched":
                assert match.new_id == other_id(match.old_id)
            if match.old_id in common:
                results[match.verdict] += 1
    assert results["matched"] > 0.9 * results.total(), results


def test_other_states_are_not_matched_and_the_nearest_says_why(pairs: Path) -> None:
    old, new = (facts(pairs / side / "RevisedJoinSides" / "2.3") for side in ("old", "new"))
    rows = with_state(match_operators(old, new, {}).rows)
    (gone,), (added,) = ([m for m in rows if m.verdict == f"only in {side}"] for side in "AB")
    assert gone.evidence == (
        f"not {added.new}: value type of state 'window-contents' "
        "List<Union<String, Tuple<String, Int>>> -> List<Union<Tuple<String, Int>, String>>",
    )


def test_a_given_pair_may_have_other_types_of_values(pairs: Path) -> None:
    """``migrate`` converts them. Nothing else decides that the operators are the same."""
    old, new = (facts(pairs / side / "RevisedJoinSides" / "2.3") for side in ("old", "new"))
    rows = with_state(match_operators(old, new, {}).rows)
    gone, added = (next(m for m in rows if m.verdict == f"only in {side}") for side in "AB")
    (given,) = (m for m in match_operators(old, new, {gone.old_id: added.new_id}).rows if m.verdict == "given")
    assert any(text.startswith("differs: value type of state 'window-contents'") for text in given.evidence)


def test_a_given_pair_with_other_states_is_refused(pairs: Path) -> None:
    old, new = (facts(pairs / "old" / pair / "2.3") for pair in ("RevisedJoinSides", "GeneratedSame"))
    window = next(o.label for o in old if ("keyed", "window-contents") in (o.states or {}))
    sums = next(o.label for o in new if ("keyed", "sum") in (o.states or {}))
    with pytest.raises(OptionError) as refused:
        match_operators(old, new, {window: sums})
    assert all(text in refused.value.message for text in (window.display, sums.display, "keyed state"))


def test_given_operators_exist_and_are_given_once(pairs: Path) -> None:
    old = facts(pairs / "old" / "GeneratedSame" / "2.3")
    first, second = (o.label for o in old if o.key is not None)
    with pytest.raises(UnknownNameError, match="B: no operator 'sums'"):
        match_operators(old, old, {first: "sums"})
    with pytest.raises(UnknownNameError, match="A: no operator 'sums'"):
        match_operators(old, old, {"sums": first})
    with pytest.raises(OptionError, match="of B is given twice"):
        match_operators(old, old, {first: first, second: first})
    with pytest.raises(OptionError, match="of A is given twice"):
        match_operators(old, old, {first: first, first.operator_id[:10]: second})


def numbered(text: str, shift: int) -> str:
    """Return a plan whose nodes have other ids."""
    plan = json.loads(text)
    for node in plan["nodes"]:
        node["id"] += shift
    for edge in plan["edges"]:
        edge |= {end: edge[end] + shift for end in ("source", "target")}
    return json.dumps(plan)


def planned(*plans: str) -> list[OperatorFacts]:
    return [o for plan in plans for o in planned_facts(CompiledPlan(plan))]


SUM, COUNT = aggregation_plan([aggregate("SUM", 1)]), aggregation_plan([aggregate("COUNT")])


def test_nodes_of_plans_are_matched_by_what_they_compute() -> None:
    old, new = planned(SUM, numbered(COUNT, 10)), planned(COUNT, numbered(SUM, 10))
    found = {
        m.old_uid: (m.verdict, m.new_uid) for m in match_operators(old, new, {}).rows if "group" in (m.old_uid or "")
    }
    # The number of a node is no evidence against what it computes.
    assert found == {
        "4_group-aggregate": ("matched", "14_group-aggregate"),
        "14_group-aggregate": ("matched", "4_group-aggregate"),
    }


def test_another_name_of_a_result_is_no_difference() -> None:
    """``SELECT SUM(v) AS total`` computes what ``SELECT SUM(v) AS amount`` does."""
    renamed = json.loads(SUM)
    calls = [call for node in renamed["nodes"] for call in node.get("aggCalls", ())]
    assert calls
    for call in calls:
        call["name"] = "amount"
    (found,) = (
        m
        for m in match_operators(planned(SUM), planned(numbered(json.dumps(renamed), 10)), {}).rows
        if "group" in m.old_uid
    )
    assert found.verdict == "matched"


def test_equal_nodes_of_plans_are_ambiguous() -> None:
    old, new = planned(SUM, numbered(SUM, 10)), planned(numbered(SUM, 20), numbered(SUM, 30))
    found = [m for m in match_operators(old, new, {}).rows if "group" in m.old_uid]
    assert [m.verdict for m in found] == ["ambiguous", "ambiguous"]
    assert found[0].candidates == ("24_group-aggregate", "34_group-aggregate")


def test_the_same_query_decides_between_equal_nodes() -> None:
    """Two aggregations of other rows: the filter is in a node before them."""
    filtered = SUM.replace('"projection"', '"condition": "amount > 1", "projection"')
    found = match_operators(
        planned(SUM, numbered(filtered, 10)), planned(numbered(filtered, 20), numbered(SUM, 30)), {}
    ).rows
    assert [(m.verdict, m.old_uid, m.new_uid) for m in found if "group" in m.old_uid] == [
        ("matched", "4_group-aggregate", "34_group-aggregate"),
        ("matched", "14_group-aggregate", "24_group-aggregate"),
    ]


def test_a_changed_node_keeps_its_id_and_says_what_differs() -> None:
    (found,) = (m for m in match_operators(planned(SUM), planned(COUNT), {}).rows if "group" in m.old_uid)
    assert (found.verdict, found.old_id) == ("same", operator_id_for_uid("4_group-aggregate"))
    assert found.evidence == ("the same operator id", "differs: aggCalls of the plan node")
    (renumbered,) = (
        m for m in match_operators(planned(SUM), planned(numbered(COUNT, 1)), {}).rows if "group" in m.old_uid
    )
    assert (renumbered.verdict, renumbered.evidence) == (
        "only in A",
        ("not 5_group-aggregate: aggCalls of the plan node",),
    )


def test_operators_outside_of_the_plan_are_named_and_matched_by_a_snapshot() -> None:
    """A job that mixes the Table API and DataStream has operators that its compiled plan does not hold."""
    (node,) = (o for o in planned(SUM) if "group" in o.label)
    outside = OperatorFacts(
        label=OperatorLabel(other_id("a"), "", "Flat Map"), has_state=True, states={}, has_plan=True
    )
    (row, *_) = match_operators([outside], planned(SUM), {}).rows
    assert (row.verdict, row.evidence) == (
        "only in A",
        ("no compiled plan holds it, as it is not in that of A: match with a savepoint of the new job",),
    )
    run = [replace(node, has_run=True), replace(outside, label=OperatorLabel(other_id("b"), "", "Flat Map"))]
    (row, *_) = match_operators([outside], run, {}).rows
    assert (row.verdict, row.new_id) == ("matched", other_id("b"))


def test_operators_of_one_node_are_told_apart_by_their_uids() -> None:
    """A node may become several operators, such as two of a join."""
    (node,) = (o for o in planned(SUM) if "group" in o.label)
    labels = {n: OperatorLabel(operator_id_for_uid(n), n) for n in ("4_filter-left", "4_filter-right")}
    old = [replace(node, label=label, planned_uid=str(label)) for label in labels.values()]
    new = [o for o in planned_facts(CompiledPlan(numbered(SUM, 3)), old) if "filter" in o.label]
    found = [(m.verdict, m.old_uid, m.new_uid) for m in match_operators(old, new, {}).rows]
    assert found == [("matched", "4_filter-left", "7_filter-left"), ("matched", "4_filter-right", "7_filter-right")]


def test_a_plan_names_the_operators_that_the_other_job_has(sql_corpus: Path, tmp_path: Path) -> None:
    """The job of the plan has not run: its operators have the numbers of the plan's nodes."""
    plans = unpack(Path(__file__).parents[1] / "corpus" / "sql-plans.tar.xz", tmp_path) / "plans"
    plan = plans / "sql_group_agg_rocksdb.json"
    (case,) = sql_corpus.glob("*sql_group_agg_rocksdb")
    inventory = Inventory(str(metadata_of(case)), columns_from_plan=str(plan))
    old = snapshot_facts(inventory)
    new = planned_facts(CompiledPlan(numbered(plan.read_text(), 7)), old)
    found = with_state(match_operators(old, new, {}).rows)
    assert {m.verdict for m in found} == {"matched"}
    assert Matching(tuple(found)).changes == {
        operator_id_for_uid("1_source"): "8_source",
        operator_id_for_uid("4_group-aggregate"): "11_group-aggregate",
    }
