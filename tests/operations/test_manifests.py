"""Manifests for Kubernetes and ways to install: they are valid, and name commands, options and extras that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from statetool.cli.main import cli
from tools.licences import extras

DOCS: Final = Path(__file__).parents[2] / "docs"
MANIFESTS: Final = sorted((DOCS / "operations" / "kubernetes").glob("*.yaml"))
#: Extras that are not for the wheel's users alone.
EXTRAS: Final = {*extras(), "all", "docs", "test"}


def pods(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the specifications of pods in a document."""
    for key, value in document.items():
        if key == "template" and "containers" in value.get("spec", {}):
            yield value["spec"]
        elif isinstance(value, dict):
            yield from pods(value)


def commands(container: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the commands of statetool in a container, those of a shell too."""
    words = [*container["command"], *container.get("args", ())]
    if words[0] == "statetool":
        yield words[1:]
        return
    values = {item["name"]: item["value"] for item in container["env"]}
    for found in re.finditer(r"\bstatetool ([^\n)]*)", words[-1]):
        yield [re.sub(r"\$(\w+)", lambda m: values.get(m[1], "/" + m[1]), word) for word in shlex.split(found[1])]


def parse(words: list[str]) -> None:
    """Parse a command as the command line does, without running it.

    Raises
    ------
    click.UsageError
        An option or an argument is wrong.
    """
    group: click.Command = cli
    context = click.Context(cli)
    while isinstance(group, click.Group):
        name, command, words = group.resolve_command(context, words)
        assert command is not None, name
        context, group = click.Context(command, parent=context), command
    group.make_context(str(name), list(words))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_manifests_run_commands_that_exist_with_few_rights(file: Path) -> None:
    documents = list(yaml.safe_load_all(file.read_text()))
    assert all(d["apiVersion"] and d["kind"] and d["metadata"]["name"] for d in documents)
    found = [pod for document in documents for pod in pods(document)]
    assert len(found) == 1
    (pod,) = found
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        rights = container["securityContext"]
        assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        lines = list(commands(container))
        assert lines
        for words in lines:
            parse(words)


def test_the_page_lists_all_manifests() -> None:
    page = (DOCS / "operations" / "kubernetes.md").read_text()
    assert set(re.findall(r"\(kubernetes/([\w-]+\.yaml)\)", page)) == {file.name for file in MANIFESTS}


@pytest.mark.parametrize("words", ["verify /sp --depe", "savepoint", "sinks nothing /sp"])
def test_a_wrong_command_is_noticed(words: str) -> None:
    with pytest.raises(click.UsageError):
        parse(words.split())


def test_ways_to_install_name_extras_that_exist() -> None:
    text = (DOCS / "install.md").read_text() + (DOCS / "operations" / "kubernetes.md").read_text()
    named = [name for group in re.findall(r"(?:\.|statetool)\[([\w,]+)\]", text) for name in group.split(",")]
    assert len(named) >= 5
    assert set(named) <= EXTRAS
