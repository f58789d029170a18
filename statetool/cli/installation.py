"""Commands about this installation: checks, compiled kernels and a demo."""

from __future__ import annotations

import sys

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options


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
    from statetool.cli.doctor import check_java_classes, check_kernels, check_machine, check_snapshot, has_pyspark
    from statetool.cli.warm import compile_kernels, keep_java_classes

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

    With --build, a Spark job can ship the kernels to its executors, which then compile nothing.

    The kernels are used only with the same version of statetool, Python and numba, and the same type of processor. Set
    NUMBA_CPU_NAME=generic on both machines to allow other processors.

    Examples:
      statetool kernels --build kernels
      (cd kernels && tar -czf ../kernels.tar.gz *)
      spark-submit --archives kernels.tar.gz#kernels \\
        --conf spark.executorEnv.STATETOOL_KERNELS=kernels ...
    """
    from statetool.cli.warm import compile_kernels
    from statetool.kernels import kept
    from statetool.kernels.ahead import ship

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
