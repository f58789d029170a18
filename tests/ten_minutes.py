"""A stranger's first ten minutes: ``python -m tests.ten_minutes`` does only what ``docs/getting-started.md`` says, and prints what it sees.

It clones the repository, makes a virtual environment, installs statetool, and runs the page's commands in their order. The page promises
to open a savepoint, find a large key, correct a value and check the restore; each is looked for in the output.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.examples import ROOT

PAGE: Final = ROOT / "docs" / "getting-started.md"
LIMIT_S: Final = 600
#: What the commands have to print, in this order.
PROMISED: Final = (
    "baskets",  # open a savepoint
    "largest",  # find a large key ...
    "Ada",  # ... correct a value
    "The job restores",  # ... and check the restore
)
_BLOCK: Final = re.compile(r"^```(shell|bash|python|sql)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Yield the page's blocks that a reader runs in a terminal, as shell commands; Python and SQL are entered in one Python session."""
    python = ""
    for language, code in _BLOCK.findall(page):
        if language == "python":
            python += code
        elif language == "sql":
            python += f'spark.sql("""{code}""").show(truncate=False)\n'
        elif "flink run" not in code:  # needs a cluster of Flink
            if python and language == "bash":
                yield "python", f"python - <<'END'\n{python}\nEND"
                python = ""
            yield language, code


def run(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Run the steps in a folder and yield each with its output and the seconds since the start."""
    began = time.monotonic()
    prefix = ""
    for language, code in steps(PAGE.read_text("utf-8")):
        code = code.replace("<repository>", str(ROOT))
        call = ["bash", "-euo", "pipefail", "-c", prefix + code]
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode > 1:  # 1: a command found differences
            raise SystemExit(f"{code}\n{done.stdout}{done.stderr}")
        yield code, done.stdout, time.monotonic() - began
        if language == "shell":
            prefix = "cd statetool && . venv/bin/activate\n"


def main() -> None:
    """Run the command line."""
    transcript = ""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as work:
        for code, printed, seconds in run(Path(work)):
            print(f"[{seconds:.0f} s] {code.rstrip()}\n{printed}", flush=True)
            transcript += code + printed
    at = 0
    for word in PROMISED:
        at = transcript.find(word, at)
        if at < 0:
            raise SystemExit(f"{word!r} is missing")
    if seconds > LIMIT_S:
        raise SystemExit(f"{seconds:.0f} s are more than ten minutes")
    print(f"all of it in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
