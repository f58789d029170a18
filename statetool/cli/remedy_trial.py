"""Trial of the commands that ``check`` suggests: they are run on a small snapshot as they are printed, and the result is checked again."""

from __future__ import annotations

import io
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statetool.errors import NO_FINDING, StatetoolError, UnsupportedError, sentence, several
from statetool.reporting.verdicts.check import check_findings
from statetool.reporting.verdicts.finding import Findings
from statetool.snapshot.metadata_tables import operator_row

if TYPE_CHECKING:
    import statetool
    from statetool.compatibility.verdicts import Check

#: State, and files with it, of a snapshot on which commands are tried.
_MOST_BYTES: Final = 32 << 20
_MOST_FILES: Final = 200
#: Words that the user has to replace.
_OPEN: Final = ("NEW_UID", "NEW_NAME", "--dry-run")
#: Checks a snapshot that the commands wrote. The flag says whether its values have the types of the new job.
Recheck = Callable[[str, bool], "Check"]


def try_remedies(findings: Findings, snapshot: statetool.Savepoint, path: str, recheck: Recheck) -> Findings:
    """Return the findings, with what a trial of the commands against errors has shown, or why there was none.

    Parameters
    ----------
    path
        The snapshot, as in the commands.
    """
    commands = [f.command for f in findings.findings if f.severity == "error" and "NEW" in shlex.split(f.command)]
    commands = list(dict.fromkeys(commands))
    findings = _with_proposals(findings)
    runnable = [c for c in commands if not any(word in c for word in _OPEN)]
    texts = dict.fromkeys(commands, "A proposal: it needs your choice, so it was not tried.")
    reason = _why_not(snapshot) if runnable else ""
    if not runnable or reason:
        texts |= dict.fromkeys(runnable, f"A proposal: it was not tried, because {reason}.")
        return _marked(findings, texts)
    with tempfile.TemporaryDirectory(prefix="statetool-trial-") as work:
        try:
            written = _run(runnable, path, Path(work))
            check = recheck(written, any(shlex.split(c)[1] in ("migrate", "upgrade") for c in runnable))
        except NO_FINDING:
            raise
        except StatetoolError as error:
            return _marked(findings, texts | dict.fromkeys(runnable, f"A proposal: its trial failed. {error.message}"))
    known = {f.where for f in findings.findings}
    errors = {f.where: f for f in check_findings(check).findings if f.severity == "error"}
    stays = {f.command for f in findings.findings if f.where in errors}
    others = [f for where, f in errors.items() if where not in known]
    helps = {c: not others and c not in stays for c in runnable}
    for c in runnable:
        texts[c] = (
            "A proposal: in a trial, the job still does not restore this."
            if c in stays
            else f"In a trial, the copy has another error: {', '.join(others[0].where)}."
            if others
            else ""
        )
    marked = _marked(findings, {c: text for c, text in texts.items() if not helps.get(c)})
    if not any(helps.values()):
        return marked
    return replace(marked, conditions=(*marked.conditions, _outcome(check, len(errors), sum(helps.values()))))


def _with_proposals(findings: Findings) -> Findings:
    """Mark the commands that write against what is unknown: no trial can show that they help."""
    marked = (
        replace(f, remedy=f"{f.remedy} A proposal: whether it is needed is unknown.")
        if f.severity == "unknown" and "NEW" in shlex.split(f.command)
        else f
        for f in findings.findings
    )
    return replace(findings, findings=tuple(marked))


def _outcome(check: Check, errors: int, commands: int) -> str:
    """Return what a trial of commands that help has shown."""
    written = (
        "what the suggested command writes"
        if commands == 1
        else "what the suggested commands write, one after another,"
    )
    if errors:
        return f"tried: {written} has {several(errors, 'error')} left"
    if check.verdict == "unknown":
        return f"tried: {written} has no error left; whether the job restores it is unknown"
    text = f"tried: the job restores {written.rstrip(',')}"
    if check.verdict == "after_migration":
        text += ", and Flink migrates values"
    return f"{text}, with {several(len(check.warnings), 'warning')}" if check.warnings else text


def _why_not(snapshot: statetool.Savepoint) -> str:
    """Return why commands are not tried on a snapshot."""
    operators = snapshot.inventory.operators.values()
    size = sum(operator_row(o).state_bytes for o in operators)
    if size > _MOST_BYTES:
        return f"it would copy {several(size, 'byte')} of state"
    files = sum(o.state.parallelism for o in operators)
    return f"the snapshot has {several(files, 'subtask')}" if files > _MOST_FILES else ""


def _run(commands: Sequence[str], path: str, work: Path) -> str:
    """Run commands one after another, and return the path of the last snapshot.

    Raises
    ------
    UnsupportedError
        A command writes nothing.
    """
    from statetool.cli.main import cli  # loads the commands

    source = path
    for i, command in enumerate(commands):
        target = str(work / str(i))
        words = [{path: source, "NEW": target}.get(word, word) for word in shlex.split(command)[1:]]
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), suppress(SystemExit):
            cli.main(args=words, prog_name="statetool", standalone_mode=False)
        if not (Path(target) / "_metadata").exists():
            last = next((line for line in reversed(err.getvalue().splitlines()) if line), "nothing was written")
            raise UnsupportedError(sentence(last.removeprefix("error: ")))
        if i:
            shutil.rmtree(source)
        source = target
    return source


def _marked(findings: Findings, texts: Mapping[str, str]) -> Findings:
    """Return the findings with texts after the remedies with these commands."""
    marked = (
        replace(f, remedy=f"{f.remedy} {texts[f.command]}") if f.severity == "error" and f.command in texts else f
        for f in findings.findings
    )
    return replace(findings, findings=tuple(marked))
