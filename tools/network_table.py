"""The table of the documentation that says which connections each command can make, from the options of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from statetool.cli.main import cli

_SERVERS: Final = {
    "--bootstrap-servers": "the Kafka brokers in `--bootstrap-servers`",
    "--jdbc": "the database in `--jdbc`",
    "--cluster": "Flink's REST API at `--cluster`",
    "--spark": "the Spark cluster of the environment, with `--spark`",
    "--serve": "listens at `--serve` on `--host`, by default 127.0.0.1",
    "--run": "a local JVM with `--run`: what the classes in your jars connect to",
}
#: Options with the same name and another meaning elsewhere.
_SERVERS_OF: Final = {
    ("sinks check", "--kafka"): "the Kafka brokers in `--kafka`",
    ("mcp", "root"): "the assistant that started it, through stdin and stdout",
    ("shell", "path"): "the Spark cluster of the environment, if you use `spark`",
    ("transform", "src"): "the Spark cluster of the environment",
    ("doctor", "--warm"): "a local JVM with `--warm`",
}
#: Commands that only ask a cluster, and those that need no snapshot.
_CLUSTER_ONLY: Final = frozenset({"jobs", "savepoint", "checkpoint"})
_LOCAL: Final = frozenset({"completion", "kernels"})


def leaves(group: click.Group = cli, before: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield the full names of all commands that are not groups, with the commands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*before, name))
        elif command is not None:
            yield " ".join((*before, name)), command


def connections(name: str, command: click.Command) -> list[str]:
    """Return the servers that a command can connect to."""
    words = [word for parameter in command.params for word in parameter.opts]
    found = [_SERVERS_OF[name, word] for word in words if (name, word) in _SERVERS_OF]
    found += [_SERVERS[word] for word in words if word in _SERVERS]
    if name == "demo":
        return ["a local JVM"]
    if name in _CLUSTER_ONLY:
        return ["the cluster in the URL", *found]
    if name not in _LOCAL and any(
        parameter.param_type_name == "argument" or "--jar" in parameter.opts for parameter in command.params
    ):
        return ["the place of each path", *found]
    return found


def network_table() -> str:
    """Return Markdown: commands with the servers that they can connect to, those with the same ones in one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, command in leaves():
        rows.setdefault(tuple(dict.fromkeys(connections(name, command))), []).append(f"`{name}`")
    lines = ["| commands | can connect to |", "|---|---|"]
    for servers, names in sorted(rows.items(), key=lambda row: -len(row[1])):
        lines.append(f"| {', '.join(names)} | {'; '.join(servers) or 'nothing'} |")
    return "\n".join(lines)
