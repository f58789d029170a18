"""Manners of a library: importing statetool, reading and writing leave the process as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from statetool.demo import SAVEPOINT

#: Settings of the process, before and after.
STATE = """
import decimal, gc, locale, logging, os, random, resource, signal, socket, sys, threading, time, warnings
import numpy, pyarrow

def state():
    descriptors = {}
    for name in os.listdir("/proc/self/fd"):
        try: descriptors[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError: pass  # the one that lists them
    mask = os.umask(0o22); os.umask(mask)
    return {
        "environment": dict(os.environ), "warning filters": list(warnings.filters), "showwarning": warnings.showwarning,
        "signals": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "threads": sorted(t.name for t in threading.enumerate()), "stack size": threading.stack_size(),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)),
        "recursion": sys.getrecursionlimit(), "switch interval": sys.getswitchinterval(), "digits": sys.get_int_max_str_digits(),
        "decimals": repr(decimal.getcontext()), "locale": locale.setlocale(locale.LC_ALL), "zone": time.tzname,
        "sockets": socket.getdefaulttimeout(), "numpy errors": numpy.geterr(), "random": random.getstate(),
        "arrow threads": (pyarrow.cpu_count(), pyarrow.io_thread_count()),
        "logging": (logging.root.level, list(logging.root.handlers), logging.raiseExceptions),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook),
        "streams": (sys.stdin, sys.stdout, sys.stderr), "module path": list(sys.path), "folder": os.getcwd(), "umask": mask,
        "limits": [resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")],
        "descriptors": descriptors,
        "finders": [repr(f) for f in sys.meta_path if "statetool" in repr(f)],
    }

before = state()
def compare(work):
    after = state()
    for name in before:
        if after[name] != before[name]: print(work, name, before[name], after[name], sep=" | ")
"""
WORKS = """
import statetool
compare("import")
savepoint = statetool.load(sys.argv[1])
savepoint.metadata_rows("states")
compare("load")
for operator in savepoint.operators: savepoint[operator].to_arrow()
compare("read")
statetool.verify(sys.argv[1], deep=True)
statetool.check(sys.argv[1], flink_version="2.3")
compare("check")
statetool.rescale(sys.argv[1], sys.argv[2], {"reminders": 300})
compare("write")
try: statetool.load(sys.argv[2] + "-missing")
except statetool.StatetoolError: pass
compare("error")
"""


def run(code: str, *words: str) -> str:
    # Kernels are compiled as for users, who do not set STATETOOL_JIT.
    variables = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_") and k != "STATETOOL_JIT"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=variables, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_reading_and_writing_leave_the_process_as_it_was(tmp_path: Path) -> None:
    assert run(STATE + WORKS, SAVEPOINT, str(tmp_path / "rescaled")) == ""
