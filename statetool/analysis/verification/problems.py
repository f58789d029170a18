"""The problems of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from statetool.errors import NO_FINDING, UNREAD, StatetoolError, sentence, several
from statetool.formats.metadata import SnapshotMetadata
from statetool.io import files
from statetool.snapshot.claimed import claimed_files
from statetool.types.operators import operator_name

Severity = Literal["error", "warning", "note"]
#: Up to this many missing files of one directory are named individually.
_MOST_FILES: Final = 3
_MISSING: Final = "the file does not exist"
_NOT_READ: Final = "not read, so its content is unknown: "
#: A value that only a table cannot show was checked.
_NO_TABLE: Final = "valid, but no table can show it: "
#: Files outside of metadata were checked.
_ELSEWHERE: Final = "needs files that only its state names: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem.

    ``error``: Flink would fail to restore it, or restore something wrong. ``warning``: unusual, though Flink can restore it.
    ``note``: part that could not be checked, with the reason. ``offset`` counts bytes from the start of ``file``, unless ``problem``
    says otherwise.
    """

    severity: Severity
    operator: str | None
    operator_name: str | None = field(init=False)
    subtask: int | None
    state: str | None
    file: str | None
    offset: int | None
    problem: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator_name", operator_name(self.operator) if self.operator is not None else None)

    @property
    def unread(self) -> bool:
        """Return True if keyed or operator state was not read at all."""
        return self.severity == "warning" and self.problem.startswith(_NOT_READ)

    @property
    def is_unknown(self) -> bool:
        """Return True if something was not read or not checked."""
        return self.unread or (self.severity == "note" and not self.problem.startswith((_NO_TABLE, _ELSEWHERE)))

    @property
    def is_missing_file(self) -> bool:
        """Return True if a file of the snapshot is missing."""
        return self.file is not None and self.problem.startswith(_MISSING)


def not_shown(message: str) -> str:
    """Return the text of a problem with a value that is valid, but that no table can show."""
    return _NO_TABLE + message


def problem_of(
    error: StatetoolError,
    *,
    severity: Severity = "error",
    operator: str | None = None,
    subtask: int | None = None,
    state: str | None = None,
    file: str | None = None,
) -> Problem:
    """Return an error as a problem; the location stored in the error takes precedence.

    Raises
    ------
    CheckpointDeletedError, StorageError
        The error says nothing about the bytes of the snapshot.
    """
    if isinstance(error, NO_FINDING):
        raise error
    where = error.where
    places = (("key group", where.key_group), ("type", where.type_path), ("region", where.region))
    inside = ", ".join(f"{name} {value}" for name, value in places if value is not None)
    text = f"{error.message} [{inside}]" if inside else error.message
    return Problem(
        severity=severity,
        operator=where.operator or operator,
        subtask=subtask,
        state=where.state or state,
        file=where.file or file,
        offset=where.offset,
        problem=f"{text}. {sentence(error.hint)}" if error.hint else text,
    )


def reading_failed(error: StatetoolError, **place: Any) -> Problem:
    """Return the problem of unreadable keyed or operator state: a warning for errors of :data:`UNREAD`, else an error."""
    if not isinstance(error, UNREAD):
        return problem_of(error, **place)
    problem = problem_of(error, severity="warning", **place)
    return replace(problem, problem=_NOT_READ + problem.problem)


def severity_of(error: StatetoolError, otherwise: Severity = "error") -> Severity:
    """Return ``note`` for errors of :data:`UNREAD`, else ``otherwise``."""
    return "note" if isinstance(error, UNREAD) else otherwise


def note(operator: str, words: str, state: str | None = None) -> Problem:
    """Return a note on a part that could not be checked."""
    return Problem(severity="note", operator=operator, subtask=None, state=state, file=None, offset=None, problem=words)


def elsewhere(operator: str, words: str, state: str | None) -> Problem:
    """Return a note on files that only the state of an operator names."""
    return note(operator, _ELSEWHERE + words, state)


def missing_file(file: str, operator: str, subtask: int, words: str = "") -> Problem:
    """Return the problem of a missing file; ``words`` add details."""
    text = f"{_MISSING}{words}"
    return Problem(
        severity="error", operator=operator, subtask=subtask, state=None, file=file, offset=None, problem=text
    )


def group_missing(problems: Sequence[Problem], metadata: SnapshotMetadata, metadata_file: str) -> list[Problem]:
    """Return the problems, with one problem per directory that misses more than a few files instead of one per file.

    All files of a claimed savepoint are one problem, too.
    """
    grouped: list[Problem] = []
    missing: dict[str, list[Problem]] = {}
    lost = {p.file for p in problems if p.file is not None and p.is_missing_file}
    claimed = claimed_files(metadata, metadata_file, lost)
    if claimed is not None:
        words = f"{claimed.text} {claimed.cure}"
        grouped.append(
            Problem(
                severity="error", operator=None, subtask=None, state=None, file=claimed.home, offset=None, problem=words
            )
        )
    of_savepoint = frozenset(claimed.files) if claimed is not None else frozenset()
    for problem in problems:
        if problem.is_missing_file and problem.file in of_savepoint:
            continue
        if problem.file is not None and problem.is_missing_file:
            missing.setdefault(files.parent(problem.file), []).append(problem)
        else:
            grouped.append(problem)
    for directory, of_directory in missing.items():
        names = sorted({p.file for p in of_directory if p.file is not None})
        grouped += of_directory if len(names) <= _MOST_FILES else [_missing_directory(directory, names, of_directory)]
    return grouped


def _missing_directory(directory: str, names: Sequence[str], problems: Sequence[Problem]) -> Problem:
    operators = sorted({p.operator or "" for p in problems})
    shown = ", ".join(name.rpartition("/")[2] for name in names[:_MOST_FILES])
    return Problem(
        severity="error",
        operator=operators[0] if len(operators) == 1 else None,
        subtask=None,
        state=None,
        file=directory,
        offset=None,
        problem=f"{several(len(names), 'file')} of this directory do not exist, of {several(len(operators), 'operator')}: {shown}, ...; "
        "copy the directory beside the metadata, or pass its new location with --rebase OLD=NEW",
    )
