"""An example of each command, shown at the end of its ``--help``."""

from __future__ import annotations

from typing import Final

import click

EXAMPLES: Final = {
    "advise": "statetool advise s3://bucket/checkpoints/1a2b --config flink-conf.yaml",
    "browse": "statetool browse s3://bucket/savepoint-1a2b",
    "chain": "statetool chain s3://bucket/checkpoints/1a2b",
    "check": "statetool check s3://bucket/savepoint-1a2b savepoint-of-the-new-job --flink 2.3",
    "completion": "statetool completion bash",
    "convert": "statetool convert s3://bucket/checkpoints/1a2b/chk-7 s3://bucket/savepoints/from-chk-7 --dry-run",
    "copy": "statetool copy s3://bucket/savepoint-1a2b /backup/savepoint-1a2b --compare",
    "demo": "statetool demo",
    "diff": "statetool diff savepoint-1a2b savepoint-3c4d --operator orders --limit 20",
    "doctor": "statetool doctor s3://bucket/savepoint-1a2b",
    "drop": "statetool drop savepoint-1a2b without-cache --uid enrich --state cache --dry-run",
    "export": "statetool export s3://bucket/savepoint-1a2b orders keyed_state s3://bucket/orders --format parquet",
    "files": "statetool files s3://bucket/checkpoints/1a2b/chk-7 --json",
    "head": """statetool head savepoint-1a2b orders keyed_state --keys '["customer-7"]' --on-error keep_raw""",
    "info": "statetool info s3://bucket/savepoint-1a2b",
    "kernels": "statetool kernels --build kernels",
    "lint": "statetool lint conf/config.yaml",
    "ls": "statetool ls s3://bucket/checkpoints",
    "mcp": "statetool mcp /checkpoints",
    "migrate": "statetool migrate savepoint-1a2b migrated --plan plan.json",
    "orphans": "statetool orphans s3://bucket/checkpoints --min-age 30d",
    "report": "statetool report s3://bucket/savepoint-1a2b savepoint-of-the-new-job -o report.html",
    "rescale": "statetool rescale savepoint-1a2b rescaled --max-parallelism 1024 --dry-run",
    "schema": "statetool schema savepoint-1a2b orders keyed_state --format avro",
    "shell": "statetool shell s3://bucket/savepoint-1a2b",
    "sinks": "statetool sinks pending s3://bucket/savepoint-1a2b",
    "sources": "statetool sources set savepoint-1a2b corrected --uid orders orders:3=1234 --dry-run",
    "states": "statetool states s3://bucket/savepoint-1a2b --wide",
    "stats": "statetool stats s3://bucket/savepoint-1a2b --table largest",
    "transform": "statetool transform savepoint-1a2b rounded --uid orders --set 'balance=ROUND(balance, 2)' --dry-run",
    "uid": "statetool uid savepoint-1a2b renamed cbc357ccb763df2852fee8c4fc7d55f2=orders",
    "verify": "statetool verify s3://bucket/savepoint-1a2b --deep",
}


def add_examples(group: click.Group) -> None:
    """Add an example to each command's help."""
    for name, example in EXAMPLES.items():
        group.commands[name].epilog = f"\b\nExample:\n  {example}"
