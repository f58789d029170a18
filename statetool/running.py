"""The runner that writes: a session, or threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.saving.composition import Runner


def runner_of(
    spark: SparkSession | None, progress: Callable[[int], object] | None = None, threads: int | None = None
) -> Runner:
    """Return the runner of a session, or threads of this process without one."""
    if spark is not None:
        from statetool.spark.runner import SparkRunner

        return SparkRunner(spark)
    from statetool.saving.local import LocalRunner

    return LocalRunner(threads, progress)
