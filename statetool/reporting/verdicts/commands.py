"""Suggested commands, with the paths and options of the command line that the user gave."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from statetool.compatibility.verdicts import B, Placeholder

#: Commands that take ``--match``, so that they are about A although operators have other ids in B.
MATCHING: Final = (("check",), ("diff",), ("migrate",), ("upgrade",), ("catch-up",))


def _no_options(command: tuple[str, ...]) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The paths that a user gave. ``options`` returns the options to add to a suggested command, such as ``--rebase``.

    ``by_jar``: instead of a snapshot of the new job, the user gave its jar. ``renamed``: the copy of A in which operators have the ids of B,
    for commands that do not take ``--match``. Empty if no id differs.
    """

    a: str = "A"
    b: str = "B"
    by_jar: bool = False
    renamed: str = ""
    options: Callable[[tuple[str, ...]], tuple[str, ...]] = _no_options

    def rename(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return the command that writes the copy with other ids, given as old and new uids or ids."""
        words = ("uid", self.a, self.renamed or "RENAMED", *(f"{old}={new}" for old, new in pairs))
        return shlex.join(("statetool", *words, *self.options(("uid",))))

    def suggest(self, *command: str) -> str:
        """Return a suggested command as text for a shell; ``command`` are the arguments of statetool."""
        if self.by_jar and command[:1] == ("migrate",):
            command = ("upgrade", *(word for word in command[1:] if word not in ("--to", B)))
        if self.by_jar and command[:1] == ("check",):
            command = tuple(word for word in command if word != B)
        options = self.options(command)
        if "--run" in command and "--jar-b" not in options:
            command = (*command, "--jar-b", "NEW.jar")
        paths = {"A": self.a if command[:1] in MATCHING else self.renamed or self.a, "B": self.b}
        words = [paths.get(word, word) if isinstance(word, Placeholder) else word for word in command]
        return shlex.join(("statetool", *words, *options))
