"""Commands about a job's checkpointing: recommended settings, and conflicting settings."""

from __future__ import annotations

import sys

import click

import statetool
from statetool.cli.options import output_option
from statetool.cli.output import Output
from statetool.cli.verdicts import show_advice, show_lint


@click.command()
@output_option
@click.option(
    "--rest", multiple=True, metavar="FILE", help="What /jobs/<id>/checkpoints answers, and details of subtasks."
)
@click.option("--config", metavar="FILE", help="The job's flink-conf.yaml or config.yaml.")
@click.option("--max-overhead", type=float, default=0.1, show_default=True, help="Share of time for checkpoints.")
@click.option(
    "--max-recovery", default="5 min", show_default=True, help="How long after a failure results may be behind."
)
@click.option(
    "--catch-up", type=float, default=2.0, show_default=True, help="How many times its usual input the job takes."
)
@click.option("--restore-rate", default="100 mb", show_default=True, help="What a subtask loads in a second.")
@click.option("--parallelism", type=click.IntRange(min=1), help="Subtasks that load state.  [default: of the newest]")
@click.argument("root")
def advise(
    root: str,
    form: str,
    rest: tuple[str, ...],
    config: str | None,
    max_overhead: float,
    max_recovery: str,
    catch_up: float,
    restore_rate: str,
    parallelism: int | None,
) -> None:
    """Say what the checkpoints below ROOT suggest to set, with the arithmetic."""
    suggestions = statetool.advise(
        root,
        rest=rest,
        config=config,
        max_overhead=max_overhead,
        max_recovery=max_recovery,
        catch_up=catch_up,
        restore_rate=restore_rate,
        parallelism=parallelism,
    )
    if form == "json":
        Output(form).rows(suggestions)
    show_advice(suggestions, form)


@click.command()
@output_option
@click.option("--rest", metavar="FILE", help="What /jobs/<id>/checkpoints answers: time-outs are compared with it.")
@click.option("--transaction-timeout", metavar="TIME", help="That of the job's exactly-once sinks: 15 min.")
@click.argument("config")
def lint(config: str, form: str, rest: str | None, transaction_timeout: str | None) -> None:
    """Report contradictions in a Flink configuration, and advice.

    Exits 1 for contradictions (levels error and warning): settings that Flink refuses, that lose state or data, or that have no effect.
    Advice alone exits 0: the configuration is sound, but another setting is safer.
    """
    findings = statetool.lint(config, rest=rest, transaction_timeout=transaction_timeout)
    if form == "json":
        Output(form).rows(findings)
    show_lint(findings, config, form)
    if any(f.is_contradiction for f in findings):
        sys.exit(1)
