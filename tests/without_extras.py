"""Run commands that need no extra, and check that others name theirs: ``python -m tests.without_extras``.

Run it in an environment with only the core dependencies (``.ci/package``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from statetool.demo import SAVEPOINT

WORKING: Final = (
    ("info", SAVEPOINT),
    ("ls", SAVEPOINT),
    ("states", SAVEPOINT),
    ("files", SAVEPOINT),
    ("schema", SAVEPOINT, "reminders"),
    ("head", SAVEPOINT, "reminders"),
    ("count", SAVEPOINT, "reminders"),
    ("export", SAVEPOINT, "reminders", "keyed_state", "{target}/rows"),
    ("stats", SAVEPOINT),
    ("check", SAVEPOINT, "--flink", "2.3"),
    ("diff", SAVEPOINT, SAVEPOINT),
    ("verify", SAVEPOINT, "--deep"),
    ("rescale", SAVEPOINT, "{target}/rescaled", "--max-parallelism", "256"),
    ("copy", SAVEPOINT, "{target}/copied"),
    ("doctor",),
)
#: Commands, and the end of the single line that they print.
REFUSED: Final = {
    ("demo",): "pip install 'statetool[spark]'",
    ("export", SAVEPOINT, "reminders", "keyed_state", "{target}/table", "--spark"): "pip install 'statetool[spark]'",
    ("sql", SAVEPOINT, "FROM reminders_timers"): "pip install 'statetool[sql]'",
    ("stats", SAVEPOINT, "--spark"): "pip install 'statetool[spark]'",
    ("browse", SAVEPOINT): "pip install 'statetool[browse]'",
    ("mcp", SAVEPOINT): "pip install 'statetool[mcp]'",
    ("serve", SAVEPOINT): "pip install 'statetool[serve]'",
    ("info", "s3://bucket/savepoint"): "pip install 'statetool[s3]'",
    ("info", "gs://bucket/savepoint"): "pip install 'statetool[gcs]'",
    ("info", "k8s://namespace/deployment"): "pip install 'statetool[k8s]'",
}


def main() -> int:
    """Run all commands and return the number of unexpected results."""
    wrong = 0
    with tempfile.TemporaryDirectory() as target:
        for command in (*WORKING, *REFUSED):
            arguments = [part.format(target=target) if "{target}" in part else part for part in command]
            done = subprocess.run(
                [Path(sys.executable).with_name("statetool"), *arguments], capture_output=True, text=True, check=False
            )
            end = REFUSED.get(command)
            lines = done.stderr.strip().splitlines()
            fine = done.returncode == 0 if end is None else done.returncode == 3 and lines[-1].endswith(end)
            if not fine:
                wrong += 1
                print(f"statetool {' '.join(arguments)} exits {done.returncode}:\n{done.stderr[-2000:]}")
    print(f"{len(WORKING) + len(REFUSED) - wrong} passed, {wrong} failed")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
