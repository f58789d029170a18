"""Selection of tests and of similar cases for shorter runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

#: This is the uncompiled run (``nox -s uncompiled``). Its kernels are plain Python, a hundred times as slow. It finds errors that compiled code
#: hides, such as an index out of bounds: these depend on the code that runs, not on the number of similar cases.
UNCOMPILED: Final = os.environ.get("STATETOOL_JIT") == "0"


#: What ``--half`` leaves out: tests of half a minute and more.
LONG: Final = (
    "tests/cli/test_image.py",
    "tests/test_first_change.py",
    "tests/test_journeys.py",
    "tests/analysis/comparison/test_forms.py::test_no_two_forms_of_the_job_differ",
    "tests/cli/test_hostile.py::test_commands_on_spark_print_escapes",
    "tests/connectors/test_written_sinks.py",
    "tests/flink/test_adaptive.py::test_a_job_that_was_rescaled_goes_on_exactly",
    "tests/flink/test_beam.py",
    "tests/flink/test_classes_of_jars.py::test_flink_makes_the_recorded_serializers_of_other_languages",
    "tests/flink/test_deleted_checkpoints.py",
    "tests/flink/test_files_of_sinks.py::test_random_cleanups_leave_what_restores_need",
    "tests/flink/test_follow.py",
    "tests/flink/test_iceberg.py",
    "tests/flink/test_job_pairs.py",
    "tests/flink/test_job_remedies.py",
    "tests/flink/test_kafka.py",
    "tests/flink/test_lakes.py",
    "tests/flink/test_match.py::test_jobs_with_other_ids_go_on",
    "tests/flink/test_pairs.py",
    "tests/io/test_storage.py::test_s3_that_stays_busy",
    "tests/kernels/test_jit.py::test_uncompiled_kernels_do_the_same_with_damaged_bytes",
    "tests/operations/cluster/test_reads.py",
    "tests/saving/test_random_conditions.py::test_many_random_conditions",
    "tests/saving/test_removals.py",
    "tests/saving/test_sequences.py::test_many_steps",
    "tests/spark/test_by_size.py::test_tables_of_jobs",
    "tests/spark/test_cluster.py::test_an_environment_is_shipped_to_a_cluster",
    "tests/spark/test_connect.py::test_rows",
    "tests/spark/test_discovery.py",
    "tests/spark/test_file_export.py::test_spark_reads_all_types_of_a_job",
    "tests/spark/test_folding.py::TestFolding",
    "tests/spark/test_guard.py",
    "tests/spark/test_image.py",
    "tests/spark/test_java_classes.py",
    "tests/spark/test_kills.py::test_killed_spark_drivers_and_executors_leave_all_or_nothing",
    "tests/tables/test_look_up.py::test_look_ups_in_snapshots_of_all_backends",
)  # fmt: skip


def fewer_uncompiled(cases: list[Any], *chosen: Any) -> list[Any]:
    """Return parameters of a test whose cases run the same kernels: only the chosen ones in the uncompiled run."""
    return list(chosen) if UNCOMPILED else cases


def examples(number: int) -> int:
    """Return the number of examples of a property of kernels: a third of it in the uncompiled run."""
    return number // 3 if UNCOMPILED else number


def quick(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """Return parameters of a test: the chosen ones unchanged, all others marked with ``full``.

    Raises
    ------
    ValueError
        A chosen case is not among the cases.
    """
    cases = list(cases)
    if unknown := [c for c in chosen if c not in cases]:
        raise ValueError(f"{unknown} are none of the cases")
    full = pytest.mark.full
    return [c if c in chosen else pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=full) for c in cases]
