"""Command groups: help in sections, examples, suggestions for misspelled commands, and commands that are imported when they run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

#: The commands of a group in sections: title, command, then the ``module:name`` of the command and its help in one line.
Sections: TypeAlias = "Mapping[str, Mapping[str, tuple[str, str]]]"

#: The last section of options in ``--help``.
COMMON: Final = "Common options"
#: Maximum width of the column of options, in a terminal that is narrower than this too.
_OPTIONS: Final = 30
_NARROW: Final = 60
_NARROW_OPTIONS: Final = 12
_EXAMPLES: Final = "\nExamples:\n"


def keep_lines_of_examples(help: str | None) -> str | None:
    """Return help text whose examples, at the end, click does not wrap."""
    return None if help is None else cleandoc(help).replace(_EXAMPLES, f"\n\b{_EXAMPLES}")


class SectionOption(click.Option):
    """An option in a named section of ``--help``.

    Parameters
    ----------
    section
        Title of the section.
    """

    def __init__(self, *arguments: Any, section: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.section = section


class CommandProcess:
    """The object of contexts in a process that runs one command and ends, unlike those in tests and in Python."""


class Command(click.Command):
    """A command whose help may end with examples, and whose options are in sections."""

    def __init__(self, name: str | None = None, *, help: str | None = None, **more: Any) -> None:
        super().__init__(name, help=keep_lines_of_examples(help), **more)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # Since click 8.5, arguments have help too. They are explained in the text above.
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                title = parameter.section if isinstance(parameter, SectionOption) else "Options"
                if parameter is self.get_help_option(ctx):
                    title = COMMON
                sections.setdefault(title, []).append(record)
        for title, records in sorted(sections.items(), key=lambda section: section[0] == COMMON):
            with formatter.section(title):
                formatter.write_dl(records, col_max=_NARROW_OPTIONS if formatter.width < _NARROW else _OPTIONS)


class CommandGroup(click.Group):
    """A group that suggests similar names for unknown commands."""

    command_class = Command
    #: Words of other tools, and the commands that do what they mean.
    _words: Mapping[str, tuple[str, ...]] = {}

    def __init__(self, name: str | None = None, *, help: str | None = None, **more: Any) -> None:
        super().__init__(name, help=keep_lines_of_examples(help), **more)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if no command is named, as ``--help`` does, with the exit code of a usage error: nothing was done."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from statetool.errors import suggest

            if meant := self._words.get(args[0], ()):
                message = error.message.partition(" Did you mean")[0]
                runs = " or ".join(f"{ctx.command_path} {word}" for word in meant)
                raise click.UsageError(f"{message} (run: {runs})", ctx) from None
            names = self.list_commands(ctx)
            beginning = [name for name in names if name.startswith(args[0])]
            message = error.message.partition(" Did you mean")[0]
            raise click.UsageError(f"{message} ({suggest(args[0], beginning or names)})", ctx) from None


class LazyGroup(CommandGroup):
    """A group whose commands are imported when they run. Its help needs no import.

    Parameters
    ----------
    sections
        The commands.
    words
        Words of other tools, and the commands that do what they mean.
    """

    def __init__(
        self, name: str | None = None, *, sections: Sections, words: Mapping[str, tuple[str, ...]], **more: Any
    ) -> None:
        super().__init__(name, **more)
        self._words = words
        self._sections = sections
        self._entries = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._entries:
            return None
        module, _, name = self._entries[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._entries))
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help) for name, (_, help) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self._entries if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self._entries[name][1]) for name in names), *options]
