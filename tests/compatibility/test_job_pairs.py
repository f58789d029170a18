"""Verdicts on jobs that differ in more than classes, compared with what real Flink did with them (``tests/support/flink/job_pairs.py``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs, job_runs

#: Rules, pairs that they find, what is known of the new job, and the kind of the finding.
FOUND: Final = (
    ("K3", "StateValueToList", "jars", "not"),
    ("K3", "StateValueToList", "jar", "unknown"),
    ("K2", "StateKeyType", "jars", "not"),
    ("K4", "StateIntToLong", "jars", "not"),
    ("K4", "StateMapKey", "jars", "not"),
    ("K4", "WindowTriggerState", "jars", "later"),
    ("K6", "StateTtlOn", "jars", "note"),
    ("K6", "StateTtlOff", "jar", "unknown"),
    ("K8", "KeyedToOperator", "jars", "loses"),
    ("K11", "StateKeySelector", "savepoint", "may_change"),
    ("K4", "ScalaCaseGrown", "jars", "not"),
    ("K4", "ScalaOptionElement", "jars", "unknown"),
    ("K4", "ScalaCaseSwapped", "jars", "may_change"),
    ("K4", "ScalaEnumerationMoved", "jars", "not"),
    ("K9", "ScalaKeyHashed", "jars", "unknown"),
    ("T3", "TimersToFlatMap", "jars", "loses"),
    ("T3", "TimersRenamed", "jars", "loses"),
    ("K4", "AvroEnumDefault", "jar", "may_change"),
    ("K4", "AvroNamespace", "jar", "later"),
    ("K4", "AvroFieldAlias", "jar", "not"),
    ("Z4", "StateRenamed", "jars", "loses"),
    ("E2", "OperatorListToUnion", "jars", "not"),
    ("E3", "BroadcastToList", "jars", "loses"),
    ("E4", "OperatorListElement", "jars", "not"),
    ("Z4", "OperatorListRenamed", "jars", "loses"),
    ("O1", "UidRenamed", "jars", "not"),
    ("O1", "UidToOtherHash", "jars", "not"),
    ("O1", "GeneratedToUid", "jars", "not"),
    ("O4", "GeneratedSwappedUnnamed", "savepoint", "note"),
    ("O5", "UidsSwapped", "savepoint", "may_change"),
    ("O6", "UidToHash", "savepoint", "note"),
    ("O6", "UidToHash", "jars", "note"),
    ("W4", "WindowToCountTrigger", "savepoint", "may_change"),
    ("W4", "WindowEvictorAdded", "jars", "not"),
    ("W4", "WindowEvictorRemoved", "jars", "not"),
    ("W4", "WindowAccumulator", "jars", "not"),
    ("W4", "WindowReduceToAggregate", "jars", "not"),
    ("W4", "WindowKeyedToAll", "jars", "not"),
    ("W4", "WindowToGlobal", "jars", "not"),
    ("W4", "WindowToSession", "jars", "may_change"),
    ("W4", "RevisedCountWindow", "savepoint", "may_change"),
    ("W4", "RevisedCountWindowSlides", "jars", "not"),
    ("W4", "RevisedCountToTimeWindow", "jars", "not"),
    ("W4", "RevisedListType", "jars", "not"),
    ("W4", "RevisedReduceLambda", "jars", "not"),
    ("W4", "RevisedJoinSides", "jars", "unknown"),
    ("W4", "RevisedPackage", "jars", "not"),
    ("K4", "RevisedSumType", "jars", "not"),
    ("K4", "RevisedTupleLonger", "jars", "not"),
    ("K4", "RevisedListInValue", "jars", "not"),
    ("K4", "RevisedFlagGiven", "jars", "not"),
    ("Z4", "RevisedNameGiven", "jars", "loses"),
    ("K4", "ValueRowSwapped", "jars", "may_change"),
    ("K4", "RevisedRow", "jars", "not"),
    ("K4", "DeclaredHintStaticRetyped", "jars", "not"),
    ("K4", "DeclaredHintRetyped", "jars", "not"),
    ("K4", "DeclaredExtractorRetyped", "jars", "not"),
    ("K4", "DeclaredJoinedRetyped", "jars", "not"),
    ("K4", "DeclaredSuperRetyped", "jars", "not"),
    ("K4", "DeclaredClassFieldRetyped", "jars", "not"),
    ("K4", "ValueEitherSwapped", "jars", "not"),
    ("K4", "ValueBoxRetyped", "jars", "not"),
    ("K4", "ValueKryoListToSet", "jars", "may_change"),
    ("K4", "ValueKryoMapToSorted", "jars", "may_change"),
    ("K4", "ValueAnonymous", "jars", "may_change"),
    ("K4", "ValueTupleSubclassAdded", "savepoint", "may_change"),
    ("K4", "ValueTupleSubclassAdded", "jars", "may_change"),
    ("K15", "RevisedSumToMax", "savepoint", "may_change"),
    ("K15", "RevisedIntervalBounds", "jars", "may_change"),
    ("K15", "RevisedReducer", "savepoint", "may_change"),
    ("K15", "RevisedNamesSwapped", "savepoint", "may_change"),
    ("K7", "RevisedTtlShorter", "savepoint", "may_change"),
    ("K7", "StateTtlLonger", "jars", "note"),
    ("K11", "RevisedKeyBody", "savepoint", "may_change"),
    ("K11", "RevisedKeyHelper", "jars", "may_change"),
    ("K11", "RevisedKeyReference", "jars", "may_change"),
    ("E4", "RevisedBroadcastType", "jars", "not"),
    ("K4", "ChosenLocal", "jars", "not"),
    ("K4", "ChosenDescriptor", "jars", "not"),
    ("K4", "ChosenReturns", "jars", "not"),
    ("K4", "ChosenEnvironment", "jars", "unknown"),
    ("W4", "ChosenContents", "jars", "not"),
    ("K2", "ChosenKey", "jars", "not"),
    ("K6", "ChosenTtl", "jars", "note"),
    ("O1", "ChosenUid", "jars", "not"),
    ("Z4", "ChosenName", "jars", "loses"),
    ("E2", "ChosenUnion", "jars", "not"),
    ("P1", "RevisedMaxParallelism", "jar", "unknown"),
    ("P1", "RevisedMaxParallelism", "jars", "not"),
    ("O1", "RevisedUidComputed", "jars", "not"),
    ("C1", "RevisedSourceToFiles", "savepoint", "not"),
    ("C1", "RevisedSourceToFiles", "jars", "unknown"),
    ("C1", "RevisedSink", "jars", "unknown"),
    ("W7", "PatternNameElsewhere", "jar", "later"),
    ("W8", "PatternCondition", "jars", "may_change"),
    ("U4", "FlightFieldAdded", "jars", "not"),
    ("U4", "FlightFieldsSwapped", "jars", "may_change"),
    ("U4", "FlightKryoGrown", "savepoint", "not"),
    ("U4", "FlightTupleLonger", "savepoint", "not"),
    ("U5", "FlightFieldAdded", "jar", "unknown"),
)
#: Topics whose jobs hide from the code what they change.
OF_CODE: Final = ("Revised", "Declared", "Chosen")
#: Rules that state what they cannot know.
ASSUMED: Final = (
    ("U5", "FlightSame", "jars"),
    ("U5", "FlightBesides", "jars"),
    ("U5", "FlightClassRenamed", "savepoint"),
    ("W4", "WindowSame", "jar"),
    ("W8", "PatternSame", "jar"),
)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("job-pairs"))


def rows() -> list[job_pairs.Outcome]:
    """Return the row of each pair with one backend and the newest release that it has."""
    return list({r.pair: r for r in job_pairs.table() if r.written_by == r.release}.values())


def row_of(pair: str) -> job_pairs.Outcome:
    return next(r for r in rows() if r.pair == pair)


@pytest.mark.parametrize(("rule", "pair", "known", "kind"), FOUND)
def test_each_rule_finds_its_pairs(snapshots: Path, rule: str, pair: str, known: str, kind: str) -> None:
    check = job_pairs.check(snapshots, row_of(pair), known)
    assert (rule, kind) in {(f.rule, f.kind) for step in check.steps for f in step.findings}


@pytest.mark.parametrize(("rule", "pair", "known"), ASSUMED)
def test_what_no_jar_tells_is_assumed(snapshots: Path, rule: str, pair: str, known: str) -> None:
    check = job_pairs.check(snapshots, row_of(pair), known)
    assert check.verdict == "fully"
    assert rule in {a.rule for a in check.assumptions}


def test_only_pairs_that_are_unknown_were_run() -> None:
    """One that was not run counts as unknown."""
    unknown = [(r.pair, r.written_by, r.release, r.backend, known) for r, known in job_runs.unknown(job_pairs.table())]
    ran = [(r.pair, r.written_by, r.release, r.backend, r.known) for r in job_runs.table()]
    assert ran == [place for place in unknown if place in set(ran)]
    assert ran


def test_the_documentation_counts_the_pairs() -> None:
    table = job_pairs.table()
    counts = {known: Counter(job_pairs.judge(row, known) for row in table) for known in ("savepoint", "jars")}
    runs = job_runs.table()
    with_run = {known: Counter(job_runs.judged(row, known, runs) for row in table) for known in counts}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "checks.md").read_text("utf-8")
    assert (
        f"{len({row.pair for row in table})} jobs that differ in more than classes, {len(table):,} times in all" in page
    )
    heads = {"savepoint": "a savepoint of the new job and both jars", "jars": "both jars alone"}
    named = [
        (f"{heads[known]}{more}", of[known]) for of, more in ((counts, ""), (with_run, ", `--run`")) for known in heads
    ]
    for head, found in named:
        unsure = found["assumed"] + found["noted"] + found["mild"]
        row = f"| {head} | {found['right']} | {found['unknown']} | {found['needless']} | {unsure} | {found['comfort']} | {found['alarm']} |"
        assert row in page

    of_code = [row for row in table if row.topic in OF_CODE]
    others = [row for row in table if row.topic not in OF_CODE]
    unknown = {
        known: [
            sum(judge == "unknown" for judge in (job_pairs.judge(row, known) for row in rows))
            for rows in (others, of_code)
        ]
        for known in counts
    }
    assert all(number <= len(others) * 0.05 for number, _ in unknown.values())
    assert (
        f"With the jars alone, {unknown['jars'][1]} of these restores are unknown, with the savepoint {unknown['savepoint'][1]}."
        in page
    )


@pytest.mark.parametrize("known", ["savepoint", "jars", "jar"])
def test_nothing_restores_that_flink_refuses(known: str) -> None:
    """The table has the verdicts of today, as the next test says."""
    assert [row.pair for row in job_pairs.table() if job_pairs.judge(row, known) == "comfort"] == []


@pytest.mark.parametrize(
    "sample", [pytest.param(rows()[::9], id="some"), pytest.param(job_pairs.table(), id="all", marks=pytest.mark.full)]
)
def test_the_table_has_todays_verdicts(snapshots: Path, sample: list[job_pairs.Outcome]) -> None:
    stored = [row for row in sample if job_pairs.is_stored(row)]
    checked = [job_pairs.checked(snapshots, row) for row in stored]
    assert checked == stored, "run python -m tests.support.flink.job_pairs --verdicts"
