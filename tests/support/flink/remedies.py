"""Commands that ``check`` prints for refused pairs: run as printed, and their results restored by Flink (``pairs.py``)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.flink import pairs
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.pair_states import Pair
from tests.support.flink.pair_suites import Suite
from tools.flink_jars import DEFAULT_VERSIONS

#: Results of commands that help.
MENDED: Final = ("same", "kept", "converted", "restored", "empty")
#: Suites whose commands are tried from one release to another, too: in these, the releases of Kryo matter.
ACROSS: Final = ("classes", "changed-classes", "java-serialized", "kryo-with-avro")


#: Pairs whose command asks for what only the user knows: the old name or the value of a field.
ASKED: Final = {
    "tuple-swapped-changed", "pojo-to-tuple", "sql-row-longer-text", "sql-row-added", "sql-row-removed", "sql-row-swapped", "sql-row-widened",
    "sql-row-retyped", "sql-row-in-list-added", "sql-row-in-map-added", "avro-added-without-default", "avro-class-Undefaulted",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedied:
    """A refused pair after the printed commands.

    Attributes
    ----------
    commands
        As printed.
    result
        ``same``, ``kept``, ``other`` or ``restored``: what Flink restored, as in the table of pairs; ``converted``: the same values in
        another form, such as numbers as text. ``empty``: the commands left the state
        out. ``choice``: the command shows the steps, and the user decides. ``failed``: a command failed. ``refused``: Flink refuses the
        result. ``none``: no command.
    output
        Output of the check and of the commands.
    """

    suite: str
    pair: str
    backend: str
    commands: tuple[str, ...]
    result: str
    output: str


def remedied(
    flink: FlinkMachine, snapshots: Path, work: Path, written_by: str, backend: str, wanted: Sequence[Suite]
) -> Iterator[Remedied]:
    """Run the commands that are printed for the refused pairs of suites.

    A pair that each release refuses from its own savepoint is tried in one of them on one backend, and in the other one on the other backend.
    """
    release = pairs.short(flink.version)
    for suite in wanted:
        refused = refused_pairs(suite, written_by, release, backend)
        if suite.whole or not refused:
            continue
        sides = [pairs.old_savepoint(suite, snapshots, written_by, work)]
        if not suite.by_jars:
            sides.append(pairs.new_savepoint(suite, snapshots, release))
        before = pairs.content_of(flink, suite, sides[0])
        jars = [
            word
            for option, side in zip(("--jar-a", "--jar-b"), pairs.jars_of(suite, snapshots), strict=True)
            for jar in side
            for word in (option, str(jar))
        ]
        for pair in suite.pairs:
            if pair.name not in refused or pair.old is None or pair.new is None:
                continue
            folder = work / "remedied" / f"{suite.name}-{written_by}-{release}-{backend}" / pair.name
            folder.mkdir(parents=True)
            for side, (name, new) in zip(sides, (("old", False), ("new", True)), strict=False):
                stored = [o.state.operator_id for o in st.load(str(side))._inventory.operators.values()]
                known = [uid for uid in suite.states(new=new) if operator_id_for_uid(uid) in stored]
                others = [i for i in stored if i != operator_id_for_uid(pair.name)]
                st.drop(st.load(str(side), uids=known), str(folder / name), others)
            options = ["--flink", release, "--backend", "heap" if backend == "hashmap" else "rocksdb", *jars]
            paths = [str(folder / name) for name in ("old", "new")[: len(sides)]]
            # Savepoints of 1.20 store only ids.
            uids = ["--name-uid", pair.name] if suite.by_jars else []
            commands, output = printed([*paths, *options, *uids])
            result, more = _run(flink, suite, pair, folder, commands, backend, before.get(pair.name))
            yield Remedied(
                suite=suite.name, pair=pair.name, backend=backend, commands=commands, result=result, output=output + more
            )  # fmt: skip


def refused_pairs(suite: Suite, written_by: str, release: str, backend: str) -> set[str]:
    """Return the refused pairs whose turn it is."""

    def of(release: str, written_by: str) -> set[str]:
        results = pairs.results(written_by, release).items()
        return {pair for (name, pair, b), found in results if (name, b, found) == (suite.name, backend, "refused")}

    refused = of(release, written_by)
    if written_by != release:
        return refused
    releases = sorted(map(pairs.short, DEFAULT_VERSIONS))
    always = set.intersection(*(of(r, r) for r in releases))
    turn = releases.index(release) + pairs.BACKENDS.index(backend)
    left_out = {p.name for i, p in enumerate(suite.pairs) if (i + turn) % len(releases)}
    return refused - (always & left_out)


def printed(arguments: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return all commands that ``check`` prints, each once, and its output. If there is an error, what is unknown does not matter."""
    done = CliRunner().invoke(cli, ["check", *arguments])
    blocks = done.stdout.split("\n\n")
    if any(b.startswith("error:") for b in blocks):
        blocks = [b for b in blocks if not b.startswith("unknown:")]
    lines = [line for b in blocks for line in b.splitlines()]
    return tuple(dict.fromkeys(line.strip() for line in lines if line.startswith("    statetool "))), done.output


def _run(
    flink: FlinkMachine, suite: Suite, pair: Pair, folder: Path, commands: Sequence[str], backend: str, before: Any
) -> tuple[str, str]:
    """Run commands as printed, and return the result and the output."""
    if not any("NEW" in shlex.split(c) for c in commands):
        return "none", ""
    if any("--dry-run" in command for command in commands):
        return "choice", ""
    mended = folder / "old"
    output = ""
    for i, command in enumerate(c for c in commands if "NEW" in shlex.split(c)):
        target = folder / f"mended-{i}"
        paths = {str(folder / "old"): str(mended), "NEW": str(target)}
        done = CliRunner().invoke(cli, [paths.get(word, word) for word in shlex.split(command)[1:]])
        output += done.output
        if not target.exists():
            return "failed", output
        mended = target
    assert pair.new is not None
    if suite.by_jars:
        rows: Any = pairs.restore_one_by_one(flink, mended, {pair.name: pair.new}, backend)
        return _result(before, rows[pair.name]), output
    try:
        rows = pairs.restore(flink, mended, {pair.name: pair.new}, backend, again=suite.again, config=suite.after)
    except AssertionError as error:
        return "refused", f"{output}{error}"
    if rows is None:
        return "refused", output
    return _result(before, rows[pair.name]), output


def _result(before: Any, found: Any) -> str:
    """Return what Flink restored."""
    if found is None:
        return "refused"
    if not found:
        return "empty"
    result = pairs.word(before, found)
    return "converted" if result == "other" and _is_converted(before, found) else result


def _is_converted(before: Any, after: Any) -> bool:
    """Return True if rows have all parts of other ones, in the same order, whatever their form."""
    old, new = (sorted(list(_parts(row)) for row in rows) for rows in (before, after))
    return len(old) == len(new) and all(_contains(iter(b), a) for a, b in zip(old, new, strict=True))


def _contains(parts: Iterator[str], wanted: list[str]) -> bool:
    return all(part in parts for part in wanted)


def _parts(value: Any) -> Iterator[str]:
    """Yield the parts of a value as text."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _parts(part)
    elif value is not None:
        yield str(value)
