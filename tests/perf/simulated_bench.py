"""Cost of commands for a checkpoint of 10 TB: ``python -m tests.perf.simulated_bench [--write] [COMMAND ...]``.

The checkpoint is in a simulated store with 30 ms per request (:mod:`tests.support.servers.simulated_store`). Each command runs in a separate
process. CPU seconds are without those of the store's client, and memory is what the command added. ``--write`` puts the table into
``docs/operations/ten-terabytes.md``; a test compares its requests with those of a run over a smaller checkpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fsspec.asyn

import statetool
from statetool.operations.directories.following import completed_checkpoints
from tests.support.servers.simulated_store import World, simulated_store
from tests.support.snapshots.simulated import KEY, OPERATORS, ROOT, VALUE, add_checkpoint

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "ten-terabytes.md"
MARKS: Final = (
    "<!-- written by python -m tests.perf.simulated_bench --write -->",
    "<!-- end of the written table -->",
)
LATENCY: Final = 0.03
FILES: Final = 200_000
#: Files of the checkpoint that the test reads.
FEW_FILES: Final = 2_000
_CHECKPOINTS: Final = (1, 2)
_URI: Final = f"sim://{ROOT}/chk-2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a command: requests, the most of them one after another and at the same time, CPU seconds and MB."""

    requests: int
    chain: int
    in_flight: int
    cpu: float
    mb: int


def load_newest() -> statetool.Savepoint:
    """Open the newest checkpoint."""
    return statetool.load(_URI, uids=list(OPERATORS))


def plan_all() -> Callable[[], object]:
    """Plan the reads of a state of every operator."""
    return lambda: [len(o.scan("s0").splits) for o in load_newest().operators.values()]


def plan_one() -> Callable[[], object]:
    """Plan the read of one state of one operator."""
    return lambda: len(load_newest()[OPERATORS[0]].scan("s0").splits)


def read_key() -> Callable[[], object]:
    """Read one state of one key."""

    def run() -> None:
        rows = load_newest()[OPERATORS[0]].to_arrow("s0", keys=[KEY]).to_pylist()
        assert rows == [{"key": KEY, "value": VALUE}]

    return run


def check() -> Callable[[], object]:
    """Check the restore with another release of Flink."""
    return lambda: statetool.check(_URI, flink_version="2.3")


def estimate() -> Callable[[], object]:
    """Estimate the entries of all states."""
    return lambda: load_newest().estimate_stats()


def chain() -> Callable[[], object]:
    """List the shared files of two checkpoints."""
    return lambda: statetool.chain(f"sim://{ROOT}")


def orphans() -> Callable[[], object]:
    """Find unreferenced files."""
    return lambda: statetool.orphans(f"sim://{ROOT}")


def copy() -> Callable[[], object]:
    """Plan a copy."""
    return lambda: statetool.copy(_URI, "sim://bucket/copied", dry_run=True)


def rescale() -> Callable[[], object]:
    """Plan a rescale."""
    return lambda: statetool.rescale(_URI, "sim://bucket/rescaled", 4096, uids=OPERATORS, dry_run=True)


def trigger() -> Callable[[], object]:
    """Look for new checkpoints, as a stream does that has read all of them."""
    known: dict[str, Any] = {}
    completed_checkpoints(f"sim://{ROOT}", known)
    return lambda: completed_checkpoints(f"sim://{ROOT}", known)


#: Commands by the name in the table.
COMMANDS: Final[dict[str, Callable[[], Callable[[], object]]]] = {
    "plan of all operators": plan_all,
    "plan of one operator": plan_one,
    "one key of one state": read_key,
    "`check --flink 2.3`": check,
    "`stats --estimate`": estimate,
    "`chain`, two checkpoints": chain,
    "`orphans`, two checkpoints": orphans,
    "`copy --dry-run`": copy,
    "`rescale --dry-run`": rescale,
    "stream trigger with nothing new": trigger,
}


def measure(command: str, world: World) -> Cost:
    """Run a command in this process and return its cost."""
    run = COMMANDS[command]()
    world.requests.clear()
    client, cpu, mb = _client_seconds(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    cpu = time.process_time() - cpu - (_client_seconds() - client)
    mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - mb
    return Cost(requests=len(world.requests), chain=world.chain(), in_flight=world.in_flight(), cpu=cpu, mb=mb >> 10)


def _client_seconds() -> float:
    """Return the CPU seconds of the thread that runs the store's client."""

    async def seconds() -> float:
        return time.thread_time()

    return asyncio.run_coroutine_threadsafe(seconds(), fsspec.asyn.get_loop()).result()


def _measure_in_process(command: str, world: World, results: Any) -> None:
    results.put(measure(command, world))


def table(few: dict[str, Cost], many: dict[str, Cost]) -> str:
    """Return the costs as a Markdown table."""
    lines = [
        f"| command | requests at {FEW_FILES:,} files | requests at {FILES:,} files | one after another | at a time | CPU s | MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, cost in many.items():
        numbers = (few[name].requests, cost.requests, cost.chain, cost.in_flight)
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} | {cost.cpu:.1f} | {cost.mb:,} |")
    return "\n".join(lines)


def rows() -> dict[str, tuple[int, int, int]]:
    """Return the requests of each command in the page: at few files, at many files, and one after another."""
    page = PAGE.read_text()
    lines = page.partition(MARKS[0])[2].partition(MARKS[1])[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: (_number(few), _number(many), _number(chain)) for name, few, many, chain, *_ in cells}


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _costs(files: int, commands: list[str]) -> dict[str, Cost]:
    """Measure commands, each in a process that starts with the store."""
    processes = multiprocessing.get_context("fork")
    costs = {}
    with simulated_store(LATENCY) as world:
        for checkpoint in _CHECKPOINTS:
            add_checkpoint(world, files, checkpoint_id=checkpoint)
        for command in commands:
            results: Any = processes.SimpleQueue()
            process = processes.Process(target=_measure_in_process, args=(command, world, results))
            process.start()
            process.join()
            costs[command] = results.get()
            print(files, command, costs[command], flush=True)
    return costs


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.simulated_bench")
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="beginnings of names; all by default")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args()
    names = [n for n in COMMANDS if not given.commands or n.strip("`").startswith(tuple(given.commands))]
    text = table(_costs(FEW_FILES, names), _costs(FILES, names))
    print(text)
    if given.write:
        before, _, rest = PAGE.read_text().partition(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
