"""Options that say how the new job is started, for checks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict, Unpack

from statetool.errors import OptionError
from statetool.types.options import refuse_unknown, whole_number

if TYPE_CHECKING:
    from statetool.compatibility.restore import RestoreOptions
    from statetool.compatibility.running.summary import RunOptions


class StartOptions(TypedDict, total=False):
    """How the new job is started.

    Attributes
    ----------
    config
        The Flink configuration of the new job: a file, or the URL of a job or JobManager.
    parallelism, max_parallelism
        Those of the new job. Default to those of its savepoint.
    claim_mode
        Default to that of ``config``.
    allow_non_restored
        State that the new job does not have is left out (``--allowNonRestoredState``). Defaults to the setting in ``config``.
    last_state
        The job starts from its high-availability data (``upgradeMode: last-state``).
    map_uids
        Uids or ids of operators, and those that they have in the new job (``setUidHash``).
    graph
        The job graph of the new job: a file with the answer of ``/jobs/<id>/plan``, or the URL of the job.
    """

    config: str | os.PathLike[str] | None
    parallelism: int | None
    max_parallelism: int | None
    claim_mode: Literal["claim", "no_claim", "legacy"] | None
    allow_non_restored: bool | None
    last_state: bool
    map_uids: Mapping[str, str] | None
    graph: str | os.PathLike[str] | None


def restore_options(**given: Unpack[StartOptions]) -> RestoreOptions:
    """Return the options, with configuration and job graph read.

    Raises
    ------
    OptionError
        An option is not valid, or there is no such option.
    SnapshotNotFoundError, FormatError
        The configuration or the job graph does not exist, or is not valid.
    """
    from statetool.compatibility.job_graph import read_job_graph
    from statetool.compatibility.restore import RestoreOptions
    from statetool.operations.advice.live_job import configuration_of

    refuse_unknown(given, list(StartOptions.__annotations__))
    config, graph, mode = given.get("config"), given.get("graph"), given.get("claim_mode")
    if mode is not None and mode not in ("claim", "no_claim", "legacy"):
        raise OptionError(f"claim_mode={mode!r} is not one of claim, no_claim, legacy")
    numbers = {
        name: None if number is None else whole_number(name, number, least=1)
        for name, number in (
            ("parallelism", given.get("parallelism")),
            ("max_parallelism", given.get("max_parallelism")),
        )
    }
    return RestoreOptions(
        config=None if config is None else configuration_of(os.fspath(config)),
        parallelism=numbers["parallelism"],
        max_parallelism=numbers["max_parallelism"],
        claim_mode=mode,
        allow_non_restored=given.get("allow_non_restored"),
        last_state=given.get("last_state", False),
        map_uids=given.get("map_uids") or {},
        graph=None if graph is None else read_job_graph(os.fspath(graph)),
    )


def run_options(run: bool, flink_home: str | os.PathLike[str] | None, sample: int | None) -> RunOptions | None:
    """Return how the classes of the new job are run, ``None`` if they are not.

    Raises
    ------
    OptionError
        An option is not valid, or needs a run.
    """
    from statetool.compatibility.running.summary import DEFAULT_SAMPLE, RunOptions

    if not run:
        given = [("flink_home", flink_home is not None), ("sample", sample != DEFAULT_SAMPLE)]
        if name := next((name for name, is_given in given if is_given), None):
            raise OptionError(
                f"{name} is an option of a run of the new job's classes", hint="pass run=True (--run) too"
            )
        return None
    number = None if sample is None else whole_number("sample", sample, least=1)
    return RunOptions(flink_home=None if flink_home is None else os.fspath(flink_home), sample=number)
