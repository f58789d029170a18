"""Look for what contradicts itself in a Flink configuration, or throws away what checkpoints are for."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from statetool.advice.configuration import (
    Configuration,
    flink_options,
    parse_duration,
    read_configuration,
    wrong_values,
)
from statetool.advice.findings import CONFIG, Finding
from statetool.advice.rules import RULES, Known
from statetool.advice.statistics import read_json, statistics_of

#: Below these Flink has no options but those of ``options.tsv``; elsewhere others may be a connector's or a factory's own.
_CLOSED: Final = ("execution.checkpointing.", "execution.state-recovery.", "state.changelog.", "restart-strategy.")
_NEAR: Final = 0.92


def lint(path: str, *, rest: str | None = None, transaction_timeout: str | None = None) -> list[Finding]:
    """Report what contradicts itself in a Flink configuration; errors come first.

    What a job's code sets over the configuration is not known.

    Parameters
    ----------
    path
        A ``flink-conf.yaml``, or a ``config.yaml`` (Flink 1.19 and later), local or by URI.
    rest
        Checkpoint statistics of a job, as its ``/jobs/<id>/checkpoints`` gives them: time-outs are compared with what checkpoints take.
    transaction_timeout
        After what time transactions of the job's exactly-once sinks end (``"15 min"``; ``transaction.timeout.ms`` of Kafka).

    Raises
    ------
    SnapshotNotFoundError
        A file is not there.
    FormatError
        It is not what its name says.
    OptionError
        ``transaction_timeout`` is no duration.
    """
    configuration = read_configuration(path)
    statistics = None if rest is None else statistics_of(read_json(rest), rest)
    known = Known(
        configuration=configuration,
        transaction_timeout_ms=None if transaction_timeout is None else parse_duration(transaction_timeout),
        p99_ms=None if statistics is None else statistics.p99_ms,
    )
    findings = [*_values(configuration), *_names(configuration), *_doubles(configuration)]
    findings += [found for rule in RULES if (found := rule(known)) is not None]
    return sorted(findings, key=lambda f: (f.level != "error", f.key))


def _values(configuration: Configuration) -> Iterator[Finding]:
    for name, value, kind in wrong_values(configuration):
        yield Finding(
            level="error",
            rule="wrong-value",
            key=name,
            value=value,
            message=f"{value!r} is no {kind}: Flink refuses it",
            page=CONFIG,
        )


def _names(configuration: Configuration) -> Iterator[Finding]:
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
                message=f"Flink (1.20 to 2.3) has no such option, and leaves it out without a word{meant}",
                page=CONFIG,
            )


def _doubles(configuration: Configuration) -> Iterator[Finding]:
    for option in flink_options().values():
        here = [name for name in (option.key, *option.former) if name in configuration.values]
        values = {configuration.values[name] for name in here}
        if len(values) > 1:
            yield Finding(
                level="error",
                rule="set-twice",
                key=here[1],
                value=configuration.values[here[1]],
                message=f"it is a former name of {option.key}, which is set to {configuration.values[here[0]]!r}; that one counts",
                page=CONFIG,
            )
