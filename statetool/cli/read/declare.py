"""The command that shows the classes of the job's jar as declarations."""

from __future__ import annotations

import json
from typing import Literal

import click

from statetool.cli.group import Command
from statetool.cli.options import CommonOptions, common_options
from statetool.cli.output import echo_err
from statetool.errors import OptionError, several
from statetool.types.declared import to_json


@click.command(cls=Command)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option(
    "--kryo",
    type=click.Choice(["2", "5"]),
    help="Version of Kryo: 2 in Flink 1.x, 5 in Flink 2.x. Few classes depend on it.",
)
@common_options("jar")
def declare(options: CommonOptions, patterns: tuple[str, ...], kryo: str | None) -> None:
    """Show the declarations of classes in the job's jar.

    PATTERN is a class name, in which * stands for any characters. By default all classes are shown.

    The result is the JSON that --declare FILE reads. Edit it for classes that have changed since the snapshot was
    taken. Classes with custom serialization are listed on stderr with the reason.

    Examples:
      statetool declare --jar job.jar 'com.acme.*' > classes.json
      statetool declare --jar job.jar com.acme.Order --kryo 5
    """
    from statetool.java.classes.class_path import ClassPath
    from statetool.java.classes.declarations import declare_classes

    if not options.jar:
        raise OptionError("no jar was given", hint="add --jar FILE, the job's jar")
    version: Literal[2, 5] | None = None if kryo is None else 2 if kryo == "2" else 5
    found = declare_classes(ClassPath(options.jar), patterns, kryo=version)
    lines = [json.dumps(to_json(c), ensure_ascii=False) for c in found.declared]
    options.output.text("[", *(f"  {line}," for line in lines[:-1]), *(f"  {line}" for line in lines[-1:]), "]")
    echo_err(*(f"{c.name} is not declared: {c.reason}" for c in found.undeclared))
    if not found.declared and not found.undeclared:
        echo_err("nothing found")
    elif found.undeclared:
        echo_err(
            f"{several(len(found.declared), 'class', 'classes')} declared, {len(found.undeclared)} not: declare these by hand"
        )
