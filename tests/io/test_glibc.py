"""Retention of freed memory, measured in separate processes."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from statetool.demo import SAVEPOINT

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are not changed")

_KEEP = "import statetool; statetool.keep_freed_memory()"
_READ = "import statetool; statetool.load(sys.argv[2])['reminders'].to_arrow()"
_COMMAND = """
from statetool.cli.main import main
arguments, sys.argv = sys.argv, ["statetool", "count", sys.argv[2], "reminders"]
try: main()
except SystemExit: pass
sys.argv = arguments
"""
#: How many arenas six threads use after some work. With statetool's settings there are two.
_ARENAS = """
import ctypes, sys, threading
{work}
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
together = threading.Barrier(6)

def work():
    together.wait()
    block = libc.malloc(1 << 20)
    together.wait()
    libc.free(block)

threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
file = libc.fopen(sys.argv[1].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
"""

_FAULTS = """
import resource
import numpy as np
from statetool.io.glibc import keep_freed_memory

keep_freed_memory()

def touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

touched()
print(touched())
"""


def _run(code: str, *words: str, **chosen: str) -> str:
    # Kernels are compiled as for users, who do not set STATETOOL_JIT.
    environ = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_") and k != "STATETOOL_JIT"} | chosen
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=environ, check=True, capture_output=True, text=True
    ).stdout


def test_threads_share_two_arenas_unless_the_user_chose_otherwise(tmp_path: Path) -> None:
    found = {}
    for chosen in ("", "5"):
        file = tmp_path / f"info{chosen}"
        _run(_ARENAS.format(work=_KEEP), str(file), **({"MALLOC_ARENA_MAX": chosen} if chosen else {}))
        found[chosen] = len(re.findall("<heap nr=", file.read_text()))
    assert found == {"": 2, "5": 5}


def test_pages_of_freed_arrays_are_not_cleared_anew_unless_the_user_chose_otherwise() -> None:
    assert int(_run(_FAULTS)) < 1000
    assert int(_run(_FAULTS, STATETOOL_PLAIN="glibc", MALLOC_MMAP_THRESHOLD_="131072")) > 1000
    assert int(_run(_FAULTS, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072")) > 1000


@pytest.mark.parametrize(
    ("work", "changed"),
    [(_READ, False), (_COMMAND, True), (f"{_KEEP}\n{_READ}", True)],
    ids=["library", "command", "on request"],
)
def test_only_the_command_line_changes_malloc_unasked(tmp_path: Path, work: str, changed: bool) -> None:
    _run(_ARENAS.format(work=work), str(tmp_path / "info"), SAVEPOINT)
    arenas = len(re.findall("<heap nr=", (tmp_path / "info").read_text()))
    assert (arenas <= 2) == changed, f"{arenas} arenas"
