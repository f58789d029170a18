"""Commands about this installation: check it, compile its kernels, show a demo."""

from __future__ import annotations

import sys

import click

from statetool.cli.completion import complete_path
from statetool.cli.options import output_option
from statetool.cli.output import Output


@click.command()
@output_option
@click.option(
    "--warm",
    is_flag=True,
    help="First compile all kernels for this machine and keep Spark's Java classes, so that no query has to wait.",
)
@click.argument("path", required=False, shell_complete=complete_path)
def doctor(path: str | None, form: str, warm: bool) -> None:
    """Check this machine, and a snapshot if one is given."""
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
    Output(form).rows(findings)
    if any(not f["fine"] for f in findings):
        sys.exit(1)


@click.command()
@output_option
@click.option(
    "--build", "folder", metavar="DIR", help="Put compiled code into DIR, to be shipped to where it is needed."
)
def kernels(form: str, folder: str | None) -> None:
    """Say where compiled kernels are kept; --build makes a folder of them.

    A job on Spark takes it along, and needs to compile nothing then:

    \b
      statetool kernels --build kernels && (cd kernels && tar -czf ../kernels.tar.gz *)
      spark-submit --archives kernels.tar.gz#kernels --conf spark.executorEnv.STATETOOL_KERNELS=kernels ...

    The code is of these sources, this Python and numba, and this kind of processor; where one of them is another, it is left
    alone. With NUMBA_CPU_NAME=generic in both places the kind of processor does not matter.
    """
    from statetool.cli.warm import compile_kernels
    from statetool.kernels import kept
    from statetool.kernels.ahead import ship

    written = None
    if folder is not None:
        compile_kernels()
        written = ship(folder)
    Output(form).record(
        {
            "code_of": kept.stamp(),
            "kept_in": kept.target(),
            "looked_for_in": [str(f) for f in kept.folders()],
            "kernels": len(kept.names()),
            "written_to": written,
        }
    )


@click.command()
def demo() -> None:
    """Show in a minute what this is: a savepoint as tables, a query on Spark, an edit written and read back."""
    from statetool.demo.run import run_demo

    run_demo(Output("text"))
