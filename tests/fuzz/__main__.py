"""Fuzz one target, guided by coverage: ``python -m tests.fuzz TARGET [--seconds 600] [--keep DIR]``. The seconds are those of the CPU.

Needs atheris (``pip install atheris``; not in the test extra, because it lacks wheels for some platforms). An input that causes any
exception but a ``StatetoolError``, or takes 30 s or 2 GiB, is saved in DIR as ``crash-...``. Add it to the stored corpus together with its
fix: ``python -m tests.fuzz.kept DIR``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

#: Modules that guide fuzzing: the parsers. Kernels have no branches that only these targets reach; they are compiled once, as usual.
_GUIDING: Final = (
    "statetool.io",
    "statetool.java.classes",
    "statetool.connectors",
    "statetool.formats",
    "statetool.serializers",
    "statetool.entries",
    "statetool.snapshot",
)
os.environ.setdefault("STATETOOL_JIT", "1")


def main() -> None:
    """Run the command line."""
    import atheris

    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=600, help="CPU seconds, from the first input.")
    parser.add_argument("--keep", type=Path, default=None, help="Folder of inputs, which grows.")
    given = parser.parse_args()
    with atheris.instrument_imports(include=list(_GUIDING)):
        from tests.fuzz.targets import TARGETS, guarded
    target = TARGETS[given.target]
    keep = given.keep or Path(mkdtemp(prefix=f"fuzz-{given.target}-"))
    keep.mkdir(parents=True, exist_ok=True)
    first = Path(mkdtemp(prefix="fuzz-seeds-"))
    for i, seed in enumerate(target.seeds()):
        (first / str(i)).write_bytes(seed)
    flags = [
        "-timeout=30",
        "-rss_limit_mb=2048",
        f"-artifact_prefix={keep}/",
        "-print_final_stats=1",
    ]
    end = time.process_time() + given.seconds

    def run(data: bytes) -> None:
        guarded(target, bytes(data))
        if time.process_time() > end:
            signal.raise_signal(signal.SIGUSR1)  # libFuzzer ends and prints its statistics

    atheris.Setup([sys.argv[0], *flags, str(keep), str(first)], run)
    print(f"inputs in {keep}", flush=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
