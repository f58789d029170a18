"""Steps of a journey: command lines, run by a shell with the environment's programs first on its path."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

#: Variables that would lead commands out of the environment, or change what they print.
_LEFT_OUT: Final = ("PYTHONPATH", "SPARK_HOME", "MASTER", "PYSPARK_SUBMIT_ARGS", "STATETOOL_JIT", "VIRTUAL_ENV")


class Steps:
    """Runs commands in a folder and adds up their seconds.

    Parameters
    ----------
    folder
        Current folder of the commands.
    programs
        Folder of ``statetool`` and ``python``.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.seconds = 0.0
        self.commands = 0
        self.variables: dict[str, str] = {}
        self._programs = [str(folder / "bin"), str(programs)]
        (folder / "bin").mkdir()

    def add_program(self, name: str, command: Sequence[str], **variables: str) -> None:
        """Put a program on the path that runs a command with the arguments that it gets."""
        program = self.folder / "bin" / name
        exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in variables.items())
        program.write_text(f'#!/bin/sh\n{exports}exec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)

    def begin(self) -> None:
        """Count from here: what came before is what a user already has."""
        self.seconds, self.commands = 0.0, 0

    def run(self, command: str, *, code: int = 0) -> str:
        """Run a command line, print it with its output, and return what it wrote to stdout.

        Raises
        ------
        AssertionError
            It ends with another code.
        """
        inherited = {k: v for k, v in os.environ.items() if k not in _LEFT_OUT}
        inherited["PATH"] = os.pathsep.join([*self._programs, inherited["PATH"]])
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder, env=inherited | self.variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
        self.seconds += took
        self.commands += 1
        print(f"[{took:.1f} s] {command}\n{done.stdout}", flush=True)
        assert done.returncode == code, f"{command}\nends with {done.returncode}, not {code}\n{done.stderr[-4000:]}"
        return done.stdout
