"""The reference of the command line: a section per command, from the commands themselves, with an example and its output."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import click

from statetool.cli.main import cli
from tools import sandbox
from tools.examples import run_bash

_DEMO: Final = "statetool/demo/savepoint"
_NEXT_DAY: Final = "statetool/demo/next-day"
#: Commands by purpose, with an example of each. All of them run in the sandbox when the page is written.
EXAMPLES: Final[Mapping[str, Mapping[str, str]]] = {
    "Inspect": {
        "info": f"statetool info {_DEMO} | head -n 12",
        "ls": "statetool ls checkpoints",
        "states": f"statetool states {_DEMO} | head -n 12",
        "schema": f"statetool schema {_DEMO} orders keyed_state",
        "head": f"statetool head {_DEMO} orders keyed_state --states total_cents,points -n 3",
        "get": f"statetool get {_DEMO} orders Ada",
        "files": "statetool files pyflink-job | head -n 6",
        "stats": f"statetool stats {_DEMO} --uid orders --table states",
        "count": f"statetool count {_DEMO} orders",
        "sql": f'statetool sql {_DEMO} "SELECT key, total_cents FROM orders_keyed_state ORDER BY total_cents DESC LIMIT 3"',
        "export": f"statetool export {_DEMO} orders keyed_state exported --format parquet",
        "report": f"statetool report {_DEMO} new-job --target report.html",
    },
    "Check and compare": {
        "check": f"statetool check {_DEMO} new-job",
        "diff": f"statetool diff {_DEMO} {_NEXT_DAY} --uid reminders --limit 3",
        "match": f"statetool uid {_DEMO} other-ids reminders=alarms > /dev/null\nstatetool match {_DEMO} other-ids",
        "verify": f"statetool verify {_DEMO} --deep",
    },
    "Write": {
        "transform": (
            f"statetool transform {_DEMO} corrected --uid orders \\\n"
            "    --set 'points=points + 100' --where \"key = 'Ada'\" --dry-run"
        ),
        "rescale": f"statetool rescale {_DEMO} rescaled --max-parallelism 256 --dry-run",
        "migrate": f"statetool migrate {_DEMO} migrated --to new-job --dry-run",
        "catch-up": (
            "statetool migrate checkpoints/chk-42 migrated --to new-job > /dev/null\n"
            "statetool catch-up migrated checkpoints/chk-42 checkpoints/chk-43 upgraded --to new-job"
        ),
        "uid": f"statetool uid {_DEMO} renamed reminders=alarms --dry-run",
        "state rename": f"statetool state rename {_DEMO} renamed --uid reminders --state sent --to reminded --dry-run",
        "drop": f"statetool drop {_DEMO} smaller --uid daily-sales --dry-run",
        "graft": f"statetool graft {_DEMO} {_DEMO} grafted --uid reminders=alarms --dry-run",
        "merge": f"statetool split {_DEMO} first second --uid reminders > /dev/null\nstatetool merge first second merged",
        "split": f"statetool split {_DEMO} first second --uid reminders --dry-run | tail -n 3",
        "move-state": f"statetool move-state {_DEMO} moved --from baskets --to reminders --state clicks --dry-run",
        "convert": "statetool convert checkpoints/chk-43 converted --dry-run | head -n 6",
        "set": f"statetool set {_DEMO} fixed --uid orders --key Ada --set points=164 --dry-run",
        "set-elements": f"statetool set-elements {_DEMO} fixed --uid invoicing --state unprinted --where \"value = 'B-13'\" --remove --dry-run",
        "purge": f"statetool purge {_DEMO} purged --ttl viewed=7d --now 1772474400000 --dry-run",
        "erase": f"statetool erase {_DEMO} erased --keys Ida --dry-run",
        "keep": f"statetool keep {_DEMO} kept --keys Ida --uid reminders --dry-run",
        "sample": f"statetool sample {_DEMO} small --keys 2 --uid reminders --dry-run",
        "copy": f"statetool copy {_DEMO} copied --compare",
    },
    "Sources and sinks": {
        "sources list": f"statetool sources list {_DEMO}",
        "sources show": f"statetool sources show {_DEMO}",
        "sources check": f"statetool sources check {_DEMO}",
        "sources schemas": "statetool sources schemas cdc-pipeline",
        "sources lag": (
            f"printf 'topic,partition,offset\\norders,0,40\\norders,1,30\\norders,2,25\\n' > ends.csv\nstatetool sources lag {_DEMO} --ends ends.csv | grep -e lag -e orders"
        ),
        "sources set": f"statetool sources set {_DEMO} reset --uid events orders:0=20 --dry-run",
        "sources add": f"statetool sources add {_DEMO} larger --uid events orders:3=0 --dry-run",
        "sources remove": f"statetool sources remove {_DEMO} smaller --uid events orders-2 --dry-run",
        "sources convert": "statetool sources convert kafka-consumer converted --uid bc4197a480c92c793190a9f8c0afc54c --dry-run",
        "sinks list": f"statetool sinks list {_NEXT_DAY}",
        "sinks pending": f"statetool sinks pending {_NEXT_DAY} --commands | grep kafka-transactions | head -n 4",
        "sinks committed": f"statetool sinks committed {_NEXT_DAY}",
        "sinks check": "statetool sinks check paimon-job --paimon paimon-table",
        "sinks forget": (
            f"statetool sinks forget {_NEXT_DAY} smaller --uid 'Sink Committer: invoices' --lose shop-invoices-0-2 --dry-run"
        ),
    },
    "Jobs": {},
    "Checkpoints": {
        "chain": "statetool chain checkpoints",
        "orphans": "statetool orphans checkpoints",
        "metrics": "statetool metrics checkpoints | grep daily-sales",
        "advise": "statetool advise checkpoints --rest checkpoints.json --config config.yaml",
        "lint": "statetool lint config.yaml",
    },
    "Setup": {
        "demo": "statetool demo | head -n 18",
        "completion": "statetool completion bash --show | head -n 5",
    },
}
#: Commands that wait for a person or another program, read the user's jar or describe the machine, with an example that is only shown.
INTERACTIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "Inspect": {
        "declare": "statetool declare --jar job.jar 'com.acme.*' > classes.json",
        "browse": f"statetool browse {_DEMO}",
        "shell": f"statetool shell {_DEMO}",
        "serve": f"statetool serve {_DEMO}",
    },
    "Write": {
        "upgrade": "statetool upgrade savepoint-1a2b upgraded --jar-a old.jar --jar-b new.jar --flink 2.3",
    },
    "Jobs": {
        "jobs": "statetool jobs flink://jobmanager:8081",
        "savepoint": "statetool savepoint flink://jobmanager:8081/orders --to s3://bucket/savepoints",
        "checkpoint": "statetool checkpoint flink://jobmanager:8081/orders",
    },
    "Setup": {"kernels": "statetool kernels", "doctor": "statetool doctor", "mcp": "statetool mcp /checkpoints"},
}
#: An option that so many commands have is described once.
_COMMON: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command with its context, by the words that call it."""

    name: str
    command: click.Command
    context: click.Context

    def options(self) -> dict[str, str]:
        """Return the help of each option, by its spelling."""
        options = (p for p in self.command.get_params(self.context) if isinstance(p, click.Option))
        records = (option.get_help_record(self.context) for option in options)
        return {r[0]: r[1] for r in records if r and not r[0].startswith("-h,") and r[0] != "--help"}


def walk() -> Iterator[Command]:
    """Yield every command of the command line, subcommands included."""
    yield from _below(cli, click.Context(cli, info_name="statetool", **cli.context_settings), ())


def _below(group: click.Group, context: click.Context, words: tuple[str, ...]) -> Iterator[Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _below(command, inner, (*words, name))
        else:
            yield Command(name=" ".join((*words, name)), command=command, context=inner)


@cache
def page() -> str:
    """Return the reference as Markdown. The examples run once per process."""
    commands = {c.name: c for c in walk()}
    shared = _shared_options(list(commands.values()))
    outputs = _run_examples()
    lines = ["## Common options\n", "Many commands take these options:\n", *_table(shared)]
    for purpose, examples in EXAMPLES.items():
        lines.append(f"\n## {purpose}")
        for name, example in {**examples, **INTERACTIVE.get(purpose, {})}.items():
            lines += _section(commands[name], shared, example, outputs.get(name))
    return "\n".join(lines) + "\n"


def _shared_options(commands: list[Command]) -> dict[str, str]:
    counts = Counter(record for command in commands for record in command.options().items())
    return {option: text for (option, text), number in counts.items() if number >= _COMMON}


def _section(command: Command, shared: Mapping[str, str], example: str, output: str | None) -> Iterator[str]:
    yield f"\n### {command.name}\n"
    yield f"{prose(command.command.help or '')}\n"
    yield f"```text\n{_usage(command)}\n```"
    own = {option: text for option, text in command.options().items() if shared.get(option) != text}
    if own:
        yield ""
        yield from _table(own)
    if common := [f"`{_spelling(o)}`" for o, text in command.options().items() if shared.get(o) == text]:
        yield f"\n[Common options](#common-options): {', '.join(common)}"
    yield f"\nExample:\n\n```bash\n{example}\n```"
    if output is not None:
        yield f"\n```text\n{output or '(no output)'}\n```"


def _usage(command: Command) -> str:
    pieces = " ".join(command.command.collect_usage_pieces(command.context))
    return f"statetool {command.name} {pieces}"


def _spelling(option: str) -> str:
    return re.sub(r"( [A-Z\[(].*)?$", "", option.rpartition(", ")[2])


def prose(text: str) -> str:
    """Return a help text as Markdown: paragraphs that click does not wrap become code."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            paragraphs.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            paragraphs.append(_escape(" ".join(paragraph.split())))
    return "\n\n".join(paragraphs)


def _escape(text: str) -> str:
    return re.sub(r"([<>*_\[\]|])", r"\\\1", text)


def _table(options: Mapping[str, str]) -> Iterator[str]:
    yield "| option | |\n|---|---|"
    for option, text in options.items():
        code = option.replace("|", "&#124;")
        yield f"| <code>{code}</code> | {_escape(' '.join(text.split()))} |"


@cache
def _run_examples() -> Mapping[str, str]:
    """Run the examples, two at a time, each in a fresh sandbox."""
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        made = sandbox.create(Path(work) / "made")
        examples = {name: example for group in EXAMPLES.values() for name, example in group.items()}
        return dict(zip(examples, threads.map(lambda e: _run(e, made), examples.values()), strict=True))


def _run(example: str, made: Path) -> str:
    with sandbox.fresh(made) as folder:
        printed = run_bash(f"cd {folder}\n{example}")
        return sandbox.without_folder(printed, folder).rstrip()


if __name__ == "__main__":
    print(page())
