"""Recorder of what each test executes in ``statetool``, as a plugin of pytest (``--record DIR``).

It records lines and, by run, what else a test of that run is for:

- Uncompiled (``STATETOOL_JIT=0``): both ways of each branch.
- Compiled: calls of dependencies and of kernels with the kind of their first argument, such as the types of an Arrow table, and functions
  with the kinds of all their arguments and results. These stand for what causes no event, such as operators of NumPy and other arguments.

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
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from statetool.kernels.core.jit import Kernel
from tests.support.quick import UNCOMPILED

#: ``sys.monitoring``, which Python 3.12 and later have.
MONITORING: Final[Any] = getattr(sys, "monitoring", None)
ROOT: Final = Path(__file__).parent.parent.parent
PACKAGE: Final = f"{ROOT / 'statetool'}{os.sep}"
#: Events of processes, which nothing records: tests that start one are not compared with others.
PROCESSES: Final = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"})
#: How often a place is looked at in one test without finding anything new there. Lines are looked at once, since they have no kinds.
TIMES: Final = 100
#: How many items of a sequence are looked at.
ITEMS: Final = 20


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
        #: How often a place was looked at since something new was found there.
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

    def _look(self, code: CodeType, offset: int, names: Iterable[Hashable]) -> Any:
        """Record what happens at a place, and disable its event if that was nothing new many times."""
        place, before = (id(code), offset), len(self.now)
        self.now.update((*place, name) for name in names)
        self.times[place] = 0 if len(self.now) > before else self.times[place] + 1
        return MONITORING.DISABLE if self.times[place] >= TIMES else None

    def _monitor(self) -> None:
        tool, events, disable = MONITORING.PROFILER_ID, MONITORING.events, MONITORING.DISABLE
        local = events.LINE | (events.BRANCH if UNCOMPILED else events.CALL | events.PY_RETURN | events.PY_YIELD)

        def start(code: CodeType, offset: int) -> Any:
            if id(code) not in self.codes:
                if not (code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(PACKAGE)):
                    return disable
                self.codes[id(code)] = code
                MONITORING.set_local_events(tool, code, local)
            frame = sys._getframe(1)
            if UNCOMPILED or frame.f_code is not code:  # numba reports that compiled code starts, which has no frame
                return disable
            return self._look(code, offset, _argument_kinds(frame))

        def line(code: CodeType, number: int) -> Any:
            self.now.add((id(code), number))
            return disable

        def branch(code: CodeType, offset: int, target: int) -> Any:
            return self._look(code, offset, (target,))  # disabling hides the other way too

        def call(code: CodeType, offset: int, function: Any, argument: Any) -> Any:
            name = _dependency(function)
            return self._look(code, offset, [(name, kind) for kind in kinds_of(argument)] if name else ())

        def result(code: CodeType, offset: int, value: Any) -> Any:
            return self._look(code, offset, kinds_of(value))

        MONITORING.use_tool_id(tool, "statetool tests")
        MONITORING.register_callback(tool, events.PY_START, start)
        MONITORING.register_callback(tool, events.LINE, line)
        MONITORING.register_callback(tool, events.BRANCH, branch)
        MONITORING.register_callback(tool, events.CALL, call)
        MONITORING.register_callback(tool, events.PY_RETURN, result)
        MONITORING.register_callback(tool, events.PY_YIELD, result)
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
    owner = getattr(function, "__objclass__", None)
    if owner is None and not isinstance(this := getattr(function, "__self__", None), ModuleType | None):
        owner = this if isinstance(this, type) else type(this)
    module = getattr(owner or function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if not isinstance(module, str) or module.startswith(("builtins", "tests")):
        return None
    return None if module.startswith("statetool") and not isinstance(function, Kernel) else f"{module}:{name}"


def _argument_kinds(frame: FrameType) -> Iterator[Hashable]:
    """Yield the kinds of the arguments of a function that starts: of a kernel, the types that numba compiles it for."""
    code, values = frame.f_code, frame.f_locals
    if isinstance(kernel := values.get("self"), Kernel):
        if "arguments" in values:
            import numba

            yield kernel.name, tuple(str(numba.typeof(argument)) for argument in values["arguments"])
        return
    many = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + many]:
        for kind in kinds_of(values.get(name)):
            yield name, kind


def kinds_of(value: Any) -> Iterator[str]:
    """Yield the type of a value, the types of its Arrow or NumPy values, with all their parts, and the kinds of the items of a sequence."""
    package = str(type(value).__module__).partition(".")[0]
    name = type(value).__name__ if package == "builtins" else f"{package}.{type(value).__name__}"
    yield name
    if type(value) in (list, tuple):
        for item in value[:ITEMS]:
            if type(item) not in (list, tuple):
                yield from (f"{name} of {kind}" for kind in kinds_of(item))
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{name} {value.dtype}"
    elif isinstance(value, pa.Table | pa.RecordBatch):
        for column in value.columns:
            yield from kinds_of(column)
    elif package == "pyarrow":
        types = value.types if isinstance(value, pa.Schema) else [getattr(value, "type", value)]
        yield from (f"{name} {part}" for type_ in types if isinstance(type_, pa.DataType) for part in _parts(type_))
        if getattr(value, "null_count", 0):
            yield f"{name} {_label(value.type)} with nulls"


def _parts(type_: pa.DataType) -> Iterator[str]:
    """Yield an Arrow type, and each type that it contains, with the one around it."""
    label = _label(type_)
    yield label
    for number in range(type_.num_fields):
        inner = type_.field(number).type
        yield f"{label} of {_label(inner)}"
        yield from _parts(inner)


def _label(type_: pa.DataType) -> str:
    """Return the name of an Arrow type: of one with fields, without them."""
    return type(type_).__name__ if type_.num_fields else str(type_)
