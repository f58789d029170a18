"""Check a Flink configuration for conflicting settings, settings that defeat checkpoints, and safer alternatives."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final, get_args

from statetool.html.records import RecordList
from statetool.operations.advice.configuration import Configuration, flink_options, parse_duration, wrong_values
from statetool.operations.advice.findings import CONFIG, Finding, Level
from statetool.operations.advice.live_job import LiveJob, configuration_of
from statetool.operations.advice.rules import RULES, Known
from statetool.operations.advice.statistics import read_json, statistics_of
from statetool.operations.cluster.paths import is_job

#: Under these prefixes Flink has only the options of ``options.tsv``. Under others, a connector or a factory may add options.
_CLOSED: Final = ("execution.checkpointing.", "execution.state-recovery.", "state.changelog.", "restart-strategy.")
_NEAR: Final = 0.92
_LEVELS: Final = get_args(Level)


def lint(path: str, *, rest: str | None = None, transaction_timeout: str | None = None) -> list[Finding]:
    """Return conflicts in a Flink configuration, errors first, then advice.

    Settings in a job's code that override those of the file are not known.

    Parameters
    ----------
    path
        A ``flink-conf.yaml``, or a ``config.yaml`` (Flink 1.19 and later), local or by URI. Or the URL of a job or a JobManager, for the
        settings that Flink's REST API names. A job's settings for checkpoints include those that its code sets.
    rest
        Checkpoint statistics of a job, from ``/jobs/<id>/checkpoints``. Time-outs are compared with checkpoint durations. For the URL of a
        job, statetool asks for them.
    transaction_timeout
        Transaction time-out of the job's exactly-once sinks (``"15 min"``; ``transaction.timeout.ms`` of Kafka).

    Raises
    ------
    SnapshotNotFoundError
        A file does not exist.
    FormatError
        The content does not match the format implied by the file name.
    OptionError
        ``transaction_timeout`` is not a valid duration.
    """
    statistics = None if rest is None else statistics_of(read_json(rest), rest)
    if statistics is None and is_job(path):
        statistics = LiveJob.open(path, job_needed=False).statistics()
    configuration = configuration_of(path)
    known = Known(
        configuration=configuration,
        transaction_timeout_ms=None if transaction_timeout is None else parse_duration(transaction_timeout),
        p99_ms=None if statistics is None else statistics.p99_ms,
    )
    findings = [*_wrong_values(configuration), *_unknown_keys(configuration), *_set_twice(configuration)]
    findings += [finding for rule in RULES if (finding := rule(known)) is not None]
    return RecordList(sorted(findings, key=lambda f: (_LEVELS.index(f.level), f.key)))


def _wrong_values(configuration: Configuration) -> Iterator[Finding]:
    for name, value, kind in wrong_values(configuration):
        yield Finding(
            level="error",
            rule="wrong-value",
            key=name,
            value=value,
            message=f"it is not a valid {kind}: Flink refuses it",
            page=CONFIG,
        )


def _unknown_keys(configuration: Configuration) -> Iterator[Finding]:
    known = {name for option in flink_options().values() for name in (option.key, *option.former)}
    for name, value in configuration.values.items():
        if name in known:
            continue
        closed = name.startswith(_CLOSED)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6 if closed else _NEAR)
        if closed or near:
            meant = f"; did you mean {near[0]}?" if near else ""
            yield Finding(
                level="error",
                rule="unknown-key",
                key=name,
                value=value,
                message=f"Flink (1.20 to 2.3) has no such option, and silently ignores it{meant}",
                page=CONFIG,
            )


def _set_twice(configuration: Configuration) -> Iterator[Finding]:
    for option in flink_options().values():
        names = [name for name in (option.key, *option.former) if name in configuration.values]
        values = {configuration.values[name] for name in names}
        if len(values) > 1:
            yield Finding(
                level="error",
                rule="set-twice",
                key=names[1],
                value=configuration.values[names[1]],
                message=f"it is a former name of {option.key}, which is set to {configuration.values[names[0]]!r} and wins",
                page=CONFIG,
            )
