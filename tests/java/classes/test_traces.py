"""Operators and states that executing the code of jobs without a JVM shows. Flink restored these jobs (``tests/support/flink/job_pairs.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from statetool.java.classes.jar_classes import JarClasses
from statetool.types.traced import StreamType, TracedOperator
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs

_INTERFACE = "org.apache.flink.api.common.functions.MapFunction"


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("job-pairs"))


def traced(snapshots: Path, job: str, side: str) -> Mapping[str, TracedOperator]:
    return JarClasses([job_pairs.jar_of(snapshots, job, side)]).traced_job.operators


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("DeclaredGenericHelperRetyped", "sum"),
        ("DeclaredTypedHelperRetyped", "sum"),
        ("DeclaredJoinedRetyped", "sum"),
        ("DeclaredEnumNameRetyped", "SUM"),
        ("DeclaredSuperRetyped", "sum"),
        ("DeclaredSuperConstructorRetyped", "sum"),
        ("DeclaredClassFieldRetyped", "sum"),
        ("DeclaredRegistryRetyped", "sum"),
        ("DeclaredBuilderRetyped", "sum"),
        ("DeclaredSupplierRetyped", "sum"),
        ("DeclaredLoopRetyped", "second"),
        ("RevisedTypeGiven", "kept"),
    ],
)
def test_types_are_followed_through_code(snapshots: Path, job: str, name: str) -> None:
    types = [
        next(s.types for s in traced(snapshots, job, side)["sums"].states if s.name == name) for side in job_pairs.SIDES
    ]
    constants = [("Types.INT",), ("Types.LONG",)]
    assert types in (constants, [("java.lang.Integer.class",), ("java.lang.Long.class",)])


def test_branches_are_followed_if_a_constant_decides(snapshots: Path) -> None:
    found = [[s.types for s in traced(snapshots, "RevisedFlagGiven", side)["sums"].states] for side in job_pairs.SIDES]
    assert found == [[("Types.LONG",)], [("Types.INT",)]]


def test_operators_have_the_types_of_their_streams(snapshots: Path) -> None:
    orders = StreamType("Types.TUPLE([Types.STRING, Types.INT])")
    found = [traced(snapshots, "RevisedIntervalSides", side)["joined"].types for side in job_pairs.SIDES]
    given = found[0][0]
    assert given is not None
    assert given.origin.startswith("the parameter 1 of ")
    assert found == [(given, orders), (orders, given)]
    parsed = StreamType("", "jobs.RevisedMapperType$Parse", _INTERFACE, 1)
    assert traced(snapshots, "RevisedMapperType", "new")["windows"].types == (parsed,)


def test_uids_are_computed(snapshots: Path) -> None:
    assert [*traced(snapshots, "RevisedUidComputed", "new")] == ["sums-v2"]
    # A join of windows has no uid.
    assert traced(snapshots, "RevisedJoinSides", "new") == {}


def test_a_max_parallelism_belongs_to_its_operator(snapshots: Path) -> None:
    found = [traced(snapshots, "RevisedMaxParallelism", side)["sums"].max_parallelism for side in job_pairs.SIDES]
    assert found == [None, 64]


def test_rows_have_the_names_of_their_fields(snapshots: Path) -> None:
    (state,) = traced(snapshots, "ValueRowSwapped", "new")["sums"].states
    assert state.types == ('Types.ROW_NAMED(["b", "a"], [Types.INT, Types.INT])',)


@pytest.mark.parametrize(
    "job",
    [
        "ChosenLocal", "ChosenIf", "ChosenSwitch", "ChosenSwitchedText", "ChosenCase", "ChosenLoop", "ChosenStep", "ChosenMap", "ChosenMapOf",
        "ChosenArray", "ChosenList", "ChosenHelper", "ChosenFlagThrough", "ChosenEnum", "ChosenEnumOrder", "ChosenFactory", "ChosenSubclass",
        "ChosenOverride", "ChosenReflection", "ChosenLambdas", "ChosenSetTwice", "ChosenStatic", "ChosenDescriptor", "ChosenArgument", "ChosenEarly",
    ],
)  # fmt: skip
def test_conditions_are_followed(snapshots: Path, job: str) -> None:
    found = [traced(snapshots, job, side)["sums"] for side in job_pairs.SIDES]
    assert all(one.is_whole for one in found)
    assert [[s.types for s in one.states] for one in found] == [[("Types.INT",)], [("Types.LONG",)]]


@pytest.mark.parametrize("job", ["ChosenProperty", "ChosenEnvironment", "ChosenOptional", "ChosenCaught"])
def test_no_way_is_taken_for_the_only_one(snapshots: Path, job: str) -> None:
    found = [traced(snapshots, job, side).get("sums") for side in job_pairs.SIDES]
    assert not all(one is not None and one.is_whole for one in found)


def test_code_is_the_same_if_all_that_it_may_run_is(snapshots: Path) -> None:
    """Operands of switches and steps, overriding methods, default methods, lambdas, and classes that are loaded by name decide, too."""
    chosen = [p.name for p in job_pairs.PAIRS if p.topic == "Chosen"]
    same = []
    for job in chosen:
        old, new = (JarClasses([job_pairs.jar_of(snapshots, job, side)]) for side in job_pairs.SIDES)
        same += [job] if old.has_same_building(new) else []
    assert same == ["ChosenEnvironmentKept"]
