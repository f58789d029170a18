"""Commands about this installation: checks, compiled kernels, shell completion and a demo."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options
from statetool.cli.output import echo_err
from statetool.errors import OptionError

_VARIABLE: Final = "_STATETOOL_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")
#: Code that zsh must run before completions can be declared.
_ZSH_FIRST: Final = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"


@click.command(cls=Command)
@click.argument("path", required=False, shell_complete=complete_path)
@click.option("--warm", is_flag=True, help="Compile the kernels and cache Spark's classes first.")
@common_options(*OUTPUT)
def doctor(options: CommonOptions, path: str | None, warm: bool) -> None:
    """Check this installation, and optionally a snapshot.

    Run it with --warm once per machine: Spark commands then start a third faster, and no read waits for compilation.

    Exits 1 if there are problems.

    Examples:
      statetool doctor --warm
      statetool doctor s3://bucket/savepoint-1a2b
    """
    from statetool.cli.operate.doctor import (
        check_java_classes,
        check_kernels,
        check_machine,
        check_snapshot,
        compile_kernels,
        has_pyspark,
        keep_java_classes,
    )

    if warm:
        compile_kernels()
    findings = [*check_machine(), check_kernels()]
    if has_pyspark():
        if warm:
            keep_java_classes()
        findings.append(check_java_classes())
    if path:
        findings += check_snapshot(path)
    options.output.rows(findings)
    if any(not f["fine"] for f in findings):
        sys.exit(1)


@click.command(cls=Command)
@click.option("--build", "folder", metavar="DIR", help="Compile the kernels and copy them to DIR.")
@common_options(*OUTPUT)
def kernels(options: CommonOptions, folder: str | None) -> None:
    """Show where compiled kernels are stored, or ship them.

    --build copies the kernels to a directory. Ship it with a Spark job, so that its executors do not compile kernels.

    The kernels are used only with the same version of statetool, Python and numba, and the same type of processor. Set
    NUMBA_CPU_NAME=generic on both machines to allow other processors.

    Examples:
      statetool kernels --build kernels
      (cd kernels && tar -czf ../kernels.tar.gz *)
      spark-submit --archives kernels.tar.gz#kernels \\
        --conf spark.executorEnv.STATETOOL_KERNELS=kernels ...
    """
    from statetool.cli.operate.doctor import compile_kernels
    from statetool.kernels.ahead import ship
    from statetool.kernels.core import kept

    written = None
    if folder is not None:
        compile_kernels()
        written = ship(folder)
    options.output.record(
        {
            "code_of": kept.stamp(),
            "kept_in": kept.target(),
            "looked_for_in": [str(f) for f in kept.folders()],
            "kernels": len(kept.names()),
            "written_to": written,
        }
    )


@click.command(cls=Command)
@common_options()
def demo(options: CommonOptions) -> None:
    """Query and edit a bundled savepoint.

    Shows its tables, runs a query on Spark, writes an edited copy and reads it back. Takes about 10 seconds.

    Examples:
      statetool demo
    """
    from statetool.demo.run import run_demo

    run_demo(options.output)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS), required=False, metavar="[SHELL]")
@click.option("--show", is_flag=True, help="Print the script without installing it.")
@common_options()
def completion(options: CommonOptions, shell: str | None, show: bool) -> None:
    """Install completion for bash, zsh or fish.

    SHELL is bash, zsh or fish, by default the shell that is running.

    Examples:
      statetool completion
      statetool completion bash --show
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in _SHELLS:
        raise OptionError(f"the shell {name!r} is not supported", hint=f"pass one of {', '.join(_SHELLS)}")
    text = _script(name)
    if show:
        options.output.text(*text.split("\n"))
        return
    for file in _install(name, text):
        echo_err(f"written: {file}")
    echo_err("completion is active in new shells")


def _script(shell: str) -> str:
    completer: Any = get_completion_class(shell)
    source: str = completer(click.get_current_context().find_root().command, {}, "statetool", _VARIABLE).source()
    return (_ZSH_FIRST if shell == "zsh" else "") + source


def _install(shell: str, text: str) -> list[Path]:
    """Write the script to a folder that the shell reads, or source it in the shell's start-up file, and return the changed files."""
    home = Path.home()
    if shell == "fish":
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "statetool"
    script = folder / ("statetool.fish" if shell == "fish" else f"completion.{shell}")
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    if shell == "fish":
        return [script]
    start = home / f".{shell}rc"
    line = f'[ -r "{script}" ] && . "{script}"  # completion of statetool\n'
    lines = start.read_text() if start.exists() else ""
    if line in lines:
        return [script]
    start.write_text(lines + ("" if not lines or lines.endswith("\n") else "\n") + line)
    return [script, start]
