"""How reads scale with threads, on any machine: ``python -m tests.perf.threads_bench PATH [--operator accounts]``.

One thread reads all splits, and records when it needs the interpreter: always, except inside compiled kernels and reads of files. (NumPy and Arrow
let other threads run, too, so that this is more than it really needs.) Then threads are simulated that share the interpreter, each on a separate core and
with separate splits. The simulation knows nothing of the memory that the cores share.
"""

from __future__ import annotations

import argparse
import heapq
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import statetool
from statetool.kernels.core.jit import Kernel
from statetool.tables.read import read_split

#: Nanoseconds with the interpreter and then without it, one pair after another.
Trace: TypeAlias = list[tuple[int, int]]
_WARM_UP: Final = 4
_TIMES: Final = 4
#: Traces of each simulation, so that the end, when some threads have no more work, hardly counts.
_TRACES: Final = 400
THREADS: Final = (2, 4, 8, 16)
#: Nanoseconds until a thread that waits for the interpreter runs: none, and what waking it may take.
_WAKING: Final = (0, 20_000)


class Recorder:
    """Records the trace of the thread that calls :meth:`apart`."""

    def __init__(self) -> None:
        self.trace: Trace = []
        self._since = time.thread_time_ns()

    def begin(self) -> None:
        """Begin a new trace."""
        self.trace, self._since = [], time.thread_time_ns()

    def end(self) -> Trace:
        """Return the trace."""
        return [*self.trace, (time.thread_time_ns() - self._since, 0)]

    def apart(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls do not need the interpreter."""

        def call(*arguments: Any) -> Any:
            start = time.thread_time_ns()
            result = function(*arguments)
            end = time.thread_time_ns()
            self.trace.append((start - self._since, end - start))
            self._since = end
            return result

        return call


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record compiled kernels and reads of files in this block."""
    recorder = Recorder()
    run, pread = Kernel.__call__, os.pread
    Kernel.__call__ = recorder.apart(run)  # type: ignore[method-assign]
    os.pread = recorder.apart(pread)
    try:
        yield recorder
    finally:
        Kernel.__call__ = run  # type: ignore[method-assign]
        os.pread = pread


def record(operator: statetool.Operator, split_bytes: int | None) -> list[Trace]:
    """Return traces of all splits, read several times."""
    splits = operator.scan("keyed_state", split_bytes=split_bytes).splits

    def read(split: Any) -> None:
        for _ in read_split(split):
            pass

    for _ in range(_WARM_UP):
        for split in splits:
            read(split)
    traces = []
    with recording() as recorder:
        for split in [*splits] * _TIMES:
            recorder.begin()
            read(split)
            traces.append(recorder.end())
    return traces


def speedup(traces: Sequence[Trace], threads: int, waking: int) -> float:
    """Simulate threads, and return how much faster they are than one.

    Threads get the interpreter in the order in which they ask for it.
    """
    work = [traces[i % len(traces)] for i in range(_TRACES)]
    queue = deque(pair for trace in work for pair in [*trace, None])  # ``None`` ends a trace
    own: list[deque[tuple[int, int]]] = [deque() for _ in range(threads)]
    events: list[tuple[int, int, bool]] = [(0, thread, True) for thread in range(threads)]
    waiting: deque[int] = deque()
    is_held, now = False, 0

    def take(thread: int, start: int) -> None:
        """Let a thread run with the interpreter."""
        held, _ = own[thread][0]
        heapq.heappush(events, (start + held, thread, False))

    while events:
        now, thread, asks = heapq.heappop(events)
        if asks:
            if not own[thread]:
                while queue and (pair := queue.popleft()) is not None:
                    own[thread].append(pair)
            if not own[thread]:
                continue  # all work is done
            if is_held:
                waiting.append(thread)
            else:
                is_held = True
                take(thread, now)
            continue
        _, free = own[thread].popleft()
        heapq.heappush(events, (now + free, thread, True))
        is_held = bool(waiting)
        if waiting:
            take(waiting.popleft(), now + waking)
    return sum(held + free for trace in work for held, free in trace) / now


def main() -> None:
    """Print the share of time with the interpreter and the simulated speedups."""
    parser = argparse.ArgumentParser(prog="tests.perf.threads_bench")
    parser.add_argument("path")
    parser.add_argument("--operator", default="accounts")
    parser.add_argument("--split-bytes", type=int)
    given = parser.parse_args()
    traces = record(statetool.load(given.path)[given.operator], given.split_bytes)
    held, free = (sum(pair[i] for trace in traces for pair in trace) for i in range(2))
    print(f"{(held + free) / 1e9 / _TIMES:.3f} CPU seconds, {held / (held + free):.1%} of it with the interpreter")
    for threads in THREADS:
        fastest, slower = (speedup(traces, threads, waking) for waking in _WAKING)
        print(
            f"{threads:2} threads: {fastest:.1f} times as fast, {slower:.1f} if waking a thread takes 20 microseconds"
        )


if __name__ == "__main__":
    main()
