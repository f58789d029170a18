"""Recorder of what each test executes in ``statetool``, as a plugin of pytest (``--record DIR``).

It records lines and, by run, what else a test of that run is for:

- Uncompiled (``STATETOOL_JIT=0``): both ways of each branch.
- Compiled: calls of dependencies and of kernels, with the kind of their first argument, such as the type of an Arrow array.

It uses ``sys.monitoring``, which costs little, because an event that happened in a test is disabled until the next test. Coverage cannot
tell tests apart that way. Lines of modules and of classes count for no test: they run when a test is the first to import them.
"""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import time
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

import pytest

from tests.support.quick import UNCOMPILED

#: ``sys.monitoring``, which Python 3.12 and later have.
MONITORING: Final[Any] = getattr(sys, "monitoring", None)
ROOT: Final = Path(__file__).parent.parent.parent
PACKAGE: Final = f"{ROOT / 'statetool'}{os.sep}"
#: Events of processes, which nothing records: tests that start one are not compared with others.
PROCESSES: Final = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"})
#: How often a branch or a call is looked at in one test. Lines are looked at once, since they have no kinds.
TIMES: Final = 100


class Test(NamedTuple):
    """What a test executes, by numbers, and its cost."""

    executed: array[int]
    #: CPU seconds of the test itself and of its own fixtures.
    seconds: float
    #: Random data, or another process: the record says little about what the test finds.
    apart: bool


class Record(NamedTuple):
    """What the tests of one process executed. The numbers of the tests are indexes of ``names``."""

    names: list[Hashable]
    tests: dict[str, Test]


def load_records(folder: Path) -> Iterator[Record]:
    """Read the records of all processes of a run."""
    for file in sorted(folder.glob("*.record")):
        yield Record(*pickle.loads(file.read_bytes()))


class Recorder:
    """The plugin.

    Raises
    ------
    pytest.UsageError
        Python is older than 3.12.
    """

    def __init__(self, folder: Path) -> None:
        if MONITORING is None:
            raise pytest.UsageError("--record needs Python 3.12 or later")
        self.folder = folder
        self.codes: dict[int, CodeType] = {}
        self.numbers: dict[Hashable, int] = {}
        self.tests: dict[str, Test] = {}
        self.now: set[tuple[Any, ...]] = set()
        self.times: Counter[tuple[int, int]] = Counter()
        self.shared = 0.0
        self.other_process = False
        sys.addaudithook(self._audit)
        self._monitor()
        self.compiled = [] if UNCOMPILED else _compile_times()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record a test with its fixtures."""
        MONITORING.restart_events()
        self.now, self.other_process, self.shared = set(), False, 0.0
        self.times.clear()
        started = self._seconds()
        result = yield
        spent = self._seconds() - started - self.shared
        executed, self.now = self.now, set()
        numbers = self.numbers
        found = array("I", sorted(numbers.setdefault(name, len(numbers)) for name in map(self._name, executed)))
        random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        self.tests[item.nodeid] = Test(found, spent, random or self.other_process)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Take the time of fixtures that tests share from the time of the test that happens to be the first."""
        started, before = self._seconds(), self.shared
        result = yield
        if fixturedef.scope != "function":
            self.shared = before + self._seconds() - started
        return result

    def pytest_sessionfinish(self) -> None:
        """Write what this process recorded."""
        if self.tests:
            self.folder.mkdir(parents=True, exist_ok=True)
            record = Record(list(self.numbers), self.tests)
            (self.folder / f"{os.getpid()}.record").write_bytes(pickle.dumps(tuple(record)))

    def _seconds(self) -> float:
        """Return CPU seconds of this process without those of compiling kernels, which any test may be the first to need."""
        return time.process_time() - sum(self.compiled)

    def _audit(self, event: str, _: Any) -> None:
        if event in PROCESSES:
            self.other_process = True

    def _monitor(self) -> None:
        tool, events, disable = MONITORING.PROFILER_ID, MONITORING.events, MONITORING.DISABLE
        local = events.LINE | (events.BRANCH if UNCOMPILED else events.CALL)

        def start(code: CodeType, _: int) -> Any:
            ours = code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(PACKAGE)
            if ours and id(code) not in self.codes:
                self.codes[id(code)] = code
                MONITORING.set_local_events(tool, code, local)
            return disable

        def line(code: CodeType, number: int) -> Any:
            self.now.add((id(code), number))
            return disable

        def branch(code: CodeType, offset: int, target: int) -> Any:
            # Disabling hides the other way too.
            self.now.add((id(code), offset, target))
            self.times[id(code), offset] += 1
            return disable if self.times[id(code), offset] == TIMES else None

        def call(code: CodeType, offset: int, function: Any, argument: Any) -> Any:
            if (name := _dependency(function)) is None:
                return disable
            self.now.add((id(code), offset, name, _kind(argument)))
            self.times[id(code), offset] += 1
            return disable if self.times[id(code), offset] == TIMES else None

        MONITORING.use_tool_id(tool, "statetool tests")
        MONITORING.register_callback(tool, events.PY_START, start)
        MONITORING.register_callback(tool, events.LINE, line)
        MONITORING.register_callback(tool, events.BRANCH, branch)
        MONITORING.register_callback(tool, events.CALL, call)
        MONITORING.set_events(tool, events.PY_START)

    def _name(self, executed: tuple[Any, ...]) -> Hashable:
        """Return what was executed as every process names it."""
        code = self.codes[executed[0]]
        file = code.co_filename[len(PACKAGE) :]
        return (file, executed[1]) if len(executed) == 2 else (file, code.co_qualname, *executed[1:])


def _compile_times() -> list[float]:
    """Return a list that receives the CPU seconds of each compilation by numba."""
    from numba.core import event

    class Listener(event.Listener):
        """Time from the first of nested events: one kernel compiles those that it calls."""

        depth = 0
        started = 0.0

        def on_start(self, event: Any) -> None:
            if not self.depth:
                self.started = time.process_time()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if not self.depth:
                times.append(time.process_time() - self.started)

    times: list[float] = []
    event.register("numba:compile", Listener())
    return times


def _dependency(function: Any) -> str | None:
    """Return the name of a kernel or of a function that is neither ours nor built in."""
    kernel = type(function).__name__ == "Kernel"
    owner = getattr(function, "__objclass__", None)
    if owner is None and not isinstance(this := getattr(function, "__self__", None), ModuleType | None):
        owner = this if isinstance(this, type) else type(this)
    module = getattr(owner or function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if not isinstance(module, str) or module.startswith(("builtins", "tests")):
        return None
    return None if module.startswith("statetool") and not kernel else f"{module}:{name}"


def _kind(argument: Any) -> str:
    """Return the type of an argument, and the type of an Arrow or NumPy array's values."""
    values = getattr(argument, "dtype", None) or getattr(argument, "type", None)
    kind = getattr(values, "kind", "") or getattr(values, "id", "")
    return f"{type(argument).__name__} {kind if isinstance(kind, str | int) else ''}"
