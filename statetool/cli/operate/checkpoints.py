"""Commands about a job's checkpointing: recommended settings, and conflicting settings."""

from __future__ import annotations

import sys

import click

import statetool
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options
from statetool.cli.verdicts import show_advice, show_lint

_REST_HELP = "JSON response of /jobs/<id>/checkpoints"


@click.command(cls=Command)
@click.argument("root")
@click.option("--rest", multiple=True, metavar="FILE", help=f"{_REST_HELP}, or subtask details of a checkpoint.")
@click.option("--config", metavar="FILE", help="The job's flink-conf.yaml or config.yaml.")
@click.option(
    "--max-overhead", type=float, default=0.1, show_default=True, help="Maximum share of time spent on checkpoints."
)
@click.option("--max-recovery", default="5 min", show_default=True, help="Maximum delay of results after a failure.")
@click.option(
    "--catch-up",
    type=float,
    default=2.0,
    show_default=True,
    help="Throughput while catching up, as a multiple of the normal input rate.",
)
@click.option("--restore-rate", default="100 mb", show_default=True, help="State that a subtask restores per second.")
@click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    help="Number of subtasks that restore state.  [default: that of the newest checkpoint]",
)
@common_options(*OUTPUT)
def advise(
    options: CommonOptions,
    root: str,
    rest: tuple[str, ...],
    config: str | None,
    max_overhead: float,
    max_recovery: str,
    catch_up: float,
    restore_rate: str,
    parallelism: int | None,
) -> None:
    """Suggest checkpoint settings from a job's checkpoints.

    ROOT is the directory of the job's checkpoints, or the URL of the job. With a URL, Flink's REST API provides the
    statistics and the configuration (--rest, --config). Shows how each suggestion was calculated.

    Examples:
      statetool advise flink://jobmanager:8081/orders
      statetool advise s3://bucket/checkpoints/1a2b --config flink-conf.yaml
    """
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
    if options.output.is_json:
        options.output.rows(suggestions)
    show_advice(suggestions, options.output.form)


@click.command(cls=Command)
@click.argument("config")
@click.option("--rest", metavar="FILE", help=f"{_REST_HELP}, for a check of timeouts.")
@click.option(
    "--transaction-timeout", metavar="TIME", help="Transaction timeout of exactly-once sinks, such as 15 min."
)
@common_options(*OUTPUT)
def lint(options: CommonOptions, config: str, rest: str | None, transaction_timeout: str | None) -> None:
    """Check a Flink configuration for conflicting settings.

    CONFIG is a flink-conf.yaml or config.yaml, or the URL of a job or JobManager. Settings that Flink refuses, that lose state or data, or that have no
    effect are reported as error or warning. Advice names a safer setting.

    Exits 1 for errors and warnings. Advice alone exits 0.

    Examples:
      statetool lint conf/config.yaml
      statetool lint flink://jobmanager:8081/orders
    """
    findings = statetool.lint(config, rest=rest, transaction_timeout=transaction_timeout)
    if options.output.is_json:
        options.output.rows(findings)
    show_lint(findings, config, options.output.form)
    if any(f.is_contradiction for f in findings):
        sys.exit(1)
