"""Jobs whose code names one thing and runs with another: what the snapshot has, the code must not be taken to tell.

Each class of ``job_pairs/traps`` is a job in two versions, as those of ``tests/support/flink/job_pairs.py``, restored from a snapshot of one of these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import statetool as st
from statetool.api.write.upgrade import plan_upgrade
from statetool.compatibility.verdicts import Check
from statetool.java.classes.jar_classes import JarClasses
from statetool.types.flink_calls import declared_states
from tests.support.checks.restore_steps import found, snapshot_of
from tests.support.compile import make_jar
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs
from tools.flink_jars import DEFAULT_VERSIONS, compiled

pytestmark = pytest.mark.full

#: Traps, the pairs whose old snapshots they restore, and the verdict.
TRAPS: Final = (
    ("TrapAccumulator", "WindowSame", "not"),
    ("TrapAccumulatorBase", "WindowSame", "not"),
    ("TrapExplicit", "WindowSame", "not"),
    ("TrapEvictorSometimes", "WindowSame", "unknown"),
    ("TrapEitherWindow", "WindowAggregateToProcess", "unknown"),
    ("TrapWindowsSwapped", "WindowSame", "not"),
    ("TrapSecondVersion", "StateSame", "unknown"),
    ("TrapTypesSwapped", "StateSame", "not"),
    ("TrapHelper", "StateSame", "not"),
    ("TrapHelperKind", "StateSame", "unknown"),
    ("TrapDescriptorClass", "StateSame", "not"),
    ("TrapBase", "StateSame", "not"),
    ("TrapHint", "StateSame", "not"),
    ("TrapTypeOf", "StateSame", "not"),
    ("TrapTtlHelper", "StateSame", "not"),
    ("TrapTtlArgument", "StateSame", "unknown"),
    ("TrapUidOfProperty", "StateSame", "unknown"),
    ("TrapOtherKeys", "StateSame", "fully"),
    ("TrapTransformation", "StateSame", "unknown"),
    ("TrapUnnamed", "FlightFieldAdded", "unknown"),
    ("TrapInherited", "FlightFieldAdded", "unknown"),
    ("TrapTwoMains", "StateSame", "fully"),
    ("TrapNamedAsFlinks", "StateSame", "not"),
    ("TrapMapOfMethod", "StateMapKey", "not"),
    ("TrapOwnType", "StateSame", "not"),
    ("TrapSetLater", "StateSame", "not"),
    ("TrapNotCalled", "StateSame", "unknown"),
    ("TrapOtherJob", "StateSame", "unknown"),
    ("TrapQueryable", "WindowReduceToAggregate", "unknown"),
    ("TrapNamedToo", "GeneratedToUid", "fully"),
    ("TrapNamedSometimes", "GeneratedToUid", "unknown"),
    ("TrapTwoLimits", "StateSame", "not"),
)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("job-pairs"))


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("traps")
    for side in job_pairs.SIDES:
        folder = compiled(min(DEFAULT_VERSIONS), job_pairs.sources(work, side, ("jobs", "traps")))
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.class"))}
        for trap in (
            *(trap for trap, _, _ in TRAPS),
            "TrapAsyncType",
            "TrapTtlOfHelper",
            "TrapComputedLimit",
            "ComputedTypes",
        ):
            make_jar(work / f"{trap}-{side}.jar", job_pairs.closure(f"jobs/{trap}.class", files))
    return work


def checked(snapshots: Path, jars: Path, trap: str, pair: str) -> Check:
    return st.check(
        job_pairs.load(snapshots / "old" / pair / "1.20"),
        flink_version="1.20",
        backend="heap",
        jars=(jars / f"{trap}-old.jar",),
        other_jars=(jars / f"{trap}-new.jar",),
    )


@pytest.mark.parametrize(("trap", "pair", "verdict"), TRAPS)
def test_code_is_not_taken_for_what_runs(snapshots: Path, jars: Path, trap: str, pair: str, verdict: str) -> None:
    assert checked(snapshots, jars, trap, pair).verdict == verdict


def test_no_limit_is_written_if_the_job_sets_several(snapshots: Path, jars: Path) -> None:
    (cause,) = [
        c for o in checked(snapshots, jars, "TrapTwoLimits", "StateSame").operators for c in o.causes if c.level
    ]
    assert "the code of the new job sets 64" in cause.reason
    assert cause.remedy is not None
    assert cause.remedy.command == ()


def test_a_uid_that_a_property_decides_is_unknown(snapshots: Path, jars: Path) -> None:
    assert ("O4", "unknown") in found(checked(snapshots, jars, "TrapUidOfProperty", "StateSame"))


def test_a_max_parallelism_that_is_known_does_not_hide_others(snapshots: Path, jars: Path) -> None:
    steps = checked(snapshots, jars, "TrapComputedLimit", "StateSame").steps
    limits = {f.kind: f.text for step in steps for f in step.findings if f.rule == "P1"}
    assert set(limits) == {"not", "unknown"}
    assert "(a computed number)" in limits["unknown"]


def test_several_main_classes_are_assumed_to_be_the_same(snapshots: Path, jars: Path) -> None:
    several = checked(snapshots, jars, "TrapTwoMains", "StateSame").assumptions
    one = checked(snapshots, jars, "TrapOtherKeys", "StateSame").assumptions
    assert any(a.rule == "O1" and "jobs.TrapTwoMains$First, jobs.TrapTwoMains$Second" in a.text for a in several)
    assert not any("that build jobs" in a.text for a in one)


def test_elements_of_an_asynchronous_function_have_another_type(connector_cases: Path, jars: Path) -> None:
    """W9, also in a job without keyed state: Flink 1.20.5 and 2.3.0 refuse them (``StateMigrationException``)."""
    path = snapshot_of(connector_cases / "v1_20_5-async-wait")
    old, new = ((jars / f"TrapAsyncType-{side}.jar",) for side in job_pairs.SIDES)
    assert ("W9", "unknown") in found(st.check(path, flink_version="1.20", jars=old, other_jars=new))
    assert "W9" not in {rule for rule, _ in found(st.check(path, flink_version="1.20", jars=old, other_jars=old))}


def test_no_type_is_left_out_that_the_job_computes(jars: Path) -> None:
    states = list(declared_states(JarClasses([jars / "ComputedTypes-old.jar"]).flink_calls()))
    known = {s.name: s.types for s in states if s.place.endswith(".known")}
    assert known == {
        "null": ("Types.INT",),
        "variable": ("Types.STRING", "Types.LONG"),
        "hint": ("Types.STRING", "TypeHint<java.lang.Integer>"),
    }
    computed = [s for s in states if s.place.endswith(".computed")]
    assert len(computed) == 10
    assert [s for s in computed if s.name is not None and not s.is_computed] == []
    assert {s.name for s in computed} == {
        "method",
        "map",
        "own",
        "own serializer",
        "cast",
        "constant",
        None,
    }


@pytest.mark.parametrize("pair", ["StateTtlOff", "StateSame"])
def test_an_upgrade_by_code_does_not_guess_a_time_to_live(snapshots: Path, jars: Path, pair: str) -> None:
    path = snapshots / "old" / pair / "1.20"
    old = st.load(str(path), uids=job_pairs.load(path).inventory.given_uids, jars=(jars / "TrapTtlOfHelper-old.jar",))
    new = (jars / "TrapTtlOfHelper-new.jar",)
    plan = plan_upgrade(old, other_jars=new, flink_version="1.20", backend="heap")
    assert [s.state for s in plan.states] == []
