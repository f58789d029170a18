"""Make an environment per journey and run the commands that users type: ``python -m tests.journeys [NAME ...]``.

Each command is printed with its seconds and its output. With ``--here``, the environment of this Python is used. Exit code 1 if a journey fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Final

from tests.journeys import cluster, lake, notebook, running_job, upgrade
from tests.journeys.steps import Steps
from tools.packages import ROOT

JOURNEYS: Final = {
    "running-job": running_job,
    "upgrade": upgrade,
    "cluster": cluster,
    "lake": lake,
    "notebook": notebook,
}


def make_environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """Make a virtual environment with packages and return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    own = [p.replace("statetool", f"{ROOT}", 1) if p.startswith("statetool") else p for p in packages]
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", "-e", *own], check=True)
    return folder / "bin"


def travel(journey: ModuleType, *, here: bool) -> tuple[float, Steps]:
    """Run a journey; return the seconds that its environment took, and its steps."""
    work = Path(tempfile.mkdtemp(prefix="journey-"))
    try:
        began = time.monotonic()
        programs = Path(sys.executable).parent if here else make_environment(work / "venv", journey.PACKAGES)
        made = time.monotonic() - began
        steps = Steps(work, programs)
        journey.run(steps)
        return made, steps
    finally:
        shutil.rmtree(work, ignore_errors=True)  # processes that end may still write there


def main(arguments: list[str]) -> int:
    """Run journeys and print their times."""
    names = [name for name in arguments if name != "--here"]
    if unknown := [name for name in names if name not in JOURNEYS]:
        print(f"no journey {unknown[0]}: {', '.join(JOURNEYS)}", file=sys.stderr)
        return 2
    lines = []
    for name in names or JOURNEYS:
        print(f"== {name}", flush=True)
        try:
            made, steps = travel(JOURNEYS[name], here="--here" in arguments)
            lines.append(f"{name}: {steps.commands} commands in {steps.seconds:.0f} s, environment {made:.0f} s")
        except (AssertionError, subprocess.CalledProcessError):
            traceback.print_exc()
            lines.append(f"{name}: FAILED")
    print("\n".join(lines))
    return int(any(line.endswith("FAILED") for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
