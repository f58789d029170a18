"""The form of every command's help, its options and examples, and what starting a command imports."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import statetool
from statetool.api.write.options import CopyOptions
from statetool.api.write.verbs.base import Verb
from statetool.api.write.verbs.table import VERBS
from statetool.api.write.verbs.values import Transform
from statetool.cli.commands import COMMANDS, WORDS
from statetool.cli.main import cli
from statetool.cli.options import CommonOptions
from tests.support.cli_output import command_of, commands, help_of
from tests.support.zoo import ZOO

_NAMES = [names for names in commands() if names]
_PREFIX = "  statetool "


def test_the_table_has_the_first_line_of_each_help() -> None:
    for section in COMMANDS.values():
        for name, (_, line) in section.items():
            assert (command_of((name,)).help or "").splitlines()[0] == f"{line}."


@pytest.mark.parametrize("names", _NAMES, ids=" ".join)
def test_help_is_a_line_then_details_then_examples_that_the_command_takes(names: tuple[str, ...]) -> None:
    command = command_of(names)
    first, *more = (command.help or "").splitlines()
    assert len(first) <= 60
    assert first.endswith(".")
    assert not more[0]
    text = help_of(names)
    assert max(map(len, text.splitlines())) <= 80
    examples = text.partition("Examples:\n")[2].partition("\n\n")[0].replace(" \\\n", " ").splitlines()
    own = [line for line in examples if line.startswith("  " + _PREFIX)]
    assert own
    for example in own:
        words = shlex.split(example)[1:]
        assert words[: len(names)] == list(names)
        verbs = words[: len(names) + isinstance(command, click.Group)]
        command_of(tuple(verbs)).make_context(
            verbs[-1], words[len(verbs) :], parent=click.Context(cli, **cli.context_settings)
        )


@pytest.mark.parametrize("group", ["", *(" ".join(n) for n in _NAMES if isinstance(command_of(n), click.Group))])
def test_a_group_without_a_command_shows_its_help(group: str) -> None:
    command = [sys.executable, "-m", "statetool", *group.split()]
    bare = subprocess.run(command, capture_output=True, text=True, check=False)
    asked = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert (bare.returncode, bare.stdout, bare.stderr) == (2, asked.stdout, "")
    assert "\\n" not in bare.stdout


@pytest.mark.parametrize("word", WORDS)
def test_words_of_other_tools_lead_to_commands(word: str) -> None:
    done = CliRunner().invoke(cli, [word], prog_name="statetool")
    assert done.exit_code == 2
    assert f"(run: statetool {WORDS[word][0]}" in done.stderr
    for meant in WORDS[word]:
        if not meant.startswith("--"):
            assert command_of((meant,)).name


@pytest.mark.parametrize("names", _NAMES, ids=" ".join)
def test_help_shows_no_limit_of_the_machine(names: tuple[str, ...]) -> None:
    assert not re.search(r"\d{16}", help_of(names).replace(",", ""))


@pytest.mark.parametrize("verb", [v for v in VERBS.values() if v is not Transform], ids=lambda v: v.__name__)
def test_a_verb_has_no_option_of_writes_that_its_function_does_not_take(verb: type[Verb]) -> None:
    taken = {*inspect.signature(getattr(statetool, verb.function())).parameters}
    for name in verb.command_names():
        shown = {p.name for p in command_of(tuple(name.split(" "))).params}
        assert shown & {f.name for f in fields(CopyOptions)} <= taken
        assert "on_spark" not in shown or "spark" in taken


def test_every_option_has_help() -> None:
    for names in _NAMES:
        for parameter in command_of(names).params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (names, parameter.name)
                assert parameter.help[0].isupper(), (names, parameter.name)


def test_common_options_are_last_and_in_one_order() -> None:
    order = [
        "latest", "rebase", "uids", "name_uid", "declare", "jar", "columns_from_plan", "python", "unsafe_pickle", "dry_run", "take_over", "checkpoint_id",
        "on_spark", "threads", "output", "json", "json_schema", "wide", "debug",
    ]  # fmt: skip
    assert {*order} - {"json", "json_schema", "wide", "debug"} == {*CommonOptions.__dataclass_fields__} - {
        "chosen",
        "jobs",
        "writes",
    }
    for names in _NAMES:
        command = command_of(names)
        if not isinstance(command, click.Group):
            options = [p.name for p in command.params if isinstance(p, click.Option)]
            common = [name for name in order if name in options]
            assert options[len(options) - len(common) :] == common, names


def test_o_is_the_output_format_or_the_file_of_a_report() -> None:
    for names in _NAMES:
        for parameter in command_of(names).params:
            if "-o" in parameter.opts:
                assert parameter.name == ("target" if names == ("report",) else "output")
                assert isinstance(parameter.type, click.Choice) is (parameter.name == "output")


def test_tracebacks_may_be_asked_for_before_and_after_the_command() -> None:
    for arguments in (["--debug", "info", "/nowhere"], ["info", "/nowhere", "--debug"]):
        done = subprocess.run(
            [sys.executable, "-m", "statetool", *arguments], capture_output=True, text=True, check=False
        )
        assert "Traceback" in done.stderr


#: Modules that a command imports at most.
_HEAVY = (
    "pyarrow",
    "numba",
    "numpy",
    "pandas",
    "pyspark",
    "fsspec",
    "rich",
    "asyncio",
    "statetool.serializers.core.base",
)


@pytest.mark.parametrize(
    ("arguments", "most"),
    [(["--version"], 12), (["--help"], 12), (["info", "--help"], 59), (["info", "NAMED"], 104)],
    ids=["version", "help", "info-help", "info"],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], most: int, tmp_path: Path) -> None:
    """States need serializers, and ``info`` shows those of operators without a uid: here every operator has one."""
    savepoint, named = statetool.load(ZOO), str(tmp_path / "named")
    statetool.drop(savepoint, named, [o.operator_id for o in savepoint.operators.values() if not o.uid])
    arguments = [named if word == "NAMED" else word for word in arguments]
    code = (
        "import sys\nfrom statetool.cli.main import main\ntry: main()\nfinally: sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    modules = done.stderr.rpartition("\n")[2].split()
    assert [m for m in _HEAVY if m in modules] == []
    own = [m for m in modules if m.partition(".")[0] == "statetool"]
    assert len(own) <= most, sorted(own)
